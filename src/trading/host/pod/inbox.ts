const MOST_BEHIND = 256;

/** Queue of items in the order of arrival. Items added with `putBehind` come after all others. */
export class Inbox<T> {
  readonly #ahead: T[] = [];
  readonly #behind: T[] = [];
  #news = Promise.withResolvers<void>();
  #room = Promise.withResolvers<void>();

  put(item: T): void {
    this.#ahead.push(item);
    this.#news.resolve();
  }

  /** Resolves once another item may be put behind. */
  putBehind(item: T): Promise<void> {
    this.#behind.push(item);
    this.#news.resolve();
    return this.#behind.length < MOST_BEHIND ? Promise.resolve() : this.#room.promise;
  }

  /** Resolves once the inbox has an item. */
  news(): Promise<void> {
    return this.#news.promise;
  }

  take(): T | undefined {
    const item = this.#ahead.shift() ?? this.#behind.shift();
    if (this.#behind.length < MOST_BEHIND) {
      this.#room.resolve();
      this.#room = Promise.withResolvers();
    }
    if (this.#ahead.length + this.#behind.length === 0) this.#news = Promise.withResolvers();
    return item;
  }
}
