/** Uses of the kill function: halts of a bot, and drills. */
import type { Db } from '../../storage/tables.ts';
import { MOST_LISTED } from './listed.ts';
import { nameActors } from './named-actors.ts';
import { formatInstant, formatInstantOrNull, type Period } from './period.ts';

/** Lists the halts of a bot or of all bots, with the deployments of the bot that they ended. */
export async function listHalts(db: Db, bot_id: string, period: Period): Promise<Activation[]> {
  const halts = await haltsIn(db, period)
    .where((is) => is.or([is('halts.bot_id', '=', bot_id), is('halts.bot_id', 'is', null)]))
    .execute();
  return describeActivations(db, halts, bot_id);
}

/** Lists the halts of the bots that `bots drill` creates. */
export async function listDrills(db: Db, period: Period): Promise<Activation[]> {
  const halts = await haltsIn(db, period).where('bots.slug', 'like', 'drill-________').execute();
  // A drill halts its bot once with this reason; further halts are part of its cleanup.
  return describeActivations(
    db,
    halts.filter(({ slug, reason }) => /^drill-[0-9a-f]{8}$/.test(slug!) && reason === 'a drill'),
  );
}

function haltsIn(db: Db, { from, to }: Period) {
  return db
    .selectFrom('halts')
    .leftJoin('bots', 'bots.bot_id', 'halts.bot_id')
    .select(['halt_id', 'scope', 'slug', 'reason', 'requested_by', 'requested_at'])
    .select(['lifted_at', 'lifted_by'])
    .where('requested_at', '>=', from)
    .where('requested_at', '<', to)
    .orderBy('halt_id')
    .limit(10 * MOST_LISTED);
}

type Halt = Awaited<ReturnType<ReturnType<typeof haltsIn>['execute']>>[number];
type Activation = ReturnType<typeof describeActivation>;

async function describeActivations(
  db: Db,
  halts: readonly Halt[],
  bot_id?: string,
): Promise<Activation[]> {
  if (halts.length === 0) return [];
  const named = await nameActors(db, halts, 'requested_by', 'lifted_by');
  const latched = await readLatchTimes(db, halts);
  const ended = await listEndedDeployments(db, halts, bot_id);
  const byHalt = Map.groupBy(ended, ({ halt_id }) => halt_id);
  return named.map((halt) =>
    describeActivation(halt, latched.get(halt.halt_id), byHalt.get(halt.halt_id) ?? []),
  );
}

function describeActivation(
  { halt_id, scope, slug, reason, requested_at, requested_by, lifted_at, lifted_by }: Halt,
  latched_ms: number | undefined,
  ended: readonly EndedDeployment[],
) {
  const orders = ended.map((one) => one.orders);
  const known = orders.flatMap((each) => each ?? []);
  const isKnown = !orders.includes(null);
  const targets = [...Map.groupBy(ended, ({ target }) => target)]
    .map(([target, own]) => [target, own.length] as const)
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  const last = Math.max(...ended.map(({ recorded_at }) => recorded_at));
  return {
    halt_id,
    scope,
    bot: slug,
    at: formatInstant(requested_at),
    by: requested_by,
    reason,
    lifted_at: formatInstantOrNull(lifted_at),
    lifted_by,
    targets: Object.fromEntries(targets),
    /** Number of orders that were working; null if the orders of a deployment are unknown. */
    orders: isKnown ? known.length : null,
    /** Number of those orders whose end is not confirmed. */
    unconfirmed: isKnown ? known.filter(({ verified }) => verified === false).length : null,
    /** Time from the request until the halt was in force, ms; null if the audit log does not have it. */
    latched_ms: latched_ms ?? null,
    /** Time from the request until the last deployment ended, ms; null if the halt ended none. */
    ended_ms: ended.length === 0 ? null : last - requested_at,
  };
}

/** Reads from the audit log how long each halt took to be in force, ms by halt id. */
async function readLatchTimes(
  db: Db,
  halts: readonly Halt[],
): Promise<ReadonlyMap<string, number>> {
  const times = halts.map(({ requested_at }) => requested_at);
  const entries = await db
    .selectFrom('audit_entries')
    .select('details')
    .where('action', 'in', ['bots.halt', 'bots.halt_all'])
    .where('recorded_at', '>=', Math.min(...times))
    .where('recorded_at', '<=', Math.max(...times))
    .orderBy('seq')
    .limit(100 * MOST_LISTED)
    .execute();
  const recorded = entries.map(
    ({ details }) =>
      JSON.parse(details) as Readonly<{ halt_id: string; repeated: boolean; latched_ms?: number }>,
  );
  return new Map(
    recorded.flatMap(({ halt_id, repeated, latched_ms: ms }) =>
      repeated || ms === undefined ? [] : [[halt_id, ms] as const],
    ),
  );
}

async function listEndedDeployments(db: Db, halts: readonly Halt[], bot_id: string | undefined) {
  const ids = halts.map(({ halt_id }) => halt_id);
  const rows = await db
    .selectFrom('halted_deployments as halted')
    .innerJoin('bot_deployments as deployment', 'deployment.deployment_id', 'halted.deployment_id')
    .innerJoin('bot_events as event', (join) =>
      join
        .onRef('event.bot_id', '=', 'deployment.bot_id')
        .onRef('event.seq', '=', 'halted.last_seq'),
    )
    .select(['halt_id', 'target', 'orders', 'event.recorded_at'])
    .where('halt_id', 'in', ids)
    .$if(bot_id !== undefined, (query) => query.where('deployment.bot_id', '=', bot_id!))
    .limit(100 * MOST_LISTED)
    .execute();
  return rows.map(({ orders, ...row }) => ({
    ...row,
    orders: orders === null ? null : (JSON.parse(orders) as { readonly verified?: boolean }[]),
  }));
}

type EndedDeployment = Awaited<ReturnType<typeof listEndedDeployments>>[number];
