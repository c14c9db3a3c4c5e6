import { v7 as uuidv7 } from 'uuid';
import type { Client } from '../src/client/client.ts';
import { readDeviceKey } from '../src/client/device-key.ts';
import {
  checkLease,
  connectAsDevice,
  fetchKeyset,
  fetchLease,
  keysetText,
  unusable,
  type FetchedLease,
} from '../src/client/lease-server.ts';
import { storeKeyset, storeLease } from '../src/client/lease-store.ts';
import { withLock } from '../src/client/lock.ts';
import { ServiceError } from '../src/errors.ts';
import { byWorth, readLicense, type HeldLease } from '../src/gate/license.ts';
import type { LeaseClaims } from '../src/lease/claims.ts';
import type { TrustedKeys } from '../src/lease/keys.ts';
import { runningTime, type Boot } from '../src/lease/known-time.ts';
import { renewalMoment } from '../src/lease/schedule.ts';
import { formatTime, parseTime } from '../src/lease/time.ts';
import type { LicenseFiles } from '../src/license-files.ts';
import { deniedSince, isDenial } from './denial.ts';
import {
  isDue,
  isFailing,
  MOST_REQUESTS_PER_ATTEMPT,
  passedTime,
  planAttempt,
  stateTime,
  type Patience,
  type Plan,
} from './plan.ts';
import { retryDelayMs } from './schedule.ts';
import {
  NO_STATE,
  readState,
  writeState,
  type AttemptReason,
  type DaemonState,
  type PendingRenewal,
} from './state.ts';

/** A machine that has leases renewed, and what it can see of the world. */
export interface Machine {
  readonly files: LicenseFiles;
  /** Origin of the server. */
  readonly url: string;
  /** Milliseconds since the Unix epoch. */
  readonly clock: () => number;
  /** Since when it runs, the time asleep included. */
  readonly boot: () => Boot;
  /** From 0 to 1, evenly distributed. */
  readonly random: () => number;
  /** Told what the person should know. */
  readonly warn: (text: string) => void;
  /** How long an answer may take. */
  readonly timeoutMs?: number | undefined;
}

/** A lease that verified, with the keys by which it did. */
export interface KeptLease {
  readonly lease: HeldLease;
  readonly keys: TrustedKeys;
}

/** The state as it was last known. */
export interface LatestState {
  readonly state: DaemonState;
  /** False when it could not be written: then it is newer than the file. */
  readonly isSaved: boolean;
}

/** What came of it, and the state that it left. */
export type Outcome = LatestState &
  (
    | {
        readonly status: 'renewed';
        readonly lease: HeldLease;
        /** That verified it. */
        readonly keys: TrustedKeys;
        /** Where the lease lasts less than was due. */
        readonly limits: FetchedLease['limits'];
      }
    /** Nothing was asked. */
    | {
        readonly status: 'not_due';
        readonly because: AttemptReason;
        /** Milliseconds since the Unix epoch; null while there is nothing to wait for. */
        readonly next: number | null;
        readonly lease: HeldLease | undefined;
      }
    | {
        readonly status: 'failed';
        readonly error: ServiceError;
        /** What is held all the same. */
        readonly lease: HeldLease | undefined;
        /** What came and could not be stored. */
        readonly unstored: KeptLease | undefined;
      }
  );

export interface RenewOptions {
  /** Also when it is not due, or the wait after a failure is not over; not beyond the hourly limit. */
  readonly force: boolean;
  /** Breaks off what is waited for; what was begun is taken up by the next attempt. */
  readonly signal?: AbortSignal | undefined;
  /** What a process knows that renews again and again. */
  readonly latest?: LatestState | undefined;
}

/** Who only looks, or writes the state, has it for less. */
const LOCK_WAIT_MS = 500;

/**
 * Renews the lease of this machine, if that is due: one attempt. Whatever ends it, also a kill, the
 * next one takes it up where it stopped.
 *
 * @throws ServiceError `conflict`, reason `locked`, while another does the same; `output_not_writable`
 * where the lock cannot be; `interrupted`.
 */
export async function renew(machine: Machine, options: RenewOptions): Promise<Outcome> {
  return withLock(machine.files.lock, LOCK_WAIT_MS, () => attempt(machine, options));
}

