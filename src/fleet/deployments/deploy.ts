import { ServiceError } from '../../base/errors.ts';
import { invalidSpec } from '../../bots/hosted.ts';
import { appendAudit, type Actor } from '../../identity/audit.ts';
import { requireAdopted } from '../../storage/database-identity.ts';
import type { Db } from '../../storage/tables.ts';
import type { AccountRules, Opening } from '../../trading/opening.ts';
import { activateDraft, getBot } from '../registry/bots.ts';
import { refuseHalted } from '../tasks/halt-in-force.ts';
import { refuseLatched } from '../tasks/latches.ts';
import { startSession } from '../tasks/session-record.ts';
import { queueTask, type Task } from '../tasks/tasks.ts';
import { refuseUnattributed } from '../thresholds/thresholds.ts';
import { openAfterDeployment, replacementProblems, withoutRisk } from './account.ts';
import { listActiveIn, type ActiveDeployment, type PlannedDeployment } from './plan-deployment.ts';
import {
  parseOpening,
  type DeployInput,
  type DeployRequest,
  type DeployStart,
  type ProductionPlan,
} from './production-plan.ts';
import type { ProductionService } from './production-service.ts';
import { requestEnd } from './stop-deployment.ts';

/** A queued deployment, which may wait until the one it replaces has ended. */
export interface Deployed extends Pick<Task, 'task_id' | 'deployment_id' | 'status' | 'version'> {
  readonly cluster: string;
  readonly namespace: string;
  readonly replaces: string | null;
}

/**
 * Queues a deployment. A draft becomes active. With `replace`, the bot's deployment in the namespace is
 * requested to end, and the new one waits until it has ended.
 *
 * @throws ServiceError `database_not_adopted`; `conflict` for a bot that is archived, halted, latched,
 *   already deployed in the namespace or at an exchange, lacks an attribution that thresholds require,
 *   or replaces a deployment at another venue; `invalid_spec` when it cannot continue the account of
 *   the deployment that it replaces.
 */
export async function deploy(
  { storage, clock }: ProductionService,
  by: Actor,
  planned: PlannedDeployment,
  request: DeployRequest,
  { replace = false, reset_losses }: DeployStart = {},
): Promise<Deployed> {
  const { cluster, cash, subjects } = planned;
  const { bot_id, version, namespace, deployment_id } = planned.plan;
  await requireAdopted(storage.read);
  return storage.write(async (tx) => {
    const now = clock();
    const bot = await getBot(tx, bot_id);
    await refuseHalted(tx, bot);
    await refuseLatched(tx, bot);
    await refuseUnattributed(tx, subjects);
    await activateDraft(tx, bot, by, now);
    const replaced = await findReplaced(tx, planned, replace);
    const replaces = replaced?.deployment_id ?? null;
    const reset = reset_losses !== undefined && { reset_losses };
    await auditDeployment(tx, now, by, planned, { replaces, ...reset });
    const waits =
      replaced !== undefined && !(await requestEnd(tx, now, by, replaced.task_id, deployment_id));
    const opening = await readOpening(tx, planned.plan, cash, { replaced, reset_losses });
    const input: DeployInput & Readonly<Record<string, unknown>> = {
      production: { ...request, version, cluster, namespace },
      ...reset,
    };
    const work = { kind: 'production', bot_id, version, input, deployment_id } as const;
    const task = await queueTask(tx, now, by, work);
    await insertDeployment(tx, planned, { replaces, waits, opening });
    await startSession(tx, task, now, { cash, subjects }, [
      {
        kind: 'deploy.planned',
        occurred_at: now,
        payload: plannedPayload(planned, replaces, opening),
      },
    ]);
    const { task_id } = task;
    return { task_id, deployment_id, status: 'queued', version, cluster, namespace, replaces };
  });
}

/**
 * Finds the deployment of the bot in the namespace, which the new one replaces.
 * @throws ServiceError as `deploy`
 */
async function findReplaced(
  tx: Db,
  { cluster, plan, rules }: PlannedDeployment,
  replace: boolean,
): Promise<ActiveDeployment | undefined> {
  const { bot_id, namespace } = plan;
  const before = await listActiveIn(tx, { bot_id, cluster, namespace });
  if (before.length > 1 || (before.length === 1 && !replace)) {
    throw alreadyDeployed(plan.slug, before);
  }
  if (plan.venue === 'exchange') await refuseSecondTrader(tx, plan, cluster);
  const [replaced] = before;
  if (replaced !== undefined) await refuseOtherAccount(tx, plan, rules, replaced);
  return replaced;
}

async function auditDeployment(
  tx: Db,
  now: number,
  by: Actor,
  { cluster, plan }: PlannedDeployment,
  start: { readonly replaces: string | null } & DeployStart,
): Promise<void> {
  const { bot_id, deployment_id, version, namespace, venue } = plan;
  await appendAudit(tx, now, {
    actor: by,
    action: 'bots.deploy',
    target: `bot:${bot_id}`,
    details: { deployment_id, version, cluster, namespace, venue, ...start },
  });
}

