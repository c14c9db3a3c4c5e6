import { createHash } from 'node:crypto';
import { ServiceError } from '../base/errors.ts';

/** Part of a list, in the order of the list. */
export interface Page<T> {
  readonly items: readonly T[];
  /** For the part after this one; null when there is none. */
  readonly next_cursor: string | null;
}

export interface PageRequest {
  /** At most so many items, from 1. */
  readonly limit: number;
  /** `next_cursor` of the page before; the first page without one. */
  readonly cursor?: string | undefined;
}

/** A list and all that decides what is in it: `['contracts', customer_id]`. */
export type List = readonly [name: string, ...filter: (string | undefined)[]];

/**
 * One page of a list in the order of its ids, up or down. It goes on behind an id, not at a place in
 * the list: what is added or removed meanwhile makes no item come twice or be left out.
 *
 * @param read at most `limit` items, those behind the id `after` when given.
 * @throws ServiceError `invalid_request` for a cursor that is none of this very list.
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

const DIGEST_BYTES = 16;

/** PostgreSQL takes no text with a NUL, so that what no id can be is not asked for. */
const ID = /^[!-~]{1,128}$/;

/** Tells a cursor of one list from that of another. It is no secret: who makes one up gains nothing. */
function cursorAt(list: List, id: string): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([list, id]))
    .digest();
  return Buffer.concat([digest.subarray(0, DIGEST_BYTES), Buffer.from(id)]).toString('base64url');
}

function idAt(list: List, cursor: string): string {
  const id = Buffer.from(cursor, 'base64url').subarray(DIGEST_BYTES).toString();
  if (ID.test(id) && cursorAt(list, id) === cursor) return id;
  throw new ServiceError('invalid_request', 'the cursor is none of this list with this filter', {
    remedy: 'Pass next_cursor of the page before and the same filter, or no cursor to start anew.',
  });
}
