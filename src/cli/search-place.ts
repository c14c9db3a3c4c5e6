import type { RemoteTrials } from '../backtest/shards/remote-trials.ts';
import type { SentStrategy } from '../backtest/shards/search-input.ts';
import type { Bot } from '../bots/load-bot.ts';
import { ServiceError } from '../base/errors.ts';
import type { Context } from './verb.ts';

/** Where the trials of a search run. */
export type SearchPlace = 'server';

export const PLACE_OPTION = {
  on: {
    value: 'place',
    description: 'run the trials on the workers of the server instead of this machine',
    choices: ['server'],
  },
} as const;

export interface RemoteSearch {
  readonly bot: Bot;
  /** Identifies the command by everything that decides its trials. */
  readonly digest: string;
  /** Name of the command in lists. */
  readonly title: string;
}

/**
 * Runs `work` with a runner on other machines, or without one if the trials run on this machine.
 * Afterwards, the other machines keep nothing of the search.
 */
export async function withRemoteTrials<T>(
  context: Context,
  place: SearchPlace | undefined,
  search: RemoteSearch,
  work: (runner: RemoteTrials | undefined) => Promise<T>,
): Promise<T> {
  if (place === undefined) return work(undefined);
  const { RemoteTrials: Runner } = await import('../backtest/shards/remote-trials.ts');
  const { openServerShards } = await import('./server-shards.ts');
  const strategy = await sentStrategy(search.bot);
  const { digest, title } = search;
  const service = await openServerShards(context, { digest, title, hasCode: 'files' in strategy });
  const runner = new Runner(service, strategy);
  try {
    return await work(runner);
  } finally {
    await runner.end().catch((error: unknown) => {
      if (!(error instanceof ServiceError)) throw error;
      context.message(`warning: the server keeps the search for a week: ${error.message}`);
    });
  }
}

/** The strategy of a bot for other machines. */
export async function sentStrategy(bot: Bot): Promise<SentStrategy> {
  const { name, module } = bot.spec.spec.strategy;
  if (name !== undefined) return { name };
  const { readCode } = await import('./bot-files.ts');
  return readCode(bot.file, module!);
}
