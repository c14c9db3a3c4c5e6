/** Keeps a chat about a trading bot from starting or changing anything. */
import { ServiceError } from '../base/errors.ts';
import type { Ask } from './call-api.ts';

/** Wraps `ask` so that it refuses everything but reading. */
export function askReadingOnly(ask: Ask, slug: string): Ask {
  return async (method, ...rest) => {
    if (method !== 'GET') throw onlyReads(slug);
    return ask(method, ...rest);
  };
}

/** Refusal of a tool that runs something, because it would compete with the trading of the bot. */
export function onlyReads(slug: string): ServiceError {
  return new ServiceError(
    'conflict',
    `${slug} is a trading bot, and a chat about it only reads: a run could delay its trading`,
    {
      reason: 'trading_bot',
      remedy: `Start the run yourself: \`service-local bots backtest ${slug}\`. Proposals are made for research bots.`,
    },
  );
}
