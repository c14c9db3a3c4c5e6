/**
 * Looks after a deployment from when it is to begin until nothing of it is left that could trade. It
 * goes by what is in the database and what the cluster says, and keeps nothing else: after a crash
 * another goes on wherever it was. Applying again changes nothing, and so does scaling down.
 */
import { ServiceError } from '../../base/errors.ts';
import { newSecret, hashSecret } from '../../identity/secrets.ts';
import type { Cluster, ClusterState } from '../../deploy/kubernetes/cluster.ts';
import { manifests, runnerSecret, type DeployPlan } from '../../deploy/kubernetes/manifests.ts';
import { requireAdopted } from '../../storage/database-identity.ts';
import type { Db, ProductionDeploymentsTable } from '../../storage/tables.ts';
import { isHeld, type Claim } from '../tasks/claim.ts';
import type { ErrorData } from '../../base/error-data.ts';
import type { ControlledDeployment, DeploymentControllers } from '../tasks/task-runner.ts';
import { toErrorData } from '../../base/error-data.ts';
import { appendDeployEvent } from './deploy.ts';
import { endDeployment } from './end-deployment.ts';
import {
  parseClusterState,
  readDeploymentState,
  decideEnd,
  type DeploymentState,
  type EndRequest,
} from './deployment-state.ts';
import { readDeployPlan, toDeployPlan, type ProductionPlan } from './production-plan.ts';
import { isSilent } from './runner-reports.ts';
import type { ProductionService } from './production-service.ts';

export interface ControllerOptions {
  /** Deployments at a time, at least 1. */
  readonly most: number;
  /** Told when another deployment may begin. */
  readonly onEnded: () => void;
  /** The first time to wait after a failure, ms; each is twice the one before. */
  readonly retryMs?: number;
}

const RETRY_MS = 1000;
const LONGEST_RETRY_MS = 30_000;

/**
 * So long after it was told to, a runner that still reports has not ended: to cancel and to tell takes
 * it half of that, and a pod that goes tells it once more.
 */
const LONGEST_END_MS = 60_000;

/** What an operator of the cluster can mend: it is tried again. */
const MENDABLE: ReadonlySet<string | undefined> = new Set([
  'namespace_missing',
  'namespace_terminating',
  'quota',
  'cluster_credentials',
]);

export function startDeploymentControllers(
  service: ProductionService,
  { most, onEnded, retryMs = RETRY_MS }: ControllerOptions,
): DeploymentControllers {
  return {
    most,
    control(claim, signal): ControlledDeployment {
      const [wishes, news] = [newNews(), newNews()];
      const wake = (): void => {
        wishes.tell();
        news.tell();
      };
      const ended = control(service, claim, signal, { wishes, news }, retryMs).then(onEnded);
      return { wake, ended };
    },
  };
}

/** That something may have changed, for one who looks when it has. */
interface News {
  readonly tell: () => void;
  /** Resolves once something was told since it resolved last, after `ms`, or with `signal`. */
  readonly next: (signal: AbortSignal, ms?: number) => Promise<void>;
}

function newNews(): News {
  let isTold = false;
  let resume: (() => void) | undefined;
  return {
    tell() {
      isTold = true;
      resume?.();
    },
    async next(signal, ms) {
      if (!isTold && !signal.aborted) {
        const { promise, resolve } = Promise.withResolvers<void>();
        resume = resolve;
        signal.addEventListener('abort', resume);
        const timer = ms === undefined ? undefined : setTimeout(resolve, ms);
        await promise;
        clearTimeout(timer);
        signal.removeEventListener('abort', resume);
        resume = undefined;
      }
      isTold = false;
    },
  };
}

/** The task is the worker's no more. */
class NotOurs extends Error {}

/** What may be in the cluster by this process, and is not known to be ours to have there. */
interface Unsettled {
  target?: Target | undefined;
}

