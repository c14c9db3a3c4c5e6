import type { listBotDeployments } from '../../../api/tasks.ts';
import { BOT_ARGUMENT, DEPLOYMENT_COLUMNS } from '../../bots.ts';
import { listAnswer } from '../../list-answer.ts';
import { defineServerVerb } from '../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'list the deployments of a bot, newest first',
  description: 'Lists backtests, paper sessions, tests and deployments to clusters.',
  arguments: { bot: BOT_ARGUMENT },
  examples: ['bots deployments sma-crossover'],
  run: (server, { bot: bot_ref }) =>
    listAnswer<typeof listBotDeployments>(
      server,
      'deployments',
      '/bots/{bot_ref}/deployments',
      DEPLOYMENT_COLUMNS,
      { params: { bot_ref } },
    ),
});
