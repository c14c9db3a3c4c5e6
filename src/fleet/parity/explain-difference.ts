/** Explains why a paper session and a backtest of the same window differ. Pure. */
import { isoTime } from '../../base/iso-time.ts';
import type { ParityCause } from '../../base/parity-causes.ts';
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

/** A bar with its time in RFC 3339, or an order event. */
export type ReportedItem = Readonly<Record<string, unknown>>;

export interface ParityDifference {
  readonly cause: ParityCause;
  /** Time of the first different bar or event, RFC 3339. */
  readonly time: string;
  readonly detail: string;
  /** Sequence number of the recorded event; null for a bar or an event only in the backtest. */
  readonly seq: number | null;
  readonly recorded: ReportedItem | null;
  readonly backtest: ReportedItem | null;
}

export interface ParityFindings {
  /** Number of bars of all instruments before the first difference. */
  readonly bars: number;
  /** Number of events before the first difference. */
  readonly events: number;
  readonly first_difference: ParityDifference | null;
}

export interface ParitySides {
  readonly recorded: RecordedRun;
  /** All bars of the backtest's window, including bars after the end of the session. */
  readonly instruments: readonly Instrument[];
  /** Run over `untilEnd(recorded, instruments)`. */
  readonly backtest: Rerun;
  /** Settings in which the backtest differs from the session, most significant first. */
  readonly others: readonly Extract<ParityCause, 'version' | 'params' | 'engine'>[];
}

/** Cuts bars after the last bar of the session. */
export function untilEnd(
  { instruments: recorded }: Pick<RecordedRun, 'instruments'>,
  instruments: readonly Instrument[],
): readonly Instrument[] {
  const last = lastTime(recorded);
  return instruments.map(({ symbol, bars, warmUp }) => ({
    symbol,
    warmUp,
    bars: sliceBars(bars, 0, countUntil(bars.time.subarray(0, bars.length), last)),
  }));
}

function lastTime(instruments: readonly Instrument[]): number {
  const ends = instruments.map(({ bars }) =>
    bars.length > 0 ? bars.time[bars.length - 1]! : -Infinity,
  );
  return Math.max(...ends);
}

/** Counts the times, in ascending order, that are not after `last`. */
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
  // The bars of a step come before its events.
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

/** Counts equal events before `time`. */
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
  const place = { time, seq: null, recorded: formatBar(recorded), backtest: formatBar(other) };
  if (recorded !== undefined && other !== undefined) {
    const names = (['open', 'high', 'low', 'close', 'volume'] as const)
      .filter((name) => recorded[name] !== other[name])
      .map((name) => `${name} ${recorded[name]} in the session, ${other[name]} in the catalogue`);
    return {
      cause: 'data',
      detail: `the bar of ${symbol} differs: ${names.join('; ')}`,
      ...place,
    };
  }
  if (recorded !== undefined) {
    return { cause: 'gap', detail: `the catalogue has no bar of ${symbol} at this time`, ...place };
  }
  const isReported = gaps.some(
    (gap) => gap.symbol === symbol && gap.after < time && time < gap.before,
  );
  const detail = `the session received no bar of ${symbol} at this time${isReported ? ' and recorded data.gap' : ''}`;
  return { cause: 'gap', detail, ...place };
}

const OTHERS = {
  version: 'the backtest uses another version than the session',
  params: 'the backtest uses other parameters than the session',
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
  // Only a halt cancels orders with this reason, so other differences do not matter.
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
    ? {
        cause: 'fill',
        detail: 'an order was filled differently, although the bars are equal',
        ...place,
      }
    : {
        cause: 'order',
        detail: 'the strategy acted differently, although the bars are equal',
        ...place,
      };
}

function isByHalt(event: OrderEvent | undefined): boolean {
  return event?.kind === 'order.canceled' && event.reason === 'halted';
}

/** Explains a strategy failure on one side. */
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

/** Explains a difference in the ends, when all common bars and events are equal. */
function byEnd(sides: ParitySides, seen: readonly Instrument[]): ParityDifference | null {
  const { recorded, instruments, backtest } = sides;
  const { end } = recorded;
  const hasFailed = recorded.status === 'failed';
  if (hasFailed !== (backtest.failure !== undefined)) {
    const time = isoTime(lastTime(recorded.instruments));
    return { ...byFailure(sides), time, seq: null, recorded: null, backtest: null };
  }
  // If both failed, the backtest explains nothing more.
  if (end === undefined || hasFailed) return null;
  const next = instruments
    .flatMap((instrument, index) => {
      const at = seen[index]!.bars.length;
      return at < instrument.bars.length ? [barAt(instrument, at)] : [];
    })
    .toSorted((one, other) => one.time - other.time)[0];
  // A ruined account does not trade, with or without further bars.
  if (next === undefined || recorded.status === 'ruined') return null;
  const place = { time: isoTime(next.time), seq: null, recorded: null, backtest: formatBar(next) };
  if (end === 'success') {
    return {
      cause: 'gap',
      detail: 'the catalogue has bars after the end of the session',
      ...place,
    };
  }
  return { cause: end, detail: `${ENDS[end]} before this bar`, ...place };
}

function formatBar(bar: Bar | undefined): ReportedItem | null {
  return bar === undefined ? null : { ...bar, time: isoTime(bar.time) };
}
