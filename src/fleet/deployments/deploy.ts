/** What is asked of production deployments: to begin, to show what would, and to stop. */
import { v7 as uuidv7 } from 'uuid';
import { activateDraft, getBot } from '../registry/bots.ts';
import { readBundle, getVersion } from '../registry/versions.ts';
import { codeOf } from '../../bots/bundle.ts';
import { invalidSpec, readChangedSpec } from '../../bots/hosted.ts';
import { engineConfig } from '../../bots/spec.ts';
import type { Opening } from '../../trading/opening.ts';
import { ServiceError, type Problem } from '../../base/errors.ts';
import { appendEvents } from '../../events/append.ts';
import { appendAudit, type Actor } from '../../identity/audit.ts';
import { chooseCluster, type ClusterDefinition } from '../../deploy/kubernetes/clusters-file.ts';
import type { ObjectDiff } from '../../deploy/kubernetes/cluster.ts';
import {
  manifests,
  type DeployPlan,
  type KubernetesObject,
} from '../../deploy/kubernetes/manifests.ts';
import { renderYaml } from '../../deploy/kubernetes/render.ts';
import { serializeSubjects } from '../thresholds/subjects.ts';
import { refuseUnattributed } from '../thresholds/thresholds.ts';
import { requireAdopted } from '../../storage/database-identity.ts';
import type { Db } from '../../storage/tables.ts';
import { refuseHalted } from '../tasks/halt-in-force.ts';
import { endUnattended, isUnbegun, appendRunEvent } from '../tasks/lifecycle.ts';
import { tradingProblems } from '../../bots/trading-problems.ts';
import { refuseLatched } from '../tasks/latches.ts';
import { appendSession, readSession, stateEvent } from '../tasks/session-record.ts';
import { getTask, queueTask, type Task } from '../tasks/tasks.ts';
import { chooseExchange } from '../../trading/venues/exchanges-file.ts';
import type { AccountRules } from '../../trading/opening.ts';
import type { SessionState } from '../../events/session-state.ts';
import {
  readAccountRules,
  openAfterDeployment,
  replacementProblems,
  withoutRisk,
} from './account.ts';
import {
  parseOpening,
  toDeployPlan,
  type DeployInput,
  type DeployRequest,
  type DeployStart,
  type ProductionPlan,
} from './production-plan.ts';
import type { ProductionService } from './production-service.ts';

/** A deployment that is settled, and not there yet. */
export interface PlannedDeployment {
  readonly cluster: string;
  readonly definition: ClusterDefinition;
  readonly plan: ProductionPlan;
  /** All of it, as it would be called after that deployment. */
  readonly whole: (deployment_id: string) => DeployPlan;
  /** What the account begins with when it replaces none. */
  readonly cash: number;
  /** See `serializeSubjects`. */
  readonly subjects: string;
  readonly rules: AccountRules;
}

/** What has been deployed, or is to be as soon as another has ended. */
export interface Deployed extends Pick<Task, 'task_id' | 'deployment_id' | 'status' | 'version'> {
  readonly cluster: string;
  readonly namespace: string;
  readonly replaces: string | null;
}

/**
 * Checks that a version of a bot can be deployed, and settles how.
 *
 * @throws ServiceError `not_found` for the bot, or the version; `conflict` for a cluster or an
 * exchange that this server does not know; `invalid_spec` when the parameters do not fit, a limit of
 * `risk` is not stated, or the bot does not trade; `bundle_tampered`.
 */
export async function planDeployment(
  { storage: { read }, clock, clusters, exchanges, licenseRoot, licenseProduct }: ProductionService,
  ref: string,
  request: DeployRequest,
): Promise<PlannedDeployment> {
  const { bot_id, slug, current_version } = await getBot(read, ref);
  const found = await getVersion(read, bot_id, request.version ?? current_version);
  const files = await readBundle(read, bot_id, found);
  const { params = {} } = request;
  const { document, spec, hash } = readChangedSpec(JSON.parse(found.document), { params }, files);
  const { venue = { type: 'simulated' }, lease_secret = null } = request;
  const cluster = chooseCluster(clusters, request.cluster);
  const definition = clusters[cluster]!;
  const exchange = chooseExchange(exchanges, request.exchange);
  const isReal = venue.type === 'exchange';
  const problems = [
    ...tradingProblems(spec, isReal ? exchange : null),
    ...(isReal && codeOf(files) ? [FOREIGN] : []),
  ];
  if (problems.length > 0) throw invalidSpec(problems, false);
  const { image, control_url, storage_class, access_mode, resources, egress } = definition;
  const plan: ProductionPlan = {
    deployment_id: uuidv7({ msecs: clock() }),
    bot_id,
    slug,
    version: found.version,
    spec_hash: hash,
    namespace: request.namespace ?? spec.spec.deployment?.namespace ?? definition.namespace,
    image,
    control_url,
    storage_class,
    access_mode,
    resources,
    egress,
    credentials_secret: venue.type === 'exchange' ? venue.credentials_secret : null,
    lease_secret,
    license_root: licenseRoot,
    license_product: licenseProduct,
    params,
    exchange: { name: exchange, ...exchanges[exchange]! },
    venue: venue.type,
  };
  const whole = (deployment_id: string): DeployPlan =>
    toDeployPlan({ ...plan, deployment_id }, document, files);
  const { cash } = engineConfig(spec);
  const rules = readAccountRules(spec);
  return { cluster, definition, plan, whole, cash, subjects: serializeSubjects(spec), rules };
}

