/** How actors and long lists appear in a report. */
import { withNames } from '../../identity/actor-names.ts';
import type { Db } from '../../storage/tables.ts';

/** Maximum length of a list in a report. */
export const MOST_LISTED = 200;

/** Cuts a list to `MOST_LISTED` items and keeps its total length. */
export function cutList<T>(all: readonly T[]) {
  return { total: all.length, items: all.slice(0, MOST_LISTED) };
}

/** Replaces the actors in `columns` by their current names, where they have one. */
export async function nameActors<T extends object>(
  db: Db,
  rows: readonly T[],
  ...columns: readonly (keyof T & string)[]
): Promise<T[]> {
  const named = await withNames(db, rows, ...columns);
  return rows.map((row, i) => {
    const names = columns.map((column) => [column, named[i]![`${column}_name`] ?? row[column]]);
    return { ...row, ...(Object.fromEntries(names) as Partial<T>) };
  });
}
