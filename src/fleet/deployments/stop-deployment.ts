import { ServiceError } from '../../base/errors.ts';
import { appendAudit, type Actor } from '../../identity/audit.ts';
import type { Db } from '../../storage/tables.ts';
import { appendRunEvent, endUnattended, isUnbegun } from '../tasks/lifecycle.ts';
import { readSession } from '../tasks/session-record.ts';
import { getTask, type Task } from '../tasks/tasks.ts';
import type { DeployInput } from './production-plan.ts';
import type { ProductionService } from './production-service.ts';

/**
 * Requests the end of a production deployment, which succeeds once all its orders are known to have
 * ended and no pod is left. A deployment that has not begun is canceled; nothing happens to an ended one.
 *
 * @param abandon reason for not waiting until the orders at an exchange have ended.
 * @throws ServiceError `not_found`; `conflict` for another kind of task.
 */
export async function stopDeployment(
  { storage, clock }: Pick<ProductionService, 'storage' | 'clock'>,
  by: Actor,
  task_id: string,
  abandon?: string,
): Promise<Task> {
  return storage.write(async (tx) => {
    const task = await getTask(tx, task_id);
    if (task.kind !== 'production') throw notDeployment(task_id);
    if (task.ended_at !== null) return task;
    const now = clock();
    const { deployment_id, bot_id } = task;
    await appendAudit(tx, now, {
      actor: by,
      action: 'bots.deploy_stop',
      target: `bot:${bot_id}`,
      details: { deployment_id, ...(abandon !== undefined && { abandon }) },
    });
    if (abandon !== undefined) await abandonOrders(tx, task, now, abandon);
    await requestEnd(tx, now, by, task_id, null);
    return getTask(tx, task_id);
  });
}

async function abandonOrders(tx: Db, task: Task, now: number, reason: string): Promise<void> {
  const input = JSON.stringify({ ...(JSON.parse(task.input) as DeployInput), abandoned: reason });
  await tx.updateTable('tasks').set({ input }).where('task_id', '=', task.task_id).execute();
  await appendRunEvent(tx, task, now, 'deploy.orders_abandoned', { reason });
}

/** @returns whether the deployment has ended at once, because it had not begun. */
export async function requestEnd(
  tx: Db,
  now: number,
  by: Actor,
  task_id: string,
  replaced_by: string | null,
): Promise<boolean> {
  const task = await getTask(tx, task_id);
  const { stop_requested_at } = await readSession(tx, task_id);
  if (stop_requested_at === null) {
    await tx
      .updateTable('trading_sessions')
      .set({ stop_requested_at: now })
      .where('task_id', '=', task_id)
      .execute();
    await appendRunEvent(tx, task, now, 'run.stop_requested', { by, replaced_by });
  }
  if (task.status !== 'queued' || !(await isUnbegun(tx, task))) return false;
  await endUnattended(tx, task, now, { status: 'canceled' });
  return true;
}

function notDeployment(task_id: string): ServiceError {
  return new ServiceError('conflict', `task ${task_id} is not a production deployment`, {
    reason: 'not_production',
    remedy: `Cancel it with \`service-local tasks cancel ${task_id}\`.`,
  });
}
