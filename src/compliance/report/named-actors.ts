import { withNames } from '../../identity/actor-names.ts';
import type { Db } from '../../storage/tables.ts';

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
