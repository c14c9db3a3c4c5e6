import { sql, type SelectQueryBuilder } from 'kysely';
import { prepareQuery } from './prepare-query.ts';
import { isPostgres, prepareInsert } from './prepare-rows-query.ts';
import type { Db, Tables } from './tables.ts';

interface Shared<Item, Result> {
  readonly items: Item[];
  readonly result: Promise<Result>;
}

/**
 * Makes one query of calls that are made at the same time, because on PostgreSQL each statement takes
 * longer than its work. The query starts after the calls, so that each sees what was committed, or
 * written in its transaction, before. If the query fails, all of its calls fail.
 *
 * @param run runs one query for all items. On SQLite, which has no round trips, it gets one.
 * @returns a function for one item, with the result for all items of the query.
 */
export function shareQuery<Item, Result>(
  run: (db: Db, items: readonly Item[]) => Promise<Result>,
): (db: Db, item: Item) => Promise<Result> {
  const open = new WeakMap<Db, Shared<Item, Result>>();
  const runOnce = async (db: Db, items: readonly Item[]): Promise<Result> => {
    // Jobs of a write proceed together; requests arrive one after the other in a turn of the loop.
    await (db.isTransaction ? undefined : new Promise(setImmediate));
    open.delete(db);
    return run(db, items);
  };
  return (db, item) => {
    if (!isPostgres(db)) return run(db, [item]);
    const shared = open.get(db);
    if (shared !== undefined) {
      shared.items.push(item);
      return shared.result;
    }
    const items = [item];
    // `runOnce` suspends before it deletes this.
    const result = runOnce(db, items);
    open.set(db, { items, result });
    return result;
  };
}

/**
 * Prepares a query for the row of a text key, in which concurrent calls share.
 *
 * @param column that holds the key, with its table.
 * @param build selects all rows with that column.
 */
export function prepareSharedRead<Column extends string, Row extends Record<Column, string>>(
  column: `${string}.${Column}`,
  build: (db: Db) => SelectQueryBuilder<never, never, Row>,
): (db: Db, key: string) => Promise<Row | undefined> {
  const name = column.slice(column.indexOf('.') + 1) as Column;
  const of = sql.ref(column);
  const selectOne = prepareQuery((db, { key }: { readonly key: string }) =>
    build(db).where(sql<boolean>`${of} = ${key}`),
  );
  const selectAll = prepareQuery((db, { keys }: { readonly keys: readonly string[] }) =>
    build(db).where(sql<boolean>`${of} = any(cast(${keys} as text[]))`),
  );
  const readAll = shareQuery(async (db, keys: readonly string[]) => {
    const rows = await selectAll(db, { keys: [...new Set(keys)] });
    return new Map<string, Row>(rows.map((row) => [row[name], row]));
  });
  return async (db, key) =>
    isPostgres(db) ? (await readAll(db, key)).get(key) : (await selectOne(db, { key }))[0];
}

/** Prepares an insert as `prepareInsert` does, in which concurrent calls share. */
export function prepareSharedInsert<Table extends keyof Tables>(
  ...insert: Parameters<typeof prepareInsert<Table>>
): (db: Db, rows: readonly Tables[Table][]) => Promise<unknown> {
  const insertRows = prepareInsert<Table>(...insert);
  return shareQuery((db, lists: readonly (readonly Tables[Table][])[]) =>
    insertRows(db, lists.flat()),
  );
}
