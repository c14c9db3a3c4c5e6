import type { Strategy } from '../strategy.ts';
import { buyAndHold } from './buy-and-hold.ts';
import { donchianBreakout } from './donchian-breakout.ts';
import { modelSignal } from './model-signal.ts';
import { momentumRotation } from './momentum-rotation.ts';
import { pairsReversion } from './pairs-reversion.ts';
import { rsiReversion } from './rsi-reversion.ts';
import { smaCrossover } from './sma-crossover.ts';

/** Strategies that a bot file can use by name. */
export const BUILT_IN_STRATEGIES: ReadonlyMap<string, Strategy> = new Map(
  [
    buyAndHold,
    smaCrossover,
    rsiReversion,
    donchianBreakout,
    momentumRotation,
    pairsReversion,
    modelSignal,
    // Each declares its own types of parameters, which are checked at run time.
  ].map((strategy) => [strategy.name, strategy as unknown as Strategy]),
);
