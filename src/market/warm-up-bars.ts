import { ServiceError } from '../base/errors.ts';
import { formatTime } from './bar-time.ts';
import { sliceBars, type Bars } from './bars.ts';
import { canDrop, checkBars } from './check-bars.ts';
import type { BarFile } from './read-bars.ts';
import { resample } from './resample.ts';
import { keepBars } from './rows.ts';
import { barSpacing, timeframeOfSpacing, type Timeframe } from './timeframe.ts';
import type { TradingCalendar } from './trading-calendar.ts';

interface WarmUpOptions {
  /** `drop` skips bad rows; by default, only the bars after the last bad row are used. */
  readonly repair?: 'drop' | undefined;
  /** Timeframe of the bars in the file; undefined if they are irregular. */
  readonly own: Timeframe | undefined;
  readonly calendar: TradingCalendar | undefined;
}

/** Bars before a window, which can feed the indicators of a run over it. */
export interface WarmUpBars {
  readonly bars: Bars;
  /** Sentences about bars that cannot be used. */
  readonly notes: readonly string[];
}

/**
 * Returns the good bars of a file before its window, resampled like the window.
 *
 * @param window bars of the window, at least one.
 */
export function warmUpBars(
  { before, tooLong }: BarFile,
  timeframe: Timeframe,
  window: Bars,
  { repair, own, calendar }: WarmUpOptions,
): WarmUpBars {
  const { good: allGood, notes: ofBadRows } = goodBars(before, tooLong, repair);
  const good = coveredBars(allGood, calendar);
  const notes = [...ofBadRows, ...(good.length < allGood.length ? [uncovered(calendar!)] : [])];
  if (own?.name === timeframe.name && hasOtherSpacing(good, own)) {
    return { bars: sliceBars(good, 0, 0), notes: [otherSpacing(window)] };
  }
  if (own?.name === timeframe.name || good.length === 0) return { bars: good, notes };
  try {
    const bars = resample(good, timeframe, calendar);
    // A bar that began before the window continues in it, so its earlier part is not a whole bar.
    const isCut = bars.time[bars.length - 1]! >= window.time[0]!;
    return { bars: sliceBars(bars, 0, isCut ? bars.length - 1 : bars.length), notes };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return { bars: sliceBars(good, 0, 0), notes: [otherSpacing(window)] };
  }
}

function goodBars(
  before: BarFile['before'],
  tooLong: BarFile['tooLong'],
  repair: 'drop' | undefined,
): { readonly good: Bars; readonly notes: readonly string[] } {
  const { bars } = before;
  const report = checkBars(before, tooLong);
  if (report.badRows === 0) return { good: bars, notes: [] };
  if (repair === 'drop' && canDrop(report)) {
    return { good: keepBars(before, (i) => !report.isBad(i)).bars, notes: [] };
  }
  let first = bars.length;
  while (first > 0 && !report.isBad(first - 1)) first -= 1;
  const row = before.rowOf(first - 1);
  // Only the first defects of each kind are listed.
  const reason = report.defects.find((defect) => defect.row === row)?.message;
  const remedy = canDrop(report) ? 'Correct it, or use repair: drop.' : 'Correct it.';
  return {
    good: sliceBars(bars, first, bars.length),
    notes: [
      `Before the window, indicators use only the bars after row ${row}, which is bad${reason === undefined ? '' : `: ${reason}`}. ${remedy}`,
    ],
  };
}

function coveredBars(bars: Bars, calendar: TradingCalendar | undefined): Bars {
  if (calendar === undefined) return bars;
  let first = 0;
  while (first < bars.length && bars.time[first]! < calendar.start) first += 1;
  return sliceBars(bars, first, bars.length);
}

function uncovered({ name, start }: TradingCalendar): string {
  const year = new Date(start).getUTCFullYear();
  return `Indicators do not use the bars before ${year}, which the calendar ${name} does not cover.`;
}

/** With fewer bars, the usual distance between two bars is unknown. */
const ENOUGH_BARS = 10;

function hasOtherSpacing(bars: Bars, own: Timeframe): boolean {
  if (bars.length < ENOUGH_BARS) return false;
  return timeframeOfSpacing(barSpacing(bars) ?? Number.NaN)?.name !== own.name;
}

function otherSpacing(window: Bars): string {
  return `The bars before ${formatTime(window.time[0]!)} have another timeframe, so indicators do not use them.`;
}