async function control(
  service: ProductionService,
  claim: Claim,
  signal: AbortSignal,
  { wishes, news }: { readonly wishes: News; readonly news: News },
  retryMs: number,
): Promise<void> {
  let delay = retryMs;
  const unsettled: Unsettled = {};
  while (!signal.aborted) {
    const begun = performance.now();
    try {
      return await look(service, claim, signal, { news, unsettled });
    } catch (error) {
      if (signal.aborted || error instanceof NotOurs) break;
      const { deployment_id } = claim;
      const isExpected = error instanceof ServiceError;
      service.log[isExpected ? 'warn' : 'error']({
        ...(isExpected ? {} : { err: error }),
        msg: `the deployment ${deployment_id} cannot be looked after: ${(error as Error).message}`,
      });
      await showTrouble(service, claim, error).catch(() => {});
      // It had worked for a time: this is another trouble.
      if (performance.now() - begun > LONGEST_RETRY_MS) delay = retryMs;
      // Who wants it to end does not wait for that.
      await wishes.next(signal, delay);
      // The database usually returns within seconds, so an outage does not lengthen the interval.
      const isStorage = isExpected && error.code === 'storage_unavailable';
      delay = isStorage ? retryMs : Math.min(2 * delay, LONGEST_RETRY_MS);
    }
  }
  await settleLate(service, claim, unsettled).catch((error: unknown) => {
    service.log.warn({ err: error, msg: `${claim.deployment_id} may be in its cluster still` });
  });
}

/**
 * Who was held up may apply what another has ended meanwhile, or the token that another has put there
 * anew. Its pod could not trade, as no claim is granted; but it is taken away, or the token made anew.
 */
async function settleLate(
  { storage }: ProductionService,
  claim: Claim,
  { target }: Unsettled,
): Promise<void> {
  if (target === undefined) return;
  const isOver = await storage.write(async (tx) => {
    if (await isHeld(tx, claim)) return false;
    await change(tx, claim, { token_applied_at: null });
    const { ended_at } = await tx
      .selectFrom('bot_deployments')
      .select('ended_at')
      .where('deployment_id', '=', claim.deployment_id)
      .executeTakeFirstOrThrow();
    return ended_at !== null;
  });
  if (!isOver) return;
  await target.cluster.scaleDown(target.plan);
  await target.cluster.remove(target.plan);
}

/** Until it has ended. @throws whatever keeps from it. */
async function look(
  service: ProductionService,
  claim: Claim,
  signal: AbortSignal,
  { news, unsettled }: { readonly news: News; readonly unsettled: Unsettled },
): Promise<void> {
  const { storage } = service;
  const first = await known(service, claim);
  const ending = decideEnd(first);
  if (ending !== undefined && first.begun_at === null) return end(service, claim, ending);
  const cluster = service.cluster(first.cluster);
  const plan = await readDeployPlan(storage.read, first).catch((error: unknown) => {
    if (!(error instanceof ServiceError) || error.retryable) throw error;
    return error;
  });
  const target = { cluster, plan: plan instanceof ServiceError ? nameOnly(first) : plan };
  const leaving = new AbortController();
  const isOver = AbortSignal.any([signal, leaving.signal]);
  const record = keepRecord(service, claim, news);
  let watching: Promise<void> | undefined;
  try {
    for (;;) {
      const now = await known(service, claim);
      const wanted = decideEnd(now);
      const isSeen = watching !== undefined;
      if (wanted !== undefined && mayRest(now)) {
        // Only the deployment's pod has the credentials to cancel them.
        if (isGone(now, isSeen, ['missing', 'scaled_down']))
          await bringUp(service, claim, target, { known: now, unsettled });
      } else if (wanted !== undefined) {
        if (await conclude(service, claim, target, now, wanted)) return;
      } else if (isToApply(now, isSeen)) {
        // The adopted copy may have removed it from the cluster.
        await requireAdopted(storage.read);
        const failure =
          plan instanceof ServiceError
            ? toErrorData(plan).error
            : await bringUp(service, claim, target, { known: now, unsettled });
        if (failure !== undefined) {
          // Another may have had it applied meanwhile, and nobody wants that to end.
          await known(service, claim);
          const failed: EndRequest = { why: 'failed', since: service.clock() };
          if (await conclude(service, claim, target, now, failed, failure)) return;
        }
      }
      watching ??= cluster.watch(target.plan, record, isOver);
      await news.next(signal);
      if (signal.aborted) return;
    }
  } finally {
    leaving.abort();
    await watching;
  }
}

/** Enough to find it in the cluster, and to end it there. */
function nameOnly({ plan }: DeploymentState): DeployPlan {
  return toDeployPlan(JSON.parse(plan) as ProductionPlan, null, undefined);
}

interface Target {
  readonly cluster: Cluster;
  readonly plan: DeployPlan;
}

async function known({ storage }: ProductionService, claim: Claim): Promise<DeploymentState> {
  const row = await readDeploymentState(storage.read, claim);
  if (row === undefined) throw new NotOurs();
  return row;
}

