import type { BenchmarkSeries } from '../backtest/benchmark.ts';
import type { JobInstrument } from '../backtest/job.ts';
import { ServiceError } from '../base/errors.ts';
import { firstAtLeast } from '../base/sorted.ts';
import { sliceBars } from '../market/bars.ts';
import { barsDigest } from '../market/digest.ts';
import { loadDataset, type LoadOptions } from '../market/load-dataset.ts';

export interface BenchmarkSource {
  /** As the user named it. */
  readonly name: string;
  /** An absolute path or `catalog://NAME`; unused if `name` is a symbol of the bot. */
  readonly source: string;
}

/**
 * Returns the bars of a symbol of the bot, a file or a dataset, from the last one at or before the start
 * of the run to its end.
 *
 * @param options timeframe of the run and its window
 * @throws ServiceError `invalid_data`, `file_not_found`
 */
export async function loadBenchmark(
  { name, source }: BenchmarkSource,
  instruments: readonly JobInstrument[],
  options: Omit<LoadOptions, 'source'>,
): Promise<BenchmarkSeries> {
  const own = instruments.find(({ symbol }) => symbol === name);
  const bars = own?.bars ?? (await loadDataset({ ...options, source })).bars;
  const start = Math.min(...instruments.map((each) => each.bars.time[0]!));
  const end = Math.max(...instruments.map((each) => each.bars.time.at(-1)!));
  const first = Math.max(0, firstAtLeast(bars.time, start + 1, 0) - 1);
  const last = firstAtLeast(bars.time, end + 1, 0);
  if (last === 0) {
    throw new ServiceError('invalid_data', `the benchmark ${name} begins after the run ends`, {
      remedy: 'Choose a benchmark with bars in the window of the run.',
    });
  }
  const during = sliceBars(bars, Math.min(first, last - 1), last);
  return { name, bars: during, digest: barsDigest(during) };
}
