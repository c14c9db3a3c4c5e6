import type { createCustomer } from '../../../../api/registry.ts';
import { showItems } from '../../../show-items.ts';
import { CUSTOMER_COLUMNS, ID_OPTION } from '../../../registry.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'register a customer',
  options: {
    id: ID_OPTION,
    name: { value: 'text', description: 'display name of the customer', required: true },
  },
  examples: ['identity customers create --id acme --name "Acme Trading"'],
  async run(server, _args, { id, name }) {
    const customer = await server.call<typeof createCustomer>('post', '/identity/customers', {
      body: { customer_id: id, name },
    });
    return { data: customer, show: (out) => showItems(out, [customer], CUSTOMER_COLUMNS) };
  },
});
