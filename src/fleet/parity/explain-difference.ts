/** Why a paper session and a backtest of the same window did not do the same. Pure. */
import type { OrderEvent } from '../../engine/journal.ts';
import { sliceBars } from '../../market/bars.ts';
import {
  barAt,
  firstDifferentBar,
  firstDifferentEvent,
  type Bar,
  type BarDifference,
  type EventDifference,
} from './differences.ts';
import type { Instrument, RecordedGap, RecordedRun } from './recording.ts';
import type { Rerun } from './rerun.ts';

/**
 * `data`: a bar is another; `gap`: a bar is there on one side only; `version`, `params`, `engine`: the
 * backtest is of others; `halt`, `stop`, `failure`: one of them ended earlier, and how; `fill`,
 * `order`: the same bars, and yet another fill, or another order.
 */
export const CAUSES = [
  'data',
  'gap',
  'version',
  'params',
  'engine',
  'halt',
  'stop',
  'failure',
  'fill',
  'order',
] as const;
export type Cause = (typeof CAUSES)[number];

/** A bar, its time in RFC 3339, or an order event. */
export type Told = Readonly<Record<string, unknown>>;

export interface ParityDifference {
  readonly cause: Cause;
  /** RFC 3339; of the bars at which the two part. */
  readonly time: string;
  /** A sentence. */
  readonly detail: string;
  /** Of the recorded event, in the log of the bot; null where a bar differs or nothing is recorded. */
  readonly seq: number | null;
  /** Null where there is none. */
  readonly recorded: Told | null;
  readonly backtest: Told | null;
}

export interface ParityFindings {
  /** Bars, of all instruments, and events before the first difference. */
  readonly bars: number;
  readonly events: number;
  readonly first_difference: ParityDifference | null;
}

export interface ParitySides {
  readonly recorded: RecordedRun;
  /** What the backtest could go over, also beyond the end of the session. */
  readonly instruments: readonly Instrument[];
  /** Over `untilEnd(recorded, instruments)`. */
  readonly backtest: Rerun;
  /** What of the backtest is another than of the session: those first that say most. */
  readonly others: readonly Extract<Cause, 'version' | 'params' | 'engine'>[];
}

/** Of the histories what the session can have seen. */
export function untilEnd(
  { instruments: recorded }: Pick<RecordedRun, 'instruments'>,
  instruments: readonly Instrument[],
): readonly Instrument[] {
  const last = lastTime(recorded);
  return instruments.map(({ symbol, bars }) => ({
    symbol,
    bars: sliceBars(bars, 0, countUntil(bars.time.subarray(0, bars.length), last)),
  }));
}

function lastTime(instruments: readonly Instrument[]): number {
  const ends = instruments.map(({ bars }) =>
    bars.length > 0 ? bars.time[bars.length - 1]! : -Infinity,
  );
  return Math.max(...ends);
}

/** How many of the times, which ascend, are not after `last`. */
function countUntil(times: Float64Array, last: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle]! <= last) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function explainDifference(sides: ParitySides): ParityFindings {
  const { recorded, instruments, backtest } = sides;
  const seen = untilEnd(recorded, instruments);
  const event = firstDifferentEvent(recorded.orders, backtest.lines);
  const bar = firstDifferentBar(recorded.instruments, seen);
  // A step's bars come before what is done about them.
  if (bar !== undefined && bar.time <= timeOf(event)) {
    return {
      bars: countBefore(recorded.instruments, bar.time),
      events: countEvents(recorded, event, bar.time),
      first_difference: byBar(bar, recorded.gaps),
    };
  }
  const bars = countBefore(recorded.instruments, event === undefined ? Infinity : timeOf(event));
  if (event !== undefined) {
    return { bars, events: event.equal, first_difference: byEvent(event, sides) };
  }
  return { bars, events: recorded.orders.length, first_difference: byEnd(sides, seen) };
}

/** Of the first of the two. */
function timeOf(difference: EventDifference | undefined): number {
  const { recorded, rerun } = difference ?? {};
  const times = [recorded, rerun].map((one) => (one ? Date.parse(one.time) : Infinity));
  return Math.min(...times);
}

function countBefore(instruments: readonly Instrument[], time: number): number {
  return instruments.reduce((sum, { bars }) => {
    const times = bars.time.subarray(0, bars.length);
    return sum + countUntil(times, time === Infinity ? time : time - 1);
  }, 0);
}

/** Events of earlier bars than those that differ. */
function countEvents(
  { orders }: RecordedRun,
  event: EventDifference | undefined,
  time: number,
): number {
  const equal = orders.slice(0, event?.equal);
  const after = equal.findIndex(
    ({ line }) => Date.parse((JSON.parse(line) as OrderEvent).time) >= time,
  );
  return after < 0 ? equal.length : after;
}

