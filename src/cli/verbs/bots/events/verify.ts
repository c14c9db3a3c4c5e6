import { formatCount } from '../../../../base/format.ts';
import { BOT_ARGUMENT, rebuildState, tamperedError } from '../../../bots.ts';
import { connect } from '../../../connect.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'check that nobody tampered with the events of a bot',
  description:
    'Has the server read every event of the bot and check its hash chain. Exit 1, naming the first bad event, when anything was altered, removed or added.',
  arguments: { bot: BOT_ARGUMENT },
  settings: ['server_url'],
  examples: ['bots events verify sma-crossover'],
  async run(context, { bot }) {
    const { seq, hash, fault } = await rebuildState(await connect(context), bot, {});
    const head = `${seq}:${hash}`;
    return {
      data: { verified: seq, head, fault },
      show(out) {
        out.line(`Events that are as they were written: ${formatCount(seq)}`);
        if (!fault) out.line(`Head: ${head}`);
      },
      failure: fault ? tamperedError(bot, fault) : undefined,
    };
  },
});
