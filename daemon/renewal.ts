import {
  checkLease,
  connectAsDevice,
  fetchKeyset,
  unusable,
  type Asked,
  type FetchedLease,
} from '../src/client/lease-server.ts';
import type { Client } from '../src/client/client.ts';
import { readDeviceKey, type DeviceKey } from '../src/client/device-key.ts';
import { dropFormerKey } from '../src/client/former-key.ts';
import { quarantine, storeKeyset, storeLease, storeLicense } from '../src/client/lease-store.ts';
import { withLock } from '../src/base/file-lock.ts';
import { ServiceError } from '../src/base/errors.ts';
import { newAnnouncement } from '../src/gate/anchor.ts';
import { byWorth, readLicense, type HeldLease, type License } from '../src/gate/license.ts';
import { acceptedAnchor } from '../src/gate/machine-trust.ts';
import type { LeaseClaims } from '../src/lease/claims.ts';
import { runningTime } from '../src/lease/known-time.ts';
import { formatTime } from '../src/lease/time.ts';
import { acceptedIn, acceptedOf, type Accepted } from './accepted.ts';
import { requestLease } from './lease-request.ts';
import type { Machine } from './machine.ts';
import { isDue, MOST_REQUESTS_PER_ATTEMPT, planAttempt, type Plan } from './plan-attempt.ts';
import {
  judgePublishedKeys,
  verifiesLease,
  warnOfFirstContact,
  type RenewalKeys,
} from './renewal-keys.ts';
import { changeAfterFailure, changeAfterSuccess } from './state-changes.ts';
import {
  NO_STATE,
  readState,
  withAnnounced,
  writeState,
  type AttemptReason,
  type DaemonState,
} from './daemon-state.ts';

export interface KeptLease {
  readonly lease: HeldLease;
  readonly accepted: Accepted;
}

export interface LatestState {
  readonly state: DaemonState;
  /** False if the state could not be written, so that it is newer than the file. */
  readonly isSaved: boolean;
}

/** Result of an attempt, and the state after it. */
export type Outcome = LatestState &
  (
    | {
        readonly status: 'renewed';
        readonly lease: HeldLease;
        readonly accepted: Accepted;
        /** Why the published keys were refused; the keys held verified the lease. */
        readonly refusedKeyset: ServiceError | undefined;
        /** Why the lease lasts less than the plan allows. */
        readonly limits: FetchedLease['limits'];
      }
    /** No lease was requested. */
    | {
        readonly status: 'not_due';
        readonly because: AttemptReason;
        /** Time of the next attempt, ms since the Unix epoch; null if none is planned. */
        readonly next: number | null;
        readonly lease: HeldLease | undefined;
      }
    | {
        readonly status: 'failed';
        readonly error: ServiceError;
        readonly lease: HeldLease | undefined;
        /** A new lease that could not be stored. */
        readonly unstored: KeptLease | undefined;
      }
  );

export interface RenewOptions {
  /** Renews even if the lease is not due or a retry is pending, within the hourly limit. */
  readonly force: boolean;
  /** Aborts pending requests; the next attempt continues where this one stopped. */
  readonly signal?: AbortSignal | undefined;
  /** State after the previous attempt of this process. */
  readonly latest?: LatestState | undefined;
  /** Keys that a person named, which replace the held ones. */
  readonly keyset?: string | undefined;
  /** Reads the license files, under the lock; `readLicense` by default. */
  readonly read?: (() => Promise<License>) | undefined;
}

/** Longer than other processes hold the lock for reading or for writing the state. */
const LOCK_WAIT_MS = 500;

/**
 * Makes one attempt to renew the lease of this machine if it is due. After an interruption, even by a
 * kill, the next attempt continues where this one stopped.
 *
 * @throws ServiceError `conflict`, reason `locked`, while another process renews; `output_not_writable`
 * if the lock file cannot be written; `interrupted`.
 */
export async function renew(machine: Machine, options: RenewOptions): Promise<Outcome> {
  return withLock(machine.files.lock, LOCK_WAIT_MS, () => new Attempt(machine, options).run());
}

