import type { Strategy } from '../strategy.ts';
import { buyAndHold } from './buy-and-hold.ts';
import { donchianBreakout } from './donchian-breakout.ts';
import { modelSignal } from './model-signal.ts';
import { momentumRotation } from './momentum-rotation.ts';
import { pairsReversion } from './pairs-reversion.ts';
import { rsiReversion } from './rsi-reversion.ts';
import { smaCrossover } from './sma-crossover.ts';

/** The strategies a spec can name without a module of its own. */
export const BUILT_IN_STRATEGIES: ReadonlyMap<string, Strategy> = new Map(
  [
    buyAndHold,
    smaCrossover,
    rsiReversion,
    donchianBreakout,
    momentumRotation,
    pairsReversion,
    modelSignal,
    // Each knows its own parameters' types; whoever looks one up by name checks them at run time.
  ].map((strategy) => [strategy.name, strategy as unknown as Strategy]),
);
