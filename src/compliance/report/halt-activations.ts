/** Uses of the kill function: halts of a bot, and drills. */
import type { Db, HaltsTable } from '../../storage/tables.ts';
import { formatInstant, formatInstantOrNull, type Period } from './period.ts';
import { MOST_LISTED, nameActors } from './report-values.ts';

/**
 * Lists the halts of a bot or of all bots, with the deployments of the bot that they ended, and the halts
 * of the bots that `bots drill` creates.
 */
export async function listHalts(db: Db, bot_id: string, period: Period) {
  const rows = await db
    .selectFrom('halts')
    .leftJoin('bots', 'bots.bot_id', 'halts.bot_id')
    .selectAll('halts')
    .select('slug')
    .where('requested_at', '>=', period.from)
    .where('requested_at', '<', period.to)
    .where((is) =>
      is.or([
        is('halts.bot_id', '=', bot_id),
        is('halts.bot_id', 'is', null),
        is('slug', 'like', 'drill-________'),
      ]),
    )
    .orderBy('halt_id')
    .limit(20 * MOST_LISTED)
    .execute();
  if (rows.length === 0) return { halts: [], drills: [] };
  const named = await nameActors(db, rows, 'requested_by', 'lifted_by');
  const latched = await readLatchTimes(db, rows);
  const ended = await listEndedDeployments(db, bot_id, rows);
  const byHalt = Map.groupBy(ended, ({ halt_id }) => halt_id);
  const describe = (halt: Halt) =>
    describeActivation(halt, latched.get(halt.halt_id) ?? null, byHalt.get(halt.halt_id) ?? []);
  return {
    halts: named.filter((halt) => [bot_id, null].includes(halt.bot_id)).map(describe),
    // A drill halts its bot once with this reason; further halts are part of its cleanup.
    drills: named
      .filter(({ slug, reason }) => /^drill-[0-9a-f]{8}$/.test(slug ?? '') && reason === 'a drill')
      .map(describe),
  };
}

type Halt = HaltsTable & { readonly slug: string | null };

function describeActivation(
  { halt_id, scope, slug, reason, requested_at, requested_by, lifted_at, lifted_by }: Halt,
  latched_ms: number | null,
  ended: readonly EndedDeployment[],
) {
  const known = ended.flatMap(({ orders }) => orders ?? []);
  const isKnown = ended.every(({ orders }) => orders !== null);
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
    latched_ms,
    /** Time from the request until the last deployment ended, ms; null if the halt ended none. */
    ended_ms: ended.length === 0 ? null : last - requested_at,
  };
}

/** Reads from the audit log how long each halt took to be in force, ms by halt id. */
async function readLatchTimes(db: Db, halts: readonly Halt[]) {
  const requested = halts.map(({ requested_at }) => requested_at);
  const entries = await db
    .selectFrom('audit_entries')
    .select('details')
    .where('action', 'in', ['bots.halt', 'bots.halt_all'])
    .where('recorded_at', '>=', Math.min(...requested))
    .where('recorded_at', '<=', Math.max(...requested))
    .orderBy('seq')
    .limit(100 * MOST_LISTED)
    .execute();
  const times = new Map<string, number>();
  for (const { details } of entries) {
    const { halt_id, repeated, latched_ms } = JSON.parse(details) as {
      readonly halt_id: string;
      readonly repeated: boolean;
      readonly latched_ms?: number;
    };
    if (!repeated && latched_ms !== undefined) times.set(halt_id, latched_ms);
  }
  return times;
}

/** Lists the deployments that halts ended: for a halt of all bots, only deployments of the bot. */
async function listEndedDeployments(db: Db, bot_id: string, halts: readonly Halt[]) {
  const rows = await db
    .selectFrom('halted_deployments as halted')
    .innerJoin('halts', 'halts.halt_id', 'halted.halt_id')
    .innerJoin('bot_deployments as deployment', 'deployment.deployment_id', 'halted.deployment_id')
    .innerJoin('bot_events as event', (join) =>
      join
        .onRef('event.bot_id', '=', 'deployment.bot_id')
        .onRef('event.seq', '=', 'halted.last_seq'),
    )
    .select(['halted.halt_id', 'target', 'orders', 'event.recorded_at'])
    .where(
      'halted.halt_id',
      'in',
      halts.map(({ halt_id }) => halt_id),
    )
    .where((is) =>
      is.or([is('deployment.bot_id', '=', bot_id), is('halts.bot_id', 'is not', null)]),
    )
    .limit(100 * MOST_LISTED)
    .execute();
  return rows.map(({ orders, ...row }) => ({
    ...row,
    orders: orders === null ? null : (JSON.parse(orders) as { readonly verified?: boolean }[]),
  }));
}

type EndedDeployment = Awaited<ReturnType<typeof listEndedDeployments>>[number];
