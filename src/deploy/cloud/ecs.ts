import type { Deployment, Service } from '@aws-sdk/client-ecs';
import { ServiceError } from '../../base/errors.ts';
import { awsFailure, clientOptions, installed } from './aws.ts';
import type { EcsDefinition } from './cloud-file.ts';
import type { Role, Rollout, RunningTask, Services, ServiceState } from './services.ts';

/** Maximum number of tasks in one DescribeTasks request. */
const PAGE = 100;

const ROLES = ['api', 'worker', 'scheduler'] as const;

/** @throws ServiceError `conflict`, reason `not_installed` */
export async function openEcs(definition: EcsDefinition): Promise<Services> {
  const { cluster } = definition;
  const sdk = await installed('@aws-sdk/client-ecs', import('@aws-sdk/client-ecs'));
  const client = new sdk.ECSClient(clientOptions(definition));

  const tasksOf = async (serviceName: string): Promise<RunningTask[]> => {
    const found: RunningTask[] = [];
    let nextToken: string | undefined;
    do {
      const page = await client.send(
        new sdk.ListTasksCommand({
          cluster,
          serviceName,
          desiredStatus: 'RUNNING',
          maxResults: PAGE,
          ...(nextToken !== undefined && { nextToken }),
        }),
      );
      const arns = page.taskArns ?? [];
      const { tasks = [] } =
        arns.length === 0
          ? {}
          : await client.send(new sdk.DescribeTasksCommand({ cluster, tasks: arns }));
      for (const { taskArn = '', createdAt, startedAt } of tasks) {
        found.push({
          id: taskArn,
          created_at: createdAt?.getTime() ?? 0,
          started_at: startedAt?.getTime() ?? null,
        });
      }
      nextToken = page.nextToken;
    } while (nextToken !== undefined);
    return found;
  };

  return {
    inferred_from:
      'ECS gives a task its secrets when the task starts. Which lease a task holds is therefore inferred from its creation and start times and from the times at which the leases were written; the tasks themselves were not queried.',
    async states() {
      try {
        const { services = [], failures = [] } = await client.send(
          new sdk.DescribeServicesCommand({
            cluster,
            services: ROLES.map((role) => definition[role]),
          }),
        );
        const [failure] = failures;
        if (failure !== undefined) throw noService(cluster, failure.arn ?? '');
        return await Promise.all(
          ROLES.map(async (role) => {
            const name = definition[role];
            const service = services.find(({ serviceName }) => serviceName === name);
            if (service?.status !== 'ACTIVE') throw noService(cluster, name);
            return stateOf(role, name, service, await tasksOf(name));
          }),
        );
      } catch (error) {
        throw failed(`describe the services of the ECS cluster ${cluster}`, cluster, error);
      }
    },
    async restart({ name }) {
      try {
        const command = new sdk.UpdateServiceCommand({
          cluster,
          service: name,
          forceNewDeployment: true,
        });
        const { service } = await client.send(command);
        return rolloutOf(primaryOf(service));
      } catch (error) {
        throw failed(`redeploy ${name}`, cluster, error);
      }
    },
    close: () => client.destroy(),
  };
}

function primaryOf(service: Service | undefined): Deployment | undefined {
  return service?.deployments?.find(({ status }) => status === 'PRIMARY');
}

function rolloutOf(deployment: Deployment | undefined): Rollout {
  const { id = '', createdAt } = deployment ?? {};
  return { id, began_at: createdAt?.getTime() ?? 0 };
}

function stateOf(
  role: Role,
  name: string,
  service: Service,
  tasks: readonly RunningTask[],
): ServiceState {
  const { deployments = [], desiredCount = 0, runningCount = 0 } = service;
  const primary = primaryOf(service);
  const failures = deployments.filter(({ rolloutState }) => rolloutState === 'FAILED');
  const isSteady = deployments.length === 1 && runningCount === desiredCount;
  const state =
    primary?.rolloutState === 'FAILED'
      ? 'failed'
      : // Only services with the ECS deployment controller report a rollout state.
        primary?.rolloutState === 'COMPLETED' || (!primary?.rolloutState && isSteady)
        ? 'done'
        : 'in_progress';
  return {
    role,
    name,
    rollout: { ...rolloutOf(primary), state, detail: failures[0]?.rolloutStateReason ?? null },
    failed_rollouts: failures.map(({ id = '' }) => id),
    wanted: desiredCount,
    tasks,
  };
}

function noService(cluster: string, name: string): ServiceError {
  return new ServiceError('not_found', `the ECS cluster ${cluster} has no active service ${name}`, {
    remedy: 'Correct the service names in cloud_file.',
  });
}

function failed(what: string, cluster: string, error: unknown): unknown {
  if (error instanceof ServiceError) return error;
  const { name } = error as Error;
  if (name === 'ClusterNotFoundException') {
    return new ServiceError('not_found', `the ECS cluster ${cluster} does not exist`, {
      remedy: 'Correct its name or its region in cloud_file.',
    });
  }
  return awsFailure(what, error);
}
