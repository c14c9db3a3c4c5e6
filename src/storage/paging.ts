import { createHash } from 'node:crypto';
import { sql, type RawBuilder, type SelectQueryBuilder } from 'kysely';
import { ServiceError } from '../base/errors.ts';
import type { Tables } from './tables.ts';

export interface Page<T> {
  readonly items: readonly T[];
  /** Cursor of the next page; null on the last page. */
  readonly next_cursor: string | null;
}

export interface PageRequest {
  readonly limit: number;
  /** `next_cursor` of the previous page; absent for the first page. */
  readonly cursor?: string | undefined;
}

/** Name of a list and the values of its filter: `['contracts', customer_id]`. */
export type List = readonly [name: string, ...filter: (string | undefined)[]];

/**
 * Reads one page of a list that is ordered by id. A cursor refers to an id and not to a position, so
 * that no item is repeated or skipped when others are added or removed.
 *
 * @param read returns at most `limit` items, those after the id `after` if it is given.
 * @throws ServiceError `invalid_request` for a cursor of another list or filter.
 */
export async function readPage<T>(
  list: List,
  { limit, cursor }: PageRequest,
  idOf: (item: T) => string,
  read: (after: string | undefined, limit: number) => Promise<readonly T[]>,
): Promise<Page<T>> {
  const after = cursor === undefined ? undefined : idAt(list, cursor);
  const found = await read(after, limit + 1);
  const items = found.slice(0, limit);
  return { items, next_cursor: found.length > limit ? cursorAt(list, idOf(items.at(-1)!)) : null };
}

/** A selected column with an id; `column` is its qualified name in a query of several tables. */
type IdColumn<Id extends string> = Id | { readonly name: Id; readonly column: string };

function idColumn<Id extends string>(id: IdColumn<Id>) {
  const { name, column } = typeof id === 'string' ? { name: id, column: id } : id;
  return { name, column: sql.ref<string>(column) };
}

/** Like `readPage`, for the rows of a query, ordered by the column `id`. */
export async function readRowsPage<
  T extends keyof Tables,
  Row extends Record<Id, string>,
  Id extends string,
>(
  list: List,
  request: PageRequest,
  query: SelectQueryBuilder<Tables, T, Row>,
  id: IdColumn<Id>,
  order: 'asc' | 'desc' = 'asc',
): Promise<Page<Row>> {
  const { name, column } = idColumn(id);
  const isBeyond = order === 'asc' ? '>' : '<';
  return readPage(
    list,
    request,
    (row) => row[name],
    async (after, limit) => {
      const rest = after === undefined ? query : query.where(column, isBeyond, after);
      return rest.orderBy(column, order).limit(limit).execute();
    },
  );
}

function withoutNumber<Row extends { readonly page_number: unknown }>(row: Row) {
  const { page_number: _number, ...rest } = row;
  return rest;
}

/**
 * Like `readRowsPage`, ordered by a number and, for the same number, by id, both descending.
 * @param by the number; rows for which it is null come last.
 */
export async function readNumberedPage<
  T extends keyof Tables,
  Row extends Record<Id, string>,
  Id extends string,
>(
  list: List,
  request: PageRequest,
  query: SelectQueryBuilder<Tables, T, Row>,
  id: IdColumn<Id>,
  by: RawBuilder<number | null>,
): Promise<Page<Row>> {
  const { name, column } = idColumn(id);
  const numbered = query.select(by.as('page_number'));
  const beyond = (after: string) => {
    const [number = '', last] = after.split('~');
    if (number === '') return sql<boolean>`${by} is null and ${column} < ${last}`;
    return sql<boolean>`(${by} < ${Number(number)} or ${by} is null
      or (${by} = ${Number(number)} and ${column} < ${last}))`;
  };
  const { items, next_cursor } = await readPage<Row & { readonly page_number: number | null }>(
    list,
    request,
    (row) => `${row.page_number ?? ''}~${row[name]}`,
    async (after, limit) => {
      const rest = after === undefined ? numbered : numbered.where(beyond(after));
      const rows = await rest
        .orderBy(by, (order) => order.desc().nullsLast())
        .orderBy(column, 'desc')
        .limit(limit)
        .execute();
      return rows;
    },
  );
  return { items: items.map(withoutNumber) as never, next_cursor };
}

const DIGEST_BYTES = 16;

/** Other ids cannot exist; PostgreSQL would report an error for a NUL in a text. */
const ID = /^[!-~]{1,128}$/;

/** Binds the cursor to its list by a digest, which need not be secret: forging it gains nothing. */
function cursorAt(list: List, id: string): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([list, id]))
    .digest();
  return Buffer.concat([digest.subarray(0, DIGEST_BYTES), Buffer.from(id)]).toString('base64url');
}

function idAt(list: List, cursor: string): string {
  const id = Buffer.from(cursor, 'base64url').subarray(DIGEST_BYTES).toString();
  if (ID.test(id) && cursorAt(list, id) === cursor) return id;
  throw new ServiceError('invalid_request', 'the cursor does not belong to this list and filter', {
    remedy:
      'Pass next_cursor of the previous page with the same filter, or omit the cursor to get the first page.',
  });
}
