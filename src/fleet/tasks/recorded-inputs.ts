import { readRows } from '../../events/read-events.ts';
import type { Db } from '../../storage/tables.ts';
import type { RecordedInput } from '../../trading/host/threads/session-work.ts';
import { SUPERVISION_KINDS } from '../../trading/session-supervision.ts';

/** Rows per page. Other work of the process runs between pages. */
const PAGE = 500;

/**
 * Reads the recorded inputs of a paper session in order. Each call returns a page; the page after
 * the last is empty.
 */
export function recordedInputs(
  db: Db,
  { bot_id, task_id: run_id }: { readonly bot_id: string; readonly task_id: string },
): () => Promise<readonly RecordedInput[]> {
  let after_seq = 0;
  let others: (RecordedInput & { readonly seq: number })[] | undefined;
  return async () => {
    others ??= await readOtherInputs(db, bot_id, run_id);
    const range = { after_seq, kinds: ['data.bars'], run_id, limit: PAGE };
    const { rows: bars } = await readRows(db, bot_id, range);
    after_seq = bars.at(-1)?.seq ?? after_seq;
    const isLast = bars.length < PAGE;
    // Inputs recorded before the last bar of this page.
    const count = isLast ? others.length : others.findLastIndex(({ seq }) => seq < after_seq) + 1;
    const some = others.splice(0, count);
    return [
      ...bars.map(({ seq, payload }) => ({ seq, payload, kind: 'data.bars' as const })),
      ...some,
    ].sort((a, b) => a.seq - b.seq);
  };
}

/** Reads all inputs but bars at once: there are few of them. */
async function readOtherInputs(db: Db, bot_id: string, run_id: string) {
  const rows = await db
    .selectFrom('bot_events')
    .select(['seq', 'kind', 'payload'])
    .where('bot_id', '=', bot_id)
    .where('kind', 'in', ['data.warm_up', ...SUPERVISION_KINDS])
    .where('run_id', '=', run_id)
    .orderBy('seq')
    .execute();
  return rows as (RecordedInput & { readonly seq: number })[];
}
