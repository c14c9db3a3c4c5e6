import type { listCustomers } from '../../../../api/registry.ts';
import { listAnswer } from '../../../list-answer.ts';
import { CUSTOMER_COLUMNS } from '../../../registry.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'list the customers',
  settings: ['server_url'],
  examples: ['identity customers list', 'identity customers list --json | jq -r .customers[].name'],
  run: (context) =>
    listAnswer<typeof listCustomers>(
      context,
      'customers',
      '/identity/customers',
      CUSTOMER_COLUMNS,
      {},
    ),
});
