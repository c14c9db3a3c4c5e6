import type { listLeases } from '../../../../api/leases.ts';
import { connect } from '../../../connect.ts';
import { showItems } from '../../../show-items.ts';
import { LEASE_COLUMNS } from '../../../leases.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'list the leases of the registry',
  options: {
    deployment: { value: 'id', description: 'only those of this installation' },
    state: {
      value: 'state',
      description: 'only those that are so',
      choices: ['valid', 'grace', 'expired', 'revoked'],
    },
    lineage: { value: 'id', description: 'only the renewals of this first lease' },
    previous: { value: 'id', description: 'only those that renew this one' },
  },
  settings: ['server_url'],
  examples: ['identity leases list', 'identity leases list --deployment acme-tokyo --state valid'],
  async run(context, _args, { deployment, state, lineage, previous }) {
    const server = await connect(context);
    const list = server.items<typeof listLeases>('get', '/identity/leases', {
      query: {
        deployment_id: deployment,
        state,
        lineage_id: lineage,
        previous_lease_id: previous,
      },
    });
    const leases = await Array.fromAsync(list);
    return { data: { leases }, show: (out) => showItems(out, leases, LEASE_COLUMNS) };
  },
});
