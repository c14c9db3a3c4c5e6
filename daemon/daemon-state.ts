import { readPrivateFile, writePrivateFile } from '../src/base/private-file.ts';
import { ServiceError } from '../src/base/errors.ts';
import { isId } from '../src/lease/claims.ts';
import { isJsonObject } from '../src/lease/json.ts';
import { isRunningTime, type RunningTime } from '../src/lease/known-time.ts';

export type AttemptReason =
  /** Renewal time of the lease. */
  | 'due'
  | 'no_lease'
  | 'retry'
  /** The server denied the last attempt, so retries are rare. */
  | 'denied'
  /** The hourly limit of requests is reached. */
  | 'rate_limit'
  | 'not_enrolled';

/** A renewal that may have been sent; a retry uses the same id. */
export interface PendingRenewal {
  readonly renewal_id: string;
  /** The held lease at the first attempt; null without one. */
  readonly lease_id: string | null;
  /** Set if the server rejected that lease, so that the request does not present it. */
  readonly without_lease?: true;
}

/** A published keyset that this machine did not accept. */
export interface RefusedKeyset {
  readonly at: string;
  /** A `LeaseReason`. */
  readonly reason: string;
  readonly message: string;
}

/** Content of `daemon_state.json`: what the daemon needs after a restart, and what status commands show. */
export interface DaemonState {
  readonly schema: 1;
  readonly last_success_at: string | null;
  /** Null if the last attempt succeeded. */
  readonly last_error: {
    readonly at: string;
    readonly code: string;
    readonly reason: string | null;
    readonly message: string;
  } | null;
  /** Time of the first denial while renewal is denied; otherwise null. */
  readonly denied_since: string | null;
  readonly failures_in_row: number;
  readonly next_attempt_at: string | null;
  readonly next_attempt_because: AttemptReason | null;
  readonly pending: PendingRenewal | null;
  /** The last lease that a person imported; null before the first one. */
  readonly imported_lease_id: string | null;
  /** The last `newAnnouncement` of a trust anchor; null before the first one. */
  readonly announced_anchor: string | null;
  /** Why the keys that the server published with the last lease were refused; null if they were not. */
  readonly refused_keyset: RefusedKeyset | null;
  /** The fault of the license files that could not be repaired; null without such a fault. */
  readonly unrepaired: { readonly at: string; readonly message: string } | null;
  /** Times of the requests in the last hour, milliseconds since the Unix epoch. */
  readonly requests: readonly number[];
  readonly running_time: RunningTime | null;
}

export const NO_STATE: DaemonState = {
  schema: 1,
  last_success_at: null,
  last_error: null,
  denied_since: null,
  failures_in_row: 0,
  next_attempt_at: null,
  next_attempt_because: null,
  pending: null,
  imported_lease_id: null,
  announced_anchor: null,
  refused_keyset: null,
  unrepaired: null,
  requests: [],
  running_time: null,
};

/**
 * Reads the state; returns `NO_STATE` if there is no file.
 * @param instead receives the reason why the file cannot be used, and returns the state to use.
 */
export async function readState(
  path: string,
  instead: (why: string) => DaemonState = () => NO_STATE,
): Promise<DaemonState> {
  try {
    const text = await readPrivateFile(path);
    if (text === undefined) return NO_STATE;
    const read: unknown = JSON.parse(text);
    const state = { ...NO_STATE, ...(isJsonObject(read) && read) };
    return isJsonObject(read) && isState(state)
      ? state
      : instead(`${path} does not contain a valid daemon state`);
  } catch (error) {
    return instead(
      error instanceof ServiceError
        ? error.message
        : `${path} does not contain a valid daemon state`,
    );
  }
}

/** Adds the announcement in the file to a state that could not be written before. */
export async function withAnnounced(path: string, state: DaemonState): Promise<DaemonState> {
  const { announced_anchor } = await readState(path, () => state);
  return { ...state, announced_anchor: announced_anchor ?? state.announced_anchor };
}

function isState(state: DaemonState): boolean {
  const { schema, requests, failures_in_row, pending, last_error, next_attempt_at } = state;
  const { imported_lease_id, announced_anchor, refused_keyset, unrepaired, denied_since } = state;
  const isTime = (time: unknown): boolean => !Number.isNaN(Date.parse(String(time)));
  const running = state.running_time;
  return (
    schema === 1 &&
    requests.every(Number.isFinite) &&
    Number.isInteger(failures_in_row) &&
    (pending === null || isId(pending.renewal_id)) &&
    (imported_lease_id === null || isId(imported_lease_id)) &&
    (last_error === null || isTime(last_error.at)) &&
    (announced_anchor === null || typeof announced_anchor === 'string') &&
    (refused_keyset === null || isTime(refused_keyset.at)) &&
    (unrepaired === null || isTime(unrepaired.at)) &&
    (denied_since === null || isTime(denied_since)) &&
    (next_attempt_at === null || isTime(next_attempt_at)) &&
    (running === null || isRunningTime(running))
  );
}

/**
 * Writes the state durably. The caller must hold the lock of the license files since before it read the
 * state, so that no change of another process is lost.
 *
 * @throws ServiceError as `writePrivateFile`
 */
export async function writeState(path: string, state: DaemonState): Promise<void> {
  await writePrivateFile(path, `${JSON.stringify(state, undefined, 2)}\n`);
}
