import { parseTime } from '../lease/time.ts';
import { isUsable, type Checked } from './check.ts';
import { factsOf, type LeaseFacts } from './manifest.ts';
import type { RunningTask, ServiceState } from './services.ts';

/** When a version of the lease became the current one (ms since the epoch), and what it is. */
export interface LeaseVersion {
  readonly since: number;
  /** Undefined where it does not verify. */
  readonly facts: LeaseFacts | undefined;
}

/**
 * Which version a task was started with. `older`: one before those that are known. `unclear`: the
 * current one was written while the task was being started.
 */
type Holds = 'current' | 'previous' | 'older' | 'unclear';

function holdsOf(
  { created_at, started_at }: RunningTask,
  current: number,
  previous: number | undefined,
): Holds {
  if (created_at >= current) return 'current';
  if (started_at === null || started_at >= current) return 'unclear';
  return previous !== undefined && created_at >= previous ? 'previous' : 'older';
}

/** What a service runs with. */
export interface RunningService {
  readonly role: string;
  readonly name: string;
  readonly rollout: ServiceState['rollout']['state'];
  readonly tasks: Readonly<Record<Holds | 'wanted', number>>;
  /** The lease that ends first among those that its tasks hold; null where one is not known. */
  readonly lease_id: string | null;
  readonly grace_ends_at: string | null;
}

export function runningService(
  { role, name, rollout, wanted, tasks }: ServiceState,
  current: LeaseVersion,
  previous: LeaseVersion | undefined,
): RunningService {
  const held = tasks.map((task) => holdsOf(task, current.since, previous?.since));
  const count = (holds: Holds): number => held.filter((each) => each === holds).length;
  const counts = {
    wanted,
    current: count('current'),
    previous: count('previous'),
    older: count('older'),
    unclear: count('unclear'),
  };
  const leases = [
    ...(counts.current > 0 ? [current.facts] : []),
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

/** Null when one of them is not known, or there is none. */
function firstToEnd<T extends Pick<LeaseFacts, 'grace_ends_at'>>(
  leases: readonly (T | undefined)[],
): T | null {
  const known = leases.filter((facts) => facts !== undefined);
  if (known.length < leases.length) return null;
  const ends = ({ grace_ends_at }: T): number => parseTime(grace_ends_at)!;
  return known.sort((a, b) => ends(a) - ends(b))[0] ?? null;
}

/** Whether it runs with anything but the current lease. */
export function isOutdated({ tasks }: RunningService): boolean {
  return tasks.previous + tasks.older + tasks.unclear > 0;
}

/** What somebody has to do: `wait` for a rollout that is under way. */
export type Action = 'none' | 'wait' | 'redeploy' | 'renew' | 'seed';

export interface Outlook {
  readonly action: Action;
  /**
   * Until when all that runs works, if nobody does anything; null where that is not known, or
   * nothing runs that works.
   */
  readonly act_by: string | null;
}

/** @param services undefined where it is not known what runs. */
export function outlook(
  { public_key, lease, claims }: Pick<Checked, 'public_key' | 'lease' | 'claims'>,
  services: readonly RunningService[] | undefined,
): Outlook {
  const running = services?.filter(({ tasks }) => tasks.wanted > 0) ?? [];
  const facts = claims && factsOf(claims);
  const ends = ({ grace_ends_at: end }: RunningService) =>
    end === null ? undefined : { grace_ends_at: end };
  const first = firstToEnd(services === undefined ? [facts] : running.map(ends));
  const action = !isUsable({ public_key, lease, claims })
    ? 'seed'
    : lease.status !== 'ok'
      ? 'renew'
      : running.some((each) => isOutdated(each) && each.rollout !== 'in_progress')
        ? 'redeploy'
        : running.some(({ rollout }) => rollout === 'in_progress')
          ? 'wait'
          : 'none';
  return { action, act_by: first?.grace_ends_at ?? null };
}
