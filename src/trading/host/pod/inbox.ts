/** What waits to be taken, in the order in which it came, but bars after everything else; for one who takes. */
export interface Inbox<T> {
  readonly put: (item: T) => void;
  /** Puts what may wait for all else; resolves when so few of these wait that another may be put. */
  readonly putBehind: (item: T) => Promise<void>;
  /** Resolves once anything waits. */
  readonly news: () => Promise<void>;
  readonly take: () => T | undefined;
}

const MOST_BEHIND = 256;

export function newInbox<T>(): Inbox<T> {
  const ahead: T[] = [];
  const behind: T[] = [];
  let news = Promise.withResolvers<void>();
  let room = Promise.withResolvers<void>();
  return {
    put(item) {
      ahead.push(item);
      news.resolve();
    },
    putBehind(item) {
      behind.push(item);
      news.resolve();
      return behind.length < MOST_BEHIND ? Promise.resolve() : room.promise;
    },
    news: () => news.promise,
    take() {
      const item = ahead.shift() ?? behind.shift();
      if (behind.length < MOST_BEHIND) {
        room.resolve();
        room = Promise.withResolvers();
      }
      if (ahead.length + behind.length === 0) news = Promise.withResolvers();
      return item;
    },
  };
}
