/** Verifies halts by reading committed data, independent of what the halt itself reported. */
import { sql } from 'kysely';
import { hashOf } from '../../events/event.ts';
import type { EndedOrder } from '../deployments/runner-reports.ts';
import type { BotEventsTable, Db } from '../../storage/tables.ts';
import { selectSessions, START, type Place } from './active-sessions.ts';
import { parseState, type HaltedOrder } from './end-sessions.ts';
import type { HaltFault } from '../../base/halt-faults.ts';
import type { VerifiedDeployment } from './verified-deployment.ts';
import type { Halt } from './halts.ts';
import { orderFaults, verifyRunningDeployments } from './halt-production.ts';

export interface Verification {
  /** Whether the halt is in force and every deployment is verified. */
  readonly verified: boolean;
  readonly in_force: boolean;
  /** Deployments that the halt has ended or should have ended. */
  readonly deployments: readonly VerifiedDeployment[];
}

const PAGE = 500;

/**
 * @param now milliseconds since the Unix epoch.
 * @param verified results of `verifyDeployments`. They are used if they contain all deployments that
 *   the halt has ended, without a fault.
 */
export async function verifyHalt(
  db: Db,
  halt: Halt,
  now: number,
  verified: readonly VerifiedDeployment[] = [],
): Promise<Verification> {
  const { halt_id } = halt;
  const row = await db
    .selectFrom('halts')
    .select('lifted_at')
    .where('halt_id', '=', halt_id)
    .executeTakeFirst();
  const in_force = row?.lifted_at === null;
  const isUsable =
    verified.every((one) => one.verified) && verified.length === (await countEnded(db, halt_id));
  const deployments = isUsable ? [...verified] : await verifyAllEnded(db, halt_id);
  const known = new Set(deployments.map(({ deployment_id }) => deployment_id));
  for (let after = START; ;) {
    const page = await verifyActive(db, halt, after);
    deployments.push(...page.filter(({ deployment_id }) => !known.has(deployment_id)));
    if (page.length < PAGE) break;
    after = page.at(-1)!;
  }
  const inProduction = await verifyRunningDeployments(db, halt, now);
  deployments.push(...inProduction.filter(({ deployment_id }) => !known.has(deployment_id)));
  const areVerified = deployments.every((one) => one.verified);
  return { verified: in_force && areVerified, in_force, deployments };
}

/** Verifies some of the deployments that the halt has recorded as ended. Needs PostgreSQL. */
export async function verifyDeployments(
  db: Db,
  { halt_id }: Pick<Halt, 'halt_id'>,
  deployment_ids: readonly string[],
): Promise<readonly VerifiedDeployment[]> {
  const ids = sql<string>`any(cast(${deployment_ids} as text[]))`;
  const some = selectEnded(db, halt_id).where('deployment_id', '=', ids);
  return verifyEnded(await readEnded(db, some));
}

async function countEnded(db: Db, halt_id: string): Promise<number> {
  const { count } = await db
    .selectFrom('halted_deployments')
    .select(({ fn }) => fn.countAll().as('count'))
    .where('halt_id', '=', halt_id)
    .executeTakeFirstOrThrow();
  return Number(count);
}

async function verifyAllEnded(db: Db, halt_id: string): Promise<VerifiedDeployment[]> {
  const deployments: VerifiedDeployment[] = [];
  for await (const page of readEndedPages(db, halt_id)) {
    deployments.push(...verifyEnded(page));
    await new Promise(setImmediate);
  }
  return deployments;
}

type EndedPage = Awaited<ReturnType<typeof readEnded>>;

/** Reads deployments that the halt recorded as ended, and the next page while one is verified. */
async function* readEndedPages(db: Db, halt_id: string): AsyncGenerator<EndedPage> {
  let next: Promise<EndedPage> | undefined = readEndedPage(db, halt_id, '');
  while (next !== undefined) {
    const page: EndedPage = await next;
    const last = page.rows.at(-1);
    next = page.rows.length < PAGE ? undefined : readEndedPage(db, halt_id, last!.deployment_id);
    // It is awaited later, and must not be reported as unhandled before.
    next?.catch(() => {});
    yield page;
  }
}

function readEndedPage(db: Db, halt_id: string, after: string): Promise<EndedPage> {
  const ended = selectEnded(db, halt_id).where('deployment_id', '>', after);
  return readEnded(db, ended.orderBy('deployment_id').limit(PAGE));
}

function selectEnded(db: Db, halt_id: string) {
  return db.selectFrom('halted_deployments').selectAll().where('halt_id', '=', halt_id);
}

