import type { listBotDeployments } from '../../../api/tasks.ts';
import { BOT_ARGUMENT, DEPLOYMENT_COLUMNS } from '../../bots.ts';
import { connect } from '../../connect.ts';
import { showItems } from '../../show-items.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'list the deployments of a bot, newest first',
  description: 'Lists backtests, paper sessions, tests and deployments to clusters.',
  arguments: { bot: BOT_ARGUMENT },
  settings: ['server_url'],
  examples: ['bots deployments sma-crossover'],
  async run(context, { bot: bot_ref }) {
    const server = await connect(context);
    const path = '/bots/{bot_ref}/deployments';
    const deployments = await Array.fromAsync(
      server.items<typeof listBotDeployments>('get', path, { params: { bot_ref } }),
    );
    return {
      data: { deployments },
      show: (out) => showItems(out, deployments, DEPLOYMENT_COLUMNS),
    };
  },
});
