/** Shared parts of the verbs `bots deploy …`. */
import { setTimeout as wait } from 'node:timers/promises';
import type {
  deployBot,
  getProductionDeployment,
  ProductionDeployment,
} from '../api/deployments.ts';
import type { BotDeployment, listBotDeployments } from '../api/tasks.ts';
import type { Client } from '../client/client.ts';
import type { AnswerOf, RequestOf } from '../client/route.ts';
import { ServiceError } from '../base/errors.ts';
import { findBot } from './bots.ts';
import { showItems, type Columns } from './show-items.ts';
import type { Output } from './output.ts';
import { findTask, taskFailure } from './tasks.ts';
import type { Answer, Context } from './verb.ts';

export const WAIT_OPTION = {
  description:
    'wait until the pod is ready and the runner has reported; Ctrl-C stops only the waiting',
} as const;

type Body = RequestOf<typeof deployBot>['body'];
export type Deployed = Extract<AnswerOf<typeof deployBot>, { readonly task_id: string }>;

/** Deploys a bot; with the mode `render` or `dry_run`, returns the YAML or the differences instead. */
export function requestDeployment(
  server: Client,
  bot_ref: string,
  body: Body,
): Promise<AnswerOf<typeof deployBot>> {
  return server.call<typeof deployBot>('post', '/bots/{bot_ref}/deploy', {
    params: { bot_ref },
    body,
  });
}

export function findDeployment(
  server: Client,
  bot_ref: string,
  deployment_id: string,
): Promise<ProductionDeployment> {
  return server.call<typeof getProductionDeployment>(
    'get',
    '/bots/{bot_ref}/deployments/{deployment_id}',
    { params: { bot_ref, deployment_id } },
  );
}

/** Deployments of a bot to clusters that have not ended, newest first. */
export async function findActiveDeployments(
  server: Client,
  bot_ref: string,
): Promise<readonly ProductionDeployment[]> {
  const { answer: bot } = await findBot(server, bot_ref);
  const active = bot.active_deployments.filter(({ target }) => target === 'k8s');
  return Promise.all(
    active.map(({ deployment_id }) => findDeployment(server, bot_ref, deployment_id)),
  );
}

export async function* listClusterDeployments(
  server: Client,
  bot_ref: string,
): AsyncGenerator<BotDeployment, void> {
  const path = '/bots/{bot_ref}/deployments';
  const all = server.items<typeof listBotDeployments>('get', path, { params: { bot_ref } });
  for await (const one of all) if (one.target === 'k8s') yield one;
}

/** @throws ServiceError `usage` if there are several */
export function requireSingle(
  bot_ref: string,
  active: readonly ProductionDeployment[],
): ProductionDeployment | undefined {
  if (active.length < 2) return active[0];
  const named = active.map(
    ({ task_id, cluster, namespace }) => `${task_id} (${cluster}/${namespace})`,
  );
  throw new ServiceError(
    'usage',
    `the bot ${bot_ref} has several deployments: ${named.join(', ')}`,
    {
      remedy: 'Stop the deployments you do not mean with `service-local bots deploy stop TASK`.',
    },
  );
}

const POD_COLUMNS: Columns<NonNullable<ProductionDeployment['cluster_state']>['pods'][number]> = {
  pod: ({ name }) => name,
  phase: ({ phase }) => phase,
  ready: ({ ready }) => (ready ? 'yes' : 'no'),
  restarts: ({ restarts }) => String(restarts),
  message: ({ message, reason }) => message ?? reason ?? '',
};

export function showDeployment(out: Output, deployment: ProductionDeployment): void {
  const { deployment_id, task_id, version, status, cluster, namespace, runner } = deployment;
  const { cluster_state: state, replaces, waits } = deployment;
  const rows = [
    ['deployment', deployment_id],
    ['task', task_id],
    ['version', String(version)],
    ['status', waits ? `${status}: waits for the end of ${replaces}` : status],
    ['cluster', `${cluster}, namespace ${namespace}: ${formatPhase(state)}`],
    ['runner', formatRunner(runner)],
  ];
  out.table([{ title: '' }, { title: '' }], rows);
  if (state === null || state.pods.length === 0) return;
  showItems(out, state.pods, POD_COLUMNS);
}

