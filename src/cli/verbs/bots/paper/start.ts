import type { startPaper, StartedPaper } from '../../../../api/paper.ts';
import { ServiceError } from '../../../../base/errors.ts';
import { formatCountOf } from '../../../../base/format.ts';
import { BOT_ARGUMENT } from '../../../bots.ts';
import { connect } from '../../../connect.ts';
import { formatDuration } from '../../../output.ts';
import { RUN_OPTIONS } from '../../../run-options.ts';
import { resultAnswer, startedAnswer, waitForTask } from '../../../tasks.ts';
import { defineVerb, type Context } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'trade a bot on paper, on the server',
  description:
    'Starts a paper session in which the data of the catalogue arrive as if they were live. Waits for the end of the data and prints the result as `backtest` does. Ctrl-C stops only the waiting. The session continues, even after a restart of the server. The spec must state every risk limit.',
  arguments: { bot: BOT_ARGUMENT },
  options: {
    speed: {
      value: 'n|max',
      description: 'speed relative to the market; by default 1',
      parse: parseSpeed,
    },
    live: { description: 'follow an exchange instead of data from the catalogue' },
    exchange: {
      value: 'name',
      description: 'exchange for --live; by default the only one configured on the server',
    },
    resetLosses: {
      value: 'reason',
      description:
        'restart the loss limits, with --live; by default, losses of the last live session count',
    },
    ...RUN_OPTIONS,
  },
  settings: ['server_url'],
  examples: [
    'bots paper start sma-crossover --speed max',
    'bots paper start sma-crossover --speed 3600 --from 2020-01-01 --detach',
    'bots paper start sma-crossover --live --exchange binance --detach',
    'bots paper start sma-crossover --speed max --json | jq .hashes.events',
  ],
  async run(
    context,
    { bot: bot_ref },
    { speed, live, exchange, resetLosses, version, param, from, to, detach },
  ) {
    if (exchange !== undefined && !live) {
      throw new ServiceError('usage', '--exchange requires --live', { remedy: 'Add --live.' });
    }
    const server = await connect(context);
    const task = await server.call<typeof startPaper>('post', '/bots/{bot_ref}/paper/start', {
      params: { bot_ref },
      body: {
        speed,
        version,
        from,
        to,
        params: Object.fromEntries(param),
        ...(live && { live: { exchange } }),
        reset_losses: resetLosses,
      },
    });
    const { task_id } = task;
    reportPace(context, task, { speed, detach });
    if (detach) return startedAnswer(task, `bots paper status ${bot_ref}`);
    await waitForTask(context, task_id, 'paper');
    return resultAnswer(server, task_id);
  },
});

function parseSpeed(text: string): number | 'max' {
  if (text === 'max') return text;
  const speed = /^[0-9]*\.?[0-9]+$/.test(text) ? Number(text) : 0;
  if (speed > 0) return speed;
  throw new ServiceError('usage', `'${text}' is not a speed`, {
    remedy: 'Use a number above 0, or max.',
  });
}

function reportPace(
  { message }: Context,
  { other_sessions: others, pace }: StartedPaper,
  { speed = 1, detach }: { readonly speed: number | 'max' | undefined; readonly detach: boolean },
): void {
  if (others > 0) {
    message(
      `this bot already has ${formatCountOf(others, 'running session')}, and now trades in one more; \`service-local bots paper stop TASK\` ends one of them`,
    );
  }
  if (pace === null) return;
  const { bar_seconds: bar, total_seconds: total } = pace;
  const advice = detach ? '' : ', and --detach does not wait for the end';
  message(
    `at speed ${speed}, the next bar comes in ${roughly(bar)} and the session ends in ${roughly(total)} at the earliest; --speed max runs without waiting${advice}`,
  );
}

const UNITS = [
  ['year', 365.25 * 86_400],
  ['day', 86_400],
  ['hour', 3600],
] as const;

function roughly(seconds: number): string {
  const [unit, size] = UNITS.find(([, each]) => seconds >= 2 * each) ?? [];
  return unit === undefined
    ? formatDuration(seconds * 1000)
    : formatCountOf(Math.round(seconds / size), unit);
}
