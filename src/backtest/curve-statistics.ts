import { drawdownOf } from '../engine/equity-curve.ts';
import type { RunResult } from '../engine/run-result.ts';
import { quickStatistics, type QuickStatistics } from './statistics.ts';
import type { Conventions } from './summary.ts';

export type Curve = Pick<RunResult, 'time' | 'equity' | 'initialCash'>;

/** Statistics of an equity curve without trades, such as that of a benchmark. */
export function curveStatistics(curve: Curve, conventions: Conventions): QuickStatistics {
  const { time, equity, initialCash } = curve;
  return quickStatistics(
    {
      ...curve,
      steps: time.length,
      drawdown: drawdownOf(initialCash, time, equity),
      trades: [],
      tradeOutcomes: { pnl: new Float64Array(), return: new Float64Array() },
      openTrades: [],
      fees: 0,
      slippage: 0,
      tradedNotional: 0,
      stepsInMarket: 0,
    },
    conventions,
  );
}
