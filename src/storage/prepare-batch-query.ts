import type { Compilable } from 'kysely';
import { prepareQuery } from './prepare-query.ts';
import type { Db } from './tables.ts';

/** The largest part is of 2^7 items. */
const PARTS = 8;

/**
 * A query over many items, such as an insert of rows, run in parts of 1, 2, 4 … 128 of them: so few
 * statements serve any number of items, each of them built once.
 *
 * @param width how many values an item has.
 * @param build gets stand-ins for the values of the items, of which it may look at none.
 * @returns runs it, for the rows of all parts.
 */
export function prepareBatchQuery<Row>(
  width: number,
  build: (db: Db, items: readonly (readonly unknown[])[]) => Compilable<Row>,
): (db: Db, items: readonly (readonly unknown[])[]) => Promise<Row[]> {
  const queries = Array.from({ length: PARTS }, (_, power) =>
    prepareQuery((db, values: readonly unknown[]) =>
      build(
        db,
        Array.from({ length: 2 ** power }, (_item, item) =>
          Array.from({ length: width }, (_value, i) => values[item * width + i]),
        ),
      ),
    ),
  );
  return async (db, items) => {
    const rows: Row[] = [];
    let done = 0;
    while (done < items.length) {
      const power = Math.min(Math.floor(Math.log2(items.length - done)), PARTS - 1);
      const values: unknown[] = [];
      for (const end = done + 2 ** power; done < end; done += 1) values.push(...items[done]!);
      rows.push(...(await queries[power]!(db, values)));
    }
    return rows;
  };
}
