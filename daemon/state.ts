import type { RunningTime } from '../src/lease/known-time.ts';

/** Why the next attempt is when it is. */
export type AttemptReason =
  /** The lease's own moment. */
  | 'due'
  /** There is no lease that works. */
  | 'no_lease'
  /** The last attempt failed. */
  | 'retry'
  /** The last one was refused: this is asked rarely. */
  | 'denied'
  /** No more than so many requests go out in an hour. */
  | 'rate_limit'
  /** This machine is no device yet. */
  | 'not_enrolled';

/** `daemon_state.json`: what the daemon has to know when it starts again, and what it tells people. */
export interface DaemonState {
  readonly schema: 1;
  /** The daemon that wrote it; whether it still runs, its lock says. Null when none ever did. */
  readonly daemon: {
    readonly pid: number;
    readonly version: string;
    readonly started_at: string;
    /** How it was ended; null while it runs, and when it was killed. */
    readonly stopped_at: string | null;
    readonly server_url: string;
  } | null;
  readonly last_success_at: string | null;
  /** Of the last attempt; null when that succeeded. */
  readonly last_error: {
    readonly at: string;
    readonly code: string;
    readonly reason: string | null;
    readonly message: string;
  } | null;
  readonly failures_in_row: number;
  readonly next_attempt_at: string | null;
  readonly next_attempt_because: AttemptReason | null;
  /** A renewal that may have been sent, by the lease it was to follow: asked again with the same id. */
  readonly pending: { readonly renewal_id: string; readonly lease_id: string | null } | null;
  /** When requests were sent in the last hour; milliseconds since the Unix epoch. */
  readonly requests: readonly number[];
  readonly running_time: RunningTime | null;
}
