import type { Trade } from '../../engine/round-trip.ts';

/** Number of trades that are sorted first. Most callers stop before the others. */
const FIRST = 4096;

/** The trades in order of the size of their profit or loss, the largest first. */
export function* bySize(trades: readonly Trade[]): Generator<Trade> {
  const sizes = Float64Array.from(trades, ({ pnl }) => -Math.abs(pnl));
  // Numbers are sorted many times as fast as objects.
  const smallest = sizes.toSorted()[FIRST - 1] ?? Infinity;
  yield* inOrder(trades.filter((_, at) => sizes[at]! <= smallest));
  yield* inOrder(trades.filter((_, at) => sizes[at]! > smallest));
}

/** The first `most` of `bySize`. */
export function largestTrades(trades: readonly Trade[], most: number): readonly Trade[] {
  const largest: Trade[] = [];
  for (const trade of bySize(trades)) {
    if (largest.length >= most) break;
    largest.push(trade);
  }
  return largest;
}

function inOrder(trades: readonly Trade[]): Trade[] {
  return trades.toSorted((a, b) => Math.abs(b.pnl) - Math.abs(a.pnl));
}
