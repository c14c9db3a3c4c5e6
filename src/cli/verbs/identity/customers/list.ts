import type { listCustomers } from '../../../../api/registry.ts';
import { connect } from '../../../connect.ts';
import { showItems } from '../../../show-items.ts';
import { CUSTOMER_COLUMNS } from '../../../registry.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'list the customers',
  settings: ['server_url'],
  examples: ['identity customers list', 'identity customers list --json | jq -r .customers[].name'],
  async run(context) {
    const server = await connect(context);
    const list = server.items<typeof listCustomers>('get', '/identity/customers', {});
    const customers = await Array.fromAsync(list);
    return { data: { customers }, show: (out) => showItems(out, customers, CUSTOMER_COLUMNS) };
  },
});
