/**
 * Controls production deployments: each from its start until none of its pods can trade.
 * A controller keeps no state besides the database and the cluster, and its steps can be repeated, so
 * that after a crash another worker continues.
 */
import { toErrorData, type ErrorData } from '../../base/error-data.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Cluster, ClusterState } from '../../deploy/kubernetes/cluster.ts';
import { manifests, runnerSecret, type DeployPlan } from '../../deploy/kubernetes/manifests.ts';
import { newSecret } from '../../identity/secrets.ts';
import { requireAdopted } from '../../storage/database-identity.ts';
import { isHeld, type Claim } from '../tasks/claim.ts';
import type { DeploymentControllers } from '../tasks/task-runner.ts';
import { appendRunEvent } from '../tasks/lifecycle.ts';
import { inTaskSpan } from '../tasks/task-spans.ts';
import { ClaimLost, DeploymentRecord, updateDeployment } from './deployment-record.ts';
import { decideEnd, type DeploymentState, type EndRequest } from './deployment-state.ts';
import { readDeployPlan, toDeployPlan, type ProductionPlan } from './production-plan.ts';
import type { ProductionService } from './production-service.ts';
import { isSilent } from './runner-reports.ts';
import { Wakeup } from './wakeup.ts';

export interface ControllerOptions {
  /** Number of simultaneous deployments, at least 1. */
  readonly most: number;
  /** Called after each deployment, when another may start. */
  readonly onEnded: () => void;
  /** First wait after a failure, ms; doubles with each further failure. */
  readonly retryMs?: number;
}

const RETRY_MS = 1000;
const LONGEST_RETRY_MS = 30_000;

/**
 * Time after a request to end that a reporting runner has to end. Canceling orders and reporting take
 * up to half of it, and a terminating pod repeats them.
 */
const LONGEST_END_MS = 60_000;

/** Reasons that an operator of the cluster can correct, so that applying is repeated. */
const CORRECTABLE: ReadonlySet<string | undefined> = new Set([
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
    control(claim, signal) {
      const controller = new DeploymentController(service, claim, signal, retryMs);
      const run = inTaskSpan(claim, () => controller.run());
      return { wake: () => controller.wake(), ended: run.then(onEnded) };
    },
  };
}

interface Target {
  readonly cluster: Cluster;
  readonly plan: DeployPlan;
}

class DeploymentController {
  readonly #service: ProductionService;
  readonly #claim: Claim;
  readonly #record: DeploymentRecord;
  readonly #signal: AbortSignal;
  readonly #retryMs: number;
  /** Ends the wait after a failure when a person or a halt requests the end of the deployment. */
  readonly #requests = new Wakeup();
  readonly #changes = new Wakeup();
  /** Set while objects are applied, as another worker may claim the task in the meantime. */
  #unsettled: Target | undefined;
  #unsavedState: ClusterState | undefined;
  #saving: Promise<void> | undefined;

  constructor(service: ProductionService, claim: Claim, signal: AbortSignal, retryMs: number) {
    this.#service = service;
    this.#claim = claim;
    this.#record = new DeploymentRecord(service, claim);
    this.#signal = signal;
    this.#retryMs = retryMs;
  }

  wake(): void {
    this.#requests.wake();
    this.#changes.wake();
  }

