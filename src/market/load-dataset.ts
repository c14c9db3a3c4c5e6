import { ServiceError } from '../base/errors.ts';
import type { Bars } from './bars.ts';
import { resolveDataset, type Manifest } from './catalogue.ts';
import {
  badDataError,
  canDrop,
  checkBars,
  type CheckReport,
  type DefectCounts,
} from './check-bars.ts';
import { readRows } from './csv-file.ts';
import { barsDigest } from './digest.ts';
import { findGaps, findUncoveredEdges, type GapReport, type UncoveredEdge } from './data-gaps.ts';
import { isAdjustedClose } from './header.ts';
import { readBars, type BarFile, type ReadOptions } from './read-bars.ts';
import { Periods } from './periods.ts';
import { resample } from './resample.ts';
import { keepBars } from './rows.ts';
import { warmUpBars, type WarmUpBars } from './warm-up-bars.ts';
import { parseWindow } from './bar-time.ts';
import {
  barSpacing,
  formatSpacing,
  parseTimeframe,
  timeframeOfSpacing,
  type Timeframe,
} from './timeframe.ts';
import { calendarOf, type CalendarName, type TradingCalendar } from './trading-calendar.ts';

export interface LoadOptions extends ReadOptions {
  /** Path of a CSV or Parquet file, or `catalog://NAME`. */
  readonly source: string;
  readonly catalogueDir: string;
  /** Resamples the bars to this timeframe; the timeframe of the source by default. */
  readonly timeframe?: string | undefined;
  /** Calendar of resampled bars; UTC days by default. */
  readonly calendar?: CalendarName | undefined;
  /** `drop` skips bad rows; by default they are an error. */
  readonly repair?: 'drop' | undefined;
  /** Whether indicators need the bars before the window. */
  readonly warmUp?: boolean | undefined;
}

export interface Dataset {
  readonly bars: Bars;
  /** Bars before the window, if they were requested. */
  readonly warmUp: WarmUpBars | undefined;
  readonly timeframe: Timeframe;
  /** See `barsDigest`. */
  readonly digest: string;
  /** Gaps and number of the bars before resampling. */
  readonly gaps: GapReport;
  readonly sourceBars: number;
  /** Share of the bars before resampling that are outside the sessions of the calendar, 0 to 1. */
  readonly outsideSessions: number;
  /** Edges of the window that the bars do not reach. */
  readonly uncovered: readonly UncoveredEdge[];
  /** Rows left out by `repair`. */
  readonly dropped: DefectCounts;
  readonly hasVolume: boolean;
  /** Sentences about limitations of the data, such as a missing volume. */
  readonly notes: readonly string[];
}

/** Bars of a source inside the window, without bad rows, before resampling. */
interface CheckedBars {
  readonly file: BarFile;
  readonly report: CheckReport;
  readonly bars: Bars;
  /** Manifest of a dataset in the catalogue; undefined for a file. */
  readonly manifest: Manifest | undefined;
}

/**
 * Reads a source, cuts it to the window and checks it.
 *
 * @throws ServiceError `file_not_found`, or `invalid_data` with the defects and their rows.
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
 * Reads a source, cuts it to the window, checks and resamples it.
 *
 * @throws ServiceError as `loadCheckedBars`; `invalid_data` if the bars do not fit the timeframe.
 */
