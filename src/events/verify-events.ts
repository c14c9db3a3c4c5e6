import { type ChainHead, GENESIS, endFault, entryFault } from '../base/hash-chain.ts';
import { setImmediate } from 'node:timers/promises';
import type { BotSnapshotsTable, Db } from '../storage/tables.ts';
import { eventOf, hashOf, type EventFault } from './event.ts';
import { readArchivedState } from './archive/archived-events.ts';
import { hasPackedBeyondHead } from './packed-bar-rows.ts';
import { readRows } from './read-events.ts';
import { seqAt, type Moment } from './snapshot.ts';
import { changesState, digestOf, foldState, type BotState } from './bot-state.ts';

/** Result of reading every event of a log in the database without relying on snapshots. */
export interface VerifiedLog {
  readonly head: ChainHead;
  /** State after that event; undefined if none exists. */
  readonly state: BotState | undefined;
  readonly state_hash: string | undefined;
  /** Undefined if the log is intact. */
  readonly fault: EventFault | undefined;
  /** The last archived event, from which the state was taken; 0 if none is archived. */
  readonly archived_seq: number;
}

const PAGE = 1000;

/**
 * Reads the log of a bot from its first event that is not archived to a moment, checks that no event was
 * altered, removed, added or reordered, and computes the state. It yields to other work after each page.
 *
 * @throws ServiceError `not_found` if the bot or the event does not exist; `archived`.
 */
export async function verifyEvents(
  db: Db,
  bot_id: string,
  moment: Moment = 'head',
): Promise<VerifiedLog> {
  const until_seq = moment === 'head' ? undefined : (await seqAt(db, bot_id, moment)).seq;
  const archived = await readArchivedState(db, bot_id);
  let last: ChainHead = archived ? { seq: archived.seq, hash: archived.hash } : GENESIS;
  let state = archived && (JSON.parse(archived.state) as BotState | undefined);
  const conclude = (fault?: EventFault): VerifiedLog => ({
    head: last,
    state,
    state_hash: state && digestOf(state).hash,
    fault,
    archived_seq: archived?.seq ?? 0,
  });
  for (;;) {
    const range = { after_seq: last.seq, until_seq, limit: PAGE };
    const { rows, head } = await readRows(db, bot_id, range);
    const snapshots = await readSnapshots(db, bot_id, last.seq, rows.at(-1)?.seq ?? last.seq);
    for (const row of rows) {
      const fault = entryFault(row, last, hashOf);
      if (fault !== undefined) return conclude(fault);
      last = { seq: row.seq, hash: row.hash };
      // Parsing the payloads of all other events would double the time.
      if (changesState(row.kind)) state = foldState(state, eventOf(row));
      const snapshot = snapshots.get(row.seq);
      if (snapshot !== undefined && !matches(snapshot, state)) {
        return conclude({ seq: row.seq, fault: 'wrong_snapshot' });
      }
    }
    if (rows.length < PAGE) {
      const fault = endFault(last, head, until_seq);
      if (fault !== undefined || until_seq !== undefined) return conclude(fault);
      const isLonger = await hasPackedBeyondHead(db, bot_id);
      return conclude(isLonger ? { seq: last.seq + 1, fault: 'beyond_head' } : undefined);
    }
    await setImmediate();
  }
}

type Snapshot = Readonly<Omit<BotSnapshotsTable, 'bot_id'>>;

async function readSnapshots(
  db: Db,
  bot_id: string,
  after_seq: number,
  until_seq: number,
): Promise<ReadonlyMap<number, Snapshot>> {
  const snapshots = await db
    .selectFrom('bot_snapshots')
    .select(['seq', 'state', 'state_hash'])
    .where('bot_id', '=', bot_id)
    .where('seq', '>', after_seq)
    .where('seq', '<=', until_seq)
    .execute();
  return new Map(snapshots.map((snapshot) => [snapshot.seq, snapshot]));
}

function matches({ state: text, state_hash }: Snapshot, state: BotState | undefined): boolean {
  if (state === undefined) return false;
  const digest = digestOf(state);
  return text === digest.text && state_hash === digest.hash;
}
