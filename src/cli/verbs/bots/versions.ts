import type { listBotVersions } from '../../../api/bots.ts';
import { formatActor } from '../../../base/format.ts';
import { BOT_ARGUMENT } from '../../bots.ts';
import { connect } from '../../connect.ts';
import { showItems } from '../../show-items.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'list the versions of a bot, newest first',
  description: 'Lists each version with its author and hash.',
  arguments: { bot: BOT_ARGUMENT },
  settings: ['server_url'],
  examples: ['bots versions sma-crossover'],
  async run(context, { bot: bot_ref }) {
    const server = await connect(context);
    const path = '/bots/{bot_ref}/versions';
    const versions = await Array.fromAsync(
      server.items<typeof listBotVersions>('get', path, { params: { bot_ref } }),
    );
    return {
      data: { versions },
      show: (out) =>
        showItems(out, versions, {
          version: ({ version }) => String(version),
          created: ({ created_at }) => created_at,
          by: ({ created_by, created_by_name }) => formatActor(created_by, created_by_name),
          hash: ({ hash }) => hash,
        }),
    };
  },
});
