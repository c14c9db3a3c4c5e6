import { getBotId } from '../registry/bots.ts';
import type { Opening } from '../../trading/opening.ts';
import { ServiceError } from '../../base/errors.ts';
import type { ClusterState } from '../../deploy/kubernetes/cluster.ts';
import type { Db, ProductionDeploymentsTable, RunnersTable } from '../../storage/tables.ts';
import type { BotDeployment } from '../tasks/tasks.ts';
import { parseClusterState } from './deployment-state.ts';
import { parseOpening, type DeployInput, type DeployRequest } from './production-plan.ts';
import type { KnownReport, RunnerEnd } from './runner-reports.ts';

/** A production deployment as last observed. Times are milliseconds since the Unix epoch. */
export interface ProductionStatus extends Readonly<
  Pick<
    ProductionDeploymentsTable,
    'cluster' | 'namespace' | 'replaces' | 'applied_at' | 'scaled_down_at'
  >
> {
  readonly deployment: BotDeployment;
  readonly request: DeployRequest;
  readonly waits: boolean;
  /** Opening account; null for the cash of the spec. */
  readonly opening: Opening | null;
  readonly cluster_state: ClusterState | null;
  /** Null until the runner's token is in the cluster. */
  readonly runner:
    | (Readonly<Pick<RunnersTable, 'epoch' | 'claimed_until' | 'reported_at' | 'version'>> & {
        readonly report: KnownReport | null;
        readonly ended: RunnerEnd | null;
      })
    | null;
}

/** @throws ServiceError `not_found`; `conflict` for a deployment with another target. */
export async function readProductionStatus(
  db: Db,
  ref: string,
  deployment_id: string,
): Promise<ProductionStatus> {
  const bot_id = await getBotId(db, ref);
  const deployment = await db
    .selectFrom('bot_deployments')
    .selectAll()
    .where('deployment_id', '=', deployment_id)
    .where('bot_id', '=', bot_id)
    .executeTakeFirst();
  if (deployment === undefined) {
    throw new ServiceError('not_found', `bot ${ref} has no deployment ${deployment_id}`, {
      remedy: `See \`service-local bots deployments ${ref}\`.`,
    });
  }
  if (deployment.target !== 'k8s') {
    throw new ServiceError(
      'conflict',
      `deployment ${deployment_id} is not a production deployment`,
      {
        reason: 'not_production',
        remedy: `See \`service-local tasks get ${deployment.task_id}\`.`,
      },
    );
  }
  const own = await db
    .selectFrom('production_deployments')
    .innerJoin('tasks', 'tasks.deployment_id', 'production_deployments.deployment_id')
    .select(['cluster', 'namespace', 'replaces', 'waits', 'applied_at', 'scaled_down_at'])
    .select(['cluster_state', 'tasks.input', 'opening'])
    .where('production_deployments.deployment_id', '=', deployment_id)
    .executeTakeFirstOrThrow();
  const runner = await db
    .selectFrom('runners')
    .select(['epoch', 'claimed_until', 'reported_at', 'report', 'ended', 'version'])
    .where('deployment_id', '=', deployment_id)
    .executeTakeFirst();
  const { input, waits, opening, cluster_state, ...known } = own;
  const { production } = JSON.parse(input) as DeployInput;
  return {
    ...known,
    deployment,
    request: production,
    waits: waits === 1,
    opening: opening === null ? null : parseOpening(opening),
    cluster_state: parseClusterState(cluster_state),
    runner: runner
      ? {
          ...runner,
          report: parsed(runner.report) as KnownReport | null,
          ended: parsed(runner.ended) as RunnerEnd | null,
        }
      : null,
  };
}

function parsed(text: string | null): unknown {
  return text === null ? null : JSON.parse(text);
}
