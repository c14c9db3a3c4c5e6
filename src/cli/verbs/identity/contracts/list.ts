import type { listContracts } from '../../../../api/registry.ts';
import { listAnswer } from '../../../list-answer.ts';
import { CONTRACT_COLUMNS } from '../../../registry.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'list the contracts',
  options: { customer: { value: 'id', description: 'only those of this customer' } },
  settings: ['server_url'],
  examples: ['identity contracts list', 'identity contracts list --customer acme --json'],
  run: (context, _args, { customer }) =>
    listAnswer<typeof listContracts>(
      context,
      'contracts',
      '/identity/contracts',
      CONTRACT_COLUMNS,
      { query: { customer_id: customer } },
    ),
});