/** One attempt: what it has read, what it sent, and the state that it leaves. */
class Attempt {
  readonly #machine: Machine;
  readonly #options: RenewOptions;
  readonly #latest: LatestState;
  readonly #read: () => Promise<License>;
  /** Times of earlier requests in the last hour. */
  #earlier: readonly number[] = [];
  readonly #sent: number[] = [];
  #before: DaemonState = NO_STATE;
  #state: DaemonState = NO_STATE;
  #held: HeldLease | undefined;
  #unstored: KeptLease | undefined;

  constructor(machine: Machine, options: RenewOptions) {
    const { files, clock } = machine;
    this.#machine = machine;
    this.#options = options;
    this.#latest = options.latest ?? { state: NO_STATE, isSaved: true };
    this.#read = options.read ?? (() => readLicense(files, clock()));
  }

  async run(): Promise<Outcome> {
    await this.#readState();
    try {
      return await this.#renew();
    } catch (thrown) {
      if (this.#options.signal?.aborted) throw thrown;
      const error = asServiceError(thrown);
      const held = this.#held;
      const change = changeAfterFailure(this.#machine, this.#state, held?.claims, error);
      const isSaved = await this.#end(change);
      const unstored = this.#unstored;
      return { status: 'failed', error, lease: held, unstored, state: this.#state, isSaved };
    }
  }

  async #readState(): Promise<void> {
    const { files, clock, warn } = this.#machine;
    const { state, isSaved } = this.#latest;
    this.#before = isSaved
      ? await readState(files.state, (why) => {
          warn(`${why}; the file is written again`);
          return state;
        })
      : await withAnnounced(files.state, state);
    this.#state = this.#before;
    const now = clock();
    this.#earlier = this.#before.requests.filter((at) => at <= now && at > now - 3_600_000);
  }

  async #renew(): Promise<Outcome> {
    const { files, clock } = this.#machine;
    const license = await restoreKeyset(this.#machine, await this.#read(), this.#read);
    [this.#held] = license.leases;
    const { isSaved } = this.#latest;
    const key = await readDeviceKey(files.key);
    if (key === undefined) return this.#notDue({ at: null, because: 'not_enrolled' }, isSaved);
    const plan = this.#plan();
    if (!isDue(plan, clock())) return this.#notDue(plan, isSaved);

    const { signal } = this.#options;
    const onRequest = (): void => this.#countRequest();
    const server = connectAsDevice({ ...this.#machine, onRequest, signal }, key);
    // All requests that this attempt may send count from now on, even if it is killed: otherwise a
    // daemon that is restarted again and again could exceed the hourly limit.
    const reserved = Array.from({ length: MOST_REQUESTS_PER_ATTEMPT }, clock);
    await this.#save({ requests: [...this.#earlier, ...reserved] });
    if (license.trusted !== undefined) return this.#renewWith(server, key, license);
    const completed = await this.#fetchMissingKeys(server, license);
    const again = this.#plan();
    if (completed === undefined || isDue(again, clock())) {
      return this.#renewWith(server, key, completed ?? license);
    }
    return this.#notDue(again, await this.#end({}));
  }

  /**
   * Fetches the keys of a machine that has none, because a request without its lease would look like
   * one from a copied device key. Returns undefined if the keys verify no lease here: then they are
   * stored only with a lease from the server, which proves that the server knows this device.
   */
  async #fetchMissingKeys(server: Client, license: License): Promise<License | undefined> {
    const { files, clock } = this.#machine;
    const keys = this.#judge(await fetchKeyset(server), license);
    if (!(await verifiesLease(files, keys.text, clock()))) return undefined;
    await storeKeyset(files.keyset, keys.text);
    warnOfFirstContact(this.#machine, keys);
    const completed = await this.#read();
    [this.#held] = completed.leases;
    return completed;
  }

  async #renewWith(server: Client, { device_id }: DeviceKey, license: License): Promise<Outcome> {
    const { clock, warn } = this.#machine;
    const held = this.#held;
    const store = (pending: DaemonState['pending']): Promise<void> => this.#save({ pending });
    const { answer, pending } = await requestLease(server, this.#state.pending, held, store);
    const keys = this.#judge(await fetchKeyset(server), license);
    const { owner } = license;
    const ownId = pending.without_lease ? undefined : held?.claims.deployment_id;
    const ownIssuer = owner?.issuer ?? held?.claims.issuer;
    const kept = keptLease(this.#machine, answer.text, keys, license, {
      renewal_id: pending.renewal_id,
      device_thumbprint: device_id,
      deployment_id: owner?.installationId ?? ownId,
      issuer: this.#options.keyset === undefined ? ownIssuer : undefined,
    });
    this.#refuseWorse(kept.lease);
    await this.#store(kept, keys);
    for (const { detail } of answer.warnings) warn(detail);
    const { lease, accepted } = kept;
    const { refused } = keys;
    const isSaved = await this.#end({
      ...changeAfterSuccess(this.#machine, this.#before, lease.claims),
      refused_keyset: refused
        ? { at: formatTime(clock()), reason: refused.reason ?? '', message: refused.message }
        : null,
    });
    const { limits } = answer;
    const state = this.#state;
    return { status: 'renewed', lease, accepted, refusedKeyset: refused, limits, state, isSaved };
  }

  #judge(document: unknown, license: License): RenewalKeys {
    return judgePublishedKeys(this.#machine, document, license, this.#options.keyset);
  }

  /** @throws ServiceError `invalid_data`, reason `older_lease` */
  #refuseWorse(lease: HeldLease): void {
    const { clock, boot } = this.#machine;
    const held = this.#held;
    if (held === undefined) return;
    const before = this.#before.running_time ?? undefined;
    const running = runningTime(before, held.claims.lease_id, boot());
    if (byWorth(clock(), running)(lease, held) > 0) throw olderLease(lease.claims, held.claims);
  }

  async #store(kept: KeptLease, keys: RenewalKeys): Promise<void> {
    const { files } = this.#machine;
    const { lease, accepted } = kept;
    this.#unstored = kept;
    if (this.#options.keyset !== undefined && accepted.anchor !== undefined) {
      await this.#save({ announced_anchor: newAnnouncement(accepted.anchor) });
    }
    if (keys.refused === undefined) {
      const { document: keyset, anchor: root } = accepted;
      await storeLicense(files, { lease: lease.text, keyset, root }, this.#held?.path);
    } else {
      await storeLease(files.lease, lease.text);
    }
    warnOfFirstContact(this.#machine, keys);
    await dropFormerKey(files, lease.claims);
  }

  #plan(): Plan {
    const { clock, boot } = this.#machine;
    const [lease, state] = [this.#held?.claims, this.#before];
    const circumstances = { isDevice: true, lease, state, now: clock(), boot: boot() };
    return planAttempt(circumstances, this.#options.force ? 'none' : 'usual');
  }

  #notDue({ at, because }: Plan, isSaved: boolean): Outcome {
    const [lease, state] = [this.#held, this.#state];
    return { status: 'not_due', because, next: at, lease, state, isSaved };
  }

  #countRequest(): void {
    if (this.#sent.length === MOST_REQUESTS_PER_ATTEMPT) {
      throw new ServiceError(
        'rate_limited',
        'the attempt needed more requests than one attempt may send',
        {
          reason: 'attempt_limit',
        },
      );
    }
    this.#sent.push(this.#machine.clock());
  }

  async #save(change: Partial<DaemonState>): Promise<void> {
    this.#state = { ...this.#state, ...change };
    await writeState(this.#machine.files.state, this.#state);
  }

  /** Saves the last change, and returns whether that succeeded. */
  async #end(change: Partial<DaemonState>): Promise<boolean> {
    try {
      await this.#save({ requests: [...this.#earlier, ...this.#sent], ...change });
      return true;
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      return false;
    }
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

function olderLease(claims: LeaseClaims, held: LeaseClaims): ServiceError {
  const datesOf = ({ issued_at, expires_at }: LeaseClaims): string =>
    `issued at ${issued_at} and expires at ${expires_at}`;
  const detail = `it was ${datesOf(claims)}, but the held lease was ${datesOf(held)}`;
  return unusable('lease', { reason: 'older_lease', detail });
}

/** Converts any error, because an unexpected one must not end the daemon either. */
export function asServiceError(thrown: unknown): ServiceError {
  if (thrown instanceof ServiceError) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new ServiceError('failure', message, { cause: thrown });
}
