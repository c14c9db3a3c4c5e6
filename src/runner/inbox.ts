/** What waits to be taken, in the order in which it came; for one who takes. */
export interface Inbox<T> {
  readonly put: (item: T) => void;
  /** Resolves when not so many wait that who puts more should let them be taken first. */
  readonly room: () => Promise<void>;
  /** All that waits, once there is anything: at least one. */
  readonly take: () => Promise<T[]>;
}

const MOST_WAITING = 256;

export function newInbox<T>(): Inbox<T> {
  let waiting: T[] = [];
  let news = Promise.withResolvers<void>();
  let taken = Promise.withResolvers<void>();
  return {
    put(item) {
      waiting.push(item);
      news.resolve();
    },
    room: () => (waiting.length < MOST_WAITING ? Promise.resolve() : taken.promise),
    async take() {
      await news.promise;
      const items = waiting;
      waiting = [];
      news = Promise.withResolvers();
      taken.resolve();
      taken = Promise.withResolvers();
      return items;
    },
  };
}
