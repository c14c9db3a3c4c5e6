import { v7 as uuidv7 } from 'uuid';
import type { Client } from '../src/client/client.ts';
import { readDeviceKey } from '../src/client/device-key.ts';
import { dropFormerKey } from '../src/client/former-key.ts';
import { keysetText } from '../src/client/keyset.ts';
import {
  checkLease,
  connectAsDevice,
  fetchKeyset,
  fetchLease,
  namedTrust,
  requireTrusted,
  unusable,
  type Asked,
  type FetchedLease,
} from '../src/client/lease-server.ts';
import { quarantine, storeKeyset, storeLease, storeLicense } from '../src/client/lease-store.ts';
import { withLock } from '../src/client/lock.ts';
import { ServiceError } from '../src/base/errors.ts';
import { newAnnouncement } from '../src/gate/anchor.ts';
import {
  byWorth,
  readLicense,
  readLicenseTexts,
  verifyLicense,
  type HeldLease,
  type License,
} from '../src/gate/license.ts';
import { acceptedAnchor } from '../src/gate/machine-trust.ts';
import type { LeaseClaims } from '../src/lease/claims.ts';
import { runningTime, type Boot } from '../src/lease/known-time.ts';
import { renewalMoment } from '../src/lease/schedule.ts';
import { formatTime, parseTime } from '../src/lease/time.ts';
import type { HeldTrust } from '../src/lease/trust.ts';
import type { LicenseFiles } from '../src/gate/license-files.ts';
import { acceptedIn, acceptedOf, type Accepted } from './accepted.ts';
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
  withAnnounced,
  writeState,
  type AttemptReason,
  type DaemonState,
  type PendingRenewal,
  type RefusedKeyset,
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
  /** Allows plain http to another host. */
  readonly insecure?: boolean | undefined;
  /** How long an answer may take. */
  readonly timeoutMs?: number | undefined;
  /** `machineHash` of this machine; by default as `ownMachineHash` reads it. */
  readonly machineHash?: (() => Promise<string | undefined>) | undefined;
}

/** A lease that verified, with what this machine accepted when it did. */
export interface KeptLease {
  readonly lease: HeldLease;
  readonly accepted: Accepted;
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
        readonly accepted: Accepted;
        /** Why the published keys were refused; the keys held verified the lease. */
        readonly refusedKeyset: ServiceError | undefined;
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
  /** Keys that a person named, which replace those that this machine holds. */
  readonly keyset?: string | undefined;
  /** Reads the license files, under the lock; by default as `readLicense` does. */
  readonly read?: (() => Promise<License>) | undefined;
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

async function attempt(machine: Machine, options: RenewOptions): Promise<Outcome> {
  const { force, signal, latest = { state: NO_STATE, isSaved: true } } = options;
  const { files, clock, boot, warn } = machine;
  const { read = () => readLicense(files, clock()) } = options;
  const remembered = (why: string): DaemonState => {
    warn(`${why}: it is written again`);
    return latest.state;
  };
  const before = latest.isSaved
    ? await readState(files.state, remembered)
    : await withAnnounced(files.state, latest.state);
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
    let license = await restoreKeyset(machine, await read(), read);
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
    if (license.trusted === undefined) {
      // Without keys no lease can be verified; presenting none would look like a clone.
      const keys = judged(machine, await fetchKeyset(server), license, options);
      // Where the keys verify no lease, only the answer of the server shows that it knows this device.
      if (await verifiesLease(files, keys.text, clock())) {
        await storeKeyset(files.keyset, keys.text);
        warnOfFirstContact(machine, keys);
        license = await read();
        [held] = license.leases;
        const again = plan();
        if (!isDue(again, clock())) {
          const isSaved = await end({});
          return notDue(again, isSaved);
        }
      }
    }
    const keep = async (pending: PendingRenewal): Promise<void> => save({ pending });
    const { answer, pending } = await ask(server, state.pending, held, keep);
    const document = await fetchKeyset(server);
    const { owner } = license;
    const keys = judged(machine, document, license, options);
    const kept = keptLease(machine, answer.text, keys, license, {
      renewal_id: pending.renewal_id,
      device_thumbprint: key.device_id,
      deployment_id:
        owner?.installationId ?? (pending.without_lease ? undefined : held?.claims.deployment_id),
      issuer: options.keyset === undefined ? (owner?.issuer ?? held?.claims.issuer) : undefined,
    });
    const { lease, accepted } = kept;
    if (held !== undefined) {
      const running = runningTime(before.running_time ?? undefined, held.claims.lease_id, boot());
      if (byWorth(clock(), running)(lease, held) > 0) throw worse(lease.claims, held.claims);
    }
    unstored = kept;
    if (options.keyset !== undefined && accepted.anchor !== undefined) {
      await save({ announced_anchor: newAnnouncement(accepted.anchor) });
    }
    if (keys.refused === undefined) await storeKept(files, kept, held?.path);
    else await storeLease(files.lease, lease.text);
    warnOfFirstContact(machine, keys);
    await dropFormerKey(files, lease.claims);
    for (const { detail } of answer.warnings) warn(detail);
    const refused_keyset = keys.refused === undefined ? null : refusalOf(keys.refused, clock());
    const isSaved = await end({ ...succeeded(machine, before, lease.claims), refused_keyset });
    const { limits } = answer;
    return {
      status: 'renewed',
      lease,
      accepted,
      refusedKeyset: keys.refused,
      limits,
      state,
      isSaved,
    };
  } catch (thrown) {
    if (signal?.aborted) throw thrown;
    const error = asServiceError(thrown);
    const isSaved = await end(failed(machine, state, held?.claims, error));
    return { status: 'failed', error, lease: held, unstored, state, isSaved };
  }
}

