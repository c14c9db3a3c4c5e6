import { ownStrategies, type OwnStrategies } from '../backtest/strategy-thread.ts';
import type { LoadModule } from '../bots/load-bot.ts';
import type { Context } from './verb.ts';

/** Loads strategies within the time and memory limits of the settings. */
export function ownStrategiesOf({ settings }: Context): OwnStrategies {
  return ownStrategies({
    timeoutMs: settings.strategy_timeout_seconds * 1000,
    memoryMb: settings.strategy_memory_mb,
  });
}

/** Loads the strategy of a bot file in a thread or, sealed, in a sandbox. */
export async function loaderOf(
  context: Context,
  file: string,
  { sealed }: { readonly sealed: boolean },
): Promise<LoadModule> {
  if (!sealed) return ownStrategiesOf(context).load;
  const { sealedStrategy } = await import('./sealed-strategies.ts');
  return sealedStrategy(context, file);
}
