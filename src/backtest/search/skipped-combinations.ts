/** Distinct reasons that are kept. */
const MAX_REASONS = 20;

export interface SkipReason {
  readonly reason: string;
  readonly count: number;
}

/** Combinations of parameters that the strategy does not accept, by reason. */
export class SkippedCombinations {
  readonly #counts = new Map<string, number>();
  #total = 0;

  add(reason: string): void {
    this.#total += 1;
    const known = this.#counts.get(reason);
    if (known !== undefined) this.#counts.set(reason, known + 1);
    else if (this.#counts.size < MAX_REASONS) this.#counts.set(reason, 1);
  }

  get total(): number {
    return this.#total;
  }

  /** The first 20 reasons, in the order in which they occurred. */
  get reasons(): readonly SkipReason[] {
    return Array.from(this.#counts, ([reason, count]) => ({ reason, count }));
  }
}
