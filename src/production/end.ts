/** How a production deployment ends, once its cluster has no pod of it any more. */
import type { Db, TradingSessionsTable } from '../storage/tables.ts';
import type { Claim } from '../tasks/claim.ts';
import { endTask, endUnattended, type TaskError, type TaskOutcome } from '../tasks/lifecycle.ts';
import { readSession } from '../tasks/record.ts';
import { stepOf } from '../tasks/session-events.ts';
import type { SessionState } from '../trading/session-state.ts';
import { tellDeployment } from './deploy.ts';
import { readKnown, type Known, type Wanted } from './known.ts';
import type { Opening } from './plan.ts';
import type { EndedOrder } from './runners.ts';

/** What became of the orders. */
interface Left {
  readonly verified: boolean;
  /** Those that were working when it was to end; null when nobody knows. */
  readonly orders: readonly EndedOrder[] | null;
}

/**
 * Ends the deployment and its task, keeps what a halt has ended, and lets the one begin that is to
 * replace it, if one is.
 *
 * @param failure why it could not even be applied.
 * @returns false when the task is the worker's no more.
 */
export async function endDeployment(
  tx: Db,
  held: Claim,
  now: number,
  wanted: Wanted,
  failure?: TaskError,
): Promise<boolean> {
  const known = await readKnown(tx, held);
  if (known === undefined) return false;
  const left = leftBy(known);
  const { verified, orders } = left;
  // A halt that has come in between is about it, too.
  const why = known.halt ? 'halt' : wanted.why;
  const outcome = outcomeOf(why, known, left, failure);
  const first = await seqOf(tx, held.bot_id);
  await tellDeployment(tx, held, now, 'deploy.ended', { why, verified, orders });
  await endTask(tx, held, now, outcome);
  const last = await seqOf(tx, held.bot_id);
  if (why === 'halt') await keepEvidence(tx, held, left, first + 1, last);
  await letReplace(tx, now, held, left);
  return true;
}

/** One whose claim nobody ever had cannot have placed an order. */
function leftBy({ ended, epoch }: Known): Left {
  if (ended !== null) {
    const { orders } = ended;
    return { verified: ended.verified && orders.every((one) => one.verified), orders };
  }
  return (epoch ?? 0) === 0 ? { verified: true, orders: [] } : { verified: false, orders: null };
}

function outcomeOf(
  why: Wanted['why'],
  { ended, state }: Known,
  { verified, orders }: Left,
  failure: TaskError | undefined,
): TaskOutcome {
  if (why === 'halt' || why === 'cancel') return { status: 'canceled' };
  if (why === 'failed') {
    const error = failure ?? ended?.error ?? { code: 'failure', message: 'its runner failed' };
    return { status: 'failed', error };
  }
  if (!verified) return { status: 'failed', error: unverified(orders) };
  const { cash, equity, positions, time } = JSON.parse(state) as SessionState;
  const account = { time, cash, equity, positions };
  return {
    status: 'success',
    result: JSON.stringify({ outcome: 'stopped', verified, orders, account }),
    summary: { verified, orders: orders?.length ?? 0, account },
  };
}

function unverified(orders: Left['orders']): TaskError {
  const open = orders
    ?.filter((one) => !one.verified)
    .map(({ order, symbol }) => `${order} (${symbol})`);
  return {
    code: 'failure',
    reason: 'orders_not_verified',
    message: open?.length
      ? `it is not known that these orders have ended: ${open.join(', ')}`
      : 'its runner did not tell what became of its orders before its pod was gone',
    remedy: 'Look at the exchange, and cancel there what is still open.',
  };
}

async function seqOf(tx: Db, bot_id: string): Promise<number> {
  const { event_seq } = await tx
    .selectFrom('bots')
    .select('event_seq')
    .where('bot_id', '=', bot_id)
    .executeTakeFirstOrThrow();
  return event_seq;
}

