import { sql } from 'kysely';
import { prepareQuery } from '../storage/prepare-query.ts';
import type { Db } from '../storage/tables.ts';
import { SUPERVISION_KINDS, type SupervisionInput } from './session-supervision.ts';

/** An event by which a paper session was told something. */
export interface RecordedInput {
  readonly kind: 'data.bars' | SupervisionInput['kind'];
  /** JSON. */
  readonly payload: string;
}

/** Little enough to be read and handed on between other work. */
const PAGE = 500;

/** What a paper session was told, in order, a page for each call; none after the last. */
export function recordedInputs(
  db: Db,
  { bot_id, task_id: run_id }: { readonly bot_id: string; readonly task_id: string },
): () => Promise<readonly RecordedInput[]> {
  let after_seq = 0;
  let supervision: (RecordedInput & { readonly seq: number })[] | undefined;
  return async () => {
    supervision ??= await readSupervisionInputs(db, bot_id, run_id);
    const bars = await selectBars(db, { run_id, after_seq });
    after_seq = bars.at(-1)?.seq ?? after_seq;
    const isLast = bars.length < PAGE;
    // What came before the bars that are the last of their page.
    const count = isLast
      ? supervision.length
      : supervision.findLastIndex(({ seq }) => seq < after_seq) + 1;
    const some = supervision.splice(0, count);
    return [...bars.map((row) => ({ ...row, kind: 'data.bars' as const })), ...some].sort(
      (a, b) => a.seq - b.seq,
    );
  };
}

/** There are few of them. */
async function readSupervisionInputs(db: Db, bot_id: string, run_id: string) {
  const rows = await db
    .selectFrom('bot_events')
    .select(['seq', 'kind', 'payload'])
    .where('bot_id', '=', bot_id)
    .where('kind', 'in', SUPERVISION_KINDS)
    .where('run_id', '=', run_id)
    .orderBy('seq')
    .execute();
  return rows as { seq: number; kind: SupervisionInput['kind']; payload: string }[];
}

const selectBars = prepareQuery(
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
