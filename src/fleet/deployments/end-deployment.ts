/** Ends production deployments in the database, once their clusters have no pod of them. */
import type { Problem } from '../../base/errors.ts';
import type { Db } from '../../storage/tables.ts';
import type { Claim } from '../tasks/claim.ts';
import { appendRunEvent, endTask, endUnattended, type TaskOutcome } from '../tasks/lifecycle.ts';
import type { ErrorData } from '../../base/error-data.ts';
import { listLatches } from '../tasks/latches.ts';
import { openingProblems } from '../../trading/opening.ts';
import { readHead } from '../../events/read-events.ts';
import type { SessionState } from '../../events/session-state.ts';
import { openAfter, readPlannedRules, withoutRisk } from './account.ts';
import { readDeploymentState, type DeploymentState, type EndRequest } from './deployment-state.ts';
import type { DeployInput } from './production-plan.ts';
import type { EndedOrder } from './runner-reports.ts';

interface OrderOutcome {
  readonly verified: boolean;
  /** Orders that were working when the end was requested; null if unknown. */
  readonly orders: readonly EndedOrder[] | null;
}

/**
 * Ends a deployment and its task, records the evidence of a halt, and starts the waiting replacement.
 *
 * @param failure why the deployment could not be applied.
 * @returns false when the claim is no longer valid.
 */
export async function endDeployment(
  tx: Db,
  held: Claim,
  now: number,
  wanted: EndRequest,
  failure?: ErrorData,
): Promise<boolean> {
  const known = await readDeploymentState(tx, held);
  if (known === undefined) return false;
  const orderOutcome = readOrderOutcome(known);
  const { verified, orders } = orderOutcome;
  // A halt may have been requested in the meantime.
  const why = known.halt ? 'halt' : wanted.why;
  const outcome = toTaskOutcome(why, known, orderOutcome, failure);
  const first = (await readHead(tx, held.bot_id)).seq;
  await appendRunEvent(tx, held, now, 'deploy.ended', { why, verified, orders });
  await endTask(tx, held, now, outcome);
  const last = (await readHead(tx, held.bot_id)).seq;
  if (why === 'halt') await recordEvidence(tx, held, orderOutcome, first + 1, last);
  await startReplacement(tx, now, held, orderOutcome);
  return true;
}

/** A deployment whose claim was never granted cannot have placed an order. */
function readOrderOutcome({ ended, epoch }: DeploymentState): OrderOutcome {
  if (ended !== null) {
    const { orders } = ended;
    return { verified: ended.verified && orders.every((one) => one.verified), orders };
  }
  return (epoch ?? 0) === 0 ? { verified: true, orders: [] } : { verified: false, orders: null };
}

function toTaskOutcome(
  why: EndRequest['why'],
  { ended, state }: DeploymentState,
  { verified, orders }: OrderOutcome,
  failure: ErrorData | undefined,
): TaskOutcome {
  if (why === 'halt' || why === 'cancel') return { status: 'canceled' };
  if (why === 'failed' || ended?.outcome === 'failed') {
    const error = failure ?? ended?.error ?? { code: 'failure', message: 'the runner failed' };
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

function unverified(orders: OrderOutcome['orders']): ErrorData {
  const open = orders
    ?.filter((one) => !one.verified)
    .map(({ order, symbol }) => `${order} (${symbol})`);
  return {
    code: 'failure',
    reason: 'orders_not_verified',
    message: open?.length
      ? `these orders are not known to have ended: ${open.join(', ')}`
      : 'the pod ended before its runner reported the outcome of its orders',
    remedy: 'Check the exchange, and cancel open orders there.',
  };
}

/** Records the orders and events of the deployment for each halt in force. */
async function recordEvidence(
  tx: Db,
  { bot_id, deployment_id }: Claim,
  { verified, orders }: OrderOutcome,
  first_seq: number,
  last_seq: number,
): Promise<void> {
  const halts = await tx
    .selectFrom('halts')
    .select('halt_id')
    .where('lifted_at', 'is', null)
    .where((is) => is.or([is('bot_id', '=', bot_id), is('bot_id', 'is', null)]))
    .execute();
  // A runner that did not read back the open orders cannot know all orders.
  const isKnown = verified || orders?.some((one) => !one.verified);
  const known = isKnown ? JSON.stringify(orders) : null;
  const row = { deployment_id, orders: known, first_seq, last_seq };
  for (const { halt_id } of halts) {
    await tx
      .insertInto('halted_deployments')
      .values({ halt_id, ...row })
      .execute();
  }
}

async function startReplacement(
  tx: Db,
  now: number,
  held: Claim,
  { verified }: OrderOutcome,
): Promise<void> {
  const waiting = await tx
    .selectFrom('production_deployments as own')
    .innerJoin('bot_deployments as deployment', 'deployment.deployment_id', 'own.deployment_id')
    .innerJoin('tasks', 'tasks.task_id', 'deployment.task_id')
    .select(['tasks.task_id', 'tasks.bot_id', 'tasks.version', 'tasks.deployment_id', 'tasks.kind'])
    .select(['own.plan', 'tasks.input'])
    .where('own.replaces', '=', held.deployment_id)
    .where('own.waits', '=', 1)
    .where('deployment.ended_at', 'is', null)
    .executeTakeFirst();
  if (waiting === undefined) return;
  const { reset_losses } = JSON.parse(waiting.input) as DeployInput;
  const next = { ...waiting, reset_losses };
  if (!verified) {
    await endUnattended(tx, next, now, {
      status: 'failed',
      error: {
        code: 'conflict',
        reason: 'replaced_not_verified',
        message: `the deployment does not start: the outcome of orders of ${held.deployment_id}, which it replaces, is unknown`,
        remedy: 'Check the exchange, cancel open orders there, and deploy again.',
      },
    });
    return;
  }
  const latches = await listLatches(tx, held.bot_id);
  const before = await openAfter(tx, held);
  const opening = next.reset_losses ? withoutRisk(before) : before;
  const problems = opening ? openingProblems(opening, await readPlannedRules(tx, next.plan)) : [];
  if (latches.length > 0 || problems.length > 0) {
    const error = latches.length > 0 ? LATCHED : notContinued(held, problems);
    await endUnattended(tx, next, now, { status: 'failed', error });
    return;
  }
  await tx
    .updateTable('production_deployments')
    .set({ waits: 0, opening: opening && JSON.stringify(opening) })
    .where('deployment_id', '=', next.deployment_id)
    .execute();
  if (opening) await appendRunEvent(tx, next, now, 'deploy.account_continued', { opening });
}

const LATCHED: ErrorData = {
  code: 'conflict',
  reason: 'latched',
  message: 'the deployment does not start: the one that it replaces was latched before it ended',
  remedy:
    'Check what that deployment did, let the bot trade again with `service-local bots re-enable`, and deploy again.',
};

function notContinued({ deployment_id }: Claim, problems: readonly Problem[]): ErrorData {
  return {
    code: 'conflict',
    reason: 'account_not_continued',
    message: `the deployment cannot continue the account of ${deployment_id}: ${problems.map(({ message }) => message).join('; ')}`,
    remedy:
      'At the venue, close positions and orders in symbols that the bot does not trade, or deploy a version that trades them.',
  };
}