  /** Repeats after failures until the deployment has ended or belongs to another worker. */
  async run(): Promise<void> {
    const { log } = this.#service;
    const { deployment_id } = this.#claim;
    let delay = this.#retryMs;
    while (!this.#signal.aborted) {
      const startedAt = performance.now();
      try {
        return await this.#controlUntilEnd();
      } catch (error) {
        if (this.#signal.aborted || error instanceof ClaimLost) break;
        const isExpected = error instanceof ServiceError;
        log[isExpected ? 'warn' : 'error']({
          ...(isExpected ? {} : { err: error }),
          msg: `the deployment ${deployment_id} cannot be controlled: ${(error as Error).message}`,
        });
        await this.#saveFailure(error).catch(() => {});
        // A failure after a long success is a new one.
        if (performance.now() - startedAt > LONGEST_RETRY_MS) delay = this.#retryMs;
        await this.#requests.next(this.#signal, delay);
        // The database usually returns within seconds, so an outage does not lengthen the interval.
        const isStorage = isExpected && error.code === 'storage_unavailable';
        delay = isStorage ? this.#retryMs : Math.min(2 * delay, LONGEST_RETRY_MS);
      }
    }
    await this.#removeLateObjects().catch((error: unknown) => {
      log.warn({ err: error, msg: `objects of ${deployment_id} may be left in its cluster` });
    });
  }

  /**
   * A delayed worker may apply objects after another worker has ended the deployment or replaced its
   * token. The pod could not trade, because no claim is granted, but the objects must go, and a
   * running deployment needs a new token.
   */
  async #removeLateObjects(): Promise<void> {
    if (this.#unsettled === undefined) return;
    const { cluster, plan } = this.#unsettled;
    const hasEnded = await this.#service.storage.write(async (tx) => {
      if (await isHeld(tx, this.#claim)) return false;
      await updateDeployment(tx, this.#claim, { token_applied_at: null });
      const { ended_at } = await tx
        .selectFrom('bot_deployments')
        .select('ended_at')
        .where('deployment_id', '=', this.#claim.deployment_id)
        .executeTakeFirstOrThrow();
      return ended_at !== null;
    });
    if (!hasEnded) return;
    await cluster.scaleDown(plan);
    await cluster.remove(plan);
  }

  async #controlUntilEnd(): Promise<void> {
    const first = await this.#record.read();
    const request = decideEnd(first);
    if (request !== undefined && first.begun_at === null) return this.#record.end(request);
    const cluster = this.#service.cluster(first.cluster);
    const plan = await readDeployPlan(this.#service.storage.read, first).catch((error: unknown) => {
      if (!(error instanceof ServiceError) || error.retryable) throw error;
      return error;
    });
    const isBroken = plan instanceof ServiceError;
    const target = { cluster, plan: isBroken ? nameOnly(first) : plan };
    const leaving = new AbortController();
    const isOver = AbortSignal.any([this.#signal, leaving.signal]);
    let watching: Promise<void> | undefined;
    try {
      for (;;) {
        const failure = isBroken ? toErrorData(plan).error : undefined;
        if (await this.#step(target, watching !== undefined, failure)) return;
        watching ??= cluster.watch(target.plan, (state) => this.#saveLater(state), isOver);
        await this.#changes.next(this.#signal);
        if (this.#signal.aborted) return;
      }
    } finally {
      leaving.abort();
      await watching;
    }
  }

  /** @returns whether the deployment has ended. */
  async #step(target: Target, isWatched: boolean, planFailure?: ErrorData): Promise<boolean> {
    const state = await this.#record.read();
    const request = decideEnd(state);
    if (request !== undefined && mayHaveOrders(state)) {
      // Only the deployment's pod has the credentials to cancel them.
      const hasNoPod = isGone(state, isWatched, ['missing', 'scaled_down']);
      // Without its newest token, the pod does not get the request to cancel them.
      if (hasNoPod || state.token_applied_at === null) await this.#apply(target, state);
      return false;
    }
    if (request !== undefined) return this.#conclude(target, state, request);
    if (!isToApply(state, isWatched)) return false;
    // A server of the adopted copy may have removed the deployment from the cluster.
    await requireAdopted(this.#service.storage.read);
    const failure = planFailure ?? (await this.#apply(target, state));
    if (failure === undefined) return false;
    // Another worker may have applied it in the meantime; then the deployment must not fail.
    await this.#record.read();
    const failed: EndRequest = { why: 'failed', since: this.#service.clock() };
    return this.#conclude(target, state, failed, failure);
  }

  /**
   * Applies all objects: first the Secret with the runner's token, without which no pod can start.
   * @returns why the objects can never be applied; undefined when they were applied.
   */
  async #apply(target: Target, before: DeploymentState): Promise<ErrorData | undefined> {
    const claim = this.#claim;
    const record = this.#record;
    const { cluster, plan } = target;
    const { applied_at, begun_at, token_applied_at } = before;
    const isAgain = applied_at !== null;
    try {
      await record.write((tx, now) =>
        updateDeployment(tx, claim, {
          begun_at: begun_at ?? now,
          ...(isAgain && { token_applied_at: null }),
        }),
      );
      this.#unsettled = target;
      if (token_applied_at === null || isAgain) {
        const token = newSecret();
        await record.saveToken(token);
        await cluster.apply([runnerSecret(plan, token)]);
        await record.write((tx, now) => updateDeployment(tx, claim, { token_applied_at: now }));
      }
      await cluster.apply(manifests(plan));
    } catch (error) {
      const isFinal =
        error instanceof ServiceError &&
        !error.retryable &&
        !isAgain &&
        !CORRECTABLE.has(error.reason);
      if (isFinal) return toErrorData(error).error;
      throw error;
    }
    await record.write(async (tx, now) => {
      // The recorded phase `missing` was observed before the objects were applied.
      const isNew = (before.cluster_state?.phase ?? 'missing') === 'missing';
      const cluster_state = JSON.stringify(appliedState(plan, this.#service.clock()));
      await updateDeployment(tx, claim, { applied_at: now, ...(isNew && { cluster_state }) });
      const { version } = plan;
      await appendRunEvent(tx, claim, now, 'deploy.applied', { version, again: isAgain });
    });
    this.#unsettled = undefined;
    return undefined;
  }

  /**
   * Ends the deployment once its runner has ended or is silent, and no pod is left.
   * @returns whether it has ended.
   */
  async #conclude(
    { cluster, plan }: Target,
    { epoch, reported_at, ended, begun_at, scaled_down_at }: DeploymentState,
    request: EndRequest,
    failure?: ErrorData,
  ): Promise<boolean> {
    const now = this.#service.clock();
    const mayReport =
      !isSilent({ reported_at: reported_at ?? null }, request.since, now) &&
      now - request.since < LONGEST_END_MS;
    const hasTraded = (epoch ?? 0) > 0;
    if (hasTraded && ended === null && mayReport) return false;
    if (begun_at !== null || failure !== undefined) {
      if (scaled_down_at === null) {
        await cluster.scaleDown(plan);
        const state = await cluster.state(plan);
        await this.#record.saveClusterState(state);
        const isDown = state.phase === 'scaled_down' || state.phase === 'missing';
        if (!isDown || state.pods.length > 0) return false;
        await this.#record.write(async (tx, at) => {
          await updateDeployment(tx, this.#claim, { scaled_down_at: at });
          await appendRunEvent(tx, this.#claim, at, 'deploy.scaled_down', {});
        });
      }
      // After a halt the objects stay for inspection, without a pod.
      if (request.why !== 'halt') await cluster.remove(plan);
    }
    await this.#record.end(request, failure);
    return true;
  }

  /** Saves the latest state of the cluster; skips states that follow each other during a write. */
  #saveLater(state: ClusterState): void {
    this.#unsavedState = state;
    this.#saving ??= this.#saveStates();
  }

  async #saveStates(): Promise<void> {
    while (this.#unsavedState !== undefined) {
      const state = this.#unsavedState;
      this.#unsavedState = undefined;
      await this.#record.saveClusterState(state).catch((error: unknown) => {
        if (error instanceof ClaimLost) return;
        this.#service.log.warn({
          err: error,
          msg: `the cluster state of ${this.#claim.deployment_id} cannot be saved`,
        });
      });
      this.#changes.wake();
    }
    this.#saving = undefined;
  }

  /** Shows in the status of the deployment why it cannot be controlled. */
  async #saveFailure(error: unknown): Promise<void> {
    if (!(error instanceof ServiceError) || error.code === 'storage_unavailable') return;
    const { cluster_state } = await this.#record.read();
    const before = cluster_state ?? {
      phase: 'missing',
      version: null,
      pods: [],
      observed_at: this.#service.clock(),
    };
    const { message, code } = error;
    const reason = NAMESPACE_REASONS.find((one) => one === error.reason) ?? null;
    // The last observed state may be outdated if the cluster did not answer or rejected this server.
    const isUnseen =
      code === 'cluster_unavailable' || error.reason?.startsWith('cluster_') === true;
    await this.#record.saveClusterState({
      ...before,
      reason: isUnseen ? 'unreachable' : reason,
      message,
    });
  }
}

