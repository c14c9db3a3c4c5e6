/** Downloads of bars into the catalogue, page by page. */
import { appendFile, mkdir, open, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ServiceError } from '../base/errors.ts';
import { isSystemError } from '../base/system-errors.ts';
import { DAY } from '../base/durations.ts';
import { BAR_COLUMNS, joinBars, sliceBars, type Bars, type Candle } from './bars.ts';
import {
  checkName,
  datasetNames,
  explainWriteError,
  importBars,
  readManifest,
  resolveDataset,
  type Manifest,
} from './catalogue.ts';
import type { DefectCounts } from './check-bars.ts';
import { findGaps, type GapReport } from './data-gaps.ts';
import { loadCheckedBars } from './load-dataset.ts';
import { readBars } from './read-bars.ts';
import { bucketOf } from './periods.ts';
import type { Timeframe } from './timeframe.ts';

export interface TimedBar extends Candle {
  /** Opening time, ms since the epoch. */
  readonly time: number;
}

export interface Pages {
  /** Bars from `since` on, ms since the epoch, oldest first. Empty if a page has none. */
  readonly read: (since: number) => Promise<readonly TimedBar[]>;
  /** Number of bars on a full page. */
  readonly size: number;
}

export interface DownloadOptions {
  /** Name in the catalogue. */
  readonly symbol: string;
  /** Names the source and the requested start; a download continues only one of the same origin. */
  readonly origin: string;
  readonly timeframe: Timeframe;
  /** Downloads bars that open at `from` or later and close at `to` or earlier, ms since the epoch. */
  readonly from: number;
  readonly to: number;
  readonly importedAt: string;
  /** Replaces a dataset or an unfinished download of another origin. */
  readonly replace?: boolean;
  /** `drop` skips bad bars; by default they are an error. */
  readonly repair?: 'drop' | undefined;
  /** Called with the time up to which bars are saved, ms since the epoch. */
  readonly onProgress?: (until: number) => void;
}

export interface Download {
  readonly manifest: Manifest;
  /** Bars downloaded since the dataset was last stored. */
  readonly added: number;
  /** Bars that the source sent twice; the first of each is kept. */
  readonly duplicates: number;
  readonly dropped: DefectCounts;
  readonly gaps: GapReport;
}

/**
 * Downloads bars and stores them as a dataset. Keeps each page in `DIR/.download-NAME`, so that the
 * next call continues after an interruption. A dataset of the same origin is extended by newer bars.
 *
 * @throws ServiceError `conflict` for a name in use by another origin; `invalid_data` for bad bars,
 *   which stay saved; `file_not_found` if the source has no bars; `output_not_writable`; and errors of
 *   `pages`.
 */
export async function downloadBars(
  dir: string,
  pages: Pages,
  options: DownloadOptions,
): Promise<Download> {
  const { symbol, timeframe, origin, importedAt, replace = false } = options;
  const dataset = await findDataset(dir, options);
  if (dataset === undefined) await checkName(dir, options);
  const partial = await PartialDownload.open(dir, symbol, origin, replace);
  partial.last ??= dataset && Date.parse(dataset.to);
  const { duplicates } = await fetchPages(partial, pages, options);
  if (partial.isEmpty && dataset === undefined) throw noBars(options);
  const read = partial.isEmpty
    ? undefined
    : await loadCheckedBars({ source: partial.path, catalogueDir: dir, repair: options.repair });
  const earlier =
    dataset && (await readBars((await resolveDataset(dir, `catalog://${symbol}`))!.path)).bars;
  const later = read && barsAfter(read.bars, earlier?.time[earlier.length - 1]);
  const bars = joinBars(...[earlier, later].filter((part) => part !== undefined));
  const manifest =
    dataset !== undefined && (later?.length ?? 0) === 0
      ? dataset
      : await importBars(dir, bars, {
          symbol,
          timeframe: timeframe.name,
          hasVolume: true,
          origin,
          importedAt,
          replace: replace || dataset !== undefined,
        });
  await partial.remove();
  return {
    manifest,
    added: later?.length ?? 0,
    duplicates,
    dropped: read?.report.counts ?? {},
    gaps: findGaps(bars, timeframe),
  };
}

/** Skips bars that a process stored before it was killed and could not remove its download. */
function barsAfter(bars: Bars, last = -Infinity): Bars {
  const from = bars.time.subarray(0, bars.length).findIndex((time) => time > last);
  return sliceBars(bars, from === -1 ? bars.length : from, bars.length);
}

/** Returns the dataset that the download extends, if there is one. */
async function findDataset(
  dir: string,
  { symbol, origin, replace }: DownloadOptions,
): Promise<Manifest | undefined> {
  if (!(await datasetNames(dir)).includes(symbol)) return undefined;
  try {
    const manifest = await readManifest(dir, symbol);
    return manifest.origin === origin ? manifest : undefined;
  } catch (error) {
    if (replace !== true) throw error;
    return undefined;
  }
}

