import { ServiceError } from '../../base/errors.ts';
import { CLOCK_TOLERANCE_SECONDS } from '../../lease/status.ts';
import { formatTime, parseTime } from '../../lease/time.ts';
import { checkFailure, checkSecrets, type Checked } from './check.ts';
import { isOutdated, runningService } from './in-use.ts';
import { waitForRollouts, type Awaited } from './redeploy.ts';
import { deliver, forgetIssue, plan, putKeyset, type Seeded, type Seeding } from './seed.ts';
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
  const { checked, seeded } = await renewSecrets(seeding);
  const failure = checkFailure(checked);
  if (failure) throw failure;
  const redeployed = services ? await redeployOutdated(services, checked, seeding.message) : [];
  const status = seeded ? 'renewed' : redeployed.length > 0 ? 'redeployed' : 'not_due';
  return { status, seeded, redeployed, checked };
}

async function renewSecrets(seeding: Seeding): Promise<Pick<Renewal, 'checked' | 'seeded'>> {
  const { install, store, clock, journal, message } = seeding;
  const first = await checkSecrets(install, store, clock());
  refuseDenied(first);
  if (isAsItShouldBe(first)) {
    // What a run that was broken off was issued is in the store, or was replaced since.
    await forgetIssue(journal);
    return { checked: first, seeded: undefined };
  }
  const planned = await plan(seeding);
  // By a wrong clock of this machine, a lease would be due anew each time.
  const now = parseTime(planned.issued_at)!;
  tellClock(clock(), now, message);
  const checked = await checkSecrets(install, store, now);
  if (isAsItShouldBe(checked)) return { checked, seeded: undefined };
  if (checkFailure(checked) === undefined && !lastsLonger(planned, checked)) {
    message(
      `The lease is due, but a new one would last no longer: see the contract and the plan of ${install.license_deployment_id}.`,
    );
    return { checked, seeded: undefined };
  }
  if (checked.public_key.reason === 'keyset_expired' && checked.lease.status === 'ok') {
    // A new lease would be as little use to a new container as this one.
    await putKeyset(seeding);
    return { checked: await checkSecrets(install, store, now), seeded: undefined };
  }
  const seeded = await deliver(seeding);
  return { checked: await checkSecrets(install, store, now), seeded };
}

function isAsItShouldBe({ public_key, lease }: Checked): boolean {
  return public_key.status === 'ok' && lease.status === 'ok' && lease.reason === null;
}

function refuseDenied({ public_key, lease }: Checked): void {
  const denied = [public_key, lease].find(({ status }) => status === 'denied');
  if (denied === undefined) return;
  throw new ServiceError(
    'not_allowed',
    `${denied.name} cannot be read, so that nobody knows what is due`,
    {
      reason: 'cloud_denied',
      remedy: 'Give whoever renews the policy `tasks` of `service-local cloud iam`, too.',
    },
  );
}

function tellClock(own: number, servers: number, message: (text: string) => void): void {
  if (Math.abs(own - servers) <= CLOCK_TOLERANCE_SECONDS * 1000) return;
  message(
    `The clock of this machine says ${formatTime(own)}, and that of the server ${formatTime(servers)}, which is taken to be right.`,
  );
}

type Ends = Readonly<Record<'expires_at' | 'grace_ends_at', string>>;

function lastsLonger(planned: Ends, { facts }: Checked): boolean {
  const time = (text: string): number => parseTime(text)!;
  return (['expires_at', 'grace_ends_at'] as const).some(
    (end) => facts === undefined || time(planned[end]) > time(facts[end]),
  );
}

/** @returns the names of those that were. */
async function redeployOutdated(
  services: Services,
  checked: Checked,
  message: (text: string) => void,
): Promise<string[]> {
  const outdated = async (): Promise<ServiceState[]> =>
    (await services.states()).filter((state) => isOutdated(runningService(state, checked)));
  const rollouts: Awaited[] = [];
  for (const state of await outdated()) {
    const { rollout, name } = state;
    // Begun by a run that was broken off, or by somebody else: its tasks have the new lease.
    const isUnderWay = rollout.state === 'in_progress' && rollout.began_at >= checked.since!;
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
