/** Database queries of the report. Times in results that go into the report are RFC 3339 in UTC. */
import { diffDocuments, type Change } from '../../bots/diff-documents.ts';
import { withNames } from '../../identity/actor-names.ts';
import type { BotDeploymentsTable, BotVersionsTable, Db } from '../../storage/tables.ts';
import type { Subjects } from '../../fleet/thresholds/subjects.ts';
import type { TestKind } from '../tests/result.ts';
import { formatInstant, type Period } from './period.ts';

/** Maximum length of a list in a report; longer lists are cut and their total is reported. */
export const MOST_LISTED = 200;

export interface Listed<T> {
  readonly total: number;
  readonly items: readonly T[];
}

/** Cuts a list to `MOST_LISTED` items and keeps its total length. */
export function cutList<T>(all: readonly T[]): Listed<T> {
  return { total: all.length, items: all.slice(0, MOST_LISTED) };
}

function formatInstantOrNull(ms: number | null): string | null {
  return ms === null ? null : formatInstant(ms);
}

export interface Version {
  readonly version: number;
  readonly hash: string;
  readonly bundle_hash: string | null;
  readonly created_at: number;
  readonly created_by: string;
  readonly created_by_name: string | null;
  readonly document: unknown;
  /** Differences from the previous version; empty for the first one. */
  readonly changes: readonly Change[];
  readonly isCodeChanged: boolean;
}

/** Lists the newest versions created before a time (ms since epoch), oldest first. */
export async function listVersions(db: Db, bot_id: string, before: number): Promise<Version[]> {
  const rows = await db
    .selectFrom('bot_versions')
    .selectAll()
    .where('bot_id', '=', bot_id)
    .where('created_at', '<', before)
    .orderBy('version', 'desc')
    .limit(MOST_LISTED + 1)
    .execute();
  const named = await withNames(db, rows.toReversed(), 'created_by');
  let last: (BotVersionsTable & { readonly parsed: unknown }) | undefined;
  return named.map((row) => {
    const { document, ...rest } = row;
    const parsed = JSON.parse(document) as unknown;
    const changes = last === undefined ? [] : diffDocuments(last.parsed, parsed);
    const isCodeChanged = last !== undefined && last.bundle_hash !== row.bundle_hash;
    last = { ...row, parsed };
    return { ...rest, document: parsed, changes, isCodeChanged };
  });
}

export interface Activation {
  readonly halt_id: string;
  readonly scope: 'bot' | 'all';
  readonly bot: string | null;
  readonly at: string;
  readonly by: string;
  readonly reason: string;
  readonly lifted_at: string | null;
  readonly lifted_by: string | null;
  readonly targets: Readonly<Record<string, number>>;
  /** Number of orders that were working; null if the orders of a deployment are unknown. */
  readonly orders: number | null;
  /** Number of those orders whose end is not confirmed. */
  readonly unconfirmed: number | null;
  /** Time from the request until the halt was in force, ms; null if the audit log does not have it. */
  readonly latched_ms: number | null;
  /** Time from the request until the last deployment ended, ms; null if the halt ended none. */
  readonly ended_ms: number | null;
}

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

async function describeActivations(
  db: Db,
  halts: Awaited<ReturnType<ReturnType<typeof haltsIn>['execute']>>,
  bot_id?: string,
): Promise<Activation[]> {
  const named = await withNames(db, halts, 'requested_by', 'lifted_by');
  const latched = await readLatchTimes(db, halts);
  const ended = Map.groupBy(
    await listEndedDeployments(db, halts, bot_id),
    ({ halt_id }) => halt_id,
  );
  return named.map((halt) => {
    const { halt_id, scope, slug, reason, requested_at, lifted_at } = halt;
    const theirs = ended.get(halt_id) ?? [];
    const orders = theirs.map((one) => ordersIn(one.orders));
    const known = orders.flatMap((each) => each ?? []);
    const isKnown = orders.every((each) => each !== null);
    const last = theirs.map(({ recorded_at }) => recorded_at);
    return {
      halt_id,
      scope,
      bot: slug,
      at: formatInstant(requested_at),
      by: halt.requested_by_name ?? halt.requested_by,
      reason,
      lifted_at: formatInstantOrNull(lifted_at),
      lifted_by: halt.lifted_by_name ?? halt.lifted_by,
      targets: countBy(theirs, ({ target }) => target),
      orders: isKnown ? known.length : null,
      unconfirmed: isKnown ? known.filter(({ verified }) => verified === false).length : null,
      latched_ms: latched.get(halt_id) ?? null,
      ended_ms: last.length === 0 ? null : Math.max(...last) - requested_at,
    };
  });
}

