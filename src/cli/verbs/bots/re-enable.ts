import type { reEnableBot } from '../../../api/halts.ts';
import { formatCountOf } from '../../../base/format.ts';
import { BOT_ARGUMENT } from '../../bots.ts';
import { REASON_OPTION } from '../../halts.ts';
import { defineServerVerb } from '../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'let a bot trade again after repeated executions',
  description:
    'Lets the bot trade again after a session was latched by `repeated_execution` of its risk limits, or because holdings are missing from its account at the exchange. New sessions may start. A latched session that has not ended accepts orders again, within two seconds on paper, with its next report in production. This command starts no session.',
  arguments: { bot: BOT_ARGUMENT },
  options: { reason: REASON_OPTION },
  examples: ['bots re-enable sma-crossover --reason "the feed repeated a price; it is fixed"'],
  async run(server, { bot: bot_ref }, { reason }) {
    const data = await server.call<typeof reEnableBot>('post', '/bots/{bot_ref}/re-enable', {
      params: { bot_ref },
      body: { reason },
    });
    const active = data.latches.filter((latch) => latch.active);
    return {
      data,
      show(out) {
        out.line(`${bot_ref} may trade again.`);
        const runs = new Set(active.map(({ run_id }) => run_id));
        if (runs.size === 0) return;
        out.line(
          `${formatCountOf(runs.size, 'session')} will accept orders again: ${[...runs].join(', ')}.`,
        );
      },
    };
  },
});
