export interface CachedFigures {
  /** Reads the figures again if they are too old. Never rejects. */
  readonly refresh: () => Promise<void>;
  /** Removes the figures, and reads them at the next refresh. */
  readonly drop: () => void;
}

/** Figures from the database that are too expensive to be read for every scrape. */
export function cachedFigures<T>({
  freshMs,
  clock,
  read,
  show,
  drop,
}: {
  /** Minimum age before the figures are read again, ms. */
  readonly freshMs: number;
  readonly clock: () => number;
  readonly read: () => Promise<T>;
  /** Exports the figures. */
  readonly show: (figures: T) => void;
  /** Removes exported figures, because stale ones would mislead. */
  readonly drop: () => void;
}): CachedFigures {
  let last: { readonly at: number; readonly done: Promise<void> } | undefined;
  const forget = (): void => {
    drop();
    last = undefined;
  };
  return {
    refresh() {
      const now = clock();
      if (last === undefined || Math.abs(now - last.at) >= freshMs) {
        last = { at: now, done: read().then(show).catch(forget) };
      }
      return last.done;
    },
    drop: forget,
  };
}
