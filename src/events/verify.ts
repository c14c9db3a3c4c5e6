import { setImmediate } from 'node:timers/promises';
import type { BotSnapshotsTable, Db } from '../storage/tables.ts';
import { endFault, faultOf, type EventFault } from './chain.ts';
import { eventOf, GENESIS, type EventHead } from './event.ts';
import { readRows } from './read.ts';
import { seqAt, type Moment } from './snapshot.ts';
import { changesState, digestOf, foldState, type BotState } from './state.ts';

/** What a log comes to when every event of it is read, and no snapshot is trusted. */
export interface Replay {
  /** The last event that is good. */
  readonly head: EventHead;
  /** After that event; undefined when there is none. */
  readonly state: BotState | undefined;
  readonly state_hash: string | undefined;
  /** Undefined when all is as it was written. */
  readonly fault: EventFault | undefined;
}

const PAGE = 1000;

/**
 * Reads the log of a bot from its first event to a moment: whether nothing is altered, missing, added
 * or out of order, and what state it comes to. Others get their turn all the while, however long it is.
 *
 * @throws ServiceError `not_found` when there is no such bot or event.
 */
export async function verifyEvents(
  db: Db,
  bot_id: string,
  moment: Moment = 'head',
): Promise<Replay> {
  const until_seq = moment === 'head' ? undefined : (await seqAt(db, bot_id, moment)).seq;
  let last: EventHead = GENESIS;
  let state: BotState | undefined;
  const replay = (fault?: EventFault): Replay => ({
    head: last,
    state,
    state_hash: state && digestOf(state).hash,
    fault,
  });
  for (;;) {
    const range = { after_seq: last.seq, until_seq, limit: PAGE };
    const { rows, head } = await readRows(db, bot_id, range);
    const snapshots = await snapshotsIn(db, bot_id, last.seq, rows.at(-1)?.seq ?? last.seq);
    for (const row of rows) {
      const fault = faultOf(row, last);
      if (fault !== undefined) return replay(fault);
      last = { seq: row.seq, hash: row.hash };
      // To parse what changes nothing would take half the time.
      if (changesState(row.kind)) state = foldState(state, eventOf(row));
      const snapshot = snapshots.get(row.seq);
      if (snapshot !== undefined && !isOf(snapshot, state)) {
        return replay({ seq: row.seq, fault: 'wrong_snapshot' });
      }
    }
    if (rows.length < PAGE) return replay(endFault(last, until_seq ?? head.seq, head));
    await setImmediate();
  }
}

type Snapshot = Readonly<Omit<BotSnapshotsTable, 'bot_id'>>;

/** By `seq`. */
async function snapshotsIn(
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

function isOf({ state: text, state_hash }: Snapshot, state: BotState | undefined): boolean {
  if (state === undefined) return false;
  const digest = digestOf(state);
  return text === digest.text && state_hash === digest.hash;
}
