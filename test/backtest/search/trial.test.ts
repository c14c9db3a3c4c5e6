import { expect, it } from 'vitest';
import { execute } from '../../../src/backtest/execute.ts';
import { conventionsFor, statistics } from '../../../src/backtest/statistics.ts';
import { runTrial } from '../../../src/backtest/search/trial.ts';
import { metricsFrom } from '../../../src/backtest/search/trial-figures.ts';
import { readFigure } from '../../../src/base/format-figure.ts';
import { hurst } from '../../../src/engine/indicators/hurst.ts';
import { EngineMemory } from '../../../src/engine/memory.ts';
import { SharedComputations } from '../../../src/engine/series/shared-computations.ts';
import { BUILT_IN_STRATEGIES } from '../../../src/engine/strategies/built-in.ts';
import { defineStrategy } from '../../../src/engine/strategy.ts';
import { DAY } from '../../../src/base/durations.ts';
import { seededRandom } from '../../engine/indicator-contract.ts';
import { bars, ENGINE_DEFAULTS, sp500 } from '../../engine/market.ts';

it('a trial that exceeds its time limit does not change the indicators of later ones', async () => {
  const random = seededRandom(1);
  const history = bars(
    Array.from({ length: 20_000 }, () => {
      const price = 10 + random();
      return [price, price, price, price, 1] as const;
    }),
  );
  const setup = {
    instruments: [{ symbol: 'X', bars: history }],
    config: ENGINE_DEFAULTS,
    conventions: conventionsFor(history.time, { barMs: DAY }),
  };
  let values: number[] = [];
  const strategy = defineStrategy({
    name: 'x',
    description: '',
    params: {},
    indicators: ({ instruments: [x] }) => hurst(x.close, 200),
    create: ({ indicators }) => ({ onBar: () => values.push(indicators.value) }),
  });
  const run = async (timeoutMs: number, computations: SharedComputations) => {
    values = [];
    const shared = { memory: new EngineMemory(), computations };
    const trial = { index: 0, params: {} };
    return [await runTrial({ ...setup, timeoutMs }, strategy, trial, shared), values] as const;
  };
  const computations = new SharedComputations();
  const [interrupted] = await run(30, computations);
  expect(interrupted).toMatchObject({ error: expect.stringContaining('within 0.03 s') as string });
  expect(await run(Infinity, computations)).toEqual(await run(Infinity, new SharedComputations()));
});

it('a trial has the figures of a run with events', async () => {
  const strategy = BUILT_IN_STRATEGIES.get('sma_crossover')!;
  const params = { fast: 5, slow: 20 };
  const instruments = [{ symbol: 'X', bars: sp500() }];
  const conventions = conventionsFor(instruments[0]!.bars.time, { barMs: DAY });
  const setup = { instruments, config: ENGINE_DEFAULTS, conventions, timeoutMs: Infinity };
  const shared = { memory: new EngineMemory(), computations: new SharedComputations() };
  const trial = await runTrial(setup, strategy, { index: 0, params }, shared);
  const run = await execute({ ...setup, strategy, params }, { timeoutMs: Infinity });
  const figures = statistics(run, conventions);
  const metrics = metricsFrom((name) => readFigure(figures, name));
  expect(run.journal.count).toBeGreaterThan(100);
  expect(trial).toEqual({ index: 0, params, metrics });
});