async function readEnded(db: Db, ended: ReturnType<typeof selectEnded>) {
  const page = ended.as('halted');
  const [rows, events] = await Promise.all([
    db
      .selectFrom(page)
      .innerJoin(
        'bot_deployments as deployment',
        'deployment.deployment_id',
        'halted.deployment_id',
      )
      .innerJoin('tasks', 'tasks.task_id', 'deployment.task_id')
      .leftJoin('trading_sessions as session', 'session.task_id', 'deployment.task_id')
      .leftJoin('runners', 'runners.deployment_id', 'deployment.deployment_id')
      .select(['deployment.deployment_id', 'deployment.bot_id', 'target', 'deployment.task_id'])
      .select(['deployment.status', 'tasks.status as task_status', 'worker_id'])
      .select(['orders', 'last_seq', 'session.state', 'runners.ended as runner_ended'])
      .orderBy('halted.deployment_id')
      .execute(),
    db
      .selectFrom(page)
      .innerJoin(
        'bot_deployments as deployment',
        'deployment.deployment_id',
        'halted.deployment_id',
      )
      .innerJoin('bot_events as event', (join) =>
        join
          .onRef('event.bot_id', '=', 'deployment.bot_id')
          .onRef('event.seq', '>=', 'halted.first_seq')
          .onRef('event.seq', '<=', 'halted.last_seq')
          .on('event.kind', 'in', ['run.ended', 'order.canceled']),
      )
      .selectAll('event')
      .execute(),
  ]);
  return { rows, events };
}

/** Verifies deployments that the halt recorded as ended. */
function verifyEnded({ rows, events }: EndedPage): VerifiedDeployment[] {
  const logged = Map.groupBy(
    events.filter((event) => hashOf(event) === event.hash),
    ({ run_id }) => run_id,
  );
  return rows.map((row) => {
    const { task_status, worker_id, orders, last_seq, state, runner_ended, ...deployment } = row;
    const { task_id, status, target } = deployment;
    const faults: HaltFault[] = [];
    if (status !== 'halted') faults.push('deployment_not_halted');
    if (task_status !== 'canceled' || worker_id !== null) faults.push('task_not_ended');
    const own = logged.get(task_id) ?? [];
    const isEnded = own.some(({ kind, seq }) => kind === 'run.ended' && seq === last_seq);
    if (!isEnded) faults.push('not_in_log');
    if (target === 'k8s') {
      const ended = orders === null ? null : (JSON.parse(orders) as readonly EndedOrder[]);
      faults.push(...orderFaults(ended, runner_ended !== null));
      return { ...deployment, verified: faults.length === 0, faults, orders: ended ?? [] };
    }
    const recorded = parseState(state);
    const working = new Set(recorded?.working.map(({ order }) => order));
    const isKnown = orders !== null && recorded !== undefined;
    const canceled = readCanceledOrders(own);
    const checked = ordersOf(orders).map(({ order, symbol }) => {
      const isLogged = canceled.has(order);
      return { order, symbol, verified: isKnown && isLogged && !working.has(order) };
    });
    if (!isKnown) faults.push('orders_unknown');
    if (working.size > 0 || checked.some((one) => !one.verified)) faults.push('order_not_canceled');
    return { ...deployment, verified: faults.length === 0, faults, orders: checked };
  });
}

/** Reads paper sessions that the halt covers but that have not ended. */
async function verifyActive(
  db: Db,
  halt: Halt,
  after: Place,
): Promise<readonly (VerifiedDeployment & Place)[]> {
  const rows = await selectSessions(db, halt, after)
    .leftJoin('trading_sessions as session', 'session.task_id', 'deployment.task_id')
    .select(['deployment.deployment_id', 'deployment.bot_id', 'target', 'deployment.task_id'])
    .select(['deployment.status', 'session.state'])
    .orderBy('deployment.bot_id')
    .orderBy('deployment.deployment_id')
    .limit(PAGE)
    .execute();
  return rows.map(({ state, ...deployment }) => {
    const known = parseState(state);
    const orders = known?.working.map(({ order, symbol }) => ({ order, symbol, verified: false }));
    const faults: HaltFault[] = ['deployment_not_halted', 'task_not_ended', 'not_in_log'];
    if (orders?.length) faults.push('order_not_canceled');
    if (known === undefined) faults.push('orders_unknown');
    return { ...deployment, verified: false, faults, orders: orders ?? [] };
  });
}

function readCanceledOrders(events: readonly BotEventsTable[]): ReadonlySet<number> {
  const canceled = events.filter(({ kind }) => kind === 'order.canceled');
  return new Set(canceled.map(({ payload }) => (JSON.parse(payload) as HaltedOrder).order));
}

function ordersOf(text: string | null): readonly HaltedOrder[] {
  return text === null ? [] : (JSON.parse(text) as readonly HaltedOrder[]);
}
