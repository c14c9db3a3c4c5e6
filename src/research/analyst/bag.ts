import type { Slot, Tag, ValueOf } from './tags.ts';

/** Tags of a question, of which a builder takes those that it uses. */
export class Bag {
  readonly #tags: readonly Tag[];
  readonly #used = new Set<Tag>();

  constructor(tags: readonly Tag[]) {
    this.#tags = tags;
  }

  #of<S extends Slot>(slot: S): Tag<S>[] {
    return this.#tags.filter((tag): tag is Tag<S> => tag.slot === slot && !this.#used.has(tag));
  }

  /** The value of a slot, if it has one value, and one of `values` if given. */
  take<S extends Slot>(slot: S, ...values: readonly ValueOf<S>[]): ValueOf<S> | undefined {
    const found = this.peek(slot);
    if (found === undefined || (values.length > 0 && !values.includes(found))) return undefined;
    for (const tag of this.#of(slot)) this.#used.add(tag);
    return found;
  }

  peek<S extends Slot>(slot: S): ValueOf<S> | undefined {
    const all = this.#of(slot);
    const values = new Set(all.map(({ value }) => JSON.stringify(value)));
    return values.size === 1 ? (all[0]!.value as ValueOf<S>) : undefined;
  }

  takeAll<S extends Slot>(slot: S): ValueOf<S>[] {
    const all = this.#of(slot);
    for (const tag of all) this.#used.add(tag);
    return all.map(({ value }) => value as ValueOf<S>);
  }

  has(slot: Slot): boolean {
    return this.#of(slot).length > 0;
  }

  /** Words of the last phrase of a slot, also of a used one. */
  text(slot: Slot): string {
    return this.#tags.findLast((tag) => tag.slot === slot)?.text ?? '';
  }

  /** Place of the last phrase of a slot in the question; −1 without one. */
  at(slot: Slot): number {
    return this.#tags.findLast((tag) => tag.slot === slot)?.at ?? -1;
  }

  left(): Tag[] {
    return this.#tags.filter((tag) => !this.#used.has(tag));
  }
}
