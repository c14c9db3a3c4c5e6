import type { listOverrides } from '../../../../api/risk.ts';
import { BOT_ARGUMENT } from '../../../bots.ts';
import { listAnswer } from '../../../list-answer.ts';
import { OVERRIDE_COLUMNS } from '../../../risk.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'list the overrides of a bot, newest first',
  description: 'Lists each override with its status and the order that used it.',
  arguments: { bot: BOT_ARGUMENT },
  examples: ['bots overrides list sma-crossover'],
  run: (server, { bot: bot_ref }) =>
    listAnswer<typeof listOverrides>(
      server,
      'overrides',
      '/bots/{bot_ref}/overrides',
      OVERRIDE_COLUMNS,
      { params: { bot_ref } },
    ),
});