/** With the credentials of an exchange in its reach, no code runs that is not this program's. */
const FOREIGN: Problem = {
  code: 'module_not_at_exchange',
  pointer: '/spec/strategy/module',
  message: 'only built-in strategies trade at an exchange; this one can with a simulated venue',
};

/**
 * The manifests as YAML, of what the bot has in that namespace of the cluster, where it has something;
 * without the runner's token, which nobody gets to see.
 */
export async function renderManifests(
  { storage }: ProductionService,
  settled: PlannedDeployment,
): Promise<string> {
  return renderYaml(await manifestsThere(storage.read, settled));
}

async function manifestsThere(
  db: Db,
  { cluster, plan, whole }: PlannedDeployment,
): Promise<readonly KubernetesObject[]> {
  const [before = plan] = await activeThere(db, { ...plan, cluster });
  return manifests(whole(before.deployment_id));
}

/**
 * How it differs from what the bot has in that namespace of the cluster, where it has something; else
 * what applying it would make.
 * @throws ServiceError as `Cluster`.
 */
export async function diffDeployment(
  { cluster: connect, storage }: ProductionService,
  settled: PlannedDeployment,
): Promise<readonly ObjectDiff[]> {
  return connect(settled.cluster).diff(await manifestsThere(storage.read, settled));
}

/**
 * Queues a deployment. A draft becomes active. What the bot has in the namespace already is told to
 * stop when this is to replace it, and this waits for its end.
 *
 * @throws ServiceError `database_not_adopted`; `conflict` for a bot that is archived, halted, latched, or deployed there already;
 *   or, at an exchange, anywhere; or that names nobody where thresholds ask for it; or that is to
 *   replace one at another venue. `invalid_spec` when it cannot continue the account of that one.
 */
export async function deploy(
  { storage, clock }: ProductionService,
  by: Actor,
  { cluster, plan, cash, subjects, rules }: PlannedDeployment,
  request: DeployRequest,
  { replace = false, reset_losses }: DeployStart = {},
): Promise<Deployed> {
  const { bot_id, version, namespace, deployment_id } = plan;
  await requireAdopted(storage.read);
  return storage.write(async (tx) => {
    const now = clock();
    await refuseHalted(tx, bot_id);
    await refuseLatched(tx, bot_id);
    await refuseUnattributed(tx, subjects);
    await activateDraft(tx, await getBot(tx, bot_id), by, now);
    const before = await activeThere(tx, { bot_id, cluster, namespace });
    if (before.length > 1 || (before.length === 1 && !replace)) {
      throw alreadyDeployed(plan.slug, before);
    }
    if (plan.venue === 'exchange') await refuseSecondTrader(tx, { plan, cluster });
    const replaced = before[0];
    if (replaced !== undefined) await refuseOtherAccount(tx, plan, rules, replaced);
    await appendAudit(tx, now, {
      actor: by,
      action: 'bots.deploy',
      target: `bot:${bot_id}`,
      details: {
        deployment_id,
        version,
        cluster,
        namespace,
        venue: plan.venue,
        replaces: replaced?.deployment_id ?? null,
        ...(reset_losses !== undefined && { reset_losses }),
      },
    });
    const waits =
      replaced !== undefined && !(await endOrAsk(tx, now, by, replaced.task_id, deployment_id));
    const input: DeployInput & Readonly<Record<string, unknown>> = {
      production: { ...request, version, cluster, namespace },
      ...(reset_losses !== undefined && { reset_losses }),
    };
    const opening = await openingNow(tx, plan, cash, { replaced, reset_losses });
    const place = { kind: 'production', bot_id, version, input, deployment_id } as const;
    const task = await queueTask(tx, now, by, place);
    const { task_id, seq: first_seq } = task;
    const state = stateBefore(cash);
    await tx
      .insertInto('trading_sessions')
      .values({
        task_id,
        bot_id,
        first_seq,
        batches: 0,
        steps: 0,
        failures: 0,
        state: JSON.stringify(state),
        recorded_at: now,
        stop_requested_at: null,
        subjects,
        latches_lifted: 0,
      })
      .execute();
    const replaces = replaced?.deployment_id ?? null;
    await tx
      .insertInto('production_deployments')
      .values({
        deployment_id,
        bot_id,
        cluster,
        namespace,
        plan: JSON.stringify(plan),
        replaces,
        waits: waits ? 1 : 0,
        opening: opening && JSON.stringify(opening),
        begun_at: null,
        token_applied_at: null,
        applied_at: null,
        scaled_down_at: null,
        cluster_state: null,
      })
      .execute();
    const { image, venue, exchange } = plan;
    const payload = {
      cluster,
      namespace,
      image,
      venue,
      exchange: exchange.name,
      replaces,
      opening,
    };
    await appendSession(tx, task, now, [
      stateEvent(task, state, now),
      { kind: 'deploy.planned', occurred_at: now, payload: { deployment_id, ...payload } },
    ]);
    return { task_id, deployment_id, status: 'queued', version, cluster, namespace, replaces };
  });
}

