/** Plans of production deployments, and what they would change in a cluster. */
import { v7 as uuidv7 } from 'uuid';
import type { Problem } from '../../base/errors.ts';
import { codeOf } from '../../bots/bundle.ts';
import { invalidSpec, readChangedSpec } from '../../bots/hosted.ts';
import { engineConfig } from '../../bots/spec.ts';
import { tradingProblems } from '../../bots/trading-problems.ts';
import type { ObjectDiff } from '../../deploy/kubernetes/cluster.ts';
import { chooseCluster, type ClusterDefinition } from '../../deploy/kubernetes/clusters-file.ts';
import {
  manifests,
  type DeployPlan,
  type KubernetesObject,
} from '../../deploy/kubernetes/manifests.ts';
import { renderYaml } from '../../deploy/kubernetes/render.ts';
import type { Db } from '../../storage/tables.ts';
import type { AccountRules } from '../../trading/opening.ts';
import { chooseExchange } from '../../trading/venues/exchanges-file.ts';
import { getBot } from '../registry/bots.ts';
import { getVersion, readBundle } from '../registry/versions.ts';
import { serializeSubjects } from '../thresholds/subjects.ts';
import { readAccountRules } from './account.ts';
import { toDeployPlan, type DeployRequest, type ProductionPlan } from './production-plan.ts';
import type { ProductionService } from './production-service.ts';

export interface PlannedDeployment {
  readonly cluster: string;
  readonly definition: ClusterDefinition;
  readonly plan: ProductionPlan;
  /** The whole plan, with names for a deployment id. */
  readonly toPlan: (deployment_id: string) => DeployPlan;
  /** Cash of the account, unless the deployment continues another account. */
  readonly cash: number;
  readonly subjects: string;
  readonly rules: AccountRules;
}

/**
 * Checks that a version of a bot can be deployed, and plans its deployment.
 *
 * @throws ServiceError `not_found` for the bot or the version; `conflict` for a cluster or an exchange
 * that this server does not know; `invalid_spec` for invalid parameters, a missing limit in `risk`, or
 * a bot that does not trade; `bundle_tampered`.
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
    ...(isReal && codeOf(files) ? [CUSTOM_CODE] : []),
  ];
  if (problems.length > 0) throw invalidSpec(problems, false);
  const { image, control_url, storage_class, access_mode, resources, egress } = definition;
  const { otlp_endpoint } = definition;
  const plan: ProductionPlan = {
    deployment_id: uuidv7({ msecs: clock() }),
    bot_id,
    slug,
    version: found.version,
    spec_hash: hash,
    namespace: request.namespace ?? spec.spec.deployment?.namespace ?? definition.namespace,
    image,
    control_url,
    otlp_endpoint,
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
  const toPlan = (deployment_id: string): DeployPlan =>
    toDeployPlan({ ...plan, deployment_id }, document, files);
  const { cash } = engineConfig(spec);
  const rules = readAccountRules(spec);
  return { cluster, definition, plan, toPlan, cash, subjects: serializeSubjects(spec), rules };
}

/** Custom code could use the credentials of the exchange, so it never runs beside them. */
const CUSTOM_CODE: Problem = {
  code: 'module_not_at_exchange',
  pointer: '/spec/strategy/module',
  message:
    'a strategy of your own cannot trade at an exchange; use a built-in strategy or the simulated venue',
};

/**
 * Returns the manifests as YAML, without the runner's token. If the bot already has a deployment in the
 * namespace, the objects have its names.
 */
export async function renderManifests(
  { storage }: ProductionService,
  planned: PlannedDeployment,
): Promise<string> {
  return renderYaml(await listManifests(storage.read, planned));
}

async function listManifests(
  db: Db,
  { cluster, plan, toPlan }: PlannedDeployment,
): Promise<readonly KubernetesObject[]> {
  const [before = plan] = await listActiveIn(db, { ...plan, cluster });
  return manifests(toPlan(before.deployment_id));
}

/**
 * Compares the manifests with the objects in the cluster.
 * @throws ServiceError as `Cluster`.
 */
export async function diffDeployment(
  { cluster: connect, storage }: ProductionService,
  planned: PlannedDeployment,
): Promise<readonly ObjectDiff[]> {
  return connect(planned.cluster).diff(await listManifests(storage.read, planned));
}

export interface ActiveDeployment {
  readonly deployment_id: string;
  readonly task_id: string;
  readonly opening: string | null;
  readonly plan: string;
}

/** At most two: the running deployment, and one that waits to replace it. */
export async function listActiveIn(
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
