/**
 * The log of a runner: what its session was told and what came of it, hash-chained as the logs of a
 * server's bots are, and in a database of its own. What is in it has happened; what is not in it yet
 * has not been asked of anybody.
 */
import { endFault, entryFault } from '../../../base/hash-chain.ts';
import { join } from 'node:path';
import { sql } from 'kysely';
import { isSystemError, ServiceError } from '../../../base/errors.ts';
import { appendEvents } from '../../../events/append.ts';
import { hashOf, NO_EVENTS, type EventFault, type NewEvent } from '../../../events/event.ts';
import { readEvents, readRows } from '../../../events/read-events.ts';
import { openStorage } from '../../../storage/storage.ts';
import type { BotEventsTable } from '../../../storage/tables.ts';
import { INPUT_KINDS, parseInput, type SessionEvent } from '../../session-events.ts';
import type { SessionInput } from '../../session-input.ts';
import type { SessionState } from '../../../events/session-state.ts';
import type { VenueRules } from '../../venue.ts';
import { openArchive } from './journal-archive.ts';

/** Whose log it is: nobody else's may go on with it. */
export interface Owner {
  readonly deployment_id: string;
  readonly version: number;
  /** See `specHash`, and `bundleHash`. */
  readonly spec_hash: string;
  readonly venue: string;
}

/** A part of the log as a server is told of it. */
export interface LogBatch {
  readonly number: number;
  readonly events: SessionEvent[];
  /** When the first of them was put on disk; undefined where there are none. */
  readonly made_at?: number | undefined;
  readonly state: SessionState;
  readonly steps: number;
}

/** How a deployment ended for good. */
export interface LoggedEnd {
  readonly outcome: string;
}

export interface Journal {
  /** As of the newest entry; undefined before the first. */
  readonly state: SessionState | undefined;
  /** Of bars, that were taken in all. */
  readonly steps: number;
  /** The venue's, as they were when the session began: it goes by these. */
  readonly rules: VenueRules | undefined;
  /** Set once the deployment has ended, and whoever looks after it knows. */
  readonly end: LoggedEnd | undefined;
  /** Number of latches by the runner itself; see `takeHoldings`. */
  readonly latches: number;
  /** What the session was told, oldest first. */
  inputs(): AsyncGenerator<SessionInput>;
  /** Adds events and the state after them; resolves when they are on disk. */
  append(events: readonly SessionEvent[], state: SessionState, steps: number): Promise<void>;
  keepRules(rules: VenueRules): Promise<void>;
  keepEnd(end: LoggedEnd): Promise<void>;
  /**
   * What comes after the batch that the server has recorded last; undefined when there is nothing.
   * The same number has the same events whenever it is asked for, also after a crash.
   * @throws ServiceError `conflict`, reason `log_lost`, when the server knows more than this log.
   */
  nextBatch(recorded: number): Promise<LogBatch | undefined>;
  close(): Promise<void>;
}

const FILE = 'runner.sqlite';
/** There is one log in the database. */
const ID = '00000000-0000-7000-8000-000000000000';
const PAGE = 500;
/** Number of recorded events that move to the archive at a time. */
const ARCHIVE_EVERY = 10_000;
/** Event kinds of which only the newest event matters. */
const LOOKED_FOR: ReadonlySet<string> = new Set([
  'session.state',
  'venue.rules',
  'runner.begun',
  'runner.ended',
]);
const MOST_EVENTS = 512;
/** A server takes twice as much, the state included. */
const MOST_BYTES = 512 * 1024;
/** What a server may be told; the rest is for this log alone. */
const REPORTED = /^(order|account|data|venue|control|risk|clock)\./;

type Payload = SessionEvent['payload'];

interface Cut {
  readonly number: number;
  /** `seq` of its last event. */
  readonly through: number;
}

/** What is said of the session after events. */
interface LoggedState {
  readonly deployment_id: string;
  readonly steps: number;
}

/**
 * Opens the log of a directory, or begins one, and verifies all of it.
 * @throws ServiceError `events_tampered`; `conflict`, reason `other_deployment`; `storage_unavailable`.
 */