async function attempt(
  machine: Machine,
  { force, signal, latest = { state: NO_STATE, isSaved: true } }: RenewOptions,
): Promise<Outcome> {
  const { files, clock, boot, warn } = machine;
  const remembered = (why: string): DaemonState => {
    warn(`${why}: it is written again`);
    return latest.state;
  };
  const before = latest.isSaved ? await readState(files.state, remembered) : latest.state;
  const patience: Patience = force ? 'none' : 'usual';
  const earlier = before.requests.filter((at) => at <= clock() && at > clock() - 3_600_000);
  const sent: number[] = [];
  let state = before;
  let held: HeldLease | undefined;
  let unstored: KeptLease | undefined;

  const save = async (change: Partial<DaemonState>): Promise<void> => {
    state = { ...state, ...change };
    await writeState(files.state, state);
  };
  const end = async (change: Partial<DaemonState>): Promise<boolean> => {
    try {
      await save({ requests: [...earlier, ...sent], ...change });
      return true;
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      return false;
    }
  };
  const onRequest = (): void => {
    if (sent.length === MOST_REQUESTS_PER_ATTEMPT) throw tooManyRequests();
    sent.push(clock());
  };

  try {
    let license = await readLicense(files, clock());
    [held] = license.leases;
    const notDue = ({ at, because }: Plan, isSaved: boolean): Outcome => {
      return { status: 'not_due', because, next: at, lease: held, state, isSaved };
    };
    const key = await readDeviceKey(files.key);
    if (key === undefined) return notDue({ at: null, because: 'not_enrolled' }, latest.isSaved);
    const plan = (): Plan => {
      const lease = held?.claims;
      const circumstances = { isDevice: true, lease, state: before, now: clock(), boot: boot() };
      return planAttempt(circumstances, patience);
    };
    const first = plan();
    if (!isDue(first, clock())) return notDue(first, latest.isSaved);

    const server = connectAsDevice({ ...machine, onRequest, signal }, key);
    // All that this attempt can send counts from now on, also if a kill ends it: a daemon that is
    // started again and again sends no more for that.
    const reserved = Array.from({ length: MOST_REQUESTS_PER_ATTEMPT }, clock);
    await save({ requests: [...earlier, ...reserved] });
    if (!license.keyset.ok) {
      // What is held cannot be told from what is not, and to present nothing looks like a clone.
      await storeKeyset(files.keyset, (await fetchKeyset(server)).text);
      license = await readLicense(files, clock());
      [held] = license.leases;
      const again = plan();
      if (!isDue(again, clock())) {
        const isSaved = await end({});
        return notDue(again, isSaved);
      }
    }
    const keep = async (pending: PendingRenewal): Promise<void> => save({ pending });
    const { answer, pending } = await ask(server, state.pending, held, keep);
    const keyset = await fetchKeyset(server);
    const claims = checkLease(answer.text, keyset.keys, {
      renewal_id: pending.renewal_id,
      device_thumbprint: key.device_id,
      deployment_id: pending.without_lease ? undefined : held?.claims.deployment_id,
    });
    const lease = { path: files.lease, text: answer.text, claims };
    if (held !== undefined) {
      const running = runningTime(before.running_time ?? undefined, held.claims.lease_id, boot());
      if (byWorth(clock(), running)(lease, held) > 0) throw worse(claims, held.claims);
    }
    unstored = { lease, keys: keyset.keys };
    await store(files, lease, keyset, license.keyset.ok ? license.keyset.keys : undefined);
    for (const { detail } of answer.warnings) warn(detail);
    const isSaved = await end(succeeded(machine, before, claims));
    return { status: 'renewed', lease, keys: keyset.keys, limits: answer.limits, state, isSaved };
  } catch (thrown) {
    if (signal?.aborted) throw thrown;
    const error = asServiceError(thrown);
    const isSaved = await end(failed(machine, state, held?.claims, error));
    return { status: 'failed', error, lease: held, unstored, state, isSaved };
  }
}

