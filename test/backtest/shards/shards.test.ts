import { expect, test } from 'vitest';
import { HIGHEST_SHARPE } from '../../../src/backtest/search/goal.ts';
import type { Search } from '../../../src/backtest/search/plan-search.ts';
import { runSearch } from '../../../src/backtest/search/run-search.ts';
import type { SamplerOptions } from '../../../src/backtest/search/sampled-trials.ts';
import { metricsFrom } from '../../../src/backtest/search/trial-figures.ts';
import { shardsOf } from '../../../src/backtest/shards/shard.ts';
import { some } from '../../length.ts';
import { plannedTrials } from '../search/planted-optimum.ts';

const INPUT = 'a'.repeat(64);

/** Runs a search. @returns the sizes of the shards of each batch */
async function shardSizes(options: Pick<SamplerOptions, 'kind' | 'prune' | 'trials'>) {
  const planned = plannedTrials({ ...options, seed: 1, goal: HIGHEST_SHARPE });
  const sizes: number[][] = [];
  const search = { ...planned, setup: {}, parts: [], goal: HIGHEST_SHARPE } as unknown as Search;
  await runSearch(
    search,
    {
      run(batch, onResult) {
        sizes.push([...shardsOf(batch, INPUT)].map(({ trials }) => trials.length));
        const metrics = metricsFrom(() => 1);
        for (const index of batch.indices) onResult({ ...batch.trial(index), metrics });
        return Promise.resolve();
      },
      end: () => Promise.resolve(),
    },
    {},
  );
  return sizes;
}

test.each(
  some(1, [
    { kind: 'tpe', trials: 56 },
    { kind: 'random', prune: true, trials: 10_008 },
  ] as const),
)('each generation of %j has four shards', async (options) => {
  const sizes = await shardSizes(options);
  const full = Math.floor(options.trials / 16);
  expect(sizes).toEqual([...Array.from({ length: full }, () => [4, 4, 4, 4]), [4, 4]]);
});

test('all trials of a random search are one batch of about 256 shards', async () => {
  const [sizes, ...others] = await shardSizes({ kind: 'random', trials: 10_000 });
  expect(others).toEqual([]);
  expect(sizes).toEqual(Array.from({ length: 250 }, () => 40));
});
