import type { getBotSnapshot } from '../../../api/bot-state.ts';
import { ServiceError } from '../../../base/errors.ts';
import { BOT_ARGUMENT, parseMoment, showState } from '../../bots.ts';
import { connect } from '../../connect.ts';
import { parseCount } from '../../parse-count.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'show the state of a bot, now or at a past event or time',
  description: 'Shows the state of the bot according to its events.',
  arguments: { bot: BOT_ARGUMENT },
  options: {
    atSeq: { value: 'seq', description: 'state after this event', parse: parseCount },
    at: {
      value: 'time',
      description: 'state at this time, by the time of recording',
      parse: parseMoment,
    },
  },
  settings: ['server_url'],
  examples: [
    'bots snapshot sma-crossover',
    'bots snapshot sma-crossover --at-seq 2',
    'bots snapshot sma-crossover --at 2026-01-02T03:04:05Z --json',
  ],
  async run(context, { bot: bot_ref }, { atSeq: at_seq, at }) {
    if (at_seq !== undefined && at !== undefined) {
      throw new ServiceError('usage', '--at-seq and --at exclude each other');
    }
    const server = await connect(context);
    const path = '/bots/{bot_ref}/state/snapshot';
    const snapshot = await server.call<typeof getBotSnapshot>('get', path, {
      params: { bot_ref },
      query: { at_seq, at },
    });
    const { seq, head_seq, state, state_hash, in_doubt } = snapshot;
    if (in_doubt !== undefined) {
      const { first_seq, last_seq } = in_doubt;
      context.message(
        `a clock was wrong when events ${first_seq} to ${last_seq} were recorded: they may have happened before or after ${at}. Use --at-seq to choose the event`,
      );
    }
    return {
      data: snapshot,
      show(out) {
        showState(out, state);
        out.line();
        out.line(`After event ${seq} of ${head_seq}; state hash ${state_hash}`);
      },
    };
  },
});
