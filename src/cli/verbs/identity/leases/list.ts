import type { listLeases } from '../../../../api/leases.ts';
import { listAnswer } from '../../../list-answer.ts';
import { LEASE_COLUMNS } from '../../../leases.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'list the leases of the registry',
  options: {
    deployment: { value: 'id', description: 'only leases of this installation' },
    state: {
      value: 'state',
      description: 'only leases in this state',
      choices: ['valid', 'grace', 'expired', 'revoked'],
    },
    lineage: { value: 'id', description: 'only the renewals of this first lease' },
    previous: { value: 'id', description: 'only leases that renew this one' },
  },
  examples: ['identity leases list', 'identity leases list --deployment acme-tokyo --state valid'],
  run: (server, _args, { deployment, state, lineage, previous }) =>
    listAnswer<typeof listLeases>(server, 'leases', '/identity/leases', LEASE_COLUMNS, {
      query: { deployment_id: deployment, state, lineage_id: lineage, previous_lease_id: previous },
    }),
});
