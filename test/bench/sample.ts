/**
 * One measurement in a fresh process: `node sample.ts engine|loop BARS REPEATS`. Prints the
 * milliseconds of each repetition and the final equity as JSON.
 */
import { NO_RISK_LIMITS } from '../../src/engine/config.ts';
import type { EngineConfig } from '../../src/engine/config.ts';
import { BUILT_IN_STRATEGIES } from '../../src/engine/strategies/built-in.ts';
import { execute } from '../../src/backtest/execute.ts';
import { handWrittenLoop } from './loop.ts';
import { randomWalk } from './series.ts';

const [what, length, repeats] = process.argv.slice(2);
const bars = randomWalk(Number(length));
const config: EngineConfig = {
  cash: 100_000,
  fill: { model: 'next_open' },
  units: 'fractional',
  fees: { model: 'percent', rate: 0.001, min: 0 },
  slippage: { model: 'none' },
  account: { model: 'cash' },
  // Every kind of limit is in force, and none so low that it changes the result.
  risk: {
    ...NO_RISK_LIMITS,
    max_order_value: 1e12,
    max_order_qty: 1e12,
    max_messages_per_second: 100,
    max_position_pct: 2,
    max_daily_loss_pct: 2,
    max_drawdown_pct: 2,
    max_instruments: 1,
  },
  seed: 0,
};
const strategy = BUILT_IN_STRATEGIES.get('sma_crossover')!;
const setup = {
  instruments: [{ symbol: 'X', bars }],
  strategy,
  params: { fast: 10, slow: 30 },
  config,
};

const milliseconds: number[] = [];
let equity = 0;
let fills = 0;
for (let i = 0; i < Number(repeats); i += 1) {
  const start = performance.now();
  if (what === 'loop') {
    equity = handWrittenLoop(bars, 10, 30);
  } else {
    const result = await execute(setup, { timeoutMs: 60_000 });
    equity = result.equity.at(-1)!;
    fills = result.orders.fills;
  }
  milliseconds.push(performance.now() - start);
}
console.log(JSON.stringify({ milliseconds, equity, fills }));
