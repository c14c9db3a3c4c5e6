import type { listBotDeployments } from '../../../api/tasks.ts';
import { BOT_ARGUMENT, DEPLOYMENT_COLUMNS } from '../../bots.ts';
import { listAnswer } from '../../list-answer.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'list the deployments of a bot, newest first',
  description: 'Lists backtests, paper sessions, tests and deployments to clusters.',
  arguments: { bot: BOT_ARGUMENT },
  settings: ['server_url'],
  examples: ['bots deployments sma-crossover'],
  run: (context, { bot: bot_ref }) =>
    listAnswer<typeof listBotDeployments>(
      context,
      'deployments',
      '/bots/{bot_ref}/deployments',
      DEPLOYMENT_COLUMNS,
      { params: { bot_ref } },
    ),
});
