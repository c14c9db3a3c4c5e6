import { NO_RISK_LIMITS } from '../../src/engine/config.ts';
import type { EngineConfig } from '../../src/engine/config.ts';

/** Fees and every kind of risk limit are in force, and no limit is so low that it changes a result. */
export const BENCH_CONFIG: EngineConfig = {
  cash: 100_000,
  fill: { model: 'next_open' },
  units: 'fractional',
  fees: { model: 'percent', rate: 0.001, min: 0 },
  slippage: { model: 'none' },
  account: { model: 'cash' },
  risk: {
    ...NO_RISK_LIMITS,
    max_order_value: 1e12,
    max_order_qty: 1e15,
    max_messages_per_second: 100,
    max_position_pct: 2,
    max_daily_loss_pct: 2,
    max_drawdown_pct: 2,
    max_instruments: 1,
  },
  seed: 0,
};
