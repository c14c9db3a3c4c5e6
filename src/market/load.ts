import { ServiceError } from '../base/errors.ts';
import type { Bars } from './bars.ts';
import { resolveDataset, type Manifest } from './catalogue.ts';
import { badDataError, canDrop, checkBars, type CheckReport, type DefectCounts } from './check.ts';
import { readRows } from './csv.ts';
import { barsDigest } from './digest.ts';
import { findGaps, findUncoveredEdges, type GapReport, type UncoveredEdge } from './gaps.ts';
import { isAdjustedClose } from './header.ts';
import { readBars, type BarFile, type ReadOptions } from './read.ts';
import { bucketOf, resample } from './resample.ts';
import { keepBars } from './rows.ts';
import { parseWindow } from './time.ts';
import {
  barSpacing,
  formatSpacing,
  parseTimeframe,
  timeframeOfSpacing,
  type Timeframe,
} from './timeframe.ts';

export interface LoadOptions extends ReadOptions {
  /** Path of a CSV or Parquet file, or `catalog://NAME`. */
  readonly source: string;
  readonly catalogueDir: string;
  /** What the bars are made into, if theirs is finer; their own by default. */
  readonly timeframe?: string | undefined;
  /** `drop` leaves bad rows out; by default bad data are refused. */
  readonly repair?: 'drop' | undefined;
}

/** Bars fit for use: in order of time, every one possible. */
export interface Dataset {
  readonly bars: Bars;
  readonly timeframe: Timeframe;
  /** See `barsDigest`. */
  readonly digest: string;
  /** Found in the bars as they were read, before they were made longer. */
  readonly gaps: GapReport;
  /** How many those were. */
  readonly sourceBars: number;
  /** Edges of the window that the bars do not reach. */
  readonly uncovered: readonly UncoveredEdge[];
  /** Rows left out by `repair`. */
  readonly dropped: DefectCounts;
  readonly hasVolume: boolean;
  /** What whoever trusts the bars should know about them, as sentences. */
  readonly notes: readonly string[];
}

/** Bars of a source inside the window, without bad rows. */
interface CheckedBars {
  readonly file: BarFile;
  readonly report: CheckReport;
  readonly bars: Bars;
  /** Manifest of a dataset in the catalogue; undefined for a file. */
  readonly manifest: Manifest | undefined;
}

/**
 * Reads a source, cuts it to the window and checks it.
 * @throws ServiceError `file_not_found`, or `invalid_data` with every fault and its row.
 */
export async function loadCheckedBars(options: LoadOptions): Promise<CheckedBars> {
  const imported = await resolveDataset(options.catalogueDir, options.source);
  const file = await readBars(imported?.path ?? options.source, options);
  const report = checkBars(file, file.tooLong);
  if (report.badRows > 0 && !(options.repair === 'drop' && canDrop(report))) {
    const rows = new Set(report.defects.map(({ row }) => row));
    const texts = file.csv ? await readRows(file.csv, rows) : new Map<number, never>();
    throw badDataError(file, report, texts);
  }
  const { bars } = report.badRows > 0 ? keepBars(file, (i) => !report.isBad(i)) : file;
  return { file, report, bars, manifest: imported?.manifest };
}

/**
 * Loads bars for use: reads, cuts to the window, checks, resamples.
 * @throws ServiceError as `loadCheckedBars`; `invalid_data` where the timeframe does not fit.
 */
export async function loadDataset(options: LoadOptions): Promise<Dataset> {
  const wanted = options.timeframe === undefined ? undefined : parseTimeframe(options.timeframe);
  const { file, report, bars: read, manifest } = await loadCheckedBars(options);

  const spacing = barSpacing(read);
  const own = manifest ? parseTimeframe(manifest.timeframe) : timeframeOfSpacing(spacing ?? NaN);
  const timeframe = wanted ?? own;
  if (timeframe === undefined) throw unknownTimeframe(file.path, spacing);
  const isTheirs = own?.name === timeframe.name || read.length === 1;
  const bars = isTheirs ? read : resample(read, timeframe);
  // What has no timeframe of its own has gaps only as bars of the one wanted.
  const source = own === undefined ? bars : read;
  const hasVolume = manifest?.columns.includes('volume') ?? file.layout.volume !== undefined;
  return {
    bars,
    timeframe,
    digest: barsDigest(bars),
    gaps: findGaps(source, own ?? timeframe),
    sourceBars: source.length,
    uncovered: findUncoveredEdges(source, own ?? timeframe, options),
    dropped: report.counts,
    hasVolume,
    notes: [
      ...(file.layout.open === undefined
        ? ['There are closing prices only: open, high and low are the close.']
        : []),
      ...unusedNotes(file),
      ...(hasVolume ? [] : ['There is no volume: it is 0 in every bar.']),
      ...(report.badRows > 0
        ? [`${report.badRows} bad of ${report.rows} rows were left out.`]
        : []),
      ...(bars.length < read.length
        ? [`${read.length} bars became ${bars.length} of ${timeframe.name}.`]
        : []),
      ...(isTheirs ? [] : partialBars(bars, timeframe, options)),
    ],
  };
}

function unusedNotes({ unused, layout }: BarFile): string[] {
  const list = unused.map((name) => JSON.stringify(name)).join(', ');
  const adjusted = unused.find(isAdjustedClose);
  // An adjusted close often lies outside the range of the prices as they were.
  const columns = layout.open === undefined ? ['close'] : ['open', 'high', 'low', 'close'];
  const pairs = columns.map((column) => `${column}="${adjusted}"`).join(',');
  return [
    ...(unused.length > 0 ? [`Not used: ${list}.`] : []),
    ...(adjusted === undefined
      ? []
      : [`To trade at adjusted prices: --columns ${pairs}, or data.columns in the bot's file.`]),
  ];
}

/** A window that begins or ends inside a bar leaves a part of it, which looks like any other bar. */
function partialBars({ time }: Bars, timeframe: Timeframe, { from, to }: ReadOptions): string[] {
  const window = parseWindow(from, to);
  const { name } = timeframe;
  return [
    ...(bucketOf(time.at(0)!, timeframe).start < window.from
      ? [`The first bar of ${name} is only a part of one: from ${from} lies inside it.`]
      : []),
    ...(bucketOf(time.at(-1)!, timeframe).end > window.to
      ? [`The last bar of ${name} is only a part of one: to ${to} lies inside it.`]
      : []),
  ];
}

function unknownTimeframe(path: string, spacing: number | undefined): ServiceError {
  const reason = spacing === undefined ? '' : `: they are ${formatSpacing(spacing)} apart`;
  return new ServiceError('invalid_data', `cannot tell the timeframe of ${path}${reason}`, {
    remedy: 'Name the timeframe that the bars have or are to be made into.',
  });
}
