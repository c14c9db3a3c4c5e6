/** Plans of deployments, fixed at the request so that applying again gives the same objects. */
import { readBundle, getVersion } from '../registry/versions.ts';
import type { Bundle } from '../../bots/bundle.ts';
import { withChanges } from '../../bots/hosted.ts';
import type { Opening } from '../../trading/opening.ts';
import type { DeployPlan } from '../../deploy/kubernetes/manifests.ts';
import type { Db, ProductionDeploymentsTable } from '../../storage/tables.ts';
import type { ExchangeDefinition } from '../../trading/venues/exchanges-file.ts';

/** A requested deployment; it names secrets, but holds none of their values. */
export interface DeployRequest {
  readonly cluster?: string | undefined;
  readonly namespace?: string | undefined;
  readonly version?: number | undefined;
  readonly exchange?: string | undefined;
  readonly venue?: Venue | undefined;
  readonly lease_secret?: string | undefined;
  readonly params?: Readonly<Record<string, number | boolean | string>> | undefined;
}

/** Start options of a deployment; a repeated request must state them again. */
export interface DeployStart {
  /** Stops the bot's deployment in the namespace, and continues its account. */
  readonly replace?: boolean | undefined;
  /** Reason to restart the loss limits instead of continuing with the losses of the previous account. */
  readonly reset_losses?: string | undefined;
}

/** Input of a deployment task. */
export interface DeployInput extends Pick<DeployStart, 'reset_losses'> {
  readonly production: DeployRequest;
  /** Reason given by a person not to wait for open orders any longer. */
  readonly abandoned?: string | undefined;
}

export type Venue =
  | { readonly type: 'simulated' }
  | { readonly type: 'exchange'; readonly credentials_secret: string };

/** Stored plan; the files are derived from the bot version. */
export interface ProductionPlan extends Omit<DeployPlan, 'files'> {
  readonly params: NonNullable<DeployRequest['params']>;
  readonly exchange: ExchangeDefinition & { readonly name: string };
  readonly venue: Venue['type'];
}

const ROOT = '/etc/service-local';
const STATE_DIR = '/var/lib/service-local';
const HEALTH_PORT = 8080;

/**
 * Reads the whole plan of a deployment, from its stored plan and its bot version.
 * @throws ServiceError `not_found`; `bundle_tampered`.
 */
export async function readDeployPlan(
  db: Db,
  { plan: text, opening }: Pick<ProductionDeploymentsTable, 'plan' | 'opening'>,
): Promise<DeployPlan> {
  const plan = JSON.parse(text) as ProductionPlan;
  const version = await getVersion(db, plan.bot_id, plan.version);
  const files = await readBundle(db, plan.bot_id, version);
  const document = withChanges(JSON.parse(version.document), { params: plan.params });
  return toDeployPlan(plan, document, files, opening === null ? undefined : parseOpening(opening));
}

export function parseOpening(text: string): Opening {
  return JSON.parse(text) as Opening;
}

export function toDeployPlan(
  { params: _params, exchange, venue, ...plan }: ProductionPlan,
  document: unknown,
  bundle: Bundle | undefined,
  opening?: Opening,
): DeployPlan {
  const run = {
    apiVersion: 'run/v1',
    kind: 'Run',
    bot: './bot.json',
    ...(bundle && { bundle: './bundle.json' }),
    deployment_id: plan.deployment_id,
    version: plan.version,
    state_dir: STATE_DIR,
    exchange,
    venue:
      venue === 'simulated'
        ? { type: venue }
        : { type: venue, credentials_dir: `${ROOT}/credentials` },
    control: { url: plan.control_url, token_file: `${ROOT}/runner/token` },
    health: { host: '0.0.0.0', port: HEALTH_PORT },
    ...(opening && { opening }),
  };
  return {
    ...plan,
    files: {
      'run.json': textOf(run),
      'bot.json': textOf(document),
      ...(bundle && { 'bundle.json': textOf(bundle) }),
    },
  };
}

function textOf(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}