export async function loadDataset(options: LoadOptions): Promise<Dataset> {
  const wanted = options.timeframe === undefined ? undefined : parseTimeframe(options.timeframe);
  const { file, report, bars: read, manifest } = await loadCheckedBars(options);

  const spacing = barSpacing(read);
  const own = manifest ? parseTimeframe(manifest.timeframe) : timeframeOfSpacing(spacing ?? NaN);
  const timeframe = wanted ?? own;
  if (timeframe === undefined) throw unknownTimeframe(file.path, spacing);
  const isOwn = own?.name === timeframe.name || read.length === 1;
  const calendar = calendarOf(options.calendar);
  const bars = isOwn ? read : resample(read, timeframe, calendar);
  if (calendar !== undefined) checkCovered(bars, calendar, file);
  // Irregular bars can only have gaps after resampling.
  const source = own === undefined ? bars : read;
  const hasVolume = manifest?.columns.includes('volume') ?? file.layout.volume !== undefined;
  return {
    bars,
    warmUp: options.warmUp
      ? warmUpBars(file, timeframe, bars, { ...options, own, calendar })
      : undefined,
    timeframe,
    digest: barsDigest(bars),
    gaps: findGaps(source, own ?? timeframe),
    sourceBars: source.length,
    outsideSessions: shareOutside(source, own ?? timeframe, calendar),
    uncovered: findUncoveredEdges(source, own ?? timeframe, options),
    dropped: report.counts,
    hasVolume,
    notes: [
      ...(file.layout.open === undefined
        ? ['The data have closing prices only: open, high and low equal the close.']
        : []),
      ...unusedNotes(file),
      ...(hasVolume ? [] : ['The data have no volume: it is 0 in every bar.']),
      ...(report.badRows > 0 ? [`Skipped bad rows: ${report.badRows} of ${report.rows}.`] : []),
      ...(bars.length < read.length
        ? [`${read.length} bars were resampled to ${bars.length} bars of ${timeframe.name}.`]
        : []),
      ...(isOwn ? [] : partialBars(bars, new Periods(timeframe, 0, calendar), options)),
    ],
  };
}

/** @throws ServiceError `invalid_data` for no bars, or bars in years that the calendar does not cover. */
function checkCovered(
  { time, length }: Bars,
  calendar: TradingCalendar,
  { path }: Pick<BarFile, 'path'>,
): void {
  if (length === 0) {
    throw new ServiceError(
      'invalid_data',
      `the window of ${path} has no bar in a session of ${calendar.name}`,
      {
        remedy:
          'Check the time zone of the bars, choose another window, or remove universe.calendar.',
      },
    );
  }
  calendar.sessionAt(time[0]!);
  calendar.sessionAt(time[length - 1]!);
}

function shareOutside(
  { time, length }: Bars,
  timeframe: Timeframe,
  calendar: TradingCalendar | undefined,
): number {
  if (calendar === undefined || length === 0) return 0;
  const periods = new Periods(timeframe, timeframe.ms, calendar);
  let outside = 0;
  for (let i = 0; i < length; i += 1) if (periods.of(time[i]!) === undefined) outside += 1;
  return outside / length;
}

function unusedNotes({ unused, layout }: BarFile): string[] {
  const list = unused.map((name) => JSON.stringify(name)).join(', ');
  const adjusted = unused.find(isAdjustedClose);
  // All prices are replaced, because an adjusted close is often outside the unadjusted high and low.
  const columns = layout.open === undefined ? ['close'] : ['open', 'high', 'low', 'close'];
  const pairs = columns.map((column) => `${column}="${adjusted}"`).join(',');
  return [
    ...(unused.length > 0 ? [`Unused columns: ${list}.`] : []),
    ...(adjusted === undefined
      ? []
      : [
          'To trade at adjusted prices, set data.columns of the bot, or use ' +
            `--columns ${pairs} on the command line.`,
        ]),
  ];
}

/** Warns of a window that begins or ends inside a resampled bar. */
function partialBars({ time }: Bars, periods: Periods, { from, to }: ReadOptions): string[] {
  const window = parseWindow(from, to);
  const { name } = periods.timeframe;
  return [
    ...(periods.of(time.at(0)!)!.start < window.from
      ? [`The first bar of ${name} is incomplete: the window begins inside it, at ${from}.`]
      : []),
    ...(periods.of(time.at(-1)!)!.end > window.to
      ? [`The last bar of ${name} is incomplete: the window ends inside it, at ${to}.`]
      : []),
  ];
}

function unknownTimeframe(path: string, spacing: number | undefined): ServiceError {
  const reason = spacing === undefined ? '' : `: its bars are ${formatSpacing(spacing)} apart`;
  return new ServiceError('invalid_data', `the timeframe of ${path} is unknown${reason}`, {
    remedy: 'Set the timeframe of the bars, or the one to resample them to.',
  });
}