/**
 * Also anew, when what was there is not any more, as when somebody has deleted it or its namespace: but
 * not beside a pod that is left of it.
 */
function isToApply(
  { applied_at, token_applied_at, cluster_state }: DeploymentState,
  isSeen: boolean,
): boolean {
  if (applied_at === null || token_applied_at === null) return true;
  return isGone({ cluster_state }, isSeen);
}

function isGone(
  { cluster_state }: Pick<DeploymentState, 'cluster_state'>,
  isSeen: boolean,
  phases: readonly ClusterState['phase'][] = ['missing'],
): boolean {
  if (!isSeen || cluster_state === null) return false;
  const { phase, reason, pods } = cluster_state;
  return phases.includes(phase) && reason !== 'unreachable' && pods.length === 0;
}

/**
 * Whether orders of the deployment may still rest at an exchange. Until a person confirms that none
 * does, the deployment must not end: no process would cancel them.
 */
function mayRest({ plan, epoch, ended, abandoned }: DeploymentState): boolean {
  const { venue } = JSON.parse(plan) as ProductionPlan;
  if (venue !== 'exchange' || (epoch ?? 0) === 0 || abandoned !== null) return false;
  return ended === null || !(ended.verified && ended.orders.every((one) => one.verified));
}

/**
 * Applies all of it: first what the runner shows to the server, as no pod can be without.
 * @returns why it never can be applied as it is; undefined when it is.
 */
async function bringUp(
  service: ProductionService,
  claim: Claim,
  target: Target,
  { known: before, unsettled }: { readonly known: DeploymentState; readonly unsettled: Unsettled },
): Promise<ErrorData | undefined> {
  const { clock } = service;
  const { cluster, plan } = target;
  const { applied_at, begun_at, token_applied_at } = before;
  const isAgain = applied_at !== null;
  try {
    await mark(service, claim, async (tx, now) => {
      await change(tx, claim, {
        begun_at: begun_at ?? now,
        ...(isAgain && { token_applied_at: null }),
      });
    });
    unsettled.target = target;
    if (token_applied_at === null || isAgain) {
      const token = newSecret();
      await mark(service, claim, (tx) => keepToken(tx, claim.deployment_id, hashSecret(token)));
      await cluster.apply([runnerSecret(plan, token)]);
      await mark(service, claim, (tx, now) => change(tx, claim, { token_applied_at: now }));
    }
    await cluster.apply(manifests(plan));
  } catch (error) {
    const isFinal =
      error instanceof ServiceError && !error.retryable && !isAgain && !MENDABLE.has(error.reason);
    if (isFinal) return toErrorData(error).error;
    throw error;
  }
  await mark(service, claim, async (tx, now) => {
    // That nothing was seen of it before says nothing of what is there now.
    const isNew = (before.cluster_state?.phase ?? 'missing') === 'missing';
    const state = isNew && { cluster_state: stateText(applied(plan, clock())) };
    await change(tx, claim, { applied_at: now, ...state });
    await appendDeployEvent(tx, claim, now, 'deploy.applied', {
      version: plan.version,
      again: isAgain,
    });
  });
  unsettled.target = undefined;
  return undefined;
}

function applied({ version }: DeployPlan, now: number): ClusterState {
  return { phase: 'progressing', message: null, reason: null, version, pods: [], observed_at: now };
}

async function keepToken(tx: Db, deployment_id: string, token_hash: string): Promise<void> {
  const nobody = { epoch: 0, instance_id: null, claimed_until: 0 };
  await tx
    .insertInto('runners')
    .values({ deployment_id, token_hash, ...nobody, reported_at: null, report: null, ended: null })
    .onConflict((of) => of.column('deployment_id').doUpdateSet({ token_hash }))
    .execute();
}

/**
 * Sees to it that no pod is left, once the runner has ended or says nothing, and ends the deployment.
 * @returns false when that is not so yet.
 */
