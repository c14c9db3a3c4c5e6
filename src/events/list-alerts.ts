import { sql } from 'kysely';
import { readPage, type Page, type PageRequest } from '../storage/paging.ts';
import type { Db } from '../storage/tables.ts';
import type { RaisedAlert } from './raised-alerts.ts';

/** An event `alert.raised` of a bot, without its archived ones. */
export interface RecordedAlert extends Pick<RaisedAlert, 'control' | 'severity'> {
  readonly bot_id: string;
  readonly seq: number;
  readonly run_id: string | null;
  /** Milliseconds since the Unix epoch. */
  readonly recorded_at: number;
  /** Sequence number of the event that caused it. */
  readonly event_seq: number;
}

/** Lists the alerts of all bots, newest first. */
export async function listAlerts(db: Db, request: PageRequest): Promise<Page<RecordedAlert>> {
  return readPage(['alerts'], request, placeOf, async (after, limit) => {
    let query = db
      .selectFrom('bot_events')
      .select(['bot_id', 'seq', 'run_id', 'recorded_at', 'payload'])
      .where(isAlert)
      .orderBy('recorded_at', 'desc')
      .orderBy('bot_id', 'desc')
      .orderBy('seq', 'desc')
      .limit(limit);
    if (after !== undefined) {
      const [recorded_at, bot_id, seq] = after.split('.') as [string, string, string];
      query = query.where((eb) =>
        eb(
          eb.refTuple('recorded_at', 'bot_id', 'seq'),
          '<',
          eb.tuple(Number(recorded_at), bot_id, Number(seq)),
        ),
      );
    }
    const rows = await query.execute();
    return rows.map(({ payload, ...row }) => {
      const { control, severity, event_seq } = JSON.parse(payload) as RecordedAlert;
      return { ...row, control, severity, event_seq };
    });
  });
}

/** Counts the alerts of all bots since a time, ms since the Unix epoch, by severity. */
export async function countAlerts(
  db: Db,
  since: number,
): Promise<Readonly<Record<RaisedAlert['severity'], number>>> {
  const row = await db
    .selectFrom('bot_events')
    .select(({ fn }) => fn.countAll<number>().as('all'))
    .select(
      sql<number>`count(*) filter (where payload like '%"severity":"critical"%')`.as('critical'),
    )
    .where(isAlert)
    .where('recorded_at', '>', since)
    .executeTakeFirstOrThrow();
  const { all, critical } = row;
  return { critical, warning: all - critical };
}

/** Must match the condition of the partial index. */
const isAlert = sql<boolean>`kind = 'alert.raised'`;

function placeOf({ recorded_at, bot_id, seq }: RecordedAlert): string {
  return `${recorded_at}.${bot_id}.${seq}`;
}
