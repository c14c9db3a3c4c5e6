/** Findings about the data of a run: faults of the bars, and their extent. */
import { formatCountOf, formatPercent } from '../base/format.ts';
import type { HistoryNeed } from '../engine/history-need.ts';
import type { RunResult } from '../engine/run-result.ts';
import type { Bars } from '../market/bars.ts';
import type { UncoveredEdge } from '../market/data-gaps.ts';
import { DAY, HOUR, MINUTE } from '../base/durations.ts';
import { formatTime } from '../market/bar-time.ts';
import type { CalendarName } from '../market/trading-calendar.ts';
import { barSpacing } from '../market/timeframe.ts';
import type { JobInstrument } from './job.ts';
import type { Finding } from './summary.ts';

interface DataOfRun {
  readonly run: Pick<RunResult, 'time' | 'openTrades'>;
  /** Each has at least one bar. */
  readonly instruments: readonly JobInstrument[];
}

type DataCheck = (input: DataOfRun) => Finding | undefined;

/** A price that does not change for this number of bars was probably not traded. */
const STALE_RUN = 5;
/** From this share of the bars on, faulty data are a warning. */
const MANY_BARS = 0.01;
/** An instrument may have no data for this number of its own bars before its data count as ended. */
const SILENT_BARS = 5;
/** The longest pause of markets over weekends and holidays. */
const LONG_WEEKEND = 4 * DAY;

export const staleBars: DataCheck = ({ instruments }) => {
  const counts = instruments.map(({ symbol, bars }) => {
    const stale = countStale(bars);
    return { symbol, stale, share: stale / bars.length };
  });
  const worst = counts.toSorted((a, b) => b.share - a.share)[0];
  if (worst === undefined || worst.stale === 0) return undefined;
  return {
    code: 'stale_bars',
    severity: worst.share >= MANY_BARS ? 'warning' : 'info',
    issue: `${formatPercent(worst.share)} of the bars of ${worst.symbol} repeat one price, with high equal to low.`,
    evidence: Object.fromEntries(
      counts.filter(({ stale }) => stale > 0).map(({ symbol, stale }) => [symbol, stale]),
    ),
    remedy:
      'There was probably no trading then: check the data, and do not rely on fills at these prices.',
  };
};

/** Counts the bars in runs of at least `STALE_RUN` bars with the same close and no range. */
function countStale({ length, high, low, close }: Bars): number {
  let stale = 0;
  let run = 0;
  for (let i = 0; i <= length; i++) {
    const still = i < length && high[i] === low[i];
    if (still && run > 0 && close[i] === close[i - 1]) {
      run++;
    } else {
      if (run >= STALE_RUN) stale += run;
      run = still ? 1 : 0;
    }
  }
  return stale;
}

export const missingBars: DataCheck = ({ instruments }) => {
  const gappy = instruments
    .map(({ symbol, source: { bars, missing } }) => ({
      symbol,
      missing,
      share: missing / (missing + bars),
    }))
    .filter(({ missing }) => missing > 0);
  const worst = gappy.toSorted((a, b) => b.share - a.share)[0];
  if (worst === undefined) return undefined;
  return {
    code: 'missing_bars',
    severity: worst.share >= MANY_BARS ? 'warning' : 'info',
    issue: `${formatPercent(worst.share)} of the bars that the source of ${worst.symbol} should have are missing, so the strategy did not see these price changes.`,
    evidence: Object.fromEntries(gappy.map(({ symbol, missing }) => [symbol, missing])),
    remedy: 'Download the history again, or use another source.',
  };
};

/** Finds parts of the requested window that have no data. */
export function windowBeyondData(
  instruments: readonly Pick<JobInstrument, 'symbol' | 'uncovered'>[],
): Finding | undefined {
  const beyond = instruments.flatMap(({ symbol, uncovered = [] }) =>
    uncovered.map((edge) => ({ symbol, ...edge })),
  );
  if (beyond.length === 0) return undefined;
  return {
    code: 'window_beyond_data',
    severity: 'warning',
    issue: `The window extends beyond the data: ${beyond.map(describeEdge).join('; ')}.`,
    evidence: Object.fromEntries(
      beyond.map(({ symbol, edge, missing }) => [`${symbol} ${EDGE_SIDES[edge]}`, missing]),
    ),
    remedy: 'Get the rest of the history, or set from and to inside the data.',
  };
}

/** From this share of the bars on, times are probably wrong, or the calendar does not fit. */
const MANY_OUTSIDE = 0.05;

/** Finds instruments whose bars are largely outside the sessions of their calendar. */
export function outsideSessions(
  instruments: readonly Pick<JobInstrument, 'symbol' | 'outsideSessions'>[],
  calendar: CalendarName = '24/7',
): Finding | undefined {
  const outside = instruments
    .map(({ symbol, outsideSessions: share = 0 }) => ({ symbol, share }))
    .filter(({ share }) => share >= MANY_OUTSIDE)
    .sort((a, b) => b.share - a.share);
  const [worst] = outside;
  if (worst === undefined) return undefined;
  return {
    code: 'outside_sessions',
    severity: 'warning',
    issue: `${formatPercent(worst.share)} of the bars of ${worst.symbol} are outside the sessions of ${calendar}, so longer bars do not include them.`,
    evidence: Object.fromEntries(outside.map(({ symbol, share }) => [symbol, share])),
    remedy:
      'If the times in the file are local, add their offset from UTC. Otherwise, use data of the sessions only, or another universe.calendar.',
  };
}

