import { PermutedBars } from '../../../src/backtest/robustness/permuted-bars.ts';
import { BlockSums } from '../../../src/backtest/robustness/block-sums.ts';
import { overfittingOf } from '../../../src/backtest/robustness/overfitting.ts';
import {
  runTrial,
  type TrialFigures,
  type TrialSetup,
} from '../../../src/backtest/search/trial.ts';
import { conventionsFor } from '../../../src/backtest/statistics.ts';
import { DAY } from '../../../src/base/durations.ts';
import { EngineMemory } from '../../../src/engine/memory.ts';
import { SharedComputations } from '../../../src/engine/series/shared-computations.ts';
import { sma } from '../../../src/engine/indicators/sma.ts';
import { integer } from '../../../src/engine/params.ts';
import { defineStrategy } from '../../../src/engine/strategy.ts';
import { barsFromRows, type Bars } from '../../../src/market/bars.ts';
import { ENGINE_DEFAULTS, MARGIN } from '../../engine/market.ts';

/** Long above its average, short below: symmetric, so that no drift favors it. */
const SYMMETRIC = defineStrategy({
  name: 'symmetric',
  description: 'Long above its average, short below.',
  params: { length: integer({ default: 10, min: 1 }) },
  indicators: ({ params, instruments: [asset] }) => sma(asset.close, params.length),
  create: ({ instruments: [asset], indicators: average, broker }) => {
    let side = 0;
    return {
      onBar() {
        const wanted = Math.sign(asset.close - average.value);
        if (wanted === side || !average.ready) return;
        side = wanted;
        broker.target(asset, side);
      },
    };
  },
});
/** Parameters of the trials. */
const LENGTHS = [2, 3, 5, 8, 13, 21];
const BLOCKS = 8;

/**
 * A random walk of daily bars.
 *
 * @param persistence share of a bar's change that the next one continues; 0 for no edge
 */
export function randomWalk(count: number, normal: () => number, persistence = 0): Bars {
  let last = 100;
  let change = 0;
  return barsFromRows(
    Array.from({ length: count }, (_, day) => {
      change = persistence * change + normal() * 0.01;
      const open = last;
      last = open * Math.exp(change);
      return [day * DAY, open, Math.max(open, last), Math.min(open, last), last, 1000];
    }),
  );
}

interface Luck {
  /** Permutations with a better best Sharpe ratio, and with an equal one. */
  readonly better: number;
  readonly equal: number;
  readonly pbo: number;
  /** Sharpe ratio of the best trial. */
  readonly sharpe: number;
}

/** The permutation test and cross-validation of `LENGTHS`, in this thread. */
export async function measureLuck(bars: Bars, permutations: number): Promise<Luck> {
  const instruments = [{ symbol: 'X', bars }];
  const blocks = { count: BLOCKS, returns: bars.length - 2 };
  const sums = new BlockSums(blocks, LENGTHS.length);
  const best = async (setup: Pick<TrialSetup, 'instruments' | 'blocks'>): Promise<number> => {
    const shared = { memory: new EngineMemory(), computations: new SharedComputations() };
    const all = {
      config: { ...ENGINE_DEFAULTS, account: MARGIN },
      conventions: conventionsFor(bars.time, { barMs: DAY }),
      timeoutMs: Infinity,
      ...setup,
    };
    let highest = -Infinity;
    for (const [index, length] of LENGTHS.entries()) {
      const result = await runTrial(all, SYMMETRIC, { index, params: { length } }, shared);
      if ('error' in result) throw new Error(result.error);
      const { metrics, sums: row }: TrialFigures = result;
      if (row !== undefined) sums.set(index, row);
      highest = Math.max(highest, metrics.sharpe ?? -Infinity);
    }
    return highest;
  };
  const sharpe = await best({ instruments, blocks });
  const permuted = new PermutedBars(instruments, 1);
  let [better, equal] = [0, 0];
  for (let i = 0; i < permutations; i++) {
    const other = await best({ instruments: permuted.permute(i) });
    if (other > sharpe) better++;
    else if (other === sharpe) equal++;
  }
  const { pbo } = await overfittingOf(sums, Uint32Array.from(LENGTHS.keys()), 365);
  return { better, equal, pbo, sharpe };
}
