import type { listOverrides } from '../../../../api/risk.ts';
import { BOT_ARGUMENT } from '../../../bots.ts';
import { connect } from '../../../connect.ts';
import { showItems } from '../../../show-items.ts';
import { OVERRIDE_COLUMNS } from '../../../risk.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'list the overrides of a bot, newest first',
  description: 'Lists each override with its status and the order that used it.',
  arguments: { bot: BOT_ARGUMENT },
  settings: ['server_url'],
  examples: ['bots overrides list sma-crossover'],
  async run(context, { bot: bot_ref }) {
    const server = await connect(context);
    const all = server.items<typeof listOverrides>('get', '/bots/{bot_ref}/overrides', {
      params: { bot_ref },
    });
    const overrides = await Array.fromAsync(all);
    return { data: { overrides }, show: (out) => showItems(out, overrides, OVERRIDE_COLUMNS) };
  },
});
