import { readPrivateFile, writePrivateFile } from '../src/client/private-file.ts';
import { ServiceError } from '../src/base/errors.ts';
import { isId } from '../src/lease/claims.ts';
import { isJsonObject } from '../src/lease/json.ts';
import { isRunningTime, type RunningTime } from '../src/lease/known-time.ts';

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

/** A renewal that may have been sent: it is asked for again with the same id. */
export interface PendingRenewal {
  readonly renewal_id: string;
  /** The lease that was held when it began; null without one. */
  readonly lease_id: string | null;
  /** The server did not take that lease as this device's: it is asked for without. */
  readonly without_lease?: true;
}

/** A published keyset that this machine did not accept. */
export interface RefusedKeyset {
  readonly at: string;
  /** A `LeaseReason`. */
  readonly reason: string;
  readonly message: string;
}

/** `daemon_state.json`: what the daemon has to know when it starts again, and what it tells people. */
export interface DaemonState {
  readonly schema: 1;
  readonly last_success_at: string | null;
  /** Of the last attempt; null when that succeeded. */
  readonly last_error: {
    readonly at: string;
    readonly code: string;
    readonly reason: string | null;
    readonly message: string;
  } | null;
  /** When it first was a denial, while it is one. */
  readonly denied_since: string | null;
  readonly failures_in_row: number;
  readonly next_attempt_at: string | null;
  readonly next_attempt_because: AttemptReason | null;
  readonly pending: PendingRenewal | null;
  /** The last lease that people brought; null when they never brought any. */
  readonly imported_lease_id: string | null;
  /** `newAnnouncement` of the trust anchor that a person put in place last; null if there is none. */
  readonly announced_anchor: string | null;
  /** Why the keys that the server published with the last lease were refused; null if they were not. */
  readonly refused_keyset: RefusedKeyset | null;
  /** The fault of the license files that could not be repaired; null if there is none. */
  readonly unrepaired: { readonly at: string; readonly message: string } | null;
  /** When requests were sent in the last hour; milliseconds since the Unix epoch. */
  readonly requests: readonly number[];
  readonly running_time: RunningTime | null;
}

/** Of a machine on which nothing has been done yet. */
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
 * What is in the file; `NO_STATE` when there is none.
 * @param instead told why what is there cannot be used: nothing that lasts depends on it.
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
      : instead(`${path} is no state of a daemon`);
  } catch (error) {
    return instead(
      error instanceof ServiceError ? error.message : `${path} is no state of a daemon`,
    );
  }
}

/** A state that could not be written before, with what a person has announced since. */
export async function withAnnounced(path: string, state: DaemonState): Promise<DaemonState> {
  const { announced_anchor } = await readState(path, () => state);
  return { ...state, announced_anchor: announced_anchor ?? state.announced_anchor };
}

/** Whether all by which the daemon decides has the form it must have. */
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
 * On disk once this has returned. Whoever changes something holds the lock of the license files from
 * before it read the state, so that nothing of another is lost.
 *
 * @throws ServiceError as `writePrivateFile`
 */
export async function writeState(path: string, state: DaemonState): Promise<void> {
  await writePrivateFile(path, `${JSON.stringify(state, undefined, 2)}\n`);
}
