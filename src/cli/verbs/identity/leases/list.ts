import type { listLeases } from '../../../../api/leases.ts';
import { listAnswer } from '../../../list-answer.ts';
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
  run: (context, _args, { deployment, state, lineage, previous }) =>
    listAnswer<typeof listLeases>(context, 'leases', '/identity/leases', LEASE_COLUMNS, {
      query: { deployment_id: deployment, state, lineage_id: lineage, previous_lease_id: previous },
    }),
});
