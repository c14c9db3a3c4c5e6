interface Entry {
  readonly time: number;
  readonly ordinal: number;
  readonly task: (item: unknown) => void;
  readonly item: unknown;
}

/**
 * Virtual time: what is to happen, by when it is due, and at one instant in the order in which it was
 * put down. Time passes only from one entry to the next.
 */
export class Agenda {
  /** A heap: each entry is due no later than the two at twice its place and one and two beyond. */
  readonly #entries: Entry[] = [];
  #now: number;
  #ordinal = 0;

  /** @param start ms since the epoch. */
  constructor(start: number) {
    this.#now = start;
  }

  get now(): number {
    return this.#now;
  }

  /** @param time what lies in the past is due at once. */
  at(time: number, task: () => void): void {
    this.post(time, task, undefined);
  }

  /** As `at`, of something that the task is about: no closure has to be made for each. */
  post<T>(time: number, task: (item: T) => void, item: T): void {
    const entries = this.#entries;
    const entry: Entry = {
      time: Math.max(time, this.#now),
      ordinal: this.#ordinal,
      task: task as Entry['task'],
      item,
    };
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

  /** Does what is due next, unless that is later than `until`; false where there is nothing. */
  step(until = Infinity): boolean {
    const next = this.#entries[0];
    if (next === undefined || next.time > until) return false;
    this.#removeFirst();
    this.#now = next.time;
    next.task(next.item);
    return true;
  }

  /** Does all that is due by then, and then it is that time. */
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
