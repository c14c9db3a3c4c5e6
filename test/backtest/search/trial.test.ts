import { expect, it } from 'vitest';
import { conventionsFor } from '../../../src/backtest/statistics.ts';
import { runTrial } from '../../../src/backtest/search/trial.ts';
import { hurst } from '../../../src/engine/indicators/hurst.ts';
import { EngineMemory } from '../../../src/engine/memory.ts';
import { SharedComputations } from '../../../src/engine/series/shared-computations.ts';
import { defineStrategy } from '../../../src/engine/strategy.ts';
import { DAY } from '../../../src/base/durations.ts';
import { seededRandom } from '../../engine/indicator-contract.ts';
import { bars, ENGINE_DEFAULTS } from '../../engine/market.ts';

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
