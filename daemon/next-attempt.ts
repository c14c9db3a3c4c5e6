import type { AttemptReason, DaemonState } from './daemon-state.ts';

const BECAUSE: Readonly<Record<AttemptReason, string>> = {
  due: 'the lease is due at that time',
  no_lease: 'this machine has no usable lease',
  retry: 'the last attempt failed',
  denied: 'the server denied renewal, so retries are rare',
  rate_limit: 'the hourly limit of requests is reached',
  not_enrolled: 'this machine is not enrolled yet',
};

export function describeNextAttempt({
  next_attempt_at: at,
  next_attempt_because: why,
}: DaemonState): string {
  const because = why === null ? 'the daemon has not run yet' : BECAUSE[why];
  return at === null ? `no attempt is planned: ${because}` : `next attempt at ${at}: ${because}`;
}
