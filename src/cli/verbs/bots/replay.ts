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
  summary: 'make the state of a bot, or what a paper session did, anew from its events',
  description:
    'Makes the state of the bot anew from every event since the first, trusting no snapshot, and checks the hash chain on the way. Exit 1, naming the first bad event, where one is not as it was written. With --run, runs the strategy of a paper session again over the recorded bars: exit 1 with the first order event that is another.',
  arguments: { bot: BOT_ARGUMENT },
  options: {
    untilSeq: { value: 'seq', description: 'not beyond this event', parse: parseCount },
    until: { value: 'time', description: 'as it was recorded by then', parse: parseMoment },
    run: { value: 'task', description: 'a paper session, which is made again' },
  },
  settings: ['server_url'],
  examples: [
    'bots replay sma-crossover',
    'bots replay sma-crossover --until-seq 2 --json',
    'bots replay sma-crossover --run 019b7d0e-0000-7000-8000-000000000000',
  ],
  async run(context, { bot }, { untilSeq: until_seq, until, run }) {
    if ([until_seq, until, run].filter((given) => given !== undefined).length > 1) {
      throw new ServiceError('usage', '--until-seq and --until exclude each other, and --run both');
    }
    const server = await connect(context);
    if (run !== undefined) return replayRun(server, bot, run);
    const replayed = await rebuildState(server, bot, { until_seq, until });
    const { seq, state, state_hash, fault } = replayed;
    return {
      data: replayed,
      show(out) {
        if (state !== null) showState(out, state);
        out.line();
        out.line(`After event ${seq}; state hash ${state_hash}`);
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
        showComparison(out, ['recorded', 'again'], difference.recorded, difference.replayed);
      } else if (fault === null) {
        const counts = `${formatCountOf(bars, 'bar')}, ${formatCountOf(events, 'order event')}`;
        out.line(`The same again: ${counts}; events hash ${events_hash}`);
      }
    },
    failure: failureOf(bot_ref, replayed),
  };
}

function failureOf(bot: string, { run_id, fault, first_difference }: RunReplay) {
  if (fault !== null) return tamperedError(bot, fault);
  if (first_difference === null) return undefined;
  const { seq } = first_difference;
  const what = seq === null ? 'an order event that was not recorded' : `another event than ${seq}`;
  return new ServiceError('failure', `made again, ${run_id} has ${what}`, {
    reason: 'not_the_same',
    remedy: 'See `service-local bots parity` for the version of the engine on which it ran.',
  });
}