/** Restores a missing or refused keyset file from the trust anchor, without a server. */
async function restoreKeyset(
  { files, clock, warn }: Machine,
  license: License,
  read: () => Promise<License>,
): Promise<License> {
  const { keyset } = license;
  const anchor = acceptedAnchor(license);
  if (keyset.ok || anchor === undefined) return license;
  await quarantine(files.keyset, clock());
  await storeKeyset(files.keyset, anchor.document);
  warn(`put ${files.keyset} back from ${files.root}: ${keyset.detail}`);
  return read();
}

/** The keys that verify a renewed lease. */
interface RenewalKeys {
  readonly trust: HeldTrust;
  /** Content for the keyset file; the held keys if the published ones were refused. */
  readonly text: string;
  /** Why the published keys were refused, so that the held ones verify. */
  readonly refused?: ServiceError;
  /** Whether nothing vouched for the published keys. */
  readonly isFirstContact?: boolean;
}

/** Whether a lease on this machine verifies by the keys of this keyset. */
async function verifiesLease(files: LicenseFiles, text: string, now: number): Promise<boolean> {
  const texts = await readLicenseTexts(files);
  const keyset = { path: files.keyset, read: { ok: true, text } } as const;
  return verifyLicense({ ...texts, keyset }, now).leases.length > 0;
}

function warnOfFirstContact(
  { url, warn }: Pick<Machine, 'url' | 'warn'>,
  { trust, isFirstContact = false }: RenewalKeys,
): void {
  if (!isFirstContact) return;
  const ids = [...trust.keys.keys()].join(', ');
  warn(`first contact: nothing vouched for the keys of ${url}; this machine now trusts ${ids}`);
}

/**
 * Decides whether published keys may verify the lease that came with them. If they are refused, the
 * held keys verify it: a genuine lease is not lost because an issuer published an expired or older
 * keyset, or replaced its root.
 *
 * @throws ServiceError `invalid_data` with a `LeaseReason`, if no keys are held
 */
function judged(
  { files, clock }: Machine,
  document: unknown,
  { trusted }: License,
  { keyset: named }: RenewOptions,
): RenewalKeys {
  const { pin } = files;
  const now = clock();
  const held = named === undefined ? trusted : namedTrust(named, pin, now);
  try {
    const { trust, text } = requireTrusted(document, { pin, held, now });
    return { trust, text, isFirstContact: trust.by === 'first_contact' };
  } catch (error) {
    if (!(error instanceof ServiceError) || held === undefined || named !== undefined) throw error;
    return { trust: held, text: keysetText(held.keys), refused: error };
  }
}

function keptLease(
  { files }: Machine,
  text: string,
  { trust, text: document, refused }: RenewalKeys,
  license: License,
  asked: Asked,
): KeptLease {
  try {
    const issuer = asked.issuer ?? trust.keyset?.issuer;
    const claims = checkLease(text, trust.keys, { ...asked, issuer });
    const lease = { path: files.lease, text, claims };
    const before = refused && acceptedIn(license);
    return { lease, accepted: before ?? acceptedOf(claims, trust, document) };
  } catch (error) {
    if (refused === undefined) throw error;
    throw error instanceof ServiceError && error.reason === 'unknown_key' ? refused : error;
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

/** @param heldAt the file that holds the lease that counts now. */
async function storeKept(
  files: LicenseFiles,
  { lease, accepted }: KeptLease,
  heldAt: string | undefined,
): Promise<void> {
  const { document: keyset, anchor: root } = accepted;
  await storeLicense(files, { lease: lease.text, keyset, root }, heldAt);
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

function refusalOf({ reason = '', message }: ServiceError, now: number): RefusedKeyset {
  return { at: formatTime(now), reason, message };
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
