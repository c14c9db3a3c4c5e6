interface Entry {
  readonly time: number;
  readonly ordinal: number;
  readonly task: () => void;
}

/**
 * Virtual time: a queue of tasks by due time; tasks of the same time run in the order in which they
 * were added. Time advances only from one task to the next.
 */
export class Agenda {
  /** Binary heap: each entry is due no later than the entries at 2 × index + 1 and + 2. */
  readonly #entries: Entry[] = [];
  #now: number;
  #ordinal = 0;

  /** @param start milliseconds since the epoch. */
  constructor(start: number) {
    this.#now = start;
  }

  get now(): number {
    return this.#now;
  }

  /** @param time a past time is due now. */
  wake(time: number, task: () => void): void {
    const entries = this.#entries;
    const entry: Entry = { time: Math.max(time, this.#now), ordinal: this.#ordinal, task };
    this.#ordinal += 1;
    let at = entries.length;
    entries.push(entry);
    while (at > 0) {
      const parent = (at - 1) >>> 1;
      if (!isBefore(entry, entries[parent]!)) break;
      entries[at] = entries[parent]!;
      at = parent;
    }
    entries[at] = entry;
  }

  /** Runs the next task, unless it is due after `until`. @returns false if no task was due. */
  step(until = Infinity): boolean {
    const next = this.#entries[0];
    if (next === undefined || next.time > until) return false;
    this.#removeFirst();
    this.#now = next.time;
    next.task();
    return true;
  }

  /** Runs all tasks that are due by then, and advances the time to it. */
  run(until: number): void {
    while (this.step(until));
    this.#now = Math.max(this.#now, until);
  }

  #removeFirst(): void {
    const entries = this.#entries;
    const last = entries.pop()!;
    const { length } = entries;
    if (length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= length) break;
      if (child + 1 < length && isBefore(entries[child + 1]!, entries[child]!)) child += 1;
      if (!isBefore(entries[child]!, last)) break;
      entries[at] = entries[child]!;
      at = child;
    }
    entries[at] = last;
  }
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.time < b.time || (a.time === b.time && a.ordinal < b.ordinal);
}
