import type { listContracts } from '../../../../api/registry.ts';
import { connect } from '../../../connect.ts';
import { showItems } from '../../../show-items.ts';
import { CONTRACT_COLUMNS } from '../../../registry.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'list the contracts',
  options: { customer: { value: 'id', description: 'only those of this customer' } },
  settings: ['server_url'],
  examples: ['identity contracts list', 'identity contracts list --customer acme --json'],
  async run(context, _args, { customer }) {
    const server = await connect(context);
    const list = server.items<typeof listContracts>('get', '/identity/contracts', {
      query: { customer_id: customer },
    });
    const contracts = await Array.fromAsync(list);
    return { data: { contracts }, show: (out) => showItems(out, contracts, CONTRACT_COLUMNS) };
  },
});