/** Reads from the audit log how long each halt took to be in force, ms by halt id. */
async function readLatchTimes(
  db: Db,
  halts: readonly { readonly halt_id: string; readonly requested_at: number }[],
): Promise<ReadonlyMap<string, number>> {
  if (halts.length === 0) return new Map();
  const entries = await db
    .selectFrom('audit_entries')
    .select('details')
    .where('action', 'in', ['bots.halt', 'bots.halt_all'])
    .where('recorded_at', '>=', Math.min(...halts.map(({ requested_at }) => requested_at)))
    .where('recorded_at', '<=', Math.max(...halts.map(({ requested_at }) => requested_at)))
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

async function listEndedDeployments(
  db: Db,
  halts: readonly { readonly halt_id: string }[],
  bot_id: string | undefined,
) {
  if (halts.length === 0) return [];
  const ids = halts.map(({ halt_id }) => halt_id);
  return db
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
}

function ordersIn(text: string | null): readonly { readonly verified?: boolean }[] | null {
  return text === null ? null : (JSON.parse(text) as readonly { readonly verified?: boolean }[]);
}

function countBy<T>(all: readonly T[], keyOf: (one: T) => string): Record<string, number> {
  const groups = [...Map.groupBy(all, keyOf)].map(([key, group]) => [key, group.length] as const);
  return Object.fromEntries(groups.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

export interface Deployment {
  readonly target: Exclude<BotDeploymentsTable['target'], 'test'>;
  readonly task_id: string;
  readonly status: string;
  readonly cluster: string | null;
  readonly exchange: string | null;
  readonly state: unknown;
  /** The trader, desk and client of its trading session; null if unknown. */
  readonly subjects: Subjects | null;
}

/** Lists the deployments of a bot that were open at some time in the period, newest first. */
export async function listDeployments(
  db: Db,
  bot_id: string,
  { from, to }: Period,
): Promise<Deployment[]> {
  const rows = await db
    .selectFrom('bot_deployments as deployment')
    .leftJoin(
      'production_deployments as production',
      'production.deployment_id',
      'deployment.deployment_id',
    )
    .leftJoin('tasks', 'tasks.task_id', 'deployment.task_id')
    .leftJoin('trading_sessions as session', 'session.task_id', 'deployment.task_id')
    .select(['target', 'deployment.task_id', 'deployment.status', 'cluster', 'plan', 'input'])
    .select(['session.state', 'session.subjects'])
    .where('deployment.bot_id', '=', bot_id)
    .where('target', '<>', 'test')
    .where('deployment.created_at', '<', to)
    .where((is) =>
      is.or([is('deployment.ended_at', 'is', null), is('deployment.ended_at', '>=', from)]),
    )
    .orderBy('deployment.deployment_id', 'desc')
    .limit(50 * MOST_LISTED)
    .$narrowType<Pick<Deployment, 'target'>>()
    .execute();
  return rows.map(({ plan, input, state, subjects, ...row }) => ({
    ...row,
    subjects: subjects === null ? null : (JSON.parse(subjects) as Subjects),
    exchange: exchangeIn(plan) ?? exchangeIn(input),
    state: state === null ? null : (JSON.parse(state) as unknown),
  }));
}

/** Reads the exchange from a production plan or from the input of a paper session. */
function exchangeIn(text: string | null): string | null {
  const { exchange, live } = JSON.parse(text ?? '{}') as {
    readonly exchange?: { readonly name?: string };
    readonly live?: { readonly exchange?: string };
  };
  return exchange?.name ?? live?.exchange ?? null;
}

export interface FailedTask {
  readonly task_id: string;
  readonly kind: string;
  readonly version: number;
  readonly begun_at: string | null;
  readonly ended_at: string | null;
  readonly code: string | null;
  readonly detail: string | null;
}

export async function listFailedTasks(
  db: Db,
  bot_id: string,
  { from, to }: Period,
): Promise<FailedTask[]> {
  const rows = await db
    .selectFrom('tasks')
    .select(['task_id', 'kind', 'version', 'started_at', 'ended_at', 'error'])
    .where('bot_id', '=', bot_id)
    .where('status', '=', 'failed')
    .where('ended_at', '>=', from)
    .where('ended_at', '<', to)
    .orderBy('task_id')
    .limit(MOST_LISTED + 1)
    .execute();
  return rows.map(({ task_id, kind, version, started_at, ended_at, error }) => {
    const failure = JSON.parse(error ?? '{}') as {
      readonly code?: string;
      readonly message?: string;
    };
    return {
      task_id,
      kind,
      version,
      begun_at: formatInstantOrNull(started_at),
      ended_at: formatInstantOrNull(ended_at),
      code: failure.code ?? null,
      detail: failure.message ?? null,
    };
  });
}

export interface EndedTask {
  readonly task_id: string;
  readonly version: number;
  readonly ended_at: number;
  readonly result: Readonly<Record<string, unknown>>;
}

/** Lists the newest five tasks of a kind that succeeded before a time (ms since epoch). */
export async function listEndedTasks(
  db: Db,
  bot_id: string,
  kind: TestKind,
  before: number,
): Promise<EndedTask[]> {
  const rows = await db
    .selectFrom('tasks')
    .select(['task_id', 'version', 'ended_at', 'result'])
    .where('bot_id', '=', bot_id)
    .where('kind', '=', kind)
    .where('status', '=', 'success')
    .where('ended_at', '<', before)
    .orderBy('task_id', 'desc')
    .limit(5)
    .execute();
  return rows.map(({ task_id, version, ended_at, result }) => ({
    task_id,
    version,
    ended_at: ended_at!,
    result: JSON.parse(result!) as EndedTask['result'],
  }));
}

/** Lists the bots that are not archived, with facts about their current versions. */
export async function readFleet(db: Db) {
  const rows = await db
    .selectFrom('bots')
    .innerJoin('bot_versions as version', (join) =>
      join
        .onRef('version.bot_id', '=', 'bots.bot_id')
        .onRef('version.version', '=', 'bots.current_version'),
    )
    .select(['slug', 'name', 'kind', 'status', 'current_version', 'version.hash', 'bundle_hash'])
    .select('document')
    .where('status', '!=', 'archived')
    .orderBy('slug')
    .limit(MOST_LISTED)
    .execute();
  const { total } = await db
    .selectFrom('bots')
    .select(({ fn }) => fn.countAll<number>().as('total'))
    .where('status', '!=', 'archived')
    .executeTakeFirstOrThrow();
  const items = rows.map(({ document, current_version, ...row }) => {
    const { metadata, spec } = JSON.parse(document) as Document;
    return {
      ...row,
      version: current_version,
      strategy: spec.strategy?.name ?? spec.strategy?.module ?? null,
      instruments: spec.universe?.symbols?.length ?? null,
      owner: metadata?.owner ?? null,
    };
  });
  return { total, items };
}

/** The parts of a stored bot document that the report reads. */
export interface Document {
  readonly metadata?: { readonly owner?: string; readonly description?: string };
  readonly spec: {
    readonly universe?: { readonly symbols?: readonly string[]; readonly currency?: string };
    readonly data?: {
      readonly timeframe?: string;
      readonly source?: string;
      readonly sources?: Readonly<Record<string, string>>;
    };
    readonly strategy?: {
      readonly name?: string;
      readonly module?: string;
      readonly params?: object;
    };
    readonly risk?: Readonly<Record<string, unknown>>;
    readonly attribution?: Partial<Record<'trader' | 'desk' | 'client', string>>;
    readonly ml_models?: readonly { readonly name: string; readonly digest: string }[];
    readonly agents?: readonly { readonly role: string }[];
    readonly deployment?: { readonly brokerage?: string };
  };
}

export async function listAdministrators(db: Db) {
  const rows = await db
    .selectFrom('administrators')
    .select(['administrator_id', 'name', 'created_at'])
    .where('disabled_at', 'is', null)
    .orderBy('administrator_id')
    .limit(MOST_LISTED)
    .execute();
  return rows.map(({ created_at, ...row }) => ({ ...row, since: formatInstant(created_at) }));
}

/** Lists administrators with a token that may halt; in the console every administrator may halt. */
export async function listHaltHolders(db: Db, now: number) {
  const rows = await db
    .selectFrom('api_tokens as token')
    .innerJoin('administrators as holder', 'holder.administrator_id', 'token.administrator_id')
    .select(['holder.administrator_id', 'holder.name', 'scopes'])
    .where('revoked_at', 'is', null)
    .where('expires_at', '>', now)
    .where('disabled_at', 'is', null)
    .execute();
  const holders = rows.filter(({ scopes }) => (JSON.parse(scopes) as string[]).includes('halt'));
  return [...Map.groupBy(holders, ({ administrator_id }) => administrator_id)]
    .map(([administrator_id, tokens]) => ({
      administrator_id,
      name: tokens[0]!.name,
      tokens: tokens.length,
    }))
    .toSorted((a, b) => (a.administrator_id < b.administrator_id ? -1 : 1));
}
