import { join, resolve } from 'node:path';
import type { BotFork, forkBot } from '../../../api/fork.ts';
import type { ForkPage } from '../../../backtest/compare/render-fork.ts';
import { ServiceError } from '../../../base/errors.ts';
import { formatCountOf } from '../../../base/format.ts';
import { formatTime } from '../../../market/bar-time.ts';
import { BOT_ARGUMENT, tamperedError } from '../../bots.ts';
import { connect } from '../../connect.ts';
import type { Output } from '../../output.ts';
import { parseCount } from '../../parse-count.ts';
import { parseParam } from '../../run-options.ts';
import { showFigures } from '../../show-run-comparison.ts';
import { defineVerb, type Context } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'run a session again with other parameters after an event',
  description:
    'Runs a session again over its recorded bars, then a second time with other parameters ' +
    'after an event. Fills after that event are simulated, also if the session traded at an exchange. ' +
    'Compares figures, equity and drawdown of both, and writes one HTML page. ' +
    'Changes and records nothing on the server.',
  arguments: { bot: BOT_ARGUMENT },
  options: {
    at: {
      value: 'seq',
      description: 'number of an event; the parameters change at the first bars after it',
      required: true,
      parse: parseCount,
    },
    set: {
      value: 'params.name=value',
      description: 'parameter of the strategy after that event',
      repeat: true,
      parse: parseChange,
    },
    run: {
      value: 'task',
      description: 'task of the session; by default that of the newest paper session',
    },
    html: {
      value: 'file',
      description: 'file for the page; in runs_dir by default',
      complete: 'file',
    },
  },
  settings: ['server_url', 'runs_dir'],
  examples: [
    'bots fork sma-crossover --at 120 --set params.fast=20',
    'bots fork sma-crossover --at 120 --set params.fast=20 --set params.slow=50 --json',
    'bots fork sma-crossover --at 120 --set params.fast=20 --run 019b7d0e-0000-7000-8000-000000000000',
  ],
  async run(context, { bot: bot_ref }, { at: at_seq, set, run, html }) {
    const fork = await requestFork(context, bot_ref, {
      run_id: run,
      at_seq,
      params: Object.fromEntries(set),
    });
    const { run_id, comparison, fault } = fork;
    if (comparison === null)
      return { data: fork, show() {}, failure: tamperedError(bot_ref, fault!) };
    const { renderFork } = await import('../../../backtest/compare/render-fork.ts');
    const { prepareDirectory } = await import('../../../backtest/run-files.ts');
    const { writeText } = await import('../../../backtest/write-text.ts');
    const { cwd, settings } = context;
    const page =
      html === undefined
        ? join(settings.runs_dir, `fork-${run_id}-${at_seq}.html`)
        : resolve(cwd, html);
    if (html === undefined) await prepareDirectory(settings.runs_dir);
    const changes = changesOf(comparison);
    const notes = notesOn(fork, comparison);
    const { time } = comparison.at;
    const described = { ...comparison, bot: bot_ref, run_id, at_seq, time, changes, notes };
    await writeText(page, [renderFork(described)]);
    return {
      data: fork,
      show(out) {
        showFork(out, described);
        out.line();
        out.line(`page: ${page}`);
      },
    };
  },
});

/** Ctrl-C ends the request at once. */
async function requestFork(context: Context, bot_ref: string, body: ForkBody): Promise<BotFork> {
  const { signal, io, message } = context;
  const server = await connect(context, signal);
  if (io.stderr.isTTY) message('the server runs the session twice, within 25 seconds');
  try {
    const path = '/bots/{bot_ref}/fork';
    return await server.call<typeof forkBot>('post', path, { params: { bot_ref }, body });
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new ServiceError('interrupted', 'interrupted: no fork was recorded or written', {
      remedy: 'Run the same command again.',
      cause: error,
    });
  }
}

interface ForkBody {
  readonly run_id: string | undefined;
  readonly at_seq: number;
  readonly params: Record<string, ReturnType<typeof parseParam>[1]>;
}

/** Only parameters can change, because bars, account and limits belong to the recorded past. */
function parseChange(text: string): ReturnType<typeof parseParam> {
  if (text.startsWith('params.')) return parseParam(text.slice('params.'.length));
  throw new ServiceError('usage', `'${text}' is not params.name=value`, {
    remedy: 'A fork can only change parameters of the strategy: --set params.fast=20.',
  });
}

type Compared = NonNullable<BotFork['comparison']>;

function changesOf({ params }: Compared): string[] {
  const changed = params.filter(({ session, fork }) => session !== fork);
  if (changed.length === 0) return ['no parameter differs'];
  return changed.map(
    ({ name, session, fork }) =>
      `parameter ${name}: ${session} in the session, ${fork} in the fork`,
  );
}

function notesOn(
  { running }: BotFork,
  { first_difference, failure, simulates_fills }: Compared,
): string[] {
  return [
    ...(simulates_fills
      ? [
          'After the change, the exchange filled the orders of the session; fills of the fork are simulated.',
        ]
      : []),
    ...(running ? ['The session is still running: its bars so far are used.'] : []),
    ...(failure === null ? [] : [`The strategy failed in the fork: ${failure}`]),
    ...(first_difference === null
      ? ['All order events are equal: the change makes no difference.']
      : []),
  ];
}

function showFork(out: Output, fork: ForkPage): void {
  const { at_seq, time, changes, notes, steps, events, after, figures } = fork;
  const place = `event ${at_seq}, ${formatTime(Date.parse(time))}`;
  out.line(`Changed after ${place}, with ${formatCountOf(steps.after, 'bar')} to follow`);
  for (const change of changes) out.line(`  ${change}`);
  for (const note of notes) out.line(out.style.yellow(note));
  const labels = ['session', 'fork'];
  if (after.length > 0) {
    out.line();
    out.line(out.style.bold('After the change'));
    showFigures(out, labels, after);
    const counts = [events.session, events.fork].map((count) =>
      formatCountOf(count, 'order event'),
    );
    out.line(`${counts[0]} in the session, ${counts[1]} in the fork`);
  }
  out.line();
  out.line(out.style.bold('Whole session'));
  showFigures(out, labels, figures);
}
