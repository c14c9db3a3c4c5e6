import type { reEnableBot } from '../../api/halts.ts';
import { formatCountOf } from '../../format.ts';
import { BOT_ARGUMENT } from '../bots.ts';
import { connect } from '../connect.ts';
import { REASON_OPTION } from '../halts.ts';
import { defineVerb } from '../verb.ts';

export const verb = defineVerb({
  description:
    'Lets its sessions start again after one was latched by `repeated_execution` of its risk limits. It starts nothing by itself, and a latched session that has not ended denies orders until it has: stop or replace it.',
  arguments: { bot: BOT_ARGUMENT },
  options: { reason: REASON_OPTION },
  settings: ['server_url'],
  examples: ['bots re-enable sma-crossover --reason "the feed repeated a price; it is mended"'],
  async run(context, { bot: bot_ref }, { reason }) {
    const server = await connect(context);
    const data = await server.call<typeof reEnableBot>('post', '/bots/{bot_ref}/re-enable', {
      params: { bot_ref },
      body: { reason },
    });
    const active = data.latches.filter((latch) => latch.active);
    return {
      data,
      show(out) {
        out.line(`${bot_ref} may be started again.`);
        if (active.length === 0) return;
        out.line(
          `${formatCountOf(active.length, 'session')} of it still denies every order: stop or replace ${active.map(({ run_id }) => run_id).join(', ')}.`,
        );
      },
    };
  },
});
