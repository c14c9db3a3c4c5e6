/**
 * `node sweep.ts BARS WORKERS`: a sweep of 174 pairs on one worker against the hand-written loop over
 * the same pairs, or on more workers against one.
 */
import { axesOf, gridOf, parseAxis } from '../../src/backtest/search/grid.ts';
import { conventionsFor } from '../../src/backtest/statistics.ts';
import { TrialPool } from '../../src/backtest/search/trial-pool.ts';
import type { TrialSetup } from '../../src/backtest/search/trial.ts';
import { BUILT_IN_STRATEGIES } from '../../src/engine/strategies/built-in.ts';
import { BENCH_CONFIG } from './bench-config.ts';
import { handWrittenLoop } from './hand-written-loop.ts';
import { alternate, peakMemory, printMeasurement, timeOf } from './measurement.ts';
import { randomWalk } from './random-walk.ts';

const ROUNDS = 5;

const [length, workers] = process.argv.slice(2).map(Number) as [number, number];
const bars = randomWalk(length);
const strategy = BUILT_IN_STRATEGIES.get('sma_crossover')!;
const axes = axesOf(strategy, ['fast=5:50:5', 'slow=20:200:10'].map(parseAxis));
const grid = gridOf(strategy, { fast: 10, slow: 30 }, axes);
const setup: TrialSetup = {
  instruments: [{ symbol: 'X', bars }],
  config: BENCH_CONFIG,
  conventions: conventionsFor(bars.time, { barMs: 60_000 }),
  timeoutMs: 60_000,
};

function loopOverPairs(): void {
  for (let index = 0; index < grid.count; index += 1) {
    const { params } = grid.trial(index);
    handWrittenLoop(bars, params['fast'] as number, params['slow'] as number);
  }
}

async function sweepOn(count: number): Promise<void> {
  let done = 0;
  const limits = { workers: count, memoryMb: 1024, columnMb: 512 };
  const pool = new TrialPool({ name: 'sma_crossover' }, setup, limits);
  const indices = Uint32Array.from({ length: grid.count }, (_, index) => index);
  await pool.run({ indices, trial: (index) => grid.trial(index) }, () => void (done += 1));
  await pool.end();
  if (done !== grid.count) throw new Error(`${done} results of ${grid.count} trials`);
}

const pairs = await alternate(ROUNDS, {
  floor: () => timeOf(() => (workers === 1 ? loopOverPairs() : sweepOn(1))),
  ours: () => timeOf(() => sweepOn(workers)),
});
printMeasurement({ pairs, peakBytes: peakMemory() });
