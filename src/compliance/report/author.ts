import type { Db } from '../../storage/tables.ts';
import { formatInstant } from './period.ts';

export type Author = Awaited<ReturnType<typeof readAuthor>>;

/** Reads how a report and the audit log name an administrator who acts at a time (ms since epoch). */
export async function readAuthor(tx: Db, now: number, administrator_id: string) {
  const { name } = await tx
    .selectFrom('administrators')
    .select('name')
    .where('administrator_id', '=', administrator_id)
    .executeTakeFirstOrThrow();
  const actor = `administrator:${administrator_id}` as const;
  return { now, at: formatInstant(now), name, actor, by: `${name} (${actor})` };
}
