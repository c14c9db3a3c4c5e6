import type { reinstateDeployment } from '../../../../api/registry.ts';
import { connect } from '../../../connect.ts';
import { showItems } from '../../../show-items.ts';
import { DEPLOYMENT_COLUMNS } from '../../../registry.ts';
import { CODE_OPTION, sendWithStepUp } from '../../../step-up.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'take back that a deployment was revoked',
  description:
    'Takes back that the deployment was revoked, and its leases with it: its devices can renew ' +
    'again. What was revoked lease by lease stays so. It asks for a code from your authenticator.',
  arguments: { deployment: { description: 'id of the deployment' } },
  options: { code: CODE_OPTION },
  settings: ['server_url'],
  examples: [
    'identity deployments reinstate acme-tokyo',
    'identity deployments reinstate acme-tokyo --code 123456',
  ],
  async run(context, args, { code }) {
    const server = await connect(context);
    const params = { deployment_id: args.deployment };
    const target = `deployment:${args.deployment}`;
    const stepUp = { action: 'identity.license.give', target, code } as const;
    const path = '/identity/deployments/{deployment_id}/reinstate';
    const deployment = await sendWithStepUp(context, server, stepUp, (headers) =>
      server.call<typeof reinstateDeployment>('post', path, { params, headers }),
    );
    return { data: deployment, show: (out) => showItems(out, [deployment], DEPLOYMENT_COLUMNS) };
  },
});
