import { appendFileSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isSystemError, ServiceError } from '../base/errors.ts';
import { csvCell } from './result-csv.ts';
import { notWritable } from './run-files.ts';
import { isComplete, type Trial, type TrialMetrics, type TrialResult } from './trial.ts';

/**
 * Log of a sweep's finished trials, from which an interrupted sweep continues: a line that identifies
 * the sweep, then a JSON line for each trial.
 */
export class TrialLog {
  readonly #file: string;
  readonly done: ReadonlyMap<number, TrialResult>;

  private constructor(file: string, done: ReadonlyMap<number, TrialResult>) {
    this.#file = file;
    this.done = done;
  }

  /**
   * Opens or creates the log of the sweep that `digest` identifies.
   *
   * @throws ServiceError `conflict` if the directory contains another sweep
   */
  static open(directory: string, digest: string, trials: readonly Trial[]): TrialLog {
    const file = join(directory, 'trials.ndjson');
    const header = `${JSON.stringify({ schema: 'service-local/trials/v1', sweep: digest })}\n`;
    const text = readIfExists(file);
    // A killed process may have written an incomplete line. Without a complete first line, the log
    // contains no trial.
    if (text === undefined || !text.includes('\n')) {
      try {
        writeFileSync(file, header);
      } catch (error) {
        throw notWritable(file, error);
      }
      return new TrialLog(file, new Map());
    }
    if (!text.startsWith(header)) {
      throw new ServiceError('conflict', `${directory} contains another sweep`, {
        remedy: 'Choose another directory with --out, or delete this directory.',
      });
    }
    const whole = text.slice(0, text.lastIndexOf('\n') + 1);
    if (whole.length < text.length) truncateSync(file, Buffer.byteLength(whole));
    const done = new Map<number, TrialResult>();
    for (const line of whole.slice(header.length).split('\n')) {
      const finished = readLine(line);
      const trial = finished && trials[finished.index];
      if (trial) done.set(trial.index, { ...trial, metrics: finished.metrics });
    }
    return new TrialLog(file, done);
  }

  append(result: TrialResult): void {
    try {
      appendFileSync(this.#file, `${JSON.stringify({ ...result, params: undefined })}\n`);
    } catch (error) {
      throw notWritable(this.#file, error);
    }
  }
}

interface FinishedTrial {
  readonly index: number;
  readonly metrics: TrialMetrics;
}

/** Skips failed trials, damaged lines and lines without some figure, so that these trials run again. */
function readLine(line: string): FinishedTrial | undefined {
  try {
    const { index, metrics } = JSON.parse(line) as Partial<FinishedTrial>;
    return index !== undefined && metrics !== undefined && isComplete(metrics)
      ? { index, metrics }
      : undefined;
  } catch {
    return undefined;
  }
}

function readIfExists(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** Lines of `trials.csv`: the parameters, figures and error of each trial, in the given order. */
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
