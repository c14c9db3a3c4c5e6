import { ServiceError } from '../../base/errors.ts';
import { CLOCK_TOLERANCE_SECONDS } from '../../lease/status.ts';
import { formatTime, parseTime } from '../../lease/time.ts';
import { checkFailure, checkSecrets, type Checked } from './check.ts';
import { isOutdated, runningService } from './in-use.ts';
import { waitForRollouts, type Awaited } from './redeploy.ts';
import { deliver, forgetIssue, plan, putKeyset, type Seeded, type Seeding } from './seed.ts';
import type { Services, ServiceState } from './services.ts';

export interface Renewal {
  /** `redeployed`: an earlier, interrupted run had already written the lease. */
  readonly status: 'not_due' | 'renewed' | 'redeployed';
  readonly seeded: Seeded | undefined;
  /** Names of the services whose tasks were replaced. */
  readonly redeployed: readonly string[];
  readonly checked: Checked;
}

/**
 * Seeds a new lease if the current one is due or invalid, redeploys the services that hold another
 * lease, and verifies both. It decides by the state of the store and the services alone, so running
 * it again resumes an interrupted run.
 *
 * @throws ServiceError as `seed` and `waitForRollouts`; `not_allowed` if the secrets cannot be read;
 * `license_invalid` or `rollout_failed` if the final check fails.
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
  assertReadable(first);
  if (isUpToDate(first)) {
    // The lease of an interrupted run is in the store or has been replaced since.
    await forgetIssue(journal);
    return { checked: first, seeded: undefined };
  }
  const planned = await plan(seeding);
  // By a wrong clock of this machine, a new lease could be due at every run.
  const now = parseTime(planned.issued_at)!;
  warnOfClockSkew(clock(), now, message);
  const checked = await checkSecrets(install, store, now);
  if (isUpToDate(checked)) return { checked, seeded: undefined };
  if (checkFailure(checked) === undefined && !lastsLonger(planned, checked)) {
    message(
      `The lease is due for renewal, but a new one would not last longer. Check the contract and the plan of the installation ${install.license_deployment_id}.`,
    );
    return { checked, seeded: undefined };
  }
  if (checked.public_key.reason === 'keyset_expired' && checked.lease.status === 'ok') {
    // A new container accepts no lease under an expired keyset, so a new lease would not help.
    await putKeyset(seeding);
    return { checked: await checkSecrets(install, store, now), seeded: undefined };
  }
  const seeded = await deliver(seeding);
  return { checked: await checkSecrets(install, store, now), seeded };
}

function isUpToDate({ public_key, lease }: Checked): boolean {
  return public_key.status === 'ok' && lease.status === 'ok' && lease.reason === null;
}

function assertReadable({ public_key, lease }: Checked): void {
  const denied = [public_key, lease].find(({ status }) => status === 'denied');
  if (denied === undefined) return;
  throw new ServiceError(
    'not_allowed',
    `cannot read ${denied.name} to find out whether renewal is due`,
    {
      reason: 'cloud_denied',
      remedy: 'Also grant yourself the policy `tasks` that `service-local cloud iam` prints.',
    },
  );
}

function warnOfClockSkew(own: number, servers: number, message: (text: string) => void): void {
  if (Math.abs(own - servers) <= CLOCK_TOLERANCE_SECONDS * 1000) return;
  message(
    `The clock of this machine shows ${formatTime(own)}, but the server reports ${formatTime(servers)}. Using the time of the server.`,
  );
}

type Ends = Readonly<Record<'expires_at' | 'grace_ends_at', string>>;

function lastsLonger(planned: Ends, { facts }: Checked): boolean {
  const time = (text: string): number => parseTime(text)!;
  return (['expires_at', 'grace_ends_at'] as const).some(
    (end) => facts === undefined || time(planned[end]) > time(facts[end]),
  );
}

/** @returns the names of the redeployed services. */
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
    // An interrupted run or another client started this rollout; its tasks have the new lease.
    const isUnderWay = rollout.state === 'in_progress' && rollout.began_at >= checked.since!;
    rollouts.push({ name, ...(isUnderWay ? rollout : await services.restart(state)) });
  }
  if (rollouts.length === 0) return [];
  await waitForRollouts(services, rollouts, message);
  const left = await outdated();
  if (left.length > 0) {
    const names = left.map(({ name }) => name).join(', ');
    throw new ServiceError('rollout_failed', `${names} still runs with another lease`, {
      remedy: 'Find out why the tasks were not replaced, then run the command again.',
    });
  }
  return rollouts.map(({ name }) => name);
}
