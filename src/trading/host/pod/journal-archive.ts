import { createReadStream, createWriteStream } from 'node:fs';
import { open, readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { GENESIS, type ChainHead } from '../../../base/hash-chain.ts';
import { hashOf, type EventFault } from '../../../events/event.ts';
import type { BotEventsTable } from '../../../storage/tables.ts';

/** Archive file with the sequence numbers of its first and last event. */
interface Segment {
  readonly name: string;
  readonly first: number;
  readonly last: number;
  /** Head of the chain before its first event. */
  readonly before: ChainHead;
}

/** The other columns follow from the events before. */
type ArchivedRow = Omit<BotEventsTable, 'bot_id' | 'prev_hash' | 'hash'>;

const NAME = /^archive-(\d{15})-(\d{15})\.ndjson\.gz$/;

/**
 * Events that the server has recorded, in compressed files beside the database. No event is deleted,
 * because a session is restored from all of its inputs.
 */
export class JournalArchive {
  readonly #directory: string;
  readonly #botId: string;
  readonly #segments: Segment[] = [];
  #head: ChainHead = GENESIS;
  #fault: EventFault | undefined;

  private constructor(directory: string, bot_id: string) {
    this.#directory = directory;
    this.#botId = bot_id;
  }

  /** Opens the archive in a directory, and verifies all of it. */
  static async open(directory: string, bot_id: string): Promise<JournalArchive> {
    const archive = new JournalArchive(directory, bot_id);
    const names = (await readdir(directory)).filter((name) => NAME.test(name)).sort();
    for (const name of names) {
      const [first, last] = NAME.exec(name)!.slice(1).map(Number);
      const segment = { name, first: first!, last: last!, before: archive.#head };
      archive.#segments.push(segment);
      const head = await archive.#verify(segment);
      if (head === undefined) {
        archive.#fault = { seq: archive.#head.seq + 1, fault: 'altered' };
        break;
      }
      archive.#head = head;
    }
    // The last sync may have failed, and what is archived is deleted from the database.
    if (names.length > 0) await sync(directory);
    return archive;
  }

  /** Head of the chain at the last archived event. */
  get head(): ChainHead {
    return this.#head;
  }

  /** Fault found when the archive was opened; undefined if it is intact. */
  get fault(): EventFault | undefined {
    return this.#fault;
  }

  /** Events after `after_seq`, up to and including `until_seq`. */
  async *rows(after_seq: number, until_seq: number): AsyncGenerator<BotEventsTable> {
    for (const segment of this.#segments) {
      if (segment.first > until_seq) return;
      if (segment.last <= after_seq) continue;
      for await (const one of this.#read(segment)) {
        if ('head' in one) break;
        if (one.seq > after_seq && one.seq <= until_seq) yield one;
      }
    }
  }

  /** Adds the events that follow `head`; resolves when they are on disk. */
  async add(rows: readonly BotEventsTable[]): Promise<void> {
    const { seq, hash } = rows.at(-1)!;
    const head = { seq, hash };
    const first = rows[0]!.seq;
    const digits = [first, seq].map((one) => String(one).padStart(15, '0'));
    const name = `archive-${digits.join('-')}.ndjson.gz`;
    const path = join(this.#directory, name);
    const lines = function* () {
      for (const { bot_id: _bot, prev_hash: _prev, hash: _hash, ...row } of rows) {
        yield `${JSON.stringify(row)}\n`;
      }
      yield `${JSON.stringify({ head })}\n`;
    };
    await pipeline(Readable.from(lines()), createGzip(), createWriteStream(`${path}.tmp`));
    await sync(`${path}.tmp`);
    await rename(`${path}.tmp`, path);
    // The file counts even if the directory cannot be synced: a second one must not repeat its events.
    this.#segments.push({ name, first, last: seq, before: this.#head });
    this.#head = head;
    await sync(this.#directory);
  }

  /** Events with hashes chained from the event before, and finally the head recorded at the end. */
  async *#read({
    name,
    before,
  }: Segment): AsyncGenerator<BotEventsTable | { readonly head: ChainHead }> {
    const file = createReadStream(join(this.#directory, name));
    const text = file.pipe(createGunzip());
    file.on('error', (error) => text.destroy(error));
    let prev_hash = before.hash;
    for await (const line of createInterface({ input: text })) {
      const value = JSON.parse(line) as ArchivedRow | { readonly head: ChainHead };
      if ('head' in value) yield value;
      else {
        const row = { ...value, bot_id: this.#botId, prev_hash };
        const hash = hashOf(row);
        prev_hash = hash;
        yield { ...row, hash };
      }
    }
  }

  /** @returns the head at its last event; undefined if the file was altered. */
  async #verify(segment: Segment): Promise<ChainHead | undefined> {
    let last = segment.before;
    try {
      for await (const one of this.#read(segment)) {
        if ('head' in one) {
          return one.head.seq === last.seq && one.head.hash === last.hash ? last : undefined;
        }
        if (one.seq !== last.seq + 1) return undefined;
        last = { seq: one.seq, hash: one.hash };
      }
    } catch {
      return undefined;
    }
    return undefined;
  }
}

async function sync(path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
