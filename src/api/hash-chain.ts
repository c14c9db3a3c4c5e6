/** Requests and pages of logs in a hash chain. */
import { z } from '@hono/zod-openapi';
import { page, pageQuery } from './http.ts';

/** Query parameters of a log in a hash chain, which is read from its first entry. */
export const chainQuery = {
  after_seq: z.coerce
    .number()
    .int()
    .min(0)
    .default(0)
    .describe('Sequence number of the last known entry: `next_cursor` of the previous page.'),
  limit: pageQuery.limit,
} as const;

export const chainHead = z.strictObject({ seq: z.int(), hash: z.string() });

/** A page of a log in a hash chain. */
export function chainPage<T extends z.ZodType>(entry: T) {
  return page(entry).extend({
    head: chainHead.describe('The last entry at the time of the response.'),
  });
}