/** Asks for a lease by an id that is on disk before, and once more where that id or the lease is no good. */
async function ask(
  server: Client,
  before: PendingRenewal | null,
  held: HeldLease | undefined,
  keep: (pending: PendingRenewal) => Promise<void>,
  mayRepeat = true,
): Promise<{ readonly answer: FetchedLease; readonly pending: PendingRenewal }> {
  const lease_id = held?.claims.lease_id ?? null;
  const pending = before?.lease_id === lease_id ? before : { renewal_id: uuidv7(), lease_id };
  if (pending !== before) await keep(pending);
  const { renewal_id, without_lease } = pending;
  const lease = held && !without_lease ? (JSON.parse(held.text) as Envelope) : undefined;
  try {
    const answer = await fetchLease(server, { renewal_id, ...(lease && { lease }) });
    return { answer, pending };
  } catch (error) {
    const other = mayRepeat ? otherRequest(error, pending, lease !== undefined) : undefined;
    if (other === undefined) throw error;
    await keep(other);
    return ask(server, other, held, keep, false);
  }
}

type Envelope = NonNullable<Parameters<typeof fetchLease>[1]['lease']>;

/** What to ask for instead of what the server refused; undefined when there is nothing. */
function otherRequest(
  error: unknown,
  pending: PendingRenewal,
  presented: boolean,
): PendingRenewal | undefined {
  if (!(error instanceof ServiceError)) return undefined;
  const { code, reason = '' } = error;
  const renewal_id = uuidv7();
  if (code === 'idempotency_mismatch') return { ...pending, renewal_id };
  const isOthers =
    (code === 'not_allowed' && ['other_device', 'other_deployment'].includes(reason)) ||
    (code === 'invalid_request' && reason === 'unknown_lease');
  if (!isOthers || !presented) return undefined;
  return { renewal_id, lease_id: pending.lease_id, without_lease: true };
}

function worse(claims: LeaseClaims, held: LeaseClaims): ServiceError {
  const show = ({ issued_at, expires_at }: LeaseClaims): string =>
    `of ${issued_at} that expires at ${expires_at}`;
  const detail = `it is one ${show(claims)}, and what is held is one ${show(held)}`;
  return unusable('lease', { reason: 'older_lease', detail });
}

/** First the keys and then the lease, so that whoever looks finds none without its key. */
export async function store(
  files: LicenseFiles,
  lease: HeldLease,
  keyset: { readonly text: string; readonly keys: TrustedKeys },
  heldKeys: TrustedKeys | undefined,
): Promise<void> {
  const gone = [...(heldKeys ?? [])].filter(([id]) => !keyset.keys.has(id));
  // Not before the new lease is in its place, the one that is there can do without its key.
  if (gone.length > 0) await storeKeyset(files.keyset, keysetText([...keyset.keys, ...gone]));
  else await storeKeyset(files.keyset, keyset.text);
  await storeLease(files.lease, lease.text);
  if (gone.length > 0) await storeKeyset(files.keyset, keyset.text);
}

/** The longest wait after a lease that was due at once. */
const DUE_AT_ONCE_MS = 6 * 3_600_000;

/** What a lease changes of the state. */
function succeeded(
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
  // By a clock that is ahead every lease is due when it comes. As nothing shows for how long it will
  // be, this asks as often as it would by a clock that is right, after some tries in between: the
  // answer may also be an old one that was lost before.
  const { last_error } = before;
  const count = last_error?.reason === 'due_at_once' ? before.failures_in_row + 1 : 1;
  const usual = Math.min(DUE_AT_ONCE_MS, moment - parseTime(claims.issued_at)!);
  const wait = Math.max(30_000, Math.min(usual, 30_000 * 2 ** Math.min(count, 20)));
  const message = `the lease that came was issued at ${claims.issued_at} and is due for renewal already: the clock of this machine says ${formatTime(now)}`;
  return {
    ...change,
    last_error: { at: formatTime(now), code: 'invalid_data', reason: 'due_at_once', message },
    failures_in_row: count,
    next_attempt_at: stateTime(now + wait),
    next_attempt_because: 'retry',
  };
}

/** What a failure changes of it. */
export function failed(
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

function tooManyRequests(): ServiceError {
  return new ServiceError('rate_limited', 'this attempt has sent as many requests as one may', {
    reason: 'attempt_limit',
  });
}

/** Nothing that goes wrong with one attempt must end the daemon. */
export function asServiceError(thrown: unknown): ServiceError {
  if (thrown instanceof ServiceError) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new ServiceError('failure', message, { cause: thrown });
}
