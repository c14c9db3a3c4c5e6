import type { BacktestJob } from '../backtest/job.ts';
import type { ExecutedTrial } from '../backtest/ledger/packed-trials.ts';
import type { RemoteTrials, ShardService } from '../backtest/shards/remote-trials.ts';
import type { SentStrategy } from '../backtest/shards/search-input.ts';
import type { Bot } from '../bots/load-bot.ts';
import { ServiceError } from '../base/errors.ts';
import type { Context } from './verb.ts';

/** A place other than this machine where the trials of a search run. */
export type SearchPlace =
  | { readonly kind: 'server' }
  | { readonly kind: 'cluster'; readonly name: string };

export const PLACE_OPTION = {
  on: {
    value: 'place',
    description:
      'run the trials on other machines: server, or cluster:NAME for a cluster of clusters_file',
    parse: parsePlace,
  },
} as const;

function parsePlace(text: string): SearchPlace {
  if (text === 'server') return { kind: 'server' };
  const [, name] = /^cluster:(.+)$/.exec(text) ?? [];
  if (name !== undefined) return { kind: 'cluster', name };
  throw new ServiceError('usage', `${JSON.stringify(text)} is not a place for trials`, {
    remedy: 'Use server, or cluster:NAME with a name of clusters_file.',
  });
}

export interface RemoteSearch {
  readonly bot: Bot;
  /** Identifies the command by everything that decides its trials. */
  readonly digest: string;
  /** Name of the command in lists. */
  readonly title: string;
}

/** Counts trials in the ledger of the server; does nothing if the trials run on this machine. */
type CountOnServer = (job: BacktestJob, executed: readonly ExecutedTrial[]) => void;

/**
 * Runs `work` with a runner on other machines, or without one if the trials run on this machine.
 * Afterward, the other machines keep nothing of the search except the entries of its trials in the ledger.
 */
export async function withRemoteTrials<T>(
  context: Context,
  place: SearchPlace | undefined,
  search: RemoteSearch,
  work: (runner: RemoteTrials | undefined, countOnServer: CountOnServer) => Promise<T>,
): Promise<T> {
  if (place === undefined) return work(undefined, () => {});
  const { RemoteTrials: Runner } = await import('../backtest/shards/remote-trials.ts');
  const strategy = await sentStrategy(search.bot);
  const service = await openService(context, place, search, 'files' in strategy);
  const { ServerTrials } = await import('./server-trials.ts');
  const runner = new Runner(service, strategy);
  const counted = new ServerTrials(context);
  try {
    return await work(runner, (job, executed) => counted.record(job, executed));
  } finally {
    await counted.end();
    await runner.end().catch((error: unknown) => {
      if (!(error instanceof ServiceError)) throw error;
      context.message(`warning: the search was not ended where it ran: ${error.message}`);
    });
  }
}

async function openService(
  context: Context,
  place: SearchPlace,
  { digest, title }: RemoteSearch,
  hasCode: boolean,
): Promise<ShardService> {
  if (place.kind === 'server') {
    const { openServerShards } = await import('./server-shards.ts');
    return openServerShards(context, { digest, title, hasCode });
  }
  const { openClusterShards } = await import('./cluster-shards.ts');
  return openClusterShards(context, place.name, digest);
}

/** The strategy of a bot for other machines. */
export async function sentStrategy(bot: Bot): Promise<SentStrategy> {
  const { name, module } = bot.spec.spec.strategy;
  if (name !== undefined) return { name };
  const { readCode } = await import('./bot-files.ts');
  return readCode(bot.file, module!);
}
