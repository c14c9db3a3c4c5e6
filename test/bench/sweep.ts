/**
 * `node sweep.ts BARS WORKERS`: a sweep of 174 pairs on one settled worker against the hand-written loop
 * over the same pairs, or on more workers against one. The workers keep their indicators, which take 3 %
 * of the first round.
 */
import { axesOf, parseAxis } from '../../src/backtest/search/axes.ts';
import { gridOf } from '../../src/backtest/search/grid.ts';
import { conventionsFor } from '../../src/backtest/statistics.ts';
import { TrialPool } from '../../src/backtest/search/trial-pool.ts';
import type { TrialBatch } from '../../src/backtest/search/trial-runner.ts';
import type { TrialSetup } from '../../src/backtest/search/trial.ts';
import { BUILT_IN_STRATEGIES } from '../../src/engine/strategies/built-in.ts';
import { BENCH_CONFIG } from './bench-config.ts';
import { handWrittenLoop } from './hand-written-loop.ts';
import { alternate, peakMemory, printMeasurement, timeOf } from './measurement.ts';
import { randomWalk } from './random-walk.ts';

const ROUNDS = 9;
/**
 * Rounds before the measurement, in which V8 compiles the code. Each of several workers runs only its
 * share of a round, so that a pool needs this number of rounds for each worker.
 */
const SETTLING_ROUNDS = 6;

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

const indices = Uint32Array.from({ length: grid.count }, (_, index) => index);
const batch: TrialBatch = { indices, setups: [setup], trial: (index) => grid.trial(index) };

const poolOf = (count: number): TrialPool =>
  new TrialPool(
    { name: 'sma_crossover' },
    {
      workers: count,
      memoryMb: 1024,
      columnMb: 512,
    },
  );

async function runOn(pool: TrialPool): Promise<void> {
  let done = 0;
  await pool.run(batch, () => void (done += 1));
  if (done !== grid.count) throw new Error(`${done} results of ${grid.count} trials`);
}

const one = poolOf(1);
const pool = workers === 1 ? one : poolOf(workers);
const floor = (): void | Promise<void> => (workers === 1 ? loopOverPairs() : runOn(one));
const ours = (): Promise<void> => runOn(pool);
for (let round = 0; round < SETTLING_ROUNDS; round += 1) await floor();
for (let round = 0; round < SETTLING_ROUNDS * workers; round += 1) await ours();
const pairs = await alternate(ROUNDS, { floor: () => timeOf(floor), ours: () => timeOf(ours) });
await Promise.all([one.end(), pool.end()]);
printMeasurement({ pairs, peakBytes: peakMemory() });
