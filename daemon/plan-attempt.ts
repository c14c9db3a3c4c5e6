import type { LeaseClaims } from '../src/lease/claims.ts';
import { knownTime, runningTime, type Boot, type RunningTime } from '../src/lease/known-time.ts';
import { renewalMoment } from '../src/lease/renewal-moment.ts';
import { formatTime, parseTime } from '../src/lease/time.ts';
import { isDenial } from './denial.ts';
import { earliestRequest } from './retry-schedule.ts';
import type { AttemptReason, DaemonState } from './daemon-state.ts';

/**
 * Maximum number of requests in one attempt: for the keys and the lease, for the lease again if the server
 * rejects the presented lease or needs the machine id, and each twice if the clock of this machine is
 * wrong. The next attempt completes what needs more.
 */
export const MOST_REQUESTS_PER_ATTEMPT = 5;

export interface Circumstances {
  readonly isDevice: boolean;
  /** The held lease in any state. */
  readonly lease: LeaseClaims | undefined;
  readonly state: DaemonState;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  readonly boot: Boot;
}

export interface Plan {
  /** Time of the next attempt, ms since the Unix epoch; at or before `now` if due, null for never. */
  readonly at: number | null;
  readonly because: AttemptReason;
}

export function isDue({ at }: Plan, now: number): boolean {
  return at !== null && at <= now;
}

/** `usual` waits for the due time and after failures, `until_due` only for the due time. */
export type Patience = 'usual' | 'until_due' | 'none';

/**
 * Returns when to request a lease next, and why. The clock may be wrong: if it is behind the known time,
 * the known time counts, and a wait that began in the clock's future is over.
 */
export function planAttempt(circumstances: Circumstances, patience: Patience = 'usual'): Plan {
  const { isDevice, state, now } = circumstances;
  if (!isDevice) return { at: null, because: 'not_enrolled' };
  const wanted = patience === 'none' ? { ...due(circumstances), at: now } : due(circumstances);
  const waiting = patience === 'usual' ? waitAfterFailure(circumstances) : undefined;
  // A wait after a failure does not matter before the lease is due.
  const plan = waiting !== undefined && wanted.at <= now ? waiting : wanted;
  const reserved = Array.from({ length: MOST_REQUESTS_PER_ATTEMPT - 1 }, () => now);
  const earliest = earliestRequest([...state.requests, ...reserved], now);
  return earliest > Math.max(plan.at, now) ? { at: earliest, because: 'rate_limit' } : plan;
}

function due({ lease, state, now, boot }: Circumstances): Plan & { readonly at: number } {
  if (lease === undefined) return { at: now, because: 'no_lease' };
  const time = passedTime(lease, state.running_time, now, boot);
  if (time >= parseTime(lease.grace_ends_at)!) return { at: now, because: 'no_lease' };
  // Converts the moment to this clock, which may be behind.
  const moment = renewalMoment(lease) - (time - now);
  return { at: moment, because: 'due' };
}

function waitAfterFailure({
  lease,
  state,
  now,
}: Circumstances): (Plan & { readonly at: number }) | undefined {
  if (!isFailing(state, lease)) return undefined;
  const { last_error: error, next_attempt_at: next, next_attempt_because: because } = state;
  if (error === null || next === null || now < Date.parse(error.at)) return undefined;
  // Earlier versions recorded failures as denials that this version does not.
  if (because === 'denied' && !isDenial(error)) return undefined;
  return { at: Date.parse(next), because: because === 'denied' ? 'denied' : 'retry' };
}

/** Whether the last attempt for the held lease failed. */
export function isFailing(
  { failures_in_row, pending }: DaemonState,
  lease: LeaseClaims | undefined,
): boolean {
  if (failures_in_row === 0) return false;
  return pending === null || pending.lease_id === (lease?.lease_id ?? null);
}

/** Returns the later of clock and known time, in milliseconds since the Unix epoch. */
export function passedTime(
  lease: LeaseClaims,
  running: RunningTime | null,
  now: number,
  boot: Boot,
): number {
  const since = runningTime(running ?? undefined, lease.lease_id, boot);
  return Math.max(now, parseTime(knownTime(lease, since))!);
}

/** Formats a time for the state, rounded up to whole seconds. */
export function stateTime(ms: number): string {
  return formatTime(Math.ceil(ms / 1000) * 1000);
}
