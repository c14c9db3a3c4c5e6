/** Proof that a test has left production alone: RTS 6 Articles 7(1) and 10. */
import type { Storage } from '../../storage/storage.ts';
import { digest } from '../report/fields.ts';

/** What production is like at a moment. */
export interface Fingerprint {
  /** RFC 3339 UTC. */
  readonly at: string;
  readonly bots: number;
  /** Deployments in production that are not over. */
  readonly deployments: number;
  /** Over which versions they have, which each bot has, and how these are set. */
  readonly config_hash: string;
  /** Last event of the log of each bot. */
  readonly heads: readonly {
    readonly bot_id: string;
    readonly seq: number;
    readonly hash: string;
  }[];
}

export interface Isolation {
  readonly before: Omit<Fingerprint, 'heads'>;
  readonly after: Omit<Fingerprint, 'heads'>;
  /** Production goes on meanwhile, and its logs grow: what was there is there as it was. */
  readonly logs_kept: boolean;
  /** False also where somebody changed or deployed a bot while the test ran. */
  readonly config_unchanged: boolean;
  /** Events about orders that the log has of the run of the test; 0. */
  readonly orders_of_test: number;
}

/** @param bot_id all bots where none is named. @param now ms since the epoch. */
export async function takeFingerprint(
  { read }: Storage,
  bot_id: string | undefined,
  now: number,
): Promise<Fingerprint> {
  const bots = await read
    .selectFrom('bots')
    .innerJoin('bot_versions as version', (join) =>
      join
        .onRef('version.bot_id', '=', 'bots.bot_id')
        .onRef('version.version', '=', 'bots.current_version'),
    )
    .select(['bots.bot_id', 'event_seq', 'event_hash', 'current_version', 'version.hash'])
    .select(['bundle_hash', 'status'])
    .$if(bot_id !== undefined, (query) => query.where('bots.bot_id', '=', bot_id!))
    .orderBy('bots.bot_id')
    .execute();
  const deployments = await read
    .selectFrom('bot_deployments')
    .select(['deployment_id', 'version'])
    .where('target', '=', 'k8s')
    .where('ended_at', 'is', null)
    .$if(bot_id !== undefined, (query) => query.where('bot_id', '=', bot_id!))
    .orderBy('deployment_id')
    .execute();
  const heads = bots.map((bot) => ({
    bot_id: bot.bot_id,
    seq: bot.event_seq,
    hash: bot.event_hash,
  }));
  const config = bots.map(({ event_seq: _seq, event_hash: _hash, ...row }) => row);
  return {
    at: new Date(now).toISOString(),
    bots: bots.length,
    deployments: deployments.length,
    config_hash: digest({ bots: config, deployments }),
    heads,
  };
}

/** @param run_id of the test. */
export async function proveIsolation(
  { read }: Storage,
  run_id: string,
  { heads, ...before }: Fingerprint,
  { heads: _heads, ...after }: Fingerprint,
): Promise<Isolation> {
  let logs_kept = true;
  let orders_of_test = 0;
  for (const { bot_id, seq, hash } of heads) {
    if (seq > 0) {
      const row = await read
        .selectFrom('bot_events')
        .select('hash')
        .where('bot_id', '=', bot_id)
        .where('seq', '=', seq)
        .executeTakeFirst();
      logs_kept &&= row?.hash === hash;
    }
    const { count } = await read
      .selectFrom('bot_events')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where('bot_id', '=', bot_id)
      .where('seq', '>', seq)
      .where('run_id', '=', run_id)
      .where('kind', 'like', 'order.%')
      .executeTakeFirstOrThrow();
    orders_of_test += count;
  }
  const config_unchanged = before.config_hash === after.config_hash;
  return { before, after, logs_kept, config_unchanged, orders_of_test };
}