async function fetchPages(
  partial: PartialDownload,
  pages: Pages,
  { timeframe, from, to, onProgress }: DownloadOptions,
): Promise<Pick<Download, 'duplicates'>> {
  // The shortest month.
  const shortestMs = timeframe.name === '1mo' ? 28 * DAY : timeframe.ms;
  let duplicates = 0;
  let since = partial.last === undefined ? from : partial.last + 1;
  // Stops when a bar that opens at `since` would close after `to`.
  while (since + shortestMs <= to + 1) {
    const page = (await pages.read(since)).filter(({ time }) => time >= since);
    const distinct = page.filter(({ time }, at) => time !== page[at - 1]?.time);
    const closed = distinct.filter(({ time }) => closeOf(time, timeframe) <= to);
    await partial.append(closed);
    duplicates += page.length - distinct.length;
    // Some sources return empty pages for times without bars, although later pages have bars.
    since = page.length > 0 ? page.at(-1)!.time + 1 : since + pages.size * shortestMs;
    onProgress?.(Math.min(since, to));
  }
  return { duplicates };
}

function closeOf(time: number, timeframe: Timeframe): number {
  return timeframe.name === '1mo' ? bucketOf(time, timeframe).end : time + timeframe.ms;
}

function noBars({ origin }: DownloadOptions): ServiceError {
  return new ServiceError('file_not_found', `the exchange has no closed bars of ${origin}`, {
    remedy: 'Choose an earlier --from or a shorter --timeframe.',
  });
}

const HEADER = `${BAR_COLUMNS.join(',')}\n`;
/** Bytes read from the end of the file; longer than any line of a bar. */
const TAIL = 4096;

/** Bars of an unfinished download, as CSV, with their origin. */
class PartialDownload {
  readonly path: string;
  /** Opening time of the last bar that is saved, here or in the dataset; undefined before the first. */
  last: number | undefined;
  isEmpty = true;
  readonly #dir: string;

  private constructor(dir: string, symbol: string) {
    this.#dir = join(dir, `.download-${symbol}`);
    this.path = join(this.#dir, 'bars.csv');
  }

  /** @throws ServiceError `conflict` if there is one of another origin. */
  static async open(
    dir: string,
    symbol: string,
    origin: string,
    replace: boolean,
  ): Promise<PartialDownload> {
    const partial = new PartialDownload(dir, symbol);
    const originFile = join(partial.#dir, 'origin');
    const known = await readFile(originFile, 'utf8').catch(ignoreAbsence);
    if (known === origin) await partial.#resume();
    else if (known !== undefined && !replace) {
      throw new ServiceError('conflict', `${symbol} has an unfinished download of ${known}`, {
        remedy: 'Finish it, choose another name with --as, or discard it with --replace.',
      });
    } else {
      await partial.remove();
      await partial.#write(async () => {
        await mkdir(partial.#dir, { recursive: true });
        await writeFile(partial.path, HEADER);
        // Written last: without it, the directory is not a download.
        await writeFile(originFile, origin);
      });
    }
    return partial;
  }

  async append(bars: readonly TimedBar[]): Promise<void> {
    if (bars.length === 0) return;
    await this.#write(() => appendFile(this.path, bars.map(lineOf).join('')));
    this.last = bars.at(-1)!.time;
    this.isEmpty = false;
  }

  async remove(): Promise<void> {
    await rm(this.#dir, { recursive: true, force: true });
  }

  /** Cuts off an incomplete last line, which a killed process leaves. */
  async #resume(): Promise<void> {
    const file = await open(this.path, 'r+');
    try {
      const { size } = await file.stat();
      const start = Math.max(0, size - TAIL);
      const tail = Buffer.alloc(size - start);
      await file.read(tail, 0, tail.length, start);
      const end = tail.lastIndexOf('\n') + 1;
      await file.truncate(start + end);
      this.isEmpty = start + end <= HEADER.length;
      if (this.isEmpty) return;
      const line = tail.subarray(0, end).toString().trimEnd().split('\n').at(-1)!;
      this.last = Date.parse(line.split(',')[0]!);
    } finally {
      await file.close();
    }
  }

  async #write(write: () => Promise<void>): Promise<void> {
    try {
      await write();
    } catch (error) {
      throw explainWriteError(this.#dir, error);
    }
  }
}

function lineOf(bar: TimedBar): string {
  const values = BAR_COLUMNS.map((name) =>
    name === 'time' ? new Date(bar.time).toISOString() : bar[name],
  );
  return `${values.join(',')}\n`;
}

function ignoreAbsence(error: unknown): undefined {
  if (!isSystemError(error, 'ENOENT', 'ENOTDIR')) throw error;
}
