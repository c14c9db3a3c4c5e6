import { join } from 'node:path';
import { sql } from 'kysely';
import { endFault, entryFault } from '../../../base/hash-chain.ts';
import { appendEvents } from '../../../events/append.ts';
import { hashOf, NO_EVENTS, type EventFault, type NewEvent } from '../../../events/event.ts';
import { readEvents, readRows } from '../../../events/read-events.ts';
import { openStorage, type Storage } from '../../../storage/storage.ts';
import type { BotEventsTable } from '../../../storage/tables.ts';
import type { SessionEvent } from '../../session-events.ts';
import { JournalArchive } from './journal-archive.ts';

const FILE = 'runner.sqlite';
/** The database has one log. */
const ID = '00000000-0000-7000-8000-000000000000';
const PAGE = 500;
/** Kinds of which the newest event is needed after it was archived. */
const LATEST_KINDS = new Set(['session.state', 'venue.rules', 'runner.begun', 'runner.ended']);

export type Payload = SessionEvent['payload'];

export interface StoreOptions {
  readonly directory: string;
  readonly run: Pick<NewEvent, 'version' | 'run_id'>;
  /** Count of events that move to the archive at a time. */
  readonly archiveEvery: number;
}

/** A hash-chained log of events in a database, whose oldest events move to an archive beside it. */
export class JournalStore {
  readonly #storage: Storage;
  readonly #archive: JournalArchive;
  readonly #options: StoreOptions;
  /** Newest archived payload by kind. */
  readonly #archivedLatest = new Map<string, Payload>();

  private constructor(storage: Storage, archive: JournalArchive, options: StoreOptions) {
    this.#storage = storage;
    this.#archive = archive;
    this.#options = options;
  }

  static async open(options: StoreOptions): Promise<JournalStore> {
    const { directory } = options;
    const storage = await openStorage({ file: join(directory, FILE) });
    try {
      const archive = await JournalArchive.open(directory, ID);
      const store = new JournalStore(storage, archive, options);
      for await (const row of archive.rows(0, archive.head.seq)) store.#keepLatest(row);
      return store;
    } catch (error) {
      await storage.close();
      throw error;
    }
  }