function formatPhase(state: ProductionDeployment['cluster_state']): string {
  if (state === null) return 'no report yet';
  const why = state.message ?? state.reason;
  if (state.reason === 'unreachable') return `unknown, ${state.phase} when last seen: ${why}`;
  return why === null ? state.phase : `${state.phase}: ${why}`;
}

function formatRunner({
  status,
  denying,
  venue,
  reported_at,
  claimed,
}: ProductionDeployment['runner']): string {
  if (status === null) return 'has not reported yet';
  const what = denying === null ? status : `${status}: ${denying}`;
  const orders = venue?.open_orders === null ? '' : `, ${venue?.open_orders} open orders`;
  return `${what}${orders}; ${claimed ? '' : 'silent since '}${reported_at}`;
}

const LOOK_AGAIN_MS = 1000;

/**
 * Follows a deployment until its pod is ready and its runner reports. Prints each change on stderr.
 * @throws ServiceError `interrupted`; the cause if the deployment ended; `failure` if the rollout
 *   timed out
 */
async function awaitRollout(
  { message, signal }: Context,
  server: Client,
  bot_ref: string,
  { deployment_id, task_id }: Pick<Deployed, 'deployment_id' | 'task_id'>,
): Promise<ProductionDeployment> {
  message(`waiting for deployment ${deployment_id}; Ctrl-C stops only the waiting`);
  let told = '';
  for (;;) {
    let now: ProductionDeployment | undefined;
    try {
      now = await findDeployment(server, bot_ref, deployment_id);
    } catch (error) {
      if (!(error instanceof ServiceError && error.retryable)) throw error;
      if (told !== error.message) message(`${error.message}; retrying until the server answers`);
      told = error.message;
    }
    if (now !== undefined) {
      const { waits, replaces, cluster_state: state, runner } = now;
      const text = waits
        ? `waiting for the end of ${replaces}`
        : `cluster: ${formatPhase(state)}; runner: ${formatRunner(runner).split(';')[0]}`;
      if (text !== told) message(text);
      told = text;
      if (now.ended_at !== null) {
        const task = await findTask(server, task_id);
        throw (
          (await taskFailure(server, task_id, task)) ??
          new ServiceError('failure', 'the deployment has ended')
        );
      }
      if (state?.phase === 'ready' && runner.claimed) return now;
      if (state?.reason === 'deadline_exceeded') {
        throw new ServiceError('failure', `the rollout timed out: ${formatPhase(state)}`, {
          reason: 'deadline_exceeded',
          remedy: `The server continues to supervise the deployment. Fix the cause, or stop it with \`service-local bots deploy stop ${bot_ref}\`.`,
        });
      }
    }
    await wait(LOOK_AGAIN_MS, undefined, { signal }).catch(() => {});
    if (signal.aborted) {
      throw new ServiceError(
        'interrupted',
        `stopped waiting; deployment ${deployment_id} continues`,
        {
          remedy: `See \`service-local bots deploy status ${bot_ref}\`.`,
        },
      );
    }
  }
}

/** Answers with the requested deployment or, after waiting, with its state. */
export async function deployedAnswer(
  context: Context,
  server: Client,
  bot_ref: string,
  deployed: Deployed,
  shouldWait: boolean,
): Promise<Answer> {
  if (shouldWait) {
    const deployment = await awaitRollout(context, server, bot_ref, deployed);
    return { data: deployment, show: (out) => showDeployment(out, deployment) };
  }
  const { deployment_id, task_id, status, version, cluster, namespace, replaces } = deployed;
  return {
    data: deployed,
    show(out) {
      const what = `version ${version} goes to ${cluster}, namespace ${namespace}`;
      out.line(`${what}: deployment ${deployment_id}, task ${task_id} is ${status}`);
      if (replaces !== null) out.line(`It starts when ${replaces} has ended.`);
      out.line(`See \`service-local bots deploy status ${bot_ref}\`.`);
    },
  };
}
