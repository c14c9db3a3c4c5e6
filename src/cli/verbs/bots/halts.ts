import type { listHalts } from '../../../api/halts.ts';
import { connect } from '../../connect.ts';
import { HALT_COLUMNS } from '../../halts.ts';
import { showItems } from '../../show-items.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'list the halts, halts in force first',
  description:
    'Lists the halts in force first. The last column is the count of deployments that the halt ended.',
  settings: ['server_url'],
  examples: ['bots halts', "bots halts --json | jq '.halts[] | select(.lifted_at == null)'"],
  async run(context) {
    const server = await connect(context);
    const halts = await Array.fromAsync(server.items<typeof listHalts>('get', '/halts', {}));
    return { data: { halts }, show: (out) => showItems(out, halts, HALT_COLUMNS) };
  },
});
