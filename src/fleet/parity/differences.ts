import type { OrderEvent } from '../../engine/journal.ts';
import type { Candle } from '../../market/bars.ts';
import type { Instrument, RecordedOrder } from './recording.ts';

/** First different events; undefined on the side that has ended. */
export interface EventDifference {
  /** Number of equal events before. */
  readonly equal: number;
  /** Sequence number in the log of the bot. */
  readonly seq: number | undefined;
  readonly recorded: OrderEvent | undefined;
  readonly rerun: OrderEvent | undefined;
}

export function firstDifferentEvent(
  recorded: readonly RecordedOrder[],
  rerun: readonly string[],
): EventDifference | undefined {
  const most = Math.max(recorded.length, rerun.length);
  for (let equal = 0; equal < most; equal += 1) {
    const [one, other] = [recorded[equal], rerun[equal]];
    if (one?.line === other) continue;
    return {
      equal,
      seq: one?.seq,
      recorded: one && (JSON.parse(one.line) as OrderEvent),
      rerun: other === undefined ? undefined : (JSON.parse(other) as OrderEvent),
    };
  }
  return undefined;
}

export interface Bar extends Candle {
  /** Milliseconds since the Unix epoch. */
  readonly time: number;
  readonly symbol: string;
}

/** First different bars; undefined on the side without a bar at that time. */
export interface BarDifference {
  readonly time: number;
  readonly symbol: string;
  readonly recorded: Bar | undefined;
  readonly other: Bar | undefined;
}

/** @param others bars of the same symbols in the same order. */
export function firstDifferentBar(
  recorded: readonly Instrument[],
  others: readonly Instrument[],
): BarDifference | undefined {
  let first: BarDifference | undefined;
  for (const [index, one] of recorded.entries()) {
    const found = differenceOf(one, others[index]!);
    if (found !== undefined && found.time < (first?.time ?? Infinity)) first = found;
  }
  return first;
}

const CANDLE = ['open', 'high', 'low', 'close', 'volume'] as const;

function differenceOf(recorded: Instrument, other: Instrument): BarDifference | undefined {
  const { symbol } = recorded;
  const most = Math.max(recorded.bars.length, other.bars.length);
  for (let at = 0; at < most; at += 1) {
    const [one, two] = [timeAt(recorded, at), timeAt(other, at)];
    const isSame =
      one === two && CANDLE.every((name) => recorded.bars[name][at] === other.bars[name][at]);
    if (isSame) continue;
    return {
      time: Math.min(one, two),
      symbol,
      recorded: one <= two ? barAt(recorded, at) : undefined,
      other: two <= one ? barAt(other, at) : undefined,
    };
  }
  return undefined;
}

function timeAt({ bars }: Instrument, at: number): number {
  return at < bars.length ? bars.time[at]! : Infinity;
}

export function barAt({ symbol, bars }: Instrument, at: number): Bar {
  const [open, high, low, close, volume] = CANDLE.map((name) => bars[name][at]!) as [
    number,
    number,
    number,
    number,
    number,
  ];
  return { time: bars.time[at]!, symbol, open, high, low, close, volume };
}
