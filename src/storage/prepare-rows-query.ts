import {
  PostgresAdapter,
  sql,
  type Compilable,
  type InsertQueryBuilder,
  type InsertResult,
  type RawBuilder,
} from 'kysely';
import { prepareBatchQuery } from './prepare-batch-query.ts';
import { prepareQuery } from './prepare-query.ts';
import type { Db, Tables } from './tables.ts';

export type ColumnType = 'text' | 'bigint' | 'integer' | 'bytea';

/**
 * Prepares a query over many rows, such as an insert. PostgreSQL gets them in one statement, with an
 * array for each column, and SQLite as `prepareBatchQuery` does.
 *
 * ```ts
 * const renamePlans = prepareRowsQuery<Pick<PlansTable, 'plan_id' | 'name'>>(
 *   { plan_id: 'text', name: 'text' },
 *   (db, rows) =>
 *     db
 *       .updateTable('plans')
 *       .from(rows.as('given'))
 *       .set((of) => ({ name: of.ref('given.name') }))
 *       .whereRef('plans.plan_id', '=', 'given.plan_id'),
 * );
 * await renamePlans(tx, [{ plan_id: 'pro', name: 'Pro' }]);
 * ```
 *
 * @param columns of the rows, with their types on PostgreSQL.
 * @param build receives a table expression with the rows.
 * @returns a function that runs the query and returns its rows.
 */
export function prepareRowsQuery<Row extends object, Result = unknown>(
  columns: Readonly<Record<keyof Row & string, ColumnType>>,
  build: (db: Db, rows: RawBuilder<Row>) => Compilable<Result>,
): (db: Db, rows: readonly Row[]) => Promise<Result[]> {
  const names = Object.keys(columns) as (keyof Row & string)[];
  const ids = names.map((name) => sql.id(name));
  const onPostgres = prepareQuery((db, values: { readonly [name: string]: unknown }) => {
    const arrays = names.map((name) => sql`cast(${values[name]} as ${sql.raw(columns[name])}[])`);
    return build(
      db,
      sql<Row>`(select * from unnest(${sql.join(arrays)}) as given (${sql.join(ids)}))`,
    );
  });
  const onSqlite = prepareBatchQuery<Row, Result>(names, (db, rows) => {
    const renamed = ids.map((id, i) => sql`${sql.raw(`column${i + 1}`)} as ${id}`);
    const values = rows.map((row) => sql`(${sql.join(names.map((name) => row[name]))})`);
    return build(db, sql<Row>`(select ${sql.join(renamed)} from (values ${sql.join(values)}))`);
  });
  return async (db, rows) => {
    if (rows.length === 0) return [];
    if (isPostgres(db)) {
      const arrays = names.map((name) => [name, rows.map((row) => row[name])] as const);
      return onPostgres(db, Object.fromEntries(arrays));
    }
    return onSqlite(db, rows);
  };
}

/**
 * Prepares an insert of many rows.
 *
 * @param columns all columns of the table, with their types on PostgreSQL.
 * @param conflict adds a conflict clause.
 */
export function prepareInsert<Table extends keyof Tables>(
  table: Table,
  columns: Readonly<Record<keyof Tables[Table] & string, ColumnType>>,
  conflict: (insert: Insert<Table>) => Insert<Table> = (insert) => insert,
): (db: Db, rows: readonly Tables[Table][]) => Promise<unknown> {
  const names = Object.keys(columns) as (keyof Tables[Table] & string)[];
  const onPostgres = prepareRowsQuery<Tables[Table] & object>(columns, (db, rows) => {
    const given = db.selectFrom(rows.as('given')).selectAll();
    return conflict(
      insertInto(db, table)
        .columns(names)
        .expression(given as never),
    );
  });
  // A third faster on SQLite than an insert from a table expression.
  const onSqlite = prepareBatchQuery<Tables[Table] & object>(names, (db, rows) =>
    conflict(insertInto(db, table).values(rows as never)),
  );
  return (db, rows) => (isPostgres(db) ? onPostgres : onSqlite)(db, rows);
}

type Insert<Table extends keyof Tables> = InsertQueryBuilder<Tables, Table, InsertResult>;

function insertInto<Table extends keyof Tables>(db: Db, table: Table): Insert<Table> {
  return db.insertInto(table);
}

/** Whether a statement needs a round trip. */
export function isPostgres(db: Db): boolean {
  return db.getExecutor().adapter instanceof PostgresAdapter;
}
