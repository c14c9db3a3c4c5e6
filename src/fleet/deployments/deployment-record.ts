import type { ErrorData } from '../../base/error-data.ts';
import type { ClusterState } from '../../deploy/kubernetes/cluster.ts';
import { hashSecret } from '../../identity/secrets.ts';
import type { Db, ProductionDeploymentsTable } from '../../storage/tables.ts';
import { isHeld, type Claim } from '../tasks/claim.ts';
import { appendRunEvent } from '../tasks/lifecycle.ts';
import {
  parseClusterState,
  readDeploymentState,
  type DeploymentState,
  type EndRequest,
} from './deployment-state.ts';
import { endDeployment } from './end-deployment.ts';
import type { ProductionService } from './production-service.ts';

/** The task of the deployment no longer belongs to the worker. */
export class ClaimLost extends Error {}

/**
 * The record of a production deployment in the database. Every method throws ClaimLost, without
 * writing anything, when the task no longer belongs to the worker.
 */
export class DeploymentRecord {
  readonly #service: Pick<ProductionService, 'storage' | 'clock'>;
  readonly #claim: Claim;

  constructor(service: Pick<ProductionService, 'storage' | 'clock'>, claim: Claim) {
    this.#service = service;
    this.#claim = claim;
  }

  async read(): Promise<DeploymentState> {
    const state = await readDeploymentState(this.#service.storage.read, this.#claim);
    if (state === undefined) throw new ClaimLost();
    return state;
  }

  async write(change: (tx: Db, now: number) => Promise<void>): Promise<void> {
    const { storage, clock } = this.#service;
    const isOurs = await storage.write(async (tx) => {
      if (!(await isHeld(tx, this.#claim))) return false;
      await change(tx, clock());
      return true;
    });
    if (!isOurs) throw new ClaimLost();
  }

  async end(request: EndRequest, failure?: ErrorData): Promise<void> {
    const { storage, clock } = this.#service;
    const isOurs = await storage.write((tx) =>
      endDeployment(tx, this.#claim, clock(), request, failure),
    );
    if (!isOurs) throw new ClaimLost();
  }

  /** Stores the hash of the token with which the runner must report. */
  async saveToken(token: string): Promise<void> {
    const { deployment_id } = this.#claim;
    const token_hash = hashSecret(token);
    const unclaimed = { epoch: 0, instance_id: null, claimed_until: 0 };
    const unreported = { reported_at: null, report: null, ended: null, version: null };
    await this.write(async (tx) => {
      await tx
        .insertInto('runners')
        .values({ deployment_id, token_hash, ...unclaimed, ...unreported })
        .onConflict((of) => of.column('deployment_id').doUpdateSet({ token_hash }))
        .execute();
    });
  }

  /** Adds an event only if the phase or the reason has changed. */
  async saveClusterState(state: ClusterState): Promise<void> {
    await this.write(async (tx, now) => {
      const { cluster_state, scaled_down_at } = await tx
        .selectFrom('production_deployments')
        .select(['cluster_state', 'scaled_down_at'])
        .where('deployment_id', '=', this.#claim.deployment_id)
        .executeTakeFirstOrThrow();
      const before = parseClusterState(cluster_state);
      await updateDeployment(tx, this.#claim, { cluster_state: JSON.stringify(state) });
      const hasChanged = before?.phase !== state.phase || before.reason !== state.reason;
      if (!hasChanged || state.phase === 'scaled_down' || scaled_down_at !== null) return;
      const { phase, reason, message } = state;
      const kind = reason === 'unreachable' ? 'unreachable' : phase;
      await appendRunEvent(tx, this.#claim, now, `deploy.${kind}`, { reason, message });
    });
  }
}

export async function updateDeployment(
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
