import type { reinstateDeployment } from '../../api/registry.ts';
import { connect } from '../connect.ts';
import { showItems } from '../items.ts';
import { DEPLOYMENT_COLUMNS } from '../registry.ts';
import { defineVerb } from '../verb.ts';

export const verb = defineVerb({
  description:
    'Takes back that the deployment was revoked, and its leases with it: its devices can renew ' +
    'again. What was revoked lease by lease stays so.',
  arguments: { deployment: { description: 'id of the deployment' } },
  settings: ['server_url'],
  examples: ['identity deployments reinstate acme-tokyo'],
  async run(context, args) {
    const server = await connect(context);
    const deployment = await server.call<typeof reinstateDeployment>(
      'post',
      '/identity/deployments/{deployment_id}/reinstate',
      { params: { deployment_id: args.deployment } },
    );
    return { data: deployment, show: (out) => showItems(out, [deployment], DEPLOYMENT_COLUMNS) };
  },
});
