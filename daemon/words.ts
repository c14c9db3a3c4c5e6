import type { AttemptReason, DaemonState } from './state.ts';

const BECAUSE: Readonly<Record<AttemptReason, string>> = {
  due: 'the lease is due then',
  no_lease: 'there is no lease that works',
  retry: 'the last attempt failed',
  denied: 'the server refused: it is asked rarely',
  rate_limit: 'no more requests go out in one hour',
  not_enrolled: 'this machine is not enrolled yet',
};

/** When the daemon asks for a lease next, and why then, as people read it. */
export function nextAttempt({
  next_attempt_at: at,
  next_attempt_because: why,
}: DaemonState): string {
  const because = why === null ? 'nothing is known yet' : BECAUSE[why];
  return at === null ? `no attempt is planned: ${because}` : `next attempt at ${at}: ${because}`;
}