function byBar(bar: BarDifference, gaps: readonly RecordedGap[]): ParityDifference {
  const { symbol, recorded, other } = bar;
  const time = isoTime(bar.time);
  const place = { time, seq: null, recorded: told(recorded), backtest: told(other) };
  if (recorded !== undefined && other !== undefined) {
    const names = (['open', 'high', 'low', 'close', 'volume'] as const)
      .filter((name) => recorded[name] !== other[name])
      .map((name) => `${name} ${recorded[name]} in the session, ${other[name]} in the catalogue`);
    return {
      cause: 'data',
      detail: `the bar of ${symbol} is another: ${names.join('; ')}`,
      ...place,
    };
  }
  if (recorded !== undefined) {
    return { cause: 'gap', detail: `the catalogue has no bar of ${symbol} at this time`, ...place };
  }
  const isTold = gaps.some((gap) => gap.symbol === symbol && gap.after < time && time < gap.before);
  const detail = `the session got no bar of ${symbol} at this time${isTold ? ', and says so by data.gap' : ''}`;
  return { cause: 'gap', detail, ...place };
}

const OTHERS = {
  version: 'the backtest is of another version than the session',
  params: 'the backtest has other parameters than the session',
  engine: 'the session ran on another version of the engine',
} as const;

function byEvent(event: EventDifference, sides: ParitySides): ParityDifference {
  const { recorded, backtest, others } = sides;
  const { end } = recorded;
  const [one, other] = [event.recorded, event.rerun];
  const place = {
    time: isoTime(timeOf(event)),
    seq: event.seq ?? null,
    recorded: one ?? null,
    backtest: other ?? null,
  };
  // The strategy cannot do that, whatever else is another.
  if (isByHalt(one) && end !== undefined && end !== 'success') {
    const detail = `${ENDS[end]}, and its orders were canceled`;
    return { cause: end, detail, ...place };
  }
  if ((other === undefined || isByHalt(other)) && backtest.failure !== undefined) {
    if (recorded.status !== 'failed') return { ...byFailure(sides), ...place };
  }
  const [another] = others;
  if (another !== undefined) return { cause: another, detail: OTHERS[another], ...place };
  if (one === undefined && recorded.status === 'failed') return { ...byFailure(sides), ...place };
  const isFill = [one, other].every(
    (of) => of?.kind === 'order.filled' || of?.kind === 'order.triggered',
  );
  return isFill
    ? { cause: 'fill', detail: 'the same bars, and an order was filled in another way', ...place }
    : { cause: 'order', detail: 'the same bars, and the strategy did something else', ...place };
}

/** Whether it is by whoever halts, and not by the strategy. */
function isByHalt(event: OrderEvent | undefined): boolean {
  return event?.kind === 'order.canceled' && event.reason === 'halted';
}

/** Where the strategy failed in one of the two. */
function byFailure({
  backtest: { failure },
  others: [another],
}: ParitySides): Pick<ParityDifference, 'cause' | 'detail'> {
  if (failure === undefined) {
    return { cause: another ?? 'failure', detail: 'the strategy failed in the session' };
  }
  const detail = `the backtest failed: ${failure}`;
  return another === undefined
    ? { cause: 'failure', detail }
    : { cause: another, detail: `${OTHERS[another]}, and ${detail}` };
}

const ENDS = {
  halt: 'the bot was halted',
  stop: 'the session was stopped',
  failure: 'the session failed',
} as const;

/** The same all along; but one may have gone on for longer. */
function byEnd(sides: ParitySides, seen: readonly Instrument[]): ParityDifference | null {
  const { recorded, instruments, backtest } = sides;
  const { end } = recorded;
  const hasFailed = recorded.status === 'failed';
  if (hasFailed !== (backtest.failure !== undefined)) {
    const time = isoTime(lastTime(recorded.instruments));
    return { ...byFailure(sides), time, seq: null, recorded: null, backtest: null };
  }
  // Where it failed, the backtest did too.
  if (end === undefined || hasFailed) return null;
  const next = instruments
    .flatMap((instrument, index) => {
      const at = seen[index]!.bars.length;
      return at < instrument.bars.length ? [barAt(instrument, at)] : [];
    })
    .toSorted((one, other) => one.time - other.time)[0];
  // Who has lost the account trades no more, with bars or without.
  if (next === undefined || recorded.status === 'ruined') return null;
  const place = { time: isoTime(next.time), seq: null, recorded: null, backtest: told(next) };
  if (end === 'success') {
    return {
      cause: 'gap',
      detail: 'the catalogue has bars from after the end of the session',
      ...place,
    };
  }
  return { cause: end, detail: `${ENDS[end]} before this bar`, ...place };
}

function told(bar: Bar | undefined): Told | null {
  return bar === undefined ? null : { ...bar, time: isoTime(bar.time) };
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
