/** When an observer first saw the present value of a heartbeat, in milliseconds of its own clock. */
interface Seen {
  readonly value: string;
  readonly since: number;
}

/**
 * Measures how long heartbeats have stayed the same, by the clock of the process that reads them.
 * Their values come from the clocks of other machines, which may be wrong, so they are only compared
 * for equality. That clock is `performance.now()` rather than `msSince`: a calendar that is set ahead,
 * or a suspend of the whole machine, must not make a live worker look dead.
 */
export class SilenceWatch {
  #seen: ReadonlyMap<string, Seen> = new Map();

  /**
   * Takes all present heartbeats, by their owners; an owner that is missing is forgotten.
   * @returns for each owner, for how many milliseconds its heartbeat has not changed.
   */
  observe(heartbeats: ReadonlyMap<string, string>): ReadonlyMap<string, number> {
    const now = performance.now();
    const seen = new Map<string, Seen>();
    for (const [owner, value] of heartbeats) {
      const before = this.#seen.get(owner);
      seen.set(owner, before?.value === value ? before : { value, since: now });
    }
    this.#seen = seen;
    return new Map([...seen].map(([owner, { since }]) => [owner, now - since]));
  }

  /** Starts over, as after an outage in which no heartbeat could be written. */
  reset(): void {
    this.#seen = new Map();
  }
}
