import { closeSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ServiceError } from '../../base/errors.ts';
import { isSystemError } from '../../base/system-errors.ts';
import { notWritable } from '../write-text.ts';
import type { Search } from './plan-search.ts';
import { isComplete, type TrialMetrics } from './trial-figures.ts';
import type { Trial, TrialFigures, TrialResult } from './trial.ts';

/**
 * Log of a search's finished trials, from which an interrupted search continues: a line that identifies
 * the search, then a JSON line for each trial and, with pruning, for each part of the bars over which it
 * ran. Parameters are logged only if results of earlier trials can change them.
 */
export class TrialLog {
  readonly #file: string;
  readonly #descriptor: number;
  readonly #search: Search;

  private constructor(file: string, search: Search) {
    this.#file = file;
    this.#search = search;
    this.#descriptor = openSync(file, 'a+');
  }

  /**
   * Opens or creates the log of a search, and adds the trials in it to the results of the search.
   *
   * @throws ServiceError `conflict` if the directory contains another search
   */
  static open(directory: string, search: Search): TrialLog {
    const file = join(directory, 'trials.ndjson');
    try {
      const log = new TrialLog(file, search);
      log.#read();
      return log;
    } catch (error) {
      throw isSystemError(error) ? notWritable(file, error) : error;
    }
  }

  append(result: TrialResult): void {
    try {
      writeSync(this.#descriptor, `${textOf(result, this.#hasParams)}\n`);
    } catch (error) {
      throw notWritable(this.#file, error);
    }
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  get #hasParams(): boolean {
    return this.#search.method.kind !== 'grid';
  }

  #read(): void {
    const { digest, trials, results } = this.#search;
    const header = JSON.stringify({ schema: 'service-local/trials/v1', sweep: digest });
    let end = 0;
    for (const line of linesOf(this.#descriptor)) {
      if (end === 0 && line.text !== header) {
        this.close();
        throw new ServiceError('conflict', `${dirname(this.#file)} contains another sweep`, {
          remedy: 'Choose another directory with --out, or delete this directory.',
        });
      }
      const finished = end === 0 ? undefined : readLine(line.text, results.sums !== undefined);
      const { index = -1, rung = 0 } = finished ?? {};
      if (finished !== undefined && index < trials.capacity && rung <= results.lastRung) {
        if (this.#hasParams) results.recall(finished);
        else results.add(finished);
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

type FinishedTrial = Trial & TrialFigures;

/** One line. Sums of returns keep their bits. */
function textOf(result: TrialResult, hasParams: boolean): string {
  const sums = 'sums' in result && result.sums;
  return JSON.stringify({
    ...result,
    params: hasParams ? result.params : undefined,
    ...(sums && { sums: Buffer.from(sums.buffer).toString('base64') }),
  });
}

/** Skips failed trials, damaged lines and lines without some figure, so that these trials run again. */
function readLine(line: string, hasSums: boolean): FinishedTrial | undefined {
  try {
    const { sums, ...trial } = JSON.parse(line) as Omit<FinishedTrial, 'sums' | 'metrics'> & {
      readonly metrics?: TrialMetrics;
      readonly sums?: string;
    };
    const { index, metrics } = trial;
    if (index === undefined || metrics === undefined || !isComplete(metrics)) return undefined;
    if (!hasSums) return { ...trial, metrics };
    if (sums === undefined) return undefined;
    const bytes = Uint8Array.from(Buffer.from(sums, 'base64'));
    return { ...trial, metrics, sums: new Float64Array(bytes.buffer) };
  } catch {
    return undefined;
  }
}