/** For each halt that is in force for it: of the bot, and of all. */
async function keepEvidence(
  tx: Db,
  { bot_id, deployment_id }: Claim,
  { verified, orders }: Left,
  first_seq: number,
  last_seq: number,
): Promise<void> {
  const halts = await tx
    .selectFrom('halts')
    .select('halt_id')
    .where('lifted_at', 'is', null)
    .where((is) => is.or([is('bot_id', '=', bot_id), is('bot_id', 'is', null)]))
    .execute();
  // Who has not read back what is open knows of nothing else either.
  const isKnown = verified || orders?.some((one) => !one.verified);
  const told = isKnown ? JSON.stringify(orders) : null;
  const row = { deployment_id, orders: told, first_seq, last_seq };
  for (const { halt_id } of halts) {
    await tx
      .insertInto('halted_deployments')
      .values({ halt_id, ...row })
      .execute();
  }
}

async function letReplace(tx: Db, now: number, held: Claim, { verified }: Left): Promise<void> {
  const next = await tx
    .selectFrom('production_deployments as own')
    .innerJoin('bot_deployments as deployment', 'deployment.deployment_id', 'own.deployment_id')
    .innerJoin('tasks', 'tasks.task_id', 'deployment.task_id')
    .select(['tasks.task_id', 'tasks.bot_id', 'tasks.version', 'tasks.deployment_id', 'tasks.kind'])
    .where('own.replaces', '=', held.deployment_id)
    .where('own.waits', '=', 1)
    .where('deployment.ended_at', 'is', null)
    .executeTakeFirst();
  if (next === undefined) return;
  if (!verified) {
    await endUnattended(tx, next, now, {
      status: 'failed',
      error: {
        code: 'conflict',
        reason: 'replaced_not_verified',
        message: `it does not begin: it is not known what became of the orders of ${held.deployment_id}, which it was to replace`,
        remedy: 'Look at the exchange, cancel there what is still open, and deploy again.',
      },
    });
    return;
  }
  const opening = await openingAfter(tx, held);
  await tx
    .updateTable('production_deployments')
    .set({ waits: 0, opening: opening && JSON.stringify(opening) })
    .where('deployment_id', '=', next.deployment_id)
    .execute();
}

/** Steps in which a price is looked for. */
const MOST_STEPS = 1000;

/** The account as it was left; null where nothing has happened. */
async function openingAfter(tx: Db, { task_id }: Claim): Promise<Opening | null> {
  const { state: text, batches } = await readSession(tx, task_id);
  const before = await tx
    .selectFrom('production_deployments')
    .innerJoin('tasks', 'tasks.deployment_id', 'production_deployments.deployment_id')
    .select('opening')
    .where('task_id', '=', task_id)
    .executeTakeFirstOrThrow();
  const opened = before.opening === null ? null : (JSON.parse(before.opening) as Opening);
  if (batches === 0) return opened;
  const { cash, positions } = JSON.parse(text) as SessionState;
  const closes = await lastCloses(tx, task_id, Object.keys(positions));
  return {
    cash,
    positions: Object.fromEntries(
      Object.entries(positions).map(([symbol, quantity]) => {
        const price = closes.get(symbol) ?? opened?.positions[symbol]?.price ?? 0;
        return [symbol, { quantity, price }];
      }),
    ),
  };
}

async function lastCloses(
  tx: Db,
  task_id: TradingSessionsTable['task_id'],
  symbols: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const closes = new Map<string, number>();
  if (symbols.length === 0) return closes;
  const rows = await tx
    .selectFrom('bot_events')
    .select('payload')
    .where('run_id', '=', task_id)
    .where('kind', '=', 'data.bars')
    .orderBy('seq', 'desc')
    .limit(MOST_STEPS)
    .execute();
  for (const { payload } of rows) {
    for (const [symbol, { close }] of Object.entries(stepOf(payload).bars)) {
      if (!closes.has(symbol)) closes.set(symbol, close);
    }
    if (symbols.every((symbol) => closes.has(symbol))) break;
  }
  return closes;
}
