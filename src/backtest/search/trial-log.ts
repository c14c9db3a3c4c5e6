import { join } from 'node:path';
import { LineLog } from '../line-log.ts';
import type { Search } from './plan-search.ts';
import { isComplete, type TrialMetrics } from './trial-figures.ts';
import type { Trial, TrialFigures, TrialResult } from './trial.ts';

/**
 * Log of a search's finished trials, from which an interrupted search resumes: a line that identifies
 * the search, then a JSON line for each trial and, with pruning, for each part of the bars over which it
 * ran. Parameters are logged only if results of earlier trials can change them.
 */
export class TrialLog {
  readonly #log: LineLog;
  readonly #hasParams: boolean;

  /**
   * Opens or creates the log of a search, and adds the trials in it to the results of the search.
   *
   * @throws ServiceError `conflict` if the directory contains another search
   */
  constructor(directory: string, { digest, method, trials, results }: Search) {
    this.#hasParams = method.kind !== 'grid';
    const header = JSON.stringify({ schema: 'service-local/trials/v1', sweep: digest });
    const file = join(directory, 'trials.ndjson');
    this.#log = LineLog.open(file, { work: 'sweep', header }, (line) => {
      const finished = readLine(line, results.sums !== undefined);
      if (finished === undefined) return;
      const { index, rung = 0 } = finished;
      if (index >= trials.capacity || rung > results.lastRung) return;
      if (this.#hasParams) results.recall(finished);
      else results.add(finished);
    });
  }

  append(result: TrialResult): void {
    this.#log.append(textOf(result, this.#hasParams));
  }

  close(): void {
    this.#log.close();
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
