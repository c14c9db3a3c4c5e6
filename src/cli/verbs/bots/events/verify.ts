import { formatCount } from '../../../../base/format.ts';
import { BOT_ARGUMENT, rebuildState, tamperedError } from '../../../bots.ts';
import { connect } from '../../../connect.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'check that the events of a bot have not been tampered with',
  description:
    'The server reads every event of the bot and checks the hash chain. Exits with code 1 and names the first bad event if an event was altered, removed or added.',
  arguments: { bot: BOT_ARGUMENT },
  settings: ['server_url'],
  examples: ['bots events verify sma-crossover'],
  async run(context, { bot }) {
    const { seq, hash, fault } = await rebuildState(await connect(context), bot, {});
    const head = `${seq}:${hash}`;
    return {
      data: { verified: seq, head, fault },
      show(out) {
        out.line(`Events verified: ${formatCount(seq)}`);
        if (!fault) out.line(`Head: ${head}`);
      },
      failure: fault ? tamperedError(bot, fault) : undefined,
    };
  },
});
