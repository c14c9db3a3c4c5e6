import { drawdownOf } from '../../src/engine/equity-curve.ts';
import type { Trade, TradeOutcomes } from '../../src/engine/round-trip.ts';
import { conventionsFor } from '../../src/backtest/statistics.ts';
import type { RunFigures } from '../../src/backtest/statistics.ts';
import type { Conventions } from '../../src/backtest/summary.ts';

/**
 * 505 weekdays of equity whose statistics were computed independently of this code. The returns come
 * from the Lehmer generator x ← 16807·x mod (2³¹ − 1), and each day is also a trade.
 */
export function goldenRun(): RunFigures {
  const modulus = 2 ** 31 - 1;
  const equity = [10_000];
  for (let x = 20_240_102; equity.length < 505;) {
    x = (x * 16_807) % modulus;
    equity.push(equity.at(-1)! * (1 + (x / modulus - 0.5) * 0.03 + 0.0004));
  }
  const time: number[] = [];
  for (let day = Date.UTC(2024, 0, 1); time.length < 505; day += 86_400_000) {
    const weekday = new Date(day).getUTCDay();
    if (weekday !== 0 && weekday !== 6) time.push(day);
  }
  return run({
    time,
    equity,
    trades: equity.slice(1).map((value, i) => trade(value - equity[i]!)),
  });
}

/** A run of daily bars from Monday, 1 January 2024, including weekends. */
export function run(given: {
  readonly equity: readonly number[];
  readonly time?: readonly number[];
  readonly initialCash?: number;
  readonly trades?: readonly Trade[];
  readonly openTrades?: readonly Trade[];
  readonly fees?: number;
  readonly tradedNotional?: number;
  readonly stepsInMarket?: number;
}): RunFigures {
  const time = Float64Array.from(given.time ?? given.equity.map((_, i) => day(i)));
  const equity = Float64Array.from(given.equity);
  const initialCash = given.initialCash ?? given.equity[0] ?? 10_000;
  return {
    steps: given.equity.length,
    time,
    equity,
    drawdown: drawdownOf(initialCash, time, equity),
    initialCash,
    trades: given.trades ?? [],
    tradeOutcomes: outcomesOf(given.trades ?? []),
    openTrades: given.openTrades ?? [],
    fees: given.fees ?? 0,
    slippage: 0,
    tradedNotional: given.tradedNotional ?? 0,
    stepsInMarket: given.stepsInMarket ?? 0,
  };
}

export function outcomesOf(trades: readonly Trade[]): TradeOutcomes {
  return {
    pnl: Float64Array.from(trades, ({ pnl }) => pnl),
    return: Float64Array.from(trades, (one) => one.return),
  };
}

/** Conventions for bars of up to a day at these times. */
export const daily = (time: Float64Array): Conventions =>
  conventionsFor(time, { barMs: 86_400_000 });

export const day = (n: number): number => Date.UTC(2024, 0, 1) + n * 86_400_000;

export function trade(pnl: number, more: Partial<Trade> = {}): Trade {
  return {
    id: 1,
    symbol: 'X',
    side: 'long',
    entry_time: day(0),
    exit_time: day(1),
    bars: 1,
    quantity: 100,
    entry_price: 100,
    exit_price: 100 + pnl / 100,
    pnl,
    return: pnl / 10_000,
    fees: 0,
    ...more,
  };
}
