/** Limit on new orders and cancels of all accounts. */
export interface ThrottleTerms {
  readonly limit: number;
  readonly per_ms: number;
  /** Whether the rest is rejected, or waits. */
  readonly policy: 'reject' | 'queue';
}

export class Throttle {
  readonly #terms: ThrottleTerms;
  /** Times at which counted requests are processed, oldest first. */
  #times: number[] = [];

  constructor(terms: ThrottleTerms) {
    this.#terms = terms;
  }

  /** Counts a request. @returns time for which it waits, ms; undefined if it is rejected. */
  waitOf(now: number): number | undefined {
    const { limit, per_ms, policy } = this.#terms;
    this.#times = this.#times.filter((time) => time > now - per_ms);
    const { length } = this.#times;
    if (length >= limit && policy === 'reject') return undefined;
    const at = length < limit ? now : this.#times[length - limit]! + per_ms;
    this.#times.push(at);
    return at - now;
  }
}