  /** Begins a new log with this event. @returns false if the log already exists. */
  async begin(first: SessionEvent): Promise<boolean> {
    const { read } = this.#storage;
    const existing = await read.selectFrom('bots').select('bot_id').executeTakeFirst();
    if (existing !== undefined) return false;
    await this.#storage.write(async (tx) => {
      const now = Date.now();
      const name = { slug: 'runner', name: 'Runner', kind: 'trading' } as const;
      const { version } = this.#options.run;
      const row = { ...name, status: 'active', current_version: version } as const;
      const times = { created_at: now, updated_at: now };
      await tx
        .insertInto('bots')
        .values({ bot_id: ID, ...row, ...times, ...NO_EVENTS })
        .execute();
      const created = { kind: 'bot.created', occurred_at: now, payload: { ...name } };
      await appendEvents(
        tx,
        ID,
        now,
        [created, first].map((one) => this.#entry(one)),
      );
    });
    return true;
  }

  /** @returns the first fault of the hash chain; undefined if it is intact. */
  async verify(): Promise<EventFault | undefined> {
    const { fault } = this.#archive;
    if (fault !== undefined) return fault;
    for (let good = this.#archive.head; ;) {
      const page = { after_seq: good.seq, limit: PAGE };
      const { rows, head } = await readRows(this.#storage.read, ID, page);
      for (const row of rows) {
        const found = entryFault(row, good, hashOf);
        if (found !== undefined) return found;
        good = { seq: row.seq, hash: row.hash };
      }
      if (rows.length < PAGE) return endFault(good, head);
    }
  }

  /** Resolves when the events are on disk. */
  async append(events: readonly SessionEvent[]): Promise<void> {
    await this.#storage.write(
      async (tx) => {
        await appendEvents(
          tx,
          ID,
          Date.now(),
          events.map((one) => this.#entry(one)),
        );
      },
      // A process that was suspended must not be rejected for its late write.
      { urgent: true },
    );
  }

  /** Events in order, also while `rotate` moves some of them. @param kinds all by default. */
  async *rows(
    after_seq: number,
    until_seq?: number,
    kinds?: readonly string[],
  ): AsyncGenerator<BotEventsTable> {
    for (let after = after_seq; ;) {
      const archived = this.#archive.head.seq;
      for await (const row of this.#archive.rows(
        after,
        Math.min(archived, until_seq ?? archived),
      )) {
        if (kinds === undefined || kinds.includes(row.kind)) yield row;
      }
      after = Math.max(after, archived);
      for (;;) {
        const range = { after_seq: after, until_seq, kinds, limit: PAGE };
        const { rows } = await readRows(this.#storage.read, ID, range);
        // The page may lack events that were archived before it was read.
        if (this.#archive.head.seq > after) break;
        yield* rows;
        if (rows.length < PAGE) return;
        after = rows.at(-1)!.seq;
      }
    }
  }

  /** Newest payload of one of `LATEST_KINDS`. @param until_seq of the newest event by default. */
  async latest(kind: string, until_seq?: number): Promise<Payload | undefined> {
    const { seq: archived } = this.#archive.head;
    const range = { after_seq: archived, until_seq, kinds: [kind], limit: 1, last: true };
    const { events } = await readEvents(this.#storage.read, ID, range);
    if (events[0] !== undefined) return events[0].payload;
    if (until_seq === undefined || until_seq >= archived) return this.#archivedLatest.get(kind);
    let found: string | undefined;
    for await (const row of this.#archive.rows(0, until_seq)) {
      if (row.kind === kind) found = row.payload;
    }
    return found === undefined ? undefined : (JSON.parse(found) as Payload);
  }

  /** Archives events up to `through`, once there are enough of them. */
  async rotate(through: number): Promise<void> {
    const { archiveEvery } = this.#options;
    const { read } = this.#storage;
    const { seq: archived } = this.#archive.head;
    if (through - archived < archiveEvery) return;
    const { seq: newest } = await read
      .selectFrom('bot_snapshots')
      .select(({ fn }) => fn.coalesce(fn.max('seq'), sql<number>`0`).as('seq'))
      .executeTakeFirstOrThrow();
    const until_seq = Math.min(through, newest, archived + archiveEvery);
    const rows: BotEventsTable[] = [];
    for (let after_seq = archived; after_seq < until_seq;) {
      const page = await readRows(read, ID, { after_seq, until_seq, limit: PAGE });
      rows.push(...page.rows.map(columnsOf));
      if (page.rows.length === 0) break;
      after_seq = page.rows.at(-1)!.seq;
    }
    if (rows.length === 0) return;
    for (const row of rows) this.#keepLatest(row);
    await this.#archive.add(rows);
    await this.dropArchived();
  }

  /** Deletes archived events from the database, also after a crash between archive and deletion. */
  async dropArchived(): Promise<void> {
    const { seq } = this.#archive.head;
    await this.#storage.write(
      async (tx) => {
        await tx.deleteFrom('bot_events').where('seq', '<=', seq).execute();
        await tx.deleteFrom('bot_snapshots').where('seq', '<', seq).execute();
      },
      { urgent: true },
    );
  }

  close(): Promise<void> {
    return this.#storage.close();
  }

  #entry({ kind, occurred_at, payload }: SessionEvent): NewEvent {
    return { kind, occurred_at, payload, ...this.#options.run };
  }

  #keepLatest({ kind, payload }: BotEventsTable): void {
    if (!LATEST_KINDS.has(kind)) return;
    this.#archivedLatest.set(kind, JSON.parse(payload) as Payload);
  }
}

/** Drops the additional fields of a page row. */
function columnsOf(row: BotEventsTable): BotEventsTable {
  const { bot_id, seq, event_id, version, run_id, kind, occurred_at, recorded_at } = row;
  const { causation_id, payload, prev_hash, hash } = row;
  const place = { bot_id, seq, event_id, version, run_id, kind, occurred_at, recorded_at };
  return { ...place, causation_id, payload, prev_hash, hash };
}
