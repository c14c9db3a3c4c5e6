/** Maximum length of a list in a report; longer lists are cut and their total is reported. */
export const MOST_LISTED = 200;

/** Cuts a list to `MOST_LISTED` items and keeps its total length. */
export function cutList<T>(all: readonly T[]) {
  return { total: all.length, items: all.slice(0, MOST_LISTED) };
}
