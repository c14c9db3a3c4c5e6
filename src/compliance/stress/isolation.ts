/** Proof that a test did not affect production: RTS 6 Articles 7(1) and 10. */
import { formatActor } from '../../base/format.ts';
import { readRows } from '../../events/read-events.ts';
import { withNames } from '../../identity/actor-names.ts';
import type { Storage } from '../../storage/storage.ts';
import type { Db } from '../../storage/tables.ts';
import { digest } from '../evidence-digest.ts';

export type Fingerprint = Awaited<ReturnType<typeof takeFingerprint>>;
export type Isolation = Awaited<ReturnType<typeof proveIsolation>>;

/** Reads the state of production. @param bot_id undefined for all bots. @param now ms since the epoch. */
export async function takeFingerprint({ read }: Storage, bot_id: string | undefined, now: number) {
  const bots = await read
    .selectFrom('bots')
    .innerJoin('bot_versions as version', (join) =>
      join
        .onRef('version.bot_id', '=', 'bots.bot_id')
        .onRef('version.version', '=', 'bots.current_version'),
    )
    .select(['bots.bot_id', 'slug', 'status', 'event_seq', 'event_hash', 'current_version'])
    .select(['version.hash', 'bundle_hash', 'version.created_by'])
    .$if(bot_id !== undefined, (query) => query.where('bots.bot_id', '=', bot_id!))
    .orderBy('bots.bot_id')
    .execute();
  const deployments = await read
    .selectFrom('bot_deployments as deployment')
    .leftJoin('tasks', 'tasks.task_id', 'deployment.task_id')
    .select(['deployment.deployment_id', 'deployment.version', 'tasks.created_by'])
    .where('target', '=', 'k8s')
    .where('deployment.ended_at', 'is', null)
    .$if(bot_id !== undefined, (query) => query.where('deployment.bot_id', '=', bot_id!))
    .orderBy('deployment.deployment_id')
    .execute();
  const config = {
    bots: bots.map(({ bot_id: id, status, current_version, hash, bundle_hash }) => {
      return { bot_id: id, status, current_version, hash, bundle_hash };
    }),
    deployments: deployments.map(({ deployment_id, version }) => ({ deployment_id, version })),
  };
  return {
    /** Part of the fingerprint that the result of a test contains. */
    summary: {
      at: new Date(now).toISOString(),
      bots: bots.length,
      /** Number of open production deployments. */
      deployments: deployments.length,
      /** SHA-256 of the current versions and the status of the bots, and of the open deployments. */
      config_hash: digest(config),
    },
    bots,
    deployments,
  };
}

/** Compares production before and after a test. @param run_id task id of the test. */
export async function proveIsolation(
  { read }: Storage,
  run_id: string,
  before: Fingerprint,
  after: Fingerprint,
) {
  let logs_kept = true;
  let orders_of_test = 0;
  for (const { bot_id, event_seq, event_hash } of before.bots) {
    const events = read.selectFrom('bot_events').where('bot_id', '=', bot_id);
    const last = { after_seq: event_seq - 1, until_seq: event_seq, limit: 1 };
    const [head] = (await readRows(read, bot_id, last)).rows;
    logs_kept &&= event_seq === 0 || head?.hash === event_hash;
    const { count } = await events
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where('seq', '>', event_seq)
      .where('run_id', '=', run_id)
      .where('kind', 'like', 'order.%')
      .executeTakeFirstOrThrow();
    orders_of_test += count;
  }
  const config_unchanged = before.summary.config_hash === after.summary.config_hash;
  return {
    before: before.summary,
    after: after.summary,
    /** Whether earlier events are unchanged; production continues during the test, so logs may grow. */
    logs_kept,
    /** False also if a person changed or deployed a bot during the test. */
    config_unchanged,
    /** Descriptions of changes and deployments during the test, with their authors. */
    changed: config_unchanged ? [] : await describeChanges(read, before, after),
    /** Number of order events of the test in production logs; 0 if isolated. */
    orders_of_test,
  };
}

async function describeChanges(db: Db, before: Fingerprint, after: Fingerprint): Promise<string[]> {
  const known = new Map(before.bots.map((bot) => [bot.bot_id, bot]));
  const bots = await withNames(db, after.bots, 'created_by');
  const ofBots = bots.flatMap((bot) => {
    const { bot_id, slug, status, current_version: version } = bot;
    const then = known.get(bot_id);
    const by = formatActor(bot.created_by, bot.created_by_name);
    if (then?.current_version !== version) return `${by} applied version ${version} of bot ${slug}`;
    return then.status === status ? [] : `the status of bot ${bot_id} changed to ${status}`;
  });
  const idsOf = ({ deployments }: Fingerprint): ReadonlySet<string> =>
    new Set(deployments.map(({ deployment_id }) => deployment_id));
  const [earlier, later] = [idsOf(before), idsOf(after)];
  const started = after.deployments.flatMap(({ deployment_id, created_by }) =>
    earlier.has(deployment_id) || created_by === null ? [] : [{ deployment_id, created_by }],
  );
  const changed = [
    ...ofBots,
    ...(await withNames(db, started, 'created_by')).map(
      ({ deployment_id, created_by, created_by_name }) =>
        `${formatActor(created_by, created_by_name)} started deployment ${deployment_id}`,
    ),
    ...[...earlier].filter((id) => !later.has(id)).map((id) => `deployment ${id} ended`),
  ];
  return changed.length > 0 ? changed : ['an unknown change, of which the records have no author'];
}
