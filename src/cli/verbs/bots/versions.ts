import type { listBotVersions } from '../../../api/bots.ts';
import { formatActor } from '../../../base/format.ts';
import { BOT_ARGUMENT } from '../../bots.ts';
import type { ItemOf } from '../../../client/route.ts';
import { listAnswer } from '../../list-answer.ts';
import type { Columns } from '../../show-items.ts';
import { defineServerVerb } from '../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'list the versions of a bot, newest first',
  description: 'Lists each version with its author and hash.',
  arguments: { bot: BOT_ARGUMENT },
  examples: ['bots versions sma-crossover'],
  run: (server, { bot: bot_ref }) =>
    listAnswer<typeof listBotVersions>(
      server,
      'versions',
      '/bots/{bot_ref}/versions',
      VERSION_COLUMNS,
      { params: { bot_ref } },
    ),
});

const VERSION_COLUMNS: Columns<ItemOf<typeof listBotVersions>> = {
  version: ({ version }) => String(version),
  created: ({ created_at }) => created_at,
  by: ({ created_by, created_by_name }) => formatActor(created_by, created_by_name),
  hash: ({ hash }) => hash,
};
