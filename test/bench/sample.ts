/**
 * One measurement in a fresh process: `node sample.ts engine|loop BARS REPEATS`. Prints the
 * milliseconds of each repetition and the final equity as JSON.
 */
import { BUILT_IN_STRATEGIES } from '../../src/engine/strategies/built-in.ts';
import { execute } from '../../src/backtest/execute.ts';
import { BENCH_CONFIG } from './config.ts';
import { handWrittenLoop } from './loop.ts';
import { randomWalk } from './series.ts';

const [what, length, repeats] = process.argv.slice(2);
const bars = randomWalk(Number(length));
const strategy = BUILT_IN_STRATEGIES.get('sma_crossover')!;
const setup = {
  instruments: [{ symbol: 'X', bars }],
  strategy,
  params: { fast: 10, slow: 30 },
  config: BENCH_CONFIG,
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
