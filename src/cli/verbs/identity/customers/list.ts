import type { listCustomers } from '../../../../api/registry.ts';
import { listAnswer } from '../../../list-answer.ts';
import { CUSTOMER_COLUMNS } from '../../../registry.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'list the customers',
  examples: ['identity customers list', 'identity customers list --json | jq -r .customers[].name'],
  run: (server) =>
    listAnswer<typeof listCustomers>(
      server,
      'customers',
      '/identity/customers',
      CUSTOMER_COLUMNS,
      {},
    ),
});
