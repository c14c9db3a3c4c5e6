import { closeSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ServiceError } from '../../base/errors.ts';
import { isSystemError } from '../../base/system-errors.ts';
import { csvCell } from '../result-csv.ts';
import { notWritable } from '../write-text.ts';
import type { TrialResults } from './trial-results.ts';
import { isComplete, TRIAL_FIGURES } from './trial.ts';
import type { TrialFigures, TrialMetrics, TrialResult } from './trial.ts';

/**
 * Log of a sweep's finished trials, from which an interrupted sweep continues: a line that identifies
 * the sweep, then a JSON line for each trial.
 */
export class TrialLog {
  readonly #file: string;
  readonly #descriptor: number;

  private constructor(file: string, descriptor: number) {
    this.#file = file;
    this.#descriptor = descriptor;
  }

  /**
   * Opens or creates the log of the sweep that `digest` identifies, and adds the trials in it to
   * `results`.
   *
   * @throws ServiceError `conflict` if the directory contains another sweep
   */
  static open(directory: string, digest: string, results: TrialResults): TrialLog {
    const file = join(directory, 'trials.ndjson');
    const header = JSON.stringify({ schema: 'service-local/trials/v1', sweep: digest });
    try {
      const log = new TrialLog(file, openSync(file, 'a+'));
      log.#read(header, results);
      return log;
    } catch (error) {
      throw isSystemError(error) ? notWritable(file, error) : error;
    }
  }

  append(result: TrialResult): void {
    try {
      writeSync(this.#descriptor, `${textOf(result)}\n`);
    } catch (error) {
      throw notWritable(this.#file, error);
    }
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  #read(header: string, results: TrialResults): void {
    let end = 0;
    for (const line of linesOf(this.#descriptor)) {
      if (end === 0 && line.text !== header) {
        this.close();
        throw new ServiceError('conflict', `${dirname(this.#file)} contains another sweep`, {
          remedy: 'Choose another directory with --out, or delete this directory.',
        });
      }
      const finished = end === 0 ? undefined : readLine(line.text, results.sums !== undefined);
      if (finished !== undefined && finished.index < results.count) {
        results.add(finished.index, finished);
      }
      end = line.end;
    }
    // A killed process may have written an incomplete line.
    ftruncateSync(this.#descriptor, end);
    if (end === 0) writeSync(this.#descriptor, `${header}\n`);
  }
}

const BLOCK_BYTES = 1 << 20;
const LINE_FEED = 10;

/** Complete lines of a file, each with the position of its end in bytes. */
function* linesOf(descriptor: number): Generator<{ readonly text: string; readonly end: number }> {
  const block = Buffer.allocUnsafe(BLOCK_BYTES);
  let rest = Buffer.alloc(0);
  let end = 0;
  for (;;) {
    const count = readSync(descriptor, block, 0, BLOCK_BYTES, end + rest.length);
    if (count === 0) return;
    const bytes = Buffer.concat([rest, block.subarray(0, count)]);
    let from = 0;
    for (let to = bytes.indexOf(LINE_FEED); to >= 0; to = bytes.indexOf(LINE_FEED, from)) {
      const text = bytes.toString('utf8', from, to);
      end += to + 1 - from;
      from = to + 1;
      yield { text, end };
    }
    rest = bytes.subarray(from);
  }
}

interface FinishedTrial extends TrialFigures {
  readonly index: number;
}

/** One line, without the parameters, which follow from the index. Sums of returns keep their bits. */
function textOf(result: TrialResult): string {
  const sums = 'sums' in result && result.sums;
  return JSON.stringify({
    ...result,
    params: undefined,
    ...(sums && { sums: Buffer.from(sums.buffer).toString('base64') }),
  });
}

/** Skips failed trials, damaged lines and lines without some figure, so that these trials run again. */
function readLine(line: string, hasSums: boolean): FinishedTrial | undefined {
  try {
    const { index, metrics, sums } = JSON.parse(line) as {
      readonly index?: number;
      readonly metrics?: TrialMetrics;
      readonly sums?: string;
    };
    if (index === undefined || metrics === undefined || !isComplete(metrics)) return undefined;
    if (!hasSums) return { index, metrics };
    if (sums === undefined) return undefined;
    const bytes = Uint8Array.from(Buffer.from(sums, 'base64'));
    return { index, metrics, sums: new Float64Array(bytes.buffer) };
  } catch {
    return undefined;
  }
}

/** Lines of `trials.csv`: the parameters, figures and error of each trial that has ended. */
export function* trialLines(results: TrialResults): Generator<string> {
  const metrics = results.failed < results.done ? TRIAL_FIGURES : [];
  let params: readonly string[] | undefined;
  for (const result of results.inOrder()) {
    if (params === undefined) {
      params = Object.keys(result.params);
      yield `${[...params, ...metrics, 'error'].join(',')}\n`;
    }
    const cells = [
      ...params.map((name) => result.params[name]),
      ...metrics.map((name) => ('metrics' in result ? result.metrics[name] : null)),
      'error' in result ? result.error : null,
    ];
    yield `${cells.map((cell) => csvCell(cell ?? '')).join(',')}\n`;
  }
  if (params === undefined) yield 'error\n';
}
