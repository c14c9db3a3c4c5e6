import { ServiceError } from '../base/errors.ts';
import { prepareQuery } from '../storage/prepare-query.ts';
import type { BotSnapshotsTable, Db } from '../storage/tables.ts';
import { placeAt, type PlaceInTime, type SeqSpan } from './clock-steps.ts';
import {
  archivedEventError,
  readArchivedState,
  readArchiveHead,
} from './archive/archived-events.ts';
import { readEvents, readHead, unknownBot } from './read-events.ts';
import { digestOf, foldState, STATE_KINDS, type BotState } from './bot-state.ts';

/**
 * A position in the log: after an event, at a time, or at its end. Times are milliseconds since the
 * Unix epoch; `now` is the reader's clock, see `placeAt`.
 */
export type Moment =
  | { readonly seq: number }
  | { readonly at: number; readonly now?: number }
  | 'head';

export interface StateAt {
  /** The last event included in the state. */
  readonly seq: number;
  readonly head_seq: number;
  readonly state: BotState;
  /** SHA-256, in hex, of the state in canonical JSON (RFC 8785). */
  readonly state_hash: string;
  /** See `placeAt`. */
  readonly in_doubt?: SeqSpan | undefined;
}

/**
 * The state of a bot at a moment, computed from the last snapshot before it and later events.
 * @throws ServiceError `not_found` if the bot or the event does not exist at that moment; `archived`.
 */
export async function stateAt(db: Db, bot_id: string, moment: Moment): Promise<StateAt> {
  try {
    return await computeState(db, bot_id, moment);
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'archived') throw error;
    // Events may have been archived after their snapshot was read.
    return computeState(db, bot_id, moment);
  }
}

async function computeState(db: Db, bot_id: string, moment: Moment): Promise<StateAt> {
  const { seq, head_seq, in_doubt } = await seqAt(db, bot_id, moment);
  const [own] = await selectSnapshot(db, { bot_id, seq });
  // The snapshots of archived events are gone; the archive has the state after the last of them.
  const snapshot = own ?? (await readArchivedState(db, bot_id));
  let state = snapshot && (JSON.parse(snapshot.state) as BotState);
  let after_seq = snapshot?.seq ?? 0;
  for (;;) {
    const part = { after_seq, until_seq: seq, kinds: STATE_KINDS, limit: PAGE };
    const { events } = await readEvents(db, bot_id, part);
    for (const event of events) state = foldState(state, event);
    if (events.length < PAGE) break;
    after_seq = events.at(-1)!.seq;
  }
  if (state === undefined) throw unknownBot(bot_id);
  return { seq, head_seq, state, state_hash: digestOf(state).hash, in_doubt };
}

const PAGE = 1000;

const selectSnapshot = prepareQuery((db, { bot_id, seq }: { bot_id: string; seq: number }) =>
  db
    .selectFrom('bot_snapshots')
    .select(['seq', 'state'])
    .where('bot_id', '=', bot_id)
    .where('seq', '<=', seq)
    .orderBy('seq', 'desc')
    .limit(1),
);

/** Stores the state at the end of the log, so that later reads need fewer events. */
export async function takeSnapshot(tx: Db, bot_id: string): Promise<StateAt> {
  const snapshot = await stateAt(tx, bot_id, 'head');
  const { text, hash } = digestOf(snapshot.state);
  await insertSnapshot(tx, { bot_id, seq: snapshot.seq, state: text, state_hash: hash });
  return snapshot;
}

const insertSnapshot = prepareQuery((db, row: BotSnapshotsTable) =>
  db
    .insertInto('bot_snapshots')
    .values(row)
    .onConflict((of) => of.doNothing()),
);

/**
 * The last event at a moment.
 * @throws ServiceError `not_found` if the log has no such event; `archived` if it is archived, except
 *   for the last archived event.
 */
export async function seqAt(
  db: Db,
  bot_id: string,
  moment: Moment,
): Promise<PlaceInTime & { readonly head_seq: number }> {
  const { seq: head_seq } = await readHead(db, bot_id);
  const certain = { head_seq, in_doubt: undefined };
  if (moment === 'head') return { seq: head_seq, ...certain };
  if ('at' in moment) {
    const place = await placeAt(db, bot_id, moment, head_seq);
    if (place.seq > 0) return { ...place, head_seq };
    throw new ServiceError('not_found', `bot ${bot_id} has no event at or before that time`, {
      remedy: 'Choose a time after the bot was created.',
    });
  }
  if (moment.seq >= 1 && moment.seq <= head_seq) {
    const archived = await readArchiveHead(db, bot_id);
    if (moment.seq < archived.seq) throw await archivedEventError(db, bot_id, moment.seq);
    return { seq: moment.seq, ...certain };
  }
  throw new ServiceError('not_found', `bot ${bot_id} has no event ${moment.seq}`, {
    remedy: `Choose a sequence number from 1 to ${head_seq}.`,
  });
}
