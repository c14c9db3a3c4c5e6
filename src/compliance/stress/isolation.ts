/** Proof that a test did not affect production: RTS 6 Articles 7(1) and 10. */
import { formatActor } from '../../base/format.ts';
import { withNames } from '../../identity/actor-names.ts';
import type { Storage } from '../../storage/storage.ts';
import { digest } from '../evidence-digest.ts';

/** State of production at one time. */
export interface Fingerprint {
  /** RFC 3339 UTC. */
  readonly at: string;
  readonly bots: number;
  /** Number of open production deployments. */
  readonly deployments: number;
  /** SHA-256 of `config`, with the hashes of the current versions. */
  readonly config_hash: string;
  readonly config: {
    readonly bots: readonly {
      readonly bot_id: string;
      readonly current_version: number;
      readonly status: string;
    }[];
    readonly deployments: readonly { readonly deployment_id: string }[];
  };
  /** The newest event of each bot. */
  readonly heads: readonly {
    readonly bot_id: string;
    readonly seq: number;
    readonly hash: string;
  }[];
}

export interface Isolation {
  readonly before: Omit<Fingerprint, 'heads' | 'config'>;
  readonly after: Omit<Fingerprint, 'heads' | 'config'>;
  /** Whether earlier events are unchanged; production continues during the test, so logs may grow. */
  readonly logs_kept: boolean;
  /** False also if a person changed or deployed a bot during the test. */
  readonly config_unchanged: boolean;
  /** Descriptions of changes and deployments during the test, with their authors. */
  readonly changed: readonly string[];
  /** Number of order events of the test in production logs; 0 if isolated. */
  readonly orders_of_test: number;
}

/** @param bot_id undefined for all bots. @param now ms since the epoch. */
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
  const config = {
    bots: bots.map(({ event_seq: _seq, event_hash: _hash, ...row }) => row),
    deployments,
  };
  return {
    at: new Date(now).toISOString(),
    bots: bots.length,
    deployments: deployments.length,
    config_hash: digest(config),
    config,
    heads,
  };
}

/** Compares production before and after a test. @param run_id task id of the test. */
export async function proveIsolation(
  storage: Storage,
  run_id: string,
  { heads, config: earlier, ...before }: Fingerprint,
  { heads: _heads, config: later, ...after }: Fingerprint,
): Promise<Isolation> {
  const { read } = storage;
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
  const changed = config_unchanged ? [] : await describeChanges(storage, earlier, later);
  return { before, after, logs_kept, config_unchanged, changed, orders_of_test };
}

type Config = Fingerprint['config'];

async function describeChanges(
  { read }: Storage,
  before: Config,
  after: Config,
): Promise<string[]> {
  const known = new Map(before.bots.map((bot) => [bot.bot_id, bot]));
  const changed: string[] = [];
  for (const { bot_id, current_version, status } of after.bots) {
    const then = known.get(bot_id);
    if (then?.current_version !== current_version) {
      const rows = await read
        .selectFrom('bot_versions as version')
        .innerJoin('bots', 'bots.bot_id', 'version.bot_id')
        .select(['slug', 'version', 'version.created_by'])
        .where('version.bot_id', '=', bot_id)
        .where('version', '=', current_version)
        .execute();
      for (const row of await withNames(read, rows, 'created_by')) {
        const by = formatActor(row.created_by, row.created_by_name);
        changed.push(`${by} applied version ${row.version} of bot ${row.slug}`);
      }
    } else if (then.status !== status)
      changed.push(`the status of bot ${bot_id} changed to ${status}`);
  }
  const listOpen = ({ deployments }: Config): ReadonlySet<string> =>
    new Set(deployments.map(({ deployment_id }) => deployment_id));
  const [open, now] = [listOpen(before), listOpen(after)];
  const begun = [...now].filter((id) => !open.has(id));
  const rows =
    begun.length === 0
      ? []
      : await read
          .selectFrom('bot_deployments as deployment')
          .innerJoin('tasks', 'tasks.task_id', 'deployment.task_id')
          .select(['deployment.deployment_id', 'created_by'])
          .where('deployment.deployment_id', 'in', begun)
          .execute();
  for (const row of await withNames(read, rows, 'created_by')) {
    const by = formatActor(row.created_by, row.created_by_name);
    changed.push(`${by} started deployment ${row.deployment_id}`);
  }
  for (const id of open) if (!now.has(id)) changed.push(`deployment ${id} ended`);
  return changed.length > 0 ? changed : ['an unknown change, of which the records have no author'];
}