async function conclude(
  service: ProductionService,
  claim: Claim,
  { cluster, plan }: Target,
  { epoch, reported_at, ended, begun_at, scaled_down_at }: DeploymentState,
  wanted: EndRequest,
  failure?: ErrorData,
): Promise<boolean> {
  const { clock } = service;
  const now = clock();
  const mayTell =
    !isSilent({ reported_at: reported_at ?? null }, wanted.since, now) &&
    now - wanted.since < LONGEST_END_MS;
  const hasTraded = (epoch ?? 0) > 0;
  if (hasTraded && ended === null && mayTell) return false;
  if (begun_at !== null || failure !== undefined) {
    if (scaled_down_at === null) {
      await cluster.scaleDown(plan);
      const state = await cluster.state(plan);
      await saveState(service, claim, state);
      const isDown = state.phase === 'scaled_down' || state.phase === 'missing';
      if (!isDown || state.pods.length > 0) return false;
      await mark(service, claim, async (tx, at) => {
        await change(tx, claim, { scaled_down_at: at });
        await appendDeployEvent(tx, claim, at, 'deploy.scaled_down', {});
      });
    }
    // After a halt it stays to be looked at, with nothing at work.
    if (wanted.why !== 'halt') await cluster.remove(plan);
  }
  await end(service, claim, wanted, failure);
  return true;
}

async function end(
  { storage, clock }: ProductionService,
  claim: Claim,
  wanted: EndRequest,
  failure?: ErrorData,
): Promise<void> {
  const isOurs = await storage.write((tx) => endDeployment(tx, claim, clock(), wanted, failure));
  if (!isOurs) throw new NotOurs();
}

type Mark = (tx: Db, now: number) => Promise<void>;

/** Writes what has been done, while the task is the worker's. */
async function mark(
  { storage, clock }: ProductionService,
  claim: Claim,
  write: Mark,
): Promise<void> {
  const isOurs = await storage.write(async (tx) => {
    if (!(await isHeld(tx, claim))) return false;
    await write(tx, clock());
    return true;
  });
  if (!isOurs) throw new NotOurs();
}

async function change(
  tx: Db,
  { deployment_id }: Claim,
  columns: Partial<ProductionDeploymentsTable>,
): Promise<void> {
  await tx
    .updateTable('production_deployments')
    .set(columns)
    .where('deployment_id', '=', deployment_id)
    .execute();
}

/** Keeps each state that the cluster tells; of those that come while the database is slow, the last. */
function keepRecord(
  service: ProductionService,
  claim: Claim,
  news: News,
): (state: ClusterState) => void {
  let next: ClusterState | undefined;
  let saving: Promise<void> | undefined;
  const save = async (): Promise<void> => {
    while (next !== undefined) {
      const state = next;
      next = undefined;
      await saveState(service, claim, state).catch((error: unknown) => {
        if (error instanceof NotOurs) return;
        service.log.warn({ err: error, msg: `what became of ${claim.deployment_id} is not kept` });
      });
      news.tell();
    }
    saving = undefined;
  };
  return (state) => {
    next = state;
    saving ??= save();
  };
}

/** With an event where it says something else, and not where only the time is another. */
async function saveState(
  service: ProductionService,
  claim: Claim,
  state: ClusterState,
): Promise<void> {
  await mark(service, claim, async (tx, now) => {
    const { cluster_state: text, scaled_down_at } = await tx
      .selectFrom('production_deployments')
      .select(['cluster_state', 'scaled_down_at'])
      .where('deployment_id', '=', claim.deployment_id)
      .executeTakeFirstOrThrow();
    const before = parseClusterState(text);
    await change(tx, claim, { cluster_state: stateText(state) });
    const isNews = before?.phase !== state.phase || before.reason !== state.reason;
    if (!isNews || state.phase === 'scaled_down' || scaled_down_at !== null) return;
    const { phase, reason, message } = state;
    const kind = reason === 'unreachable' ? 'unreachable' : phase;
    await appendDeployEvent(tx, claim, now, `deploy.${kind}`, { reason, message });
  });
}

function stateText(state: ClusterState): string {
  return JSON.stringify(state);
}

/** What keeps the controller from its work is to be seen where the deployment is looked at. */
async function showTrouble(
  service: ProductionService,
  claim: Claim,
  error: unknown,
): Promise<void> {
  if (!(error instanceof ServiceError) || error.code === 'storage_unavailable') return;
  const { cluster_state } = await known(service, claim);
  const before = cluster_state ?? {
    phase: 'missing',
    version: null,
    pods: [],
    observed_at: service.clock(),
  };
  const { message, code } = error;
  const reason = REASONS.find((one) => one === error.reason) ?? null;
  // Of a cluster that does not answer, or not to this server, nothing newer is known.
  const isUnseen = code === 'cluster_unavailable' || error.reason?.startsWith('cluster_') === true;
  await saveState(service, claim, {
    ...before,
    reason: isUnseen ? 'unreachable' : reason,
    message,
  });
}

const REASONS = ['namespace_missing', 'namespace_terminating', 'quota'] as const;
