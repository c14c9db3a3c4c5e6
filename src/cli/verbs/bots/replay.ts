import type { replayBot, RunReplay } from '../../../api/replay.ts';
import type { Client } from '../../../client/client.ts';
import { ServiceError } from '../../../base/errors.ts';
import { formatCountOf } from '../../../base/format.ts';
import { BOT_ARGUMENT, parseMoment, rebuildState, showState, tamperedError } from '../../bots.ts';
import { connect } from '../../connect.ts';
import { parseCount } from '../../parse-count.ts';
import { showComparison } from '../../show-comparison.ts';
import { defineVerb, type Answer } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'rebuild the state of a bot from its events, or run a paper session again',
  description:
    'Rebuilds the state of the bot from all its events that are not archived, without snapshots, and checks the hash chain. Exits with code 1 and names the first bad event if an event was altered. With --run, runs the strategy of a paper session again over the recorded bars, and exits with code 1 at the first order event that differs.',
  arguments: { bot: BOT_ARGUMENT },
  options: {
    untilSeq: { value: 'seq', description: 'stop after this event', parse: parseCount },
    until: { value: 'time', description: 'stop at this time', parse: parseMoment },
    run: { value: 'task', description: 'task of a paper session to run again' },
  },
  settings: ['server_url'],
  examples: [
    'bots replay sma-crossover',
    'bots replay sma-crossover --until-seq 2 --json',
    'bots replay sma-crossover --run 019b7d0e-0000-7000-8000-000000000000',
  ],
  async run(context, { bot }, { untilSeq: until_seq, until, run }) {
    if ([until_seq, until, run].filter((given) => given !== undefined).length > 1) {
      throw new ServiceError('usage', '--until-seq, --until and --run exclude each other');
    }
    const server = await connect(context);
    if (run !== undefined) return replayRun(server, bot, run);
    const replayed = await rebuildState(server, bot, { until_seq, until });
    const { seq, state, state_hash, fault, archived_seq } = replayed;
    return {
      data: replayed,
      show(out) {
        if (state !== null) showState(out, state);
        out.line();
        out.line(`After event ${seq}; state hash ${state_hash}`);
        if (archived_seq > 0) {
          out.line(`Events 1 to ${archived_seq} are archived; \`events verify\` reads them, too.`);
        }
      },
      failure: fault ? tamperedError(bot, fault) : undefined,
    };
  },
});

async function replayRun(server: Client, bot_ref: string, run_id: string): Promise<Answer> {
  const path = '/bots/{bot_ref}/replay';
  const answer = await server.call<typeof replayBot>('post', path, {
    params: { bot_ref },
    body: { run_id },
  });
  const replayed = answer as RunReplay;
  const { bars, events, events_hash, first_difference: difference, fault } = replayed;
  return {
    data: replayed,
    show(out) {
      if (difference !== null) {
        showComparison(out, ['recorded', 'replayed'], difference.recorded, difference.replayed);
      } else if (fault === null) {
        const counts = `${formatCountOf(bars, 'bar')}, ${formatCountOf(events, 'order event')}`;
        out.line(`Equal to the recording: ${counts}; events hash ${events_hash}`);
      }
    },
    failure: failureOf(bot_ref, replayed),
  };
}

function failureOf(bot: string, { run_id, fault, first_difference }: RunReplay) {
  if (fault !== null) return tamperedError(bot, fault);
  if (first_difference === null) return undefined;
  const { seq } = first_difference;
  const what =
    seq === null
      ? 'an order event that was not recorded'
      : `an order event that differs from event ${seq}`;
  return new ServiceError('failure', `the replay of ${run_id} has ${what}`, {
    reason: 'not_the_same',
    remedy: 'See `service-local bots parity`, which also compares the engine versions.',
  });
}
