import type { archiveBot } from '../../../api/bots.ts';
import { ServiceError } from '../../../base/errors.ts';
import { ask } from '../../ask.ts';
import { BOT_ARGUMENT, findBot } from '../../bots.ts';
import { defineServerVerb } from '../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'archive a bot on the server',
  description:
    'Archives the bot. Its versions, its events and its slug are kept; an update makes the bot active again.',
  arguments: { bot: BOT_ARGUMENT },
  options: { yes: { description: 'skip the confirmation' } },
  examples: ['bots delete sma-crossover', 'bots delete sma-crossover --yes'],
  async run(server, { bot: ref }, { yes }, context) {
    const { answer: bot, etag } = await findBot(server, ref);
    const typed = yes ? bot.slug : await ask(context, `Type ${bot.slug} to archive it:`, '--yes');
    if (typed !== bot.slug) {
      throw new ServiceError('confirmation_mismatch', `'${typed}' is not ${bot.slug}`, {
        remedy: 'Nothing was archived. Check that this is the bot you mean.',
      });
    }
    await server.call<typeof archiveBot>('delete', '/bots/{bot_ref}', {
      params: { bot_ref: bot.id },
      headers: { 'if-match': etag },
    });
    return {
      data: { id: bot.id, slug: bot.slug, status: 'archived' },
      show: (out) => out.line(`${bot.slug} is archived.`),
    };
  },
});
