import { DAY } from '../base/durations.ts';
import { createHash } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { ServiceError } from '../base/errors.ts';
import type { Caller } from '../identity/tokens.ts';

/** Prometheus gives up after ten seconds by default. */
const WAIT_MS = 1_000;
/** Time after its last check for which a token is accepted while it cannot be checked, ms. */
const KNOWN_FOR_MS = DAY;
const MOST_KNOWN = 100;

/**
 * Authenticates callers of a route that must answer while the database does not: a token that this
 * process has checked within a day is accepted until it can be checked again. Use it only for
 * routes that expose no data from the database.
 */
export class KnownCallers {
  /** By SHA-256 of the token, least recently checked first. */
  readonly #known = new Map<string, { readonly caller: Caller; readonly checkedAt: number }>();
  readonly #clock: () => number;

  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /** @throws the error of `check` for an unknown or rejected token. */
  async identify(token: string, check: () => Promise<Caller>): Promise<Caller> {
    const hash = createHash('sha256').update(token).digest('hex');
    const known = this.#known.get(hash);
    const checking = this.#checked(hash, check);
    const isKnown = known !== undefined && Math.abs(this.#clock() - known.checkedAt) < KNOWN_FOR_MS;
    if (!isKnown) return checking;
    const caller = await Promise.race([
      checking.catch((error: unknown) => {
        if (isUnavailable(error)) return undefined;
        throw error;
      }),
      wait(WAIT_MS, undefined, { ref: false }),
    ]);
    return caller ?? known.caller;
  }

  async #checked(hash: string, check: () => Promise<Caller>): Promise<Caller> {
    try {
      const caller = await check();
      this.#known.delete(hash);
      this.#known.set(hash, { caller, checkedAt: this.#clock() });
      if (this.#known.size > MOST_KNOWN) this.#known.delete(this.#known.keys().next().value!);
      return caller;
    } catch (error) {
      if (!isUnavailable(error)) this.#known.delete(hash);
      throw error;
    }
  }
}

function isUnavailable(error: unknown): boolean {
  return error instanceof ServiceError && error.code === 'storage_unavailable';
}
