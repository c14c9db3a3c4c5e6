import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseAxis } from '../backtest/search/axes.ts';
import type { Overrides } from '../bots/load-bot.ts';
import { ServiceError } from '../base/errors.ts';
import type { ColumnNames } from '../market/header.ts';
import type { Context } from './verb.ts';

interface OverrideOptions {
  readonly param: readonly string[];
  readonly from: string | undefined;
  readonly to: string | undefined;
  readonly columns: ColumnNames | undefined;
  readonly repair: 'drop' | undefined;
  readonly holdout: string | undefined;
}

/** Returns a unique id that sorts by time: `20261120T070512Z-3f9a2c`. */
export function newRunId(): string {
  const instant = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '');
  return `${instant}-${randomBytes(3).toString('hex')}`;
}

export function overridesOf({
  param,
  from,
  to,
  columns,
  repair,
  holdout,
}: OverrideOptions): Overrides {
  const params = param.map((text): [string, string] => {
    const { name, texts } = parseAxis(text);
    if (texts?.length !== 1) {
      throw new ServiceError('usage', `--param ${text}: a backtest takes only one value`, {
        remedy: 'Use `service-local backtest sweep` to try several values.',
      });
    }
    return [name, texts[0]!];
  });
  return { params: Object.fromEntries(params), from, to, columns, repair, holdout };
}

const formatColumns = (columns: ColumnNames): string =>
  Object.entries(columns)
    .map(([name, column]) => `${name}=${column}`)
    .join(',');

interface RunAgainOptions extends OverrideOptions {
  readonly sealed: boolean;
  readonly openHoldout: boolean;
}

/** Arguments that give the backtest of another process the same inputs. */
function argumentsOf(
  { settings }: Context,
  { param, from, to, columns, repair, holdout, sealed, openHoldout }: RunAgainOptions,
  out: string,
): string[] {
  return [
    '--quiet',
    `--out=${out}`,
    `--catalogue-dir=${settings.catalogue_dir}`,
    `--strategy-timeout-seconds=${settings.strategy_timeout_seconds}`,
    `--strategy-memory=${settings.strategy_memory_mb}`,
    ...(sealed ? ['--sealed'] : []),
    ...param.map((value) => `--param=${value}`),
    ...(from === undefined ? [] : [`--from=${from}`]),
    ...(to === undefined ? [] : [`--to=${to}`]),
    ...(columns === undefined ? [] : [`--columns=${formatColumns(columns)}`]),
    ...(repair === undefined ? [] : [`--repair=${repair}`]),
    ...(holdout === undefined ? [] : [`--holdout=${holdout}`]),
    ...(openHoldout ? ['--open-holdout'] : []),
  ];
}

/**
 * Runs the same backtest in another process and compares the events of both runs.
 *
 * @param directory result files of the first run.
 * @returns the count of events, which are equal.
 * @throws ServiceError `not_deterministic` with the first event that differs
 */
export async function compareRuns(
  context: Context,
  spec: string,
  options: RunAgainOptions,
  directory: string,
): Promise<number> {
  const again = await mkdtemp(join(tmpdir(), 'service-local-again-'));
  try {
    const child = spawn(
      process.execPath,
      [process.argv[1]!, 'backtest', spec, ...argumentsOf(context, options, join(again, 'run'))],
      {
        cwd: context.cwd,
        // It counts as a trial in a separate home directory, because this run is already counted here.
        env: { ...context.io.env, SERVICE_LOCAL_HOME: join(again, 'home') },
        stdio: ['ignore', 'ignore', 'inherit'],
        signal: context.signal,
      },
    );
    const [code] = (await once(child, 'exit')) as [number | null];
    // Exit code 5 means that a gate was not met, but the events were written.
    if (code !== 0 && code !== 5) {
      throw new ServiceError('not_deterministic', `the second process failed (exit code ${code})`, {
        remedy: 'See its message above. The first process ran the same bot without an error.',
      });
    }
    const difference = await firstDifference(
      join(directory, 'events.ndjson'),
      join(again, 'run', 'events.ndjson'),
    );
    if (typeof difference === 'number') return difference;
    throw new ServiceError(
      'not_deterministic',
      `a second process differs at event ${difference.event}:\n` +
        `  first:  ${difference.first ?? 'no such event'}\n` +
        `  second: ${difference.second ?? 'no such event'}`,
      {
        remedy:
          'A strategy may use only its bars, its parameters and context.random(), but no clock, ' +
          'Math.random() or files.',
      },
    );
  } finally {
    await rm(again, { recursive: true, force: true });
  }
}

interface Difference {
  readonly event: number;
  readonly first: string | undefined;
  readonly second: string | undefined;
}

/** Returns the first line in which two files differ; if they are equal, their count of lines. */
async function firstDifference(first: string, second: string): Promise<Difference | number> {
  const lines = (file: string): AsyncIterator<string> =>
    createInterface({ input: createReadStream(file) })[Symbol.asyncIterator]();
  const left = lines(first);
  const right = lines(second);
  for (let event = 1; ; event += 1) {
    const [a, b] = await Promise.all([left.next(), right.next()]);
    if (a.done && b.done) return event - 1;
    if (a.value !== b.value) return { event, first: a.value, second: b.value };
  }
}
