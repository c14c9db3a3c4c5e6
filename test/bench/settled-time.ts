/** `node settled-time.ts engine|loop BARS`: prints a `SettledTime` as JSON. */
import { BUILT_IN_STRATEGIES } from '../../src/engine/strategies/built-in.ts';
import { execute } from '../../src/backtest/execute.ts';
import { BENCH_CONFIG } from './bench-config.ts';
import { handWrittenLoop } from './hand-written-loop.ts';
import { median, peakMemory, timeOf } from './measurement.ts';
import { randomWalk } from './random-walk.ts';

export interface SettledTime {
  /** Median of the last runs. */
  readonly ms: number;
  readonly peakBytes: number;
}

/** V8 keeps recompiling for half a second; a long computation runs at the speed of the last runs. */
const RUNS = 20;
const SETTLED = 8;

const [what, length] = process.argv.slice(2);
const bars = randomWalk(Number(length));
const setup = {
  instruments: [{ symbol: 'X', bars }],
  strategy: BUILT_IN_STRATEGIES.get('sma_crossover')!,
  params: { fast: 10, slow: 30 },
  config: BENCH_CONFIG,
};
const work =
  what === 'loop'
    ? () => handWrittenLoop(bars, 10, 30)
    : () => execute(setup, { timeoutMs: 60_000 });

const times: number[] = [];
for (let run = 0; run < RUNS; run += 1) times.push(await timeOf(work));
const settled: SettledTime = { ms: median(times.slice(-SETTLED)), peakBytes: peakMemory() };
console.log(JSON.stringify(settled));
