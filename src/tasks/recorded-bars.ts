import { sql } from 'kysely';
import { prepared } from '../storage/prepared.ts';
import type { Db } from '../storage/tables.ts';

/** Little enough to be read and handed on between other work. */
const PAGE = 500;

/**
 * The payloads of the `data.bars` events of a paper session, in order, a page for each call; none
 * after the last.
 */
export function recordedBars(db: Db, run_id: string): () => Promise<readonly string[]> {
  let after_seq = 0;
  return async () => {
    const rows = await selectBars(db, { run_id, after_seq });
    after_seq = rows.at(-1)?.seq ?? after_seq;
    return rows.map(({ payload }) => payload);
  };
}

const selectBars = prepared(
  (db, { run_id, after_seq }: { readonly run_id: string; readonly after_seq: number }) =>
    db
      .selectFrom('bot_events')
      .select(['seq', 'payload'])
      .where('run_id', '=', run_id)
      // As the index says it, by a value that the database knows when it plans.
      .where('kind', '=', sql.lit('data.bars'))
      .where('seq', '>', after_seq)
      .orderBy('seq')
      .limit(PAGE),
);