/** Finds instruments with fewer bars before the window than the declared indicators need. */
export function shortWarmUp(needs: readonly HistoryNeed[] = []): Finding | undefined {
  const short = needs
    .flatMap(({ timeframe, needed, given }) =>
      Object.entries(given).map(([symbol, count]) => ({ symbol, timeframe, needed, given: count })),
    )
    .filter(({ needed, given }) => given < needed)
    .sort((a, b) => a.given / a.needed - b.given / b.needed);
  const [worst] = short;
  if (worst === undefined) return undefined;
  return {
    code: 'warm_up_short',
    severity: 'info',
    issue: `The indicators need ${formatBars(worst.needed, worst.timeframe)} before the window, but the data of ${worst.symbol} have ${worst.given}, so some indicators are not ready at the first bars of the window.`,
    evidence: Object.fromEntries(
      short.map(({ symbol, timeframe, given }) => [`${symbol} ${timeframe}`.trimEnd(), given]),
    ),
    remedy: 'Load more history, or begin the window later.',
  };
}

/** `34 bars of 1d`; only the number for the bars of the run, whose timeframe is empty. */
export function formatBars(count: number, timeframe: string): string {
  return formatCountOf(count, 'bar') + (timeframe === '' ? '' : ` of ${timeframe}`);
}

const EDGE_SIDES = { from: 'bars missing at the start', to: 'bars missing at the end' } as const;

function describeEdge(edge: UncoveredEdge & { readonly symbol: string }): string {
  const bar = edge.edge === 'from' ? 'first' : 'last';
  return `${edge.edge} is ${edge.asked}, but the ${bar} bar of ${edge.symbol} is of ${formatTime(edge.nearest)}`;
}

export const dataEndEarly: DataCheck = ({ instruments, run }) => {
  const end = run.time.at(-1)!;
  const isHeld = (symbol: string): boolean =>
    run.openTrades.some((trade) => trade.symbol === symbol);
  const ended = instruments
    .map(({ symbol, bars }) => ({ symbol, bars, last: bars.time.at(-1)! }))
    .filter(({ bars, last }) => end - last > usualSilence(bars))
    .sort((a, b) => Number(isHeld(b.symbol)) - Number(isHeld(a.symbol)) || a.last - b.last);
  const [worst] = ended;
  if (worst === undefined) return undefined;
  const { symbol, last } = worst;
  const isStuck = isHeld(symbol);
  return {
    code: 'data_end_early',
    severity: isStuck ? 'critical' : 'warning',
    issue:
      `The data of ${symbol} end at ${formatTime(last)}, ${formatRoundedSpan(end - last)} before the run: ` +
      `${isStuck ? 'its position is valued at that close, and ' : ''}no later order for it could be filled.`,
    evidence: Object.fromEntries(ended.map((other) => [other.symbol, formatTime(other.last)])),
    remedy: `End the window by then, get the rest of the history, or remove ${symbol}.`,
  };
};

export const dataStartLate: DataCheck = ({ instruments, run }) => {
  const start = run.time[0]!;
  const late = instruments
    .map(({ symbol, bars }) => ({ symbol, bars, first: bars.time[0]! }))
    .filter(({ bars, first }) => first - start > usualSilence(bars))
    .sort((a, b) => b.first - a.first);
  const [worst] = late;
  if (worst === undefined) return undefined;
  const { symbol, first } = worst;
  return {
    code: 'data_start_late',
    severity: 'info',
    issue: `${symbol} begins ${formatTime(first)}, ${formatRoundedSpan(first - start)} after the run: until then only the others were traded.`,
    evidence: Object.fromEntries(late.map((other) => [other.symbol, formatTime(other.first)])),
    remedy: 'Begin the window by then, or load the history before it.',
  };
};

/** The longest time without a bar that does not mean the end of the data, ms. */
function usualSilence(bars: Bars): number {
  let pause = 0;
  for (let i = 1; i < bars.length; i++) pause = Math.max(pause, bars.time[i]! - bars.time[i - 1]!);
  return Math.max(SILENT_BARS * (barSpacing(bars) ?? 0), Math.min(pause, LONG_WEEKEND));
}

/** `121 months`, `12 days`, `5 hours`: rounded, in the longest unit with a count of at least two. */
function formatRoundedSpan(ms: number): string {
  const units = [
    [30.436875 * DAY, 'month'],
    [DAY, 'day'],
    [HOUR, 'hour'],
  ] as const;
  const [length, name] = units.find(([unit]) => ms >= 2 * unit) ?? [MINUTE, 'minute'];
  return formatCountOf(Math.round(ms / length), name);
}
