/**
 * Halts of production deployments. Their orders are at a venue, where only their runner can cancel and
 * read them back. The runner learns of the halt from the answer to its next report, and the controller
 * ends the deployment afterwards.
 */
import { readHead } from '../../events/read-events.ts';
import { parseClusterState } from '../deployments/deployment-state.ts';
import { isSilent, type EndedOrder, type RunnerEnd } from '../deployments/runner-reports.ts';
import type { Db } from '../../storage/tables.ts';
import { endUnattended } from '../tasks/lifecycle.ts';
import { parseState } from './end-sessions.ts';
import type { HaltFault } from '../../base/halt-faults.ts';
import type { VerifiedDeployment } from './verified-deployment.ts';
import type { Halt } from './halts.ts';

/** Selects the active production deployments that a halt covers. */
function selectDeployments(db: Db, { bot_id }: Pick<Halt, 'bot_id'>) {
  const all = db
    .selectFrom('production_deployments as own')
    .innerJoin('bot_deployments as deployment', 'deployment.deployment_id', 'own.deployment_id')
    .where('deployment.ended_at', 'is', null);
  return bot_id === null ? all : all.where('own.bot_id', '=', bot_id);
}

export async function findFirstDeployment(
  db: Db,
  halt: Pick<Halt, 'bot_id'>,
): Promise<{ readonly deployment_id: string } | undefined> {
  return selectDeployments(db, halt)
    .select('own.deployment_id')
    .orderBy('own.deployment_id')
    .limit(1)
    .executeTakeFirst();
}

/** Ends deployments of which no cluster has any object yet. */
export async function endUnbegunDeployments(tx: Db, now: number, halt: Halt): Promise<void> {
  const tasks = await selectDeployments(tx, halt)
    .innerJoin('tasks', 'tasks.task_id', 'deployment.task_id')
    .select(['tasks.task_id', 'tasks.bot_id', 'tasks.version', 'tasks.deployment_id', 'tasks.kind'])
    .where('own.begun_at', 'is', null)
    .execute();
  for (const task of tasks) {
    const before = await readHead(tx, task.bot_id);
    await endUnattended(tx, task, now, { status: 'canceled' });
    await tx
      .insertInto('halted_deployments')
      .values({
        halt_id: halt.halt_id,
        deployment_id: task.deployment_id,
        orders: '[]',
        first_seq: before.seq + 1,
        last_seq: (await readHead(tx, task.bot_id)).seq,
      })
      .execute();
  }
}

/** Finds faults in the orders of an ended deployment. */
export function orderFaults(
  orders: readonly EndedOrder[] | null,
  hasReported: boolean,
): HaltFault[] {
  if (orders === null)
    return ['orders_unknown', ...(hasReported ? [] : ['runner_silent' as const])];
  return orders.every((one) => one.verified) ? [] : ['order_not_canceled'];
}

/** Reads the deployments that a halt covers but that have not ended, with their faults. */
export async function verifyRunningDeployments(
  db: Db,
  halt: Halt,
  now: number,
): Promise<readonly VerifiedDeployment[]> {
  const rows = await selectDeployments(db, halt)
    .innerJoin('trading_sessions as session', 'session.task_id', 'deployment.task_id')
    .leftJoin('runners', 'runners.deployment_id', 'own.deployment_id')
    .select(['own.deployment_id', 'own.bot_id', 'deployment.target', 'deployment.task_id'])
    .select(['deployment.status', 'own.cluster_state', 'session.state'])
    .select(['runners.epoch', 'runners.reported_at', 'runners.ended'])
    .orderBy('own.deployment_id')
    .execute();
  return rows.map(({ cluster_state, state, epoch, reported_at, ended, ...deployment }) => {
    const cluster = parseClusterState(cluster_state);
    const runnerEnd = ended === null ? null : (JSON.parse(ended) as RunnerEnd);
    const faults: HaltFault[] = ['deployment_not_halted', 'task_not_ended', 'not_in_log'];
    if (runnerEnd === null && (epoch ?? 0) > 0) {
      faults.push('orders_unknown');
      const runner = { reported_at: reported_at ?? null };
      if (isSilent(runner, halt.requested_at, now)) faults.push('runner_silent');
    }
    if (runnerEnd?.orders.some((one) => !one.verified)) faults.push('order_not_canceled');
    if ((cluster?.pods.length ?? 0) > 0) faults.push('pod_left');
    if (cluster?.reason === 'unreachable') faults.push('cluster_unreachable');
    const working = parseState(state)?.working ?? [];
    const orders =
      runnerEnd?.orders ?? working.map(({ order, symbol }) => ({ order, symbol, verified: false }));
    return { ...deployment, verified: false, faults, orders };
  });
}
