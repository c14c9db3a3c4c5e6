import { BOT_KINDS, BOT_STATUSES, BOT_COLUMNS } from '../bots.ts';
import type { listBots } from '../../api/bots.ts';
import { connect } from '../connect.ts';
import { showItems } from '../items.ts';
import { defineVerb } from '../verb.ts';

export const verb = defineVerb({
  options: {
    kind: { value: 'kind', description: 'only these', choices: BOT_KINDS },
    status: { value: 'status', description: 'only these', choices: BOT_STATUSES },
    query: { value: 'text', description: 'only those with it in slug or name' },
  },
  settings: ['server_url'],
  examples: ['bots list', 'bots list --status active --json | jq -r .bots[].slug'],
  async run(context, _args, { query: q, ...filters }) {
    const server = await connect(context);
    const list = server.items<typeof listBots>('get', '/bots', { query: { ...filters, q } });
    const bots = await Array.fromAsync(list);
    return { data: { bots }, show: (out) => showItems(out, bots, BOT_COLUMNS) };
  },
});