const NAMESPACE_REASONS = ['namespace_missing', 'namespace_terminating', 'quota'] as const;

/** A plan without files, which is enough to find the objects in the cluster and end them. */
function nameOnly({ plan }: DeploymentState): DeployPlan {
  return toDeployPlan(JSON.parse(plan) as ProductionPlan, null, undefined);
}

/** Whether the objects must be applied, for the first time or because a person deleted them. */
function isToApply(state: DeploymentState, isWatched: boolean): boolean {
  if (state.applied_at === null || state.token_applied_at === null) return true;
  return isGone(state, isWatched);
}

/** Whether the cluster has been observed and has no pod of the deployment. */
function isGone(
  { cluster_state }: DeploymentState,
  isWatched: boolean,
  phases: readonly ClusterState['phase'][] = ['missing'],
): boolean {
  if (!isWatched || cluster_state === null) return false;
  const { phase, reason, pods } = cluster_state;
  return phases.includes(phase) && reason !== 'unreachable' && pods.length === 0;
}

/**
 * Whether the deployment may have open orders at an exchange. Until a person confirms that it has
 * none, it must not end: no process would cancel them.
 */
function mayHaveOrders({ plan, epoch, ended, abandoned }: DeploymentState): boolean {
  const { venue } = JSON.parse(plan) as ProductionPlan;
  if (venue !== 'exchange' || (epoch ?? 0) === 0 || abandoned !== null) return false;
  return ended === null || !(ended.verified && ended.orders.every((one) => one.verified));
}

function appliedState({ version }: DeployPlan, now: number): ClusterState {
  return { phase: 'progressing', message: null, reason: null, version, pods: [], observed_at: now };
}
