import type { Db } from '../../storage/tables.ts';
import type { BotDeployment } from './tasks.ts';

export interface ActiveDeployments {
  /** Newest first, at most 100. */
  readonly active_deployments: readonly BotDeployment[];
  readonly active_deployment_count: number;
}

const MOST = 100;

export async function listActiveDeployments(db: Db, bot_id: string): Promise<ActiveDeployments> {
  const active = db
    .selectFrom('bot_deployments')
    .where('bot_id', '=', bot_id)
    .where('ended_at', 'is', null);
  const active_deployments = await active
    .selectAll()
    .orderBy('deployment_id', 'desc')
    .limit(MOST)
    .execute();
  if (active_deployments.length < MOST) {
    return { active_deployments, active_deployment_count: active_deployments.length };
  }
  const { count } = await active
    .select(({ fn }) => fn.countAll().as('count'))
    .executeTakeFirstOrThrow();
  return { active_deployments, active_deployment_count: Number(count) };
}