async function insertDeployment(
  tx: Db,
  { cluster, plan }: PlannedDeployment,
  start: {
    readonly replaces: string | null;
    readonly waits: boolean;
    readonly opening: Opening | null;
  },
): Promise<void> {
  const { bot_id, namespace, deployment_id } = plan;
  await tx
    .insertInto('production_deployments')
    .values({
      deployment_id,
      bot_id,
      cluster,
      namespace,
      plan: JSON.stringify(plan),
      replaces: start.replaces,
      waits: start.waits ? 1 : 0,
      opening: start.opening && JSON.stringify(start.opening),
      ...NOT_APPLIED,
    })
    .execute();
}

/** Payload of the event `deploy.planned`. */
function plannedPayload(
  { cluster, plan }: PlannedDeployment,
  replaces: string | null,
  opening: Opening | null,
): Readonly<Record<string, unknown>> {
  const { deployment_id, namespace, image, venue, exchange } = plan;
  const place = { cluster, namespace, image, venue, exchange: exchange.name };
  return { deployment_id, ...place, replaces, opening };
}

const NOT_APPLIED = {
  begun_at: null,
  token_applied_at: null,
  applied_at: null,
  scaled_down_at: null,
  cluster_state: null,
} as const;

/**
 * Opening of the account as known now. A replacement receives the final one when the deployment that
 * it replaces has ended.
 */
async function readOpening(
  tx: Db,
  plan: ProductionPlan,
  cash: number,
  { replaced, reset_losses }: { replaced: ActiveDeployment | undefined } & DeployStart,
): Promise<Opening | null> {
  if (replaced === undefined) {
    return reset_losses === undefined ? openAfterDeployment(tx, plan, cash) : null;
  }
  // If the replaced deployment has not begun, its own opening applies.
  const opening = replaced.opening === null ? null : parseOpening(replaced.opening);
  return reset_losses === undefined ? opening : withoutRisk(opening);
}

/** Rejects a replacement that cannot continue the account, before anything is stopped. */
async function refuseOtherAccount(
  tx: Db,
  { venue, exchange }: ProductionPlan,
  rules: AccountRules,
  replaced: ActiveDeployment,
): Promise<void> {
  const before = JSON.parse(replaced.plan) as ProductionPlan;
  const isSameVenue =
    before.venue === venue && (venue === 'simulated' || before.exchange.name === exchange.name);
  if (!isSameVenue) {
    const named = ({ venue: type, exchange: { name } }: ProductionPlan): string =>
      type === 'simulated' ? 'a simulated venue' : name;
    throw new ServiceError(
      'conflict',
      `the account of ${replaced.deployment_id} at ${named(before)} cannot be continued elsewhere`,
      {
        reason: 'other_venue',
        remedy:
          'Stop that deployment with `service-local bots deploy stop`, and deploy without --replace.',
      },
    );
  }
  const problems = await replacementProblems(tx, replaced.task_id, rules);
  if (problems.length > 0) throw invalidSpec(problems, false);
}

function alreadyDeployed(slug: string, active: readonly ActiveDeployment[]): ServiceError {
  const ids = active.map(({ deployment_id }) => deployment_id).join(' and ');
  const isWaiting = active.length > 1;
  return new ServiceError(
    'conflict',
    `bot ${slug} is already deployed in this namespace: ${ids}${isWaiting ? ', which waits to replace it' : ''}`,
    {
      reason: 'already_deployed',
      remedy: isWaiting
        ? `Stop the waiting deployment with \`service-local bots deploy stop ${slug}\`, or wait until it starts.`
        : 'Replace it with --replace, or stop it with `service-local bots deploy stop`.',
    },
  );
}

/**
 * Two deployments of one bot at an exchange would share an account, and each would report the orders
 * and positions of the other as mismatches.
 */
async function refuseSecondTrader(
  tx: Db,
  { bot_id, slug, namespace }: ProductionPlan,
  cluster: string,
): Promise<void> {
  const active = await tx
    .selectFrom('production_deployments as own')
    .innerJoin('bot_deployments as deployment', 'deployment.deployment_id', 'own.deployment_id')
    .select(['own.deployment_id', 'own.cluster', 'own.namespace', 'own.plan'])
    .where('own.bot_id', '=', bot_id)
    .where('deployment.ended_at', 'is', null)
    .execute();
  const other = active.find(
    (one) =>
      (one.cluster !== cluster || one.namespace !== namespace) &&
      (JSON.parse(one.plan) as ProductionPlan).venue === 'exchange',
  );
  if (other === undefined) return;
  throw new ServiceError(
    'conflict',
    `bot ${slug} already trades at an exchange, with deployment ${other.deployment_id} in namespace ${other.namespace} of cluster ${other.cluster}`,
    {
      reason: 'already_deployed',
      remedy:
        'Stop that deployment with `service-local bots deploy stop`, or use the simulated venue here.',
    },
  );
}
