/** State of a production deployment in the database, by which its controller decides. */
import type { ClusterState } from '../../deploy/kubernetes/cluster.ts';
import type { Db } from '../../storage/tables.ts';
import type { Claim } from '../tasks/claim.ts';
import { findHaltInForce } from '../tasks/halt-in-force.ts';
import type { DeployInput } from './production-plan.ts';
import type { RunnerEnd } from './runner-reports.ts';

export type DeploymentState = NonNullable<Awaited<ReturnType<typeof readDeploymentState>>>;

/** @returns undefined when the claim is no longer valid. */
export async function readDeploymentState(db: Db, claim: Claim) {
  const row = await db
    .selectFrom('tasks')
    .innerJoin('production_deployments as own', 'own.deployment_id', 'tasks.deployment_id')
    .innerJoin('trading_sessions as session', 'session.task_id', 'tasks.task_id')
    .leftJoin('runners', 'runners.deployment_id', 'tasks.deployment_id')
    .select(['own.cluster', 'own.plan', 'own.opening', 'own.begun_at', 'own.token_applied_at'])
    .select(['own.applied_at', 'own.scaled_down_at', 'own.cluster_state', 'own.replaces'])
    .select(['tasks.cancel_requested_at', 'tasks.input'])
    .select(['session.stop_requested_at', 'session.state'])
    .select(['runners.epoch', 'runners.reported_at', 'runners.ended'])
    .where('tasks.task_id', '=', claim.task_id)
    .where('tasks.worker_id', '=', claim.worker_id)
    .where('tasks.attempts', '=', claim.attempts)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const { ended, cluster_state, input, ...rest } = row;
  return {
    ...rest,
    halt: await findHaltInForce(db, claim.bot_id),
    abandoned: (JSON.parse(input) as DeployInput).abandoned ?? null,
    ended: ended === null ? null : (JSON.parse(ended) as RunnerEnd),
    cluster_state: parseClusterState(cluster_state),
  };
}

export function parseClusterState(text: string | null): ClusterState | null {
  return text === null ? null : (JSON.parse(text) as ClusterState);
}

export interface EndRequest {
  readonly why: 'halt' | 'stop' | 'cancel' | 'failed';
  /** Time of the request, milliseconds since the Unix epoch. */
  readonly since: number;
}

/** Decides whether a deployment must end; a halt comes before other reasons. */
export function decideEnd(known: DeploymentState): EndRequest | undefined {
  const { halt, stop_requested_at, cancel_requested_at, ended, reported_at } = known;
  if (halt !== undefined) return { why: 'halt', since: halt.requested_at };
  if (stop_requested_at !== null) return { why: 'stop', since: stop_requested_at };
  if (cancel_requested_at !== null) return { why: 'cancel', since: cancel_requested_at };
  if (ended?.outcome === 'failed') return { why: 'failed', since: reported_at ?? 0 };
  return undefined;
}
