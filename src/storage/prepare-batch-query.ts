import type { Compilable } from 'kysely';
import { prepareQuery } from './prepare-query.ts';
import type { Db } from './tables.ts';

/** The largest statement takes 2^7 items. */
const SIZES = 8;

/**
 * Prepares a query over many items, such as an insert of rows. It runs in batches of 1, 2, 4 … 128
 * items, so that eight statements serve any number of items. In a write on PostgreSQL, the batches share
 * a round trip.
 *
 * @param names members of the items that the query needs.
 * @param build receives items with placeholders for these members, which it must not inspect.
 * @returns a function that runs the query and returns the rows of all batches.
 */
export function prepareBatchQuery<Item extends object, Row = unknown>(
  names: readonly (keyof Item & string)[],
  build: (db: Db, items: readonly Item[]) => Compilable<Row>,
): (db: Db, items: readonly Item[]) => Promise<Row[]> {
  const queries = Array.from({ length: SIZES }, (_, power) =>
    prepareQuery((db, values: readonly unknown[]) =>
      build(
        db,
        Array.from({ length: 2 ** power }, (_item, item) => {
          const members = names.map((name, i) => [name, values[item * names.length + i]] as const);
          return Object.fromEntries(members) as Item;
        }),
      ),
    ),
  );
  return async (db, items) => {
    const batches: Promise<Row[]>[] = [];
    let done = 0;
    while (done < items.length) {
      const power = Math.min(Math.floor(Math.log2(items.length - done)), SIZES - 1);
      const values: unknown[] = [];
      for (const end = done + 2 ** power; done < end; done += 1) {
        const item = items[done]!;
        for (const name of names) values.push(item[name]);
      }
      batches.push(queries[power]!(db, values));
    }
    return (await Promise.all(batches)).flat();
  };
}
