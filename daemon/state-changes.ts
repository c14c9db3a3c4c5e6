import type { ServiceError } from '../src/base/errors.ts';
import type { LeaseClaims } from '../src/lease/claims.ts';
import { runningTime } from '../src/lease/known-time.ts';
import { renewalMoment } from '../src/lease/renewal-moment.ts';
import { formatTime, parseTime } from '../src/lease/time.ts';
import { deniedSince, isDenial } from './denial.ts';
import type { Machine } from './machine.ts';
import { isFailing, passedTime, stateTime } from './plan-attempt.ts';
import { retryDelayMs } from './retry-schedule.ts';
import type { DaemonState } from './daemon-state.ts';

/** Longest wait after a new lease that is already due. */
const DUE_AT_ONCE_MS = 6 * 3_600_000;

export function changeAfterSuccess(
  { clock, boot }: Machine,
  before: DaemonState,
  claims: LeaseClaims,
): Partial<DaemonState> {
  const now = clock();
  const change = {
    last_success_at: formatTime(now),
    denied_since: null,
    pending: null,
    running_time: runningTime(before.running_time ?? undefined, claims.lease_id, boot()),
  };
  const moment = renewalMoment(claims);
  if (now < moment) {
    return {
      ...change,
      last_error: null,
      failures_in_row: 0,
      next_attempt_at: stateTime(moment),
      next_attempt_because: 'due',
    };
  }
  // By a clock that is ahead, every new lease is already due. After some quicker attempts, because the
  // response may also be an old one that was lost before, the interval is that of a correct clock.
  const { last_error } = before;
  const count = last_error?.reason === 'due_at_once' ? before.failures_in_row + 1 : 1;
  const usual = Math.min(DUE_AT_ONCE_MS, moment - parseTime(claims.issued_at)!);
  const wait = Math.max(30_000, Math.min(usual, 30_000 * 2 ** Math.min(count, 20)));
  const message = `the new lease was issued at ${claims.issued_at} and is already due for renewal: the clock of this machine is at ${formatTime(now)}`;
  return {
    ...change,
    last_error: { at: formatTime(now), code: 'invalid_data', reason: 'due_at_once', message },
    failures_in_row: count,
    next_attempt_at: stateTime(now + wait),
    next_attempt_because: 'retry',
  };
}

export function changeAfterFailure(
  { clock, boot, random }: Machine,
  state: DaemonState,
  held: LeaseClaims | undefined,
  error: ServiceError,
): Partial<DaemonState> {
  const { code, reason, message, retryAfterSeconds } = error;
  const now = clock();
  const count = isFailing(state, held) ? state.failures_in_row + 1 : 1;
  const denied = isDenial(error);
  const left = held
    ? parseTime(held.expires_at)! - passedTime(held, state.running_time, now, boot())
    : 0;
  const delay = retryDelayMs({ count, denied, retryAfterSeconds }, left, random());
  return {
    last_error: { at: formatTime(now), code, reason: reason ?? null, message },
    denied_since: denied ? (deniedSince(state) ?? formatTime(now)) : null,
    failures_in_row: count,
    next_attempt_at: stateTime(now + delay),
    next_attempt_because: denied ? 'denied' : 'retry',
  };
}
