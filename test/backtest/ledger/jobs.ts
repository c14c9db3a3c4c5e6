import type { BacktestJob } from '../../../src/backtest/job.ts';
import { allocateBars } from '../../../src/market/bars.ts';
import { DAY } from '../../../src/base/durations.ts';

interface JobOptions {
  readonly family?: string;
  readonly symbols?: readonly string[];
  readonly barMs?: number;
  readonly from?: string;
  readonly bars?: number;
  readonly lock?: string;
}

/** The parts of a job that a ledger reads. */
export function jobOf({
  family = 'sma_crossover',
  symbols = ['SPX'],
  barMs = DAY,
  from = '2010-01-01',
  bars: length = 100,
  lock = 'a'.repeat(64),
}: JobOptions = {}): BacktestJob {
  const bars = allocateBars(length);
  for (let i = 0; i < length; i += 1) bars.time[i] = Date.parse(from) + i * barMs;
  const job = {
    strategy: { name: family },
    barMs,
    instruments: symbols.map((symbol) => ({ symbol, bars })),
    lock: { digest: lock, data: { all: lock } },
    config: {},
  };
  return job as unknown as BacktestJob;
}
