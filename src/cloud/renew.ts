import { ServiceError } from '../errors.ts';
import { checkFailure, checkSecrets, type Checked } from './check.ts';
import { waitForRollouts, type Awaited } from './redeploy.ts';
import { isOutdated, runningService } from './running.ts';
import { seed, type Seeded, type Seeding } from './seed.ts';
import type { Services, ServiceState } from './services.ts';

export interface Renewal {
  /** `redeployed`: a run before this one had written the lease, and was broken off. */
  readonly status: 'not_due' | 'renewed' | 'redeployed';
  readonly seeded: Seeded | undefined;
  /** Those whose tasks were replaced. */
  readonly redeployed: readonly string[];
  readonly checked: Checked;
}

/**
 * Does what is due: seeds when the lease is to be renewed or is not good, has the services that run
 * with another lease deployed anew, and verifies both. All of it follows from what the store and the
 * services say, so that a run that was broken off is gone on with.
 *
 * @throws ServiceError as `seed` and `waitForRollouts`; `not_allowed` when the secrets cannot be
 * read; `license_invalid` and `rollout_failed` when what was done did not help.
 */
export async function renew(seeding: Seeding, services: Services | undefined): Promise<Renewal> {
  const { install, store, clock, message } = seeding;
  const before = await checkSecrets(install, store, clock());
  for (const { name, status } of [before.public_key, before.lease]) {
    if (status !== 'denied') continue;
    throw new ServiceError(
      'not_allowed',
      `${name} cannot be read, so that nobody knows what is due`,
      {
        reason: 'cloud_denied',
        remedy: 'Give whoever renews the policy `tasks` of `service-local cloud iam`, too.',
      },
    );
  }
  const isDue = [before.public_key, before.lease].some(({ status }) => status !== 'ok');
  const seeded = isDue ? await seed(seeding) : undefined;
  const checked = isDue ? await checkSecrets(install, store, clock()) : before;
  const failure = checkFailure(checked);
  if (failure) throw failure;
  const redeployed = services ? await redeployOutdated(services, checked.since!, message) : [];
  const status = isDue ? 'renewed' : redeployed.length > 0 ? 'redeployed' : 'not_due';
  return { status, seeded, redeployed, checked };
}

/** @returns the names of those that were. */
async function redeployOutdated(
  services: Services,
  since: number,
  message: (text: string) => void,
): Promise<string[]> {
  const outdated = async (): Promise<ServiceState[]> =>
    (await services.states()).filter((state) =>
      isOutdated(runningService(state, { since, facts: undefined }, undefined)),
    );
  const found = await outdated();
  const rollouts: Awaited[] = [];
  for (const state of found) {
    const { rollout, name } = state;
    // Begun by a run that was broken off, or by somebody else: its tasks have the new lease.
    const isUnderWay = rollout.state === 'in_progress' && rollout.began_at >= since;
    rollouts.push({ name, ...(isUnderWay ? rollout : await services.restart(state)) });
  }
  if (rollouts.length === 0) return [];
  await waitForRollouts(services, rollouts, message);
  const left = await outdated();
  if (left.length > 0) {
    const names = left.map(({ name }) => name).join(', ');
    throw new ServiceError('rollout_failed', `${names} still runs with another lease`, {
      remedy: 'See why its tasks were not replaced, then run it again.',
    });
  }
  return rollouts.map(({ name }) => name);
}
