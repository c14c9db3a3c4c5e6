import { parseTime } from '../../lease/time.ts';
import { checkSecrets, isUsable, type Checked } from './check.ts';
import type { Install } from './cloud-file.ts';
import type { LeaseFacts } from './manifest.ts';
import type { SecretStore } from './secret-store.ts';
import type { RunningTask, Services, ServiceState } from './services.ts';

export interface InUse {
  readonly checked: Checked;
  /** Undefined if cloud_file lists no services. */
  readonly running: readonly RunningService[] | undefined;
  readonly outlook: Outlook;
}

/**
 * Determines which lease the store and each service hold.
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
  const states = await services?.states();
  const running = states?.map((state) => runningService(state, checked));
  return { checked, running, outlook: outlook(checked, running) };
}

/**
 * The version of the lease that a task started with. `older` precedes the known versions. `unclear`
 * means that the current one was written while the task started, or at an unknown time.
 */
type Holds = 'current' | 'previous' | 'older' | 'unclear';

function holdsOf(
  { created_at, started_at }: RunningTask,
  current: number | undefined,
  previous: number | undefined,
): Holds {
  if (current === undefined) return 'unclear';
  if (created_at >= current) return 'current';
  if (started_at === null || started_at >= current) return 'unclear';
  return previous !== undefined && created_at >= previous ? 'previous' : 'older';
}

export interface RunningService {
  readonly role: string;
  readonly name: string;
  readonly rollout: ServiceState['rollout']['state'];
  readonly tasks: Readonly<Record<Holds | 'wanted', number>>;
  /** The first lease to end among the leases of the tasks; null if any of them is unknown. */
  readonly lease_id: string | null;
  readonly grace_ends_at: string | null;
}

export function runningService(
  { role, name, rollout, wanted, tasks }: ServiceState,
  { since, facts, previous }: Pick<Checked, 'since' | 'facts' | 'previous'>,
): RunningService {
  const held = tasks.map((task) => holdsOf(task, since, previous?.since));
  const count = (holds: Holds): number => held.filter((each) => each === holds).length;
  const counts = {
    wanted,
    current: count('current'),
    previous: count('previous'),
    older: count('older'),
    unclear: count('unclear'),
  };
  const leases = [
    ...(counts.current > 0 ? [facts] : []),
    ...(counts.previous > 0 ? [previous?.facts] : []),
    ...(counts.older + counts.unclear > 0 ? [undefined] : []),
  ];
  const first = firstToEnd(leases);
  return {
    role,
    name,
    rollout: rollout.state,
    tasks: counts,
    lease_id: first?.lease_id ?? null,
    grace_ends_at: first?.grace_ends_at ?? null,
  };
}

/** Null if a lease is unknown or the list is empty. */
function firstToEnd<T extends Pick<LeaseFacts, 'grace_ends_at'>>(
  leases: readonly (T | undefined)[],
): T | null {
  const known = leases.filter((facts) => facts !== undefined);
  if (known.length < leases.length) return null;
  const ends = ({ grace_ends_at }: T): number => parseTime(grace_ends_at)!;
  return known.sort((a, b) => ends(a) - ends(b))[0] ?? null;
}

function isRunning({ current, previous, older, unclear }: RunningService['tasks']): boolean {
  return current + previous + older + unclear > 0;
}

/** Whether any task may hold a lease other than the current one. */
export function isOutdated({ tasks }: RunningService): boolean {
  return tasks.previous + tasks.older + tasks.unclear > 0;
}

/** The next step of the operator; `wait` for a rollout that is in progress. */
export type Action = 'none' | 'wait' | 'redeploy' | 'renew';

export interface Outlook {
  readonly action: Action;
  /**
   * Time at which the first running or newly started task loses its license if nothing is done. Null
   * if the lease of a service is unknown, or if tasks that start now have no license.
   */
  readonly act_by: string | null;
}

/** @param services undefined if cloud_file lists no services. */
function outlook(checked: Checked, services: readonly RunningService[] | undefined = []): Outlook {
  if (!isUsable(checked)) return { action: 'renew', act_by: null };
  const running = services.filter(({ tasks }) => isRunning(tasks));
  const ends = ({ grace_ends_at: end }: RunningService) =>
    end === null ? undefined : { grace_ends_at: end };
  const first = firstToEnd([checked.facts, ...running.map(ends)]);
  const action =
    checked.lease.status !== 'ok'
      ? 'renew'
      : running.some((each) => isOutdated(each) && each.rollout !== 'in_progress')
        ? 'redeploy'
        : services.some(({ rollout }) => rollout === 'in_progress')
          ? 'wait'
          : 'none';
  return { action, act_by: first?.grace_ends_at ?? null };
}
