import { basename, resolve } from 'node:path';
import type { BenchmarkSeries, JobInstrument } from '../backtest/job.ts';
import { ServiceError } from '../base/errors.ts';
import { firstAtLeast } from '../base/sorted.ts';
import { sliceBars } from '../market/bars.ts';
import { isCatalogued } from '../market/catalogue.ts';
import { barsDigest } from '../market/digest.ts';
import { loadDataset } from '../market/load-dataset.ts';
import type { Bot } from './load-bot.ts';

export interface NamedBenchmark {
  /** As the user named it: a symbol of the bot, a file, or `catalog://NAME`. */
  readonly name: string;
  /** Base directory of a relative path. */
  readonly directory: string;
}

/**
 * Returns the bars of a symbol of the bot, a file or a dataset, from the last one at or before the start
 * of the run to its end.
 *
 * @throws ServiceError `invalid_data`, `file_not_found`
 */
export async function loadBenchmark(
  { spec }: Pick<Bot, 'spec'>,
  instruments: readonly JobInstrument[],
  { name, directory }: NamedBenchmark,
  {
    catalogueDir,
    load = loadDataset,
  }: { readonly catalogueDir: string; readonly load?: typeof loadDataset | undefined },
): Promise<BenchmarkSeries> {
  const { universe, data } = spec.spec;
  const { timeframe, from, to } = data;
  const source = isCatalogued(name) ? name : resolve(directory, name);
  const own = instruments.find(({ symbol }) => symbol === name);
  const { bars } =
    own ?? (await load({ source, catalogueDir, timeframe, calendar: universe.calendar, from, to }));
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
  const series = { bars: during, digest: barsDigest(during) };
  return own ? { name, ...series } : { name: nameOf(name), source: name, ...series };
}

/** `catalog://QQQ` or `data/QQQ.csv.gz` → `QQQ` */
function nameOf(source: string): string {
  return basename(source).replace(/(\.(csv|parquet|gz))+$/i, '');
}
