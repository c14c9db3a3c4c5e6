import { appendFileSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ServiceError } from '../errors.ts';
import { csvCell } from './csv.ts';
import type { Trial, TrialMetrics, TrialResult } from './trial.ts';

/**
 * The trials of a sweep as they finish, one JSON line each below a line that names the sweep. An
 * interrupted sweep goes on from here.
 */
export class TrialLog {
  readonly #file: string;
  readonly done: ReadonlyMap<number, TrialResult>;

  private constructor(file: string, done: ReadonlyMap<number, TrialResult>) {
    this.#file = file;
    this.done = done;
  }

  /**
   * Opens the log of the sweep that `digest` identifies, or starts it.
   *
   * @throws ServiceError `conflict` when the directory holds another sweep.
   */
  static open(directory: string, digest: string, trials: readonly Trial[]): TrialLog {
    const file = join(directory, 'trials.ndjson');
    const header = `${JSON.stringify({ schema: 'service-local/trials/v1', sweep: digest })}\n`;
    const text = readIfThere(file);
    if (text === undefined || text === '') {
      writeFileSync(file, header);
      return new TrialLog(file, new Map());
    }
    if (!text.startsWith(header)) {
      throw new ServiceError('conflict', `${directory} holds another sweep`, {
        remedy: 'Choose another directory with --out, or delete this one.',
      });
    }
    // A process that was killed may have left half a line; that trial is run again.
    const whole = text.slice(0, text.lastIndexOf('\n') + 1);
    if (whole.length < text.length) truncateSync(file, Buffer.byteLength(whole));
    const done = new Map<number, TrialResult>();
    for (const line of whole.slice(header.length).split('\n')) {
      if (line === '') continue;
      const { index, ...rest } = JSON.parse(line) as {
        index: number;
        metrics: TrialMetrics;
      };
      const trial = trials[index];
      if (trial !== undefined) done.set(index, { ...trial, ...rest });
    }
    return new TrialLog(file, done);
  }

  append(results: readonly TrialResult[]): void {
    const lines = results.map((result) => `${JSON.stringify({ ...result, params: undefined })}\n`);
    appendFileSync(this.#file, lines.join(''));
  }
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** The table of all trials in the order of the grid: parameters, figures, and the error if any. */
export function* trialLines(results: readonly TrialResult[]): Generator<string> {
  const params = Object.keys(results[0]?.params ?? {});
  const metrics = Object.keys(
    results.find((result) => 'metrics' in result)?.metrics ?? {},
  ) as (keyof TrialMetrics)[];
  yield `${[...params, ...metrics, 'error'].join(',')}\n`;
  for (const result of results) {
    const cells = [
      ...params.map((name) => result.params[name]),
      ...metrics.map((name) => ('metrics' in result ? result.metrics[name] : null)),
      'error' in result ? result.error : null,
    ];
    yield `${cells.map((cell) => csvCell(cell ?? '')).join(',')}\n`;
  }
}
