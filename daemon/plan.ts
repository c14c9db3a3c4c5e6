import type { LeaseClaims } from '../src/lease/claims.ts';
import { knownTime, runningTime, type Boot, type RunningTime } from '../src/lease/known-time.ts';
import { renewalMoment } from '../src/lease/schedule.ts';
import { formatTime, parseTime } from '../src/lease/time.ts';
import { isDenial } from './denial.ts';
import { earliestRequest } from './schedule.ts';
import type { AttemptReason, DaemonState } from './state.ts';

/**
 * How many requests one attempt can send: for keys and a lease, the latter again when the lease that
 * it presents turns out to be another's or the server needs the machine, and each of these twice when
 * the clock of this machine is wrong. What takes more is completed by the next attempt.
 */
export const MOST_REQUESTS_PER_ATTEMPT = 5;

/** What decides when a lease is asked for. */
export interface Circumstances {
  /** Whether there is a key by which a server can know this machine. */
  readonly isDevice: boolean;
  /** The lease that is held, whatever it is worth. */
  readonly lease: LeaseClaims | undefined;
  readonly state: DaemonState;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  readonly boot: Boot;
}

export interface Plan {
  /** When to ask: milliseconds since the Unix epoch, at or before `now` when it is due. Null for never. */
  readonly at: number | null;
  readonly because: AttemptReason;
}

export function isDue({ at }: Plan, now: number): boolean {
  return at !== null && at <= now;
}

/** How little is waited: till the lease is due, only till a failure may be forgotten, or not at all. */
export type Patience = 'usual' | 'until_due' | 'none';

/**
 * When to ask for a lease next, and why then. All times but the running time are those of a clock that anybody
 * may set: when it is behind what has passed for certain, that counts; and a wait that began in its
 * future is over.
 */
export function planAttempt(circumstances: Circumstances, patience: Patience = 'usual'): Plan {
  const { isDevice, state, now } = circumstances;
  if (!isDevice) return { at: null, because: 'not_enrolled' };
  const wanted = patience === 'none' ? { ...due(circumstances), at: now } : due(circumstances);
  const waiting = patience === 'usual' ? waitAfterFailure(circumstances) : undefined;
  // Of a lease that works, nothing is asked before it is due.
  const plan = waiting !== undefined && wanted.at <= now ? waiting : wanted;
  const reserved = Array.from({ length: MOST_REQUESTS_PER_ATTEMPT - 1 }, () => now);
  const earliest = earliestRequest([...state.requests, ...reserved], now);
  return earliest > Math.max(plan.at, now) ? { at: earliest, because: 'rate_limit' } : plan;
}

function due({ lease, state, now, boot }: Circumstances): Plan & { readonly at: number } {
  if (lease === undefined) return { at: now, because: 'no_lease' };
  const time = passedTime(lease, state.running_time, now, boot);
  if (time >= parseTime(lease.grace_ends_at)!) return { at: now, because: 'no_lease' };
  // When this clock will say it, of which more time is over than it says.
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

/** Whether the last attempt failed; one for a lease that is not held any more says nothing. */
export function isFailing(
  { failures_in_row, pending }: DaemonState,
  lease: LeaseClaims | undefined,
): boolean {
  if (failures_in_row === 0) return false;
  return pending === null || pending.lease_id === (lease?.lease_id ?? null);
}

/** The latest time that is known to be over, milliseconds since the Unix epoch. */
export function passedTime(
  lease: LeaseClaims,
  running: RunningTime | null,
  now: number,
  boot: Boot,
): number {
  const since = runningTime(running ?? undefined, lease.lease_id, boot);
  return Math.max(now, parseTime(knownTime(lease, since))!);
}

/** A time of the state: whole seconds, none before its time. */
export function stateTime(ms: number): string {
  return formatTime(Math.ceil(ms / 1000) * 1000);
}
