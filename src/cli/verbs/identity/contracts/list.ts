import type { listContracts } from '../../../../api/registry.ts';
import { listAnswer } from '../../../list-answer.ts';
import { CONTRACT_COLUMNS } from '../../../registry.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'list the contracts',
  options: { customer: { value: 'id', description: 'only contracts of this customer' } },
  examples: ['identity contracts list', 'identity contracts list --customer acme --json'],
  run: (server, _args, { customer }) =>
    listAnswer<typeof listContracts>(server, 'contracts', '/identity/contracts', CONTRACT_COLUMNS, {
      query: { customer_id: customer },
    }),
});
