import { join } from 'node:path';
import type { BacktestJob } from '../job.ts';
import type { ExecutedTrial } from '../ledger/packed-trials.ts';
import { LineLog } from '../line-log.ts';
import { setupOf, type Search } from '../search/plan-search.ts';
import { isComplete, type TrialMetrics } from '../search/trial-figures.ts';
import type { CountTrials } from '../search/saved-trials.ts';
import type { TrialRunner } from '../search/trial-runner.ts';
import type { Trial } from '../search/trial.ts';
import type { Variant } from './robustness-figures.ts';
import { untilAborted } from '../../base/until-aborted.ts';

/** A run with one change, before it runs. Its job differs from the search in params, config or bars. */
export interface PlannedVariant<Name extends string> {
  readonly name: Name;
  readonly label: string;
  readonly job: BacktestJob;
}

export interface VariantsOptions {
  /** Directory of the log from which interrupted runs resume; by default there is no log. */
  readonly directory?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called with ended neighbors before they are logged. Stresses do not count as trials, because none is chosen. */
  readonly count?: CountTrials | undefined;
  /** Called with the number of variants that have ended: once at the start, then after each. */
  readonly onProgress?: ((done: number) => void) | undefined;
}

/** Figures of a variant, or the message of its error. */
type Ended = { readonly metrics: TrialMetrics } | { readonly error: string };

/**
 * Runs the variants of the chosen trial of a search on worker threads.
 *
 * @throws the reason with which `signal` was aborted; ServiceError as `TrialRunner.run`
 */
export async function runVariants<Name extends string>(
  search: Search,
  runner: TrialRunner,
  variants: readonly PlannedVariant<Name>[],
  { directory, signal, count, onProgress }: VariantsOptions,
): Promise<Variant<Name>[]> {
  const ended = new Map<number, Ended>();
  const log =
    directory === undefined
      ? undefined
      : openLog(directory, search, variants, (place, result) => ended.set(place, result));
  const setups = variants.map(({ job }) => setupOf(job, search.setup.timeoutMs));
  const pending = [...variants.keys()].filter((place) => !ended.has(place));
  const indices = Uint32Array.from(pending);
  // The setup of each variant is a rung of its own.
  const trial = (index: number): Trial => ({
    index,
    rung: index,
    params: variants[index]!.job.params,
  });
  const countEnded = (places: Iterable<number>): void => {
    const neighbors = [...places].filter((place) => variants[place]!.name === 'neighbor');
    if (neighbors.length === 0) return;
    count?.(neighbors.map((place) => executedTrial(variants[place]!, ended.get(place)!)));
  };
  try {
    onProgress?.(ended.size);
    countEnded(ended.keys());
    await untilAborted(signal, () =>
      runner.run({ indices, trial, setups }, (result) => {
        const { index } = result;
        const end: Ended =
          'error' in result ? { error: result.error } : { metrics: result.metrics };
        ended.set(index, end);
        countEnded([index]);
        log?.append(JSON.stringify({ variant: index, ...end }));
        onProgress?.(ended.size);
      }),
    );
  } catch (error) {
    // No result may arrive once the log is closed.
    await runner.end();
    throw error;
  } finally {
    log?.close();
  }
  return variants.map(({ name, label }, place) => ({
    name,
    label,
    metrics: null,
    ...ended.get(place)!,
  }));
}

function executedTrial({ job }: PlannedVariant<string>, end: Ended): ExecutedTrial {
  return { params: job.params, sharpe: 'error' in end ? null : end.metrics.sharpe };
}

function openLog(
  directory: string,
  search: Search,
  variants: readonly PlannedVariant<string>[],
  onEnded: (place: number, result: Ended) => void,
): LineLog {
  const header = JSON.stringify({
    schema: 'service-local/variants/v1',
    search: search.digest,
    goal: search.goal,
    variants: variants.map(({ name, label }) => `${name} ${label}`),
  });
  return LineLog.open(
    join(directory, 'variants.ndjson'),
    { work: 'robustness test', header },
    (line) => {
      const read = readLine(line);
      if (read !== undefined && read.place < variants.length) onEnded(read.place, read.result);
    },
  );
}

/** Skips damaged lines, so that these variants run again. */
function readLine(line: string): { readonly place: number; readonly result: Ended } | undefined {
  try {
    const { variant: place, ...result } = JSON.parse(line) as { readonly variant: number } & Ended;
    if (!Number.isSafeInteger(place) || place < 0) return undefined;
    const isWhole =
      'error' in result ? typeof result.error === 'string' : isComplete(result.metrics);
    return isWhole ? { place, result } : undefined;
  } catch {
    return undefined;
  }
}
