/** Parts of an archive: consecutive events of one bot and month, which one file holds. */
import { entryFault, GENESIS, type ChainHead } from '../../base/hash-chain.ts';
import { ServiceError } from '../../base/errors.ts';
import type { BotEventArchivesTable, BotEventsTable, Db } from '../../storage/tables.ts';
import { changesState, digestOf, foldState, type BotState } from '../bot-state.ts';
import { eventOf, hashOf, type EventFault } from '../event.ts';
import { BARS } from '../packed-bars.ts';
import { readHead, readRows } from '../read-events.ts';
import { readArchivedState } from './archived-events.ts';

/** Fields that identify and verify the events of a part. */
export type ArchivePart = Omit<
  BotEventArchivesTable,
  'file' | 'file_bytes' | 'file_sha256' | 'archived_at'
>;

/** Most events of a part, so that it fits into memory: a month of one session with bars of a minute. */
const MOST_EVENTS = 100_000;
const PAGE = 1000;

/** UTC month of a time, such as `2026-01`. */
function monthOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, -17);
}

/**
 * Reads and checks the events that follow the archived ones, up to the end of their month. The last
 * event of a log is never part of an archive.
 *
 * @param before only events recorded before this time, ms since the Unix epoch: the start of a month.
 * @returns undefined if nothing can be archived.
 * @throws ServiceError `events_tampered`
 */
export async function readNextPart(
  db: Db,
  bot_id: string,
  before: number,
  mostEvents = MOST_EVENTS,
): Promise<{ readonly part: ArchivePart; readonly rows: readonly BotEventsTable[] } | undefined> {
  const archived = await readArchivedState(db, bot_id);
  const first_seq = (archived?.seq ?? 0) + 1;
  const { seq: head_seq } = await readHead(db, bot_id);
  const until_seq = Math.min(head_seq, first_seq + mostEvents) - 1;
  const rows: BotEventsTable[] = [];
  for (;;) {
    const after_seq = first_seq - 1 + rows.length;
    if (after_seq >= until_seq) break;
    const page = await readRows(db, bot_id, { after_seq, until_seq, limit: PAGE });
    if (page.rows.length === 0) throw tampered(bot_id, { seq: after_seq + 1, fault: 'missing' });
    const month = monthOf((rows[0] ?? page.rows[0]!).recorded_at);
    const some = page.rows.findIndex(
      (row) => row.recorded_at >= before || monthOf(row.recorded_at) !== month,
    );
    rows.push(...(some < 0 ? page.rows : page.rows.slice(0, some)));
    if (some >= 0) break;
  }
  // A packed row may hold the bars and the state after them, which must stay together.
  if (rows.at(-1)?.seq === until_seq && rows.at(-1)!.kind === BARS) rows.pop();
  if (rows.length === 0) return undefined;
  const { prev_hash, recorded_at } = rows[0]!;
  const last = rows.at(-1)!;
  const state = stateAfter(rows, archived && (JSON.parse(archived.state) as BotState));
  const digest = digestOf(state);
  const part: ArchivePart = {
    bot_id,
    first_seq,
    last_seq: last.seq,
    month: monthOf(recorded_at),
    prev_hash,
    hash: last.hash,
    last_recorded_at: last.recorded_at,
    state: digest.text,
    state_hash: digest.hash,
  };
  const fault = findChainFault(part, rows);
  if (fault !== undefined) throw tampered(bot_id, fault);
  if (archived !== undefined && archived.hash !== prev_hash) {
    throw tampered(bot_id, { seq: first_seq, fault: 'not_linked' });
  }
  return { part, rows };
}

function stateAfter(rows: readonly BotEventsTable[], before: BotState | undefined): BotState {
  let state = before;
  for (const row of rows) if (changesState(row.kind)) state = foldState(state, eventOf(row));
  if (state === undefined) throw new RangeError('the first event of a bot must be bot.created');
  return state;
}

/** Finds the first event that was altered, removed, added or reordered. */
export function findChainFault(
  part: ArchivePart,
  rows: readonly BotEventsTable[],
): EventFault | undefined {
  let last: ChainHead = { seq: part.first_seq - 1, hash: part.prev_hash };
  for (const row of rows) {
    const fault = entryFault(row, last, hashOf);
    if (fault !== undefined) return fault;
    last = row;
  }
  if (last.seq < part.last_seq) return { seq: last.seq + 1, fault: 'missing' };
  if (last.seq > part.last_seq) return { seq: part.last_seq + 1, fault: 'beyond_head' };
  return last.hash === part.hash ? undefined : { seq: last.seq, fault: 'altered' };
}

/**
 * Checks the events of a part, and that they lead to its recorded state.
 * @param before the part before it; undefined for the first of the bot.
 */
export function findPartFault(
  part: ArchivePart,
  rows: readonly BotEventsTable[],
  before: ArchivePart | undefined,
): EventFault | undefined {
  const fault = findChainFault(part, rows);
  if (fault !== undefined) return fault;
  const linked = before ?? { last_seq: 0, hash: GENESIS.hash, state: undefined };
  if (linked.last_seq !== part.first_seq - 1) return { seq: part.first_seq, fault: 'missing' };
  if (linked.hash !== part.prev_hash) return { seq: part.first_seq, fault: 'not_linked' };
  const begun = linked.state === undefined ? undefined : (JSON.parse(linked.state) as BotState);
  const { text, hash } = digestOf(stateAfter(rows, begun));
  const isState = text === part.state && hash === part.state_hash;
  return isState ? undefined : { seq: part.last_seq, fault: 'wrong_snapshot' };
}

export function tampered(bot_id: string, { seq, fault }: EventFault): ServiceError {
  return new ServiceError('events_tampered', `event ${seq} of bot ${bot_id} is invalid: ${fault}`, {
    remedy: `Check the log with \`service-local bots replay ${bot_id}\`, and restore the database from a backup.`,
  });
}