/**
 * Opening of the account as known now; a replacement receives the rest when the previous deployment
 * has ended.
 */
async function openingNow(
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
      `${replaced.deployment_id} trades at ${named(before)}: its account cannot be continued elsewhere`,
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

function stateBefore(cash: number): SessionState {
  const nothing = { positions: {}, working: [] };
  return { status: 'running', time: null, seq: 0, cash, equity: cash, ...nothing };
}

interface ActiveDeployment {
  readonly deployment_id: string;
  readonly task_id: string;
  readonly opening: string | null;
  readonly plan: string;
}

/** The oldest first: at most one, and one that waits for its end. */
async function activeThere(
  tx: Db,
  { bot_id, cluster, namespace }: Readonly<Record<'bot_id' | 'cluster' | 'namespace', string>>,
): Promise<readonly ActiveDeployment[]> {
  return tx
    .selectFrom('production_deployments as own')
    .innerJoin('bot_deployments as deployment', 'deployment.deployment_id', 'own.deployment_id')
    .select(['own.deployment_id', 'deployment.task_id', 'own.opening', 'own.plan'])
    .where('own.bot_id', '=', bot_id)
    .where('own.cluster', '=', cluster)
    .where('own.namespace', '=', namespace)
    .where('deployment.ended_at', 'is', null)
    .orderBy('own.waits')
    .orderBy('own.deployment_id')
    .execute();
}

function alreadyDeployed(slug: string, active: readonly ActiveDeployment[]): ServiceError {
  const ids = active.map(({ deployment_id }) => deployment_id).join(' and ');
  const isWaiting = active.length > 1;
  return new ServiceError(
    'conflict',
    `the bot ${slug} is deployed there already: ${ids}${isWaiting ? ', the one to replace the other' : ''}`,
    {
      reason: 'already_deployed',
      remedy: isWaiting
        ? `Stop the one that waits with \`service-local bots deploy stop ${slug}\`, or let it begin.`
        : 'Replace it with --replace, or stop it with `service-local bots deploy stop`.',
    },
  );
}

/**
 * Two of one bot at an exchange would trade on one account, and each would take the other's orders and
 * positions for wrong.
 */
async function refuseSecondTrader(
  tx: Db,
  { plan: { bot_id, slug, namespace }, cluster }: Pick<PlannedDeployment, 'plan' | 'cluster'>,
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
    `the bot ${slug} trades at an exchange already, by ${other.deployment_id} in the namespace ${other.namespace} of ${other.cluster}`,
    {
      reason: 'already_deployed',
      remedy: 'Stop that with `service-local bots deploy stop`, or use the simulated venue here.',
    },
  );
}

/**
 * Asks for the end of a production deployment: it is a success once its orders are known to have
 * ended and no pod is left. One that has not begun is canceled. What has ended stays as it ended.
 *
 * @param abandon reason not to wait for orders that may rest at an exchange.
 * @throws ServiceError `not_found`; `conflict` for a task that is none.
 */
export async function stopDeployment(
  { storage, clock }: Pick<ProductionService, 'storage' | 'clock'>,
  by: Actor,
  task_id: string,
  abandon?: string,
): Promise<Task> {
  return storage.write(async (tx) => {
    const task = await getTask(tx, task_id);
    if (task.kind !== 'production') throw noDeployment(task_id);
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
    await endOrAsk(tx, now, by, task_id, null);
    return getTask(tx, task_id);
  });
}

/** Lets the deployment end even if its orders are not known to have ended. */
async function abandonOrders(tx: Db, task: Task, now: number, reason: string): Promise<void> {
  const input = JSON.stringify({ ...(JSON.parse(task.input) as DeployInput), abandoned: reason });
  await tx.updateTable('tasks').set({ input }).where('task_id', '=', task.task_id).execute();
  await appendDeployEvent(tx, task, now, 'deploy.orders_abandoned', { reason });
}

/** @returns whether it has ended by that. */
async function endOrAsk(
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

function noDeployment(task_id: string): ServiceError {
  return new ServiceError('conflict', `the task ${task_id} is no production deployment`, {
    reason: 'not_production',
    remedy: `Cancel it with \`service-local tasks cancel ${task_id}\`.`,
  });
}

/** Adds an event of a deployment to the log of its bot. */
export async function appendDeployEvent(
  tx: Db,
  {
    task_id,
    bot_id,
    version,
    deployment_id,
  }: Pick<Task, 'task_id' | 'bot_id' | 'version' | 'deployment_id'>,
  now: number,
  kind: `deploy.${string}`,
  payload: Readonly<Record<string, unknown>>,
): Promise<void> {
  await appendEvents(tx, bot_id, now, [
    { kind, version, occurred_at: now, run_id: task_id, payload: { deployment_id, ...payload } },
  ]);
}