export async function openJournal(
  directory: string,
  owner: Owner,
  { archiveEvery = ARCHIVE_EVERY }: { readonly archiveEvery?: number } = {},
): Promise<Journal> {
  const storage = await openStorage({ file: join(directory, FILE) });
  const { read } = storage;
  const archive = await openArchive(directory, ID);
  const { deployment_id, version } = owner;
  const entry = ({ kind, occurred_at, payload }: SessionEvent): NewEvent => ({
    kind,
    occurred_at,
    payload,
    version,
    run_id: deployment_id,
  });
  // A process that was stopped for long has not waited for anybody: it is refused nothing for that.
  const write = (events: readonly SessionEvent[]): Promise<void> =>
    storage.write(
      async (tx) => {
        await appendEvents(tx, ID, Date.now(), events.map(entry));
      },
      { urgent: true },
    );
  const own = (kind: string, payload: object): SessionEvent => ({
    kind,
    occurred_at: Date.now(),
    payload: { ...payload },
  });
  /** Events of these kinds, oldest first; `rotate` may move events to the archive meanwhile. */
  const all = async function* (kinds: readonly string[]) {
    for (let after_seq = 0; ;) {
      const until_seq = archive.head.seq;
      for await (const row of archive.rows(after_seq, until_seq)) {
        if (kinds.includes(row.kind)) yield row;
      }
      after_seq = Math.max(after_seq, until_seq);
      for (;;) {
        const { rows } = await readRows(read, ID, { after_seq, kinds, limit: PAGE });
        // The page may lack events that were archived before it was read.
        if (archive.head.seq > after_seq) break;
        yield* rows;
        if (rows.length < PAGE) return;
        after_seq = rows.at(-1)!.seq;
      }
    }
  };
  const last = async (kind: string, until_seq?: number) => {
    const range = { after_seq: archive.head.seq, until_seq, kinds: [kind], limit: 1, last: true };
    const { events } = await readEvents(read, ID, range);
    if (events[0] !== undefined) return events[0].payload;
    if (until_seq !== undefined && until_seq < archive.head.seq)
      return lastArchived(kind, until_seq);
    return archived.get(kind) ?? undefined;
  };
  const lastArchived = async (kind: string, until_seq: number) => {
    let found: string | undefined;
    for await (const row of archive.rows(0, until_seq)) if (row.kind === kind) found = row.payload;
    return found === undefined ? undefined : (JSON.parse(found) as Payload);
  };
  /** Newest archived payload of each kind in `LOOKED_FOR`. */
  const archived = new Map<string, Payload>();
  const remember = ({ kind, payload }: BotEventsTable): void => {
    if (LOOKED_FOR.has(kind)) archived.set(kind, JSON.parse(payload) as Payload);
  };
  /** Moves events that the server has recorded to the archive, once there are enough. */
  const rotate = async (through: number): Promise<void> => {
    if (through - archive.head.seq < archiveEvery) return;
    const { seq: newest } = await read
      .selectFrom('bot_snapshots')
      .select(({ fn }) => fn.coalesce(fn.max('seq'), sql<number>`0`).as('seq'))
      .executeTakeFirstOrThrow();
    const until_seq = Math.min(through, newest, archive.head.seq + archiveEvery);
    const rows: BotEventsTable[] = [];
    for (let after_seq = archive.head.seq; after_seq < until_seq;) {
      const page = await readRows(read, ID, { after_seq, until_seq, limit: PAGE });
      rows.push(...page.rows.map(columnsOf));
      if (page.rows.length === 0) break;
      after_seq = page.rows.at(-1)!.seq;
    }
    if (rows.length === 0) return;
    for (const row of rows) remember(row);
    await archive.add(rows);
    await dropArchived();
  };
  /**
   * Deletes archived events from the database, including those that a previous process had not
   * deleted yet.
   */
  const dropArchived = (): Promise<void> =>
    storage.write(
      async (tx) => {
        await tx.deleteFrom('bot_events').where('seq', '<=', archive.head.seq).execute();
        await tx.deleteFrom('bot_snapshots').where('seq', '<', archive.head.seq).execute();
      },
      { urgent: true },
    );

  try {
    for await (const row of archive.rows(0, archive.head.seq)) remember(row);
    const isNew = await begin();
    if (!isNew) await check();
    /** Where each batch ends: the first is at place 0. A year has half a million of them. */
    const cuts: number[] = [];
    for await (const { payload } of all(['batch.cut'])) {
      cuts.push((JSON.parse(payload) as Cut).through);
    }
    let { state, steps } = splitState((await last('session.state')) as LoggedState | undefined);
    let rules = (await last('venue.rules')) as VenueRules | undefined;
    let latches = 0;
    for await (const { payload } of all(['account.latched'])) {
      if (isOwnLatch(JSON.parse(payload) as object)) latches += 1;
    }
    let end = (await last('runner.ended')) as LoggedEnd | undefined;

    /** The part after a batch, up to another, or as much as fits. */
    const part = async (after: number, until: number | undefined) => {
      const events: SessionEvent[] = [];
      let made_at: number | undefined;
      let bytes = 0;
      let through = after;
      /** The last place after which a state is known: what is cut there makes sense by itself. */
      let whole = { through: after, count: 0 };
      for (;;) {
        const rows = await pageAfter(through, until);
        for (const { seq, kind, occurred_at, recorded_at, payload } of rows) {
          if (REPORTED.test(kind)) {
            bytes += Buffer.byteLength(payload);
            const isFull = events.length === MOST_EVENTS || bytes > MOST_BYTES;
            if (until === undefined && isFull && events.length > 0) {
              if (whole.count === 0) return { events, made_at, through };
              return { events: events.slice(0, whole.count), made_at, through: whole.through };
            }
            made_at ??= recorded_at;
            events.push({ kind, occurred_at, payload: JSON.parse(payload) as Payload });
          }
          through = seq;
          if (kind === 'session.state') whole = { through, count: events.length };
        }
        if (rows.length < PAGE) return { events, made_at, through };
      }
    };
    const pageAfter = async (after_seq: number, until_seq: number | undefined) => {
      if (after_seq >= archive.head.seq) {
        return (await readRows(read, ID, { after_seq, until_seq, limit: PAGE })).rows;
      }
      const rows: BotEventsTable[] = [];
      for await (const row of archive.rows(after_seq, until_seq ?? Infinity)) {
        rows.push(row);
        if (rows.length === PAGE) return rows;
      }
      const rest = { after_seq: archive.head.seq, until_seq, limit: PAGE - rows.length };
      return [...rows, ...(await readRows(read, ID, rest)).rows];
    };
    const stateAt = async (seq: number) =>
      splitState((await last('session.state', seq)) as LoggedState | undefined);

    return {
      get state() {
        return state;
      },
      get steps() {
        return steps;
      },
      get rules() {
        return rules;
      },
      get latches() {
        return latches;
      },
      get end() {
        return end;
      },
      async *inputs() {
        for await (const { kind, payload } of all(INPUT_KINDS)) {
          yield parseInput(kind as SessionInput['kind'], payload);
        }
      },
      async append(events, after, taken) {
        const isNews = JSON.stringify(after) !== JSON.stringify(state);
        const change = isNews
          ? [own('session.state', { deployment_id, steps: taken, ...after })]
          : [];
        if (events.length + change.length === 0) return;
        await write([...events, ...change]);
        state = after;
        steps = taken;
        latches += events.filter(
          ({ kind, payload }) => kind === 'account.latched' && isOwnLatch(payload),
        ).length;
      },
      async keepRules(known) {
        await write([own('venue.rules', known)]);
        rules = known;
      },
      async keepEnd(known) {
        await write([own('runner.ended', known)]);
        end = known;
      },
      async nextBatch(recorded) {
        if (recorded > cuts.length) throw logLost(directory, recorded);
        // A disk that is full shows with the next event; until then nothing is lost by waiting.
        await rotate(cuts[recorded - 1] ?? 0).catch((error: unknown) => {
          if (!isSystemError(error) && !(error instanceof ServiceError)) throw error;
        });
        if (state === undefined) return undefined;
        const number = recorded + 1;
        const after = cuts[recorded - 1] ?? 0;
        const made = cuts[number - 1];
        const { events, made_at, through } = await part(after, made);
        const now = await stateAt(through);
        if (now.state === undefined) return undefined;
        if (made === undefined) {
          const before = await stateAt(after);
          if (events.length === 0 && JSON.stringify(before) === JSON.stringify(now)) {
            return undefined;
          }
          const cut: Cut = { number, through };
          await write([own('batch.cut', cut)]);
          cuts.push(through);
        }
        const known = made_at === undefined ? {} : { made_at };
        return { number, events, ...known, state: now.state, steps: now.steps };
      },
      close: () => storage.close(),
    };
  } catch (error) {
    await storage.close();
    throw error;
  }

  /** @returns whether there was none. */
  async function begin(): Promise<boolean> {
    const there = await read.selectFrom('bots').select('bot_id').executeTakeFirst();
    if (there !== undefined) return false;
    await storage.write(async (tx) => {
      const now = Date.now();
      const name = { slug: 'runner', name: 'Runner', kind: 'trading' } as const;
      const row = { ...name, status: 'active', current_version: version } as const;
      const times = { created_at: now, updated_at: now };
      await tx
        .insertInto('bots')
        .values({ bot_id: ID, ...row, ...times, ...NO_EVENTS })
        .execute();
      const first = [own('bot.created', { ...name }), own('runner.begun', owner)];
      await appendEvents(tx, ID, now, first.map(entry));
    });
    return true;
  }

  /** Verifies the events that follow the archive. */
  async function findFault(): Promise<EventFault | undefined> {
    for (let good = archive.head; ;) {
      const { rows, head } = await readRows(read, ID, { after_seq: good.seq, limit: PAGE });
      for (const row of rows) {
        const fault = entryFault(row, good, hashOf);
        if (fault !== undefined) return fault;
        good = { seq: row.seq, hash: row.hash };
      }
      if (rows.length < PAGE) return endFault(good, head);
    }
  }

  async function check(): Promise<void> {
    const fault = archive.fault ?? (await findFault());
    if (fault === undefined) await dropArchived();
    if (fault !== undefined) {
      throw new ServiceError(
        'events_tampered',
        `the log in ${directory} is not as it was written: event ${fault.seq} is ${fault.fault}`,
        { remedy: 'Do not trade with it: restore the volume, or deploy anew.' },
      );
    }
    const before = (await last('runner.begun')) as unknown as Owner;
    const other = (['deployment_id', 'version', 'spec_hash', 'venue'] as const).find(
      (name) => before[name] !== owner[name],
    );
    if (other === undefined) return;
    throw new ServiceError(
      'conflict',
      `${directory} has the log of another deployment: its ${other} is ${before[other]}, not ${owner[other]}`,
      {
        reason: 'other_deployment',
        remedy: 'Give each deployment, and each version, a state_dir and an id of its own.',
      },
    );
  }
}

/** Whether the runner itself latched the bot; the session latches only for `repeated_execution`. */
function isOwnLatch(payload: { readonly control?: unknown }): boolean {
  return payload.control === 'reconciliation';
}

/** Drops the additional fields of a page row. */
function columnsOf(row: BotEventsTable): BotEventsTable {
  const { bot_id, seq, event_id, version, run_id, kind, occurred_at, recorded_at } = row;
  const { causation_id, payload, prev_hash, hash } = row;
  const place = { bot_id, seq, event_id, version, run_id, kind, occurred_at, recorded_at };
  return { ...place, causation_id, payload, prev_hash, hash };
}

function splitState(logged: LoggedState | undefined): {
  readonly state: SessionState | undefined;
  readonly steps: number;
} {
  if (logged === undefined) return { state: undefined, steps: 0 };
  const { deployment_id: _id, steps, ...state } = logged;
  return { state: state as unknown as SessionState, steps };
}

function logLost(directory: string, recorded: number): ServiceError {
  return new ServiceError(
    'conflict',
    `the server has ${recorded} batches of this deployment, more than the log in ${directory}`,
    {
      reason: 'log_lost',
      remedy:
        'Restore the volume; or stop the deployment, see what the venue holds, and deploy anew.',
    },
  );
}
