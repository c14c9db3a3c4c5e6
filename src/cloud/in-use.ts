import { verifyLease } from '../lease/verify.ts';
import { checkSecrets, type Checked } from './check.ts';
import type { Install } from './cloud-file.ts';
import { factsOf, type LeaseFacts } from './manifest.ts';
import {
  outlook,
  runningService,
  type LeaseVersion,
  type Outlook,
  type RunningService,
} from './running.ts';
import type { SecretStore } from './secret-store.ts';
import type { Services } from './services.ts';

export interface InUse {
  readonly checked: Checked;
  /** That of the secret. */
  readonly lease: LeaseFacts | undefined;
  /** Undefined where it is not known what runs. */
  readonly running: readonly RunningService[] | undefined;
  readonly outlook: Outlook;
}

/**
 * Which lease is where.
 * @param now milliseconds since the Unix epoch.
 * @throws ServiceError as `SecretStore` and `Services`
 */
export async function leaseInUse(
  install: Install,
  store: SecretStore,
  services: Services | undefined,
  now: number,
): Promise<InUse> {
  const checked = await checkSecrets(install, store, now);
  const lease = checked.claims && factsOf(checked.claims);
  const states = await services?.states();
  const current = { since: checked.since ?? Infinity, facts: lease };
  const previous = states && (await previousOf(install, store, checked));
  const running = states?.map((state) => runningService(state, current, previous));
  return { checked, lease, running, outlook: outlook(checked, running) };
}

async function previousOf(
  { secrets, license_deployment_id }: Install,
  store: SecretStore,
  { keys, lease }: Checked,
): Promise<LeaseVersion | undefined> {
  if (keys === undefined || lease.status === 'denied') return undefined;
  const version = await store.previous(secrets.lease);
  if (version === undefined) return undefined;
  const verified = verifyLease(version.value, keys);
  const isOurs = verified.ok && verified.claims.deployment_id === license_deployment_id;
  return { since: version.created_at, facts: isOurs ? factsOf(verified.claims) : undefined };
}
