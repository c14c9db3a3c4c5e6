/**
 * Archive of a runner's log: events that the server has recorded, in compressed files beside the
 * database. A session is rebuilt from all of its inputs, so no event is deleted.
 */
import { type ChainHead, GENESIS } from '../../../base/hash-chain.ts';
import { createReadStream, createWriteStream } from 'node:fs';
import { open, readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { hashOf, type EventFault } from '../../../events/event.ts';
import type { BotEventsTable } from '../../../storage/tables.ts';

/** Archive file with the sequence numbers of its first and last event. */
interface Segment {
  readonly name: string;
  readonly first: number;
  readonly last: number;
  /** The event before its first. */
  readonly before: ChainHead;
}

export interface Archive {
  /** Last archived event. */
  readonly head: ChainHead;
  /** Fault found in the archive; undefined if it is intact. */
  readonly fault: EventFault | undefined;
  /** Events after `after_seq`, up to and including `until_seq`. */
  rows(after_seq: number, until_seq: number): AsyncGenerator<BotEventsTable>;
  /** Adds the events that follow `head`; resolves when they are on disk. */
  add(rows: readonly BotEventsTable[]): Promise<void>;
}

const NAME = /^archive-(\d{15})-(\d{15})\.ndjson\.gz$/;

/** Opens the archive in a directory, and verifies all of it. */
export async function openArchive(directory: string, bot_id: string): Promise<Archive> {
  const names = (await readdir(directory)).filter((name) => NAME.test(name)).sort();
  const segments: Segment[] = [];
  let head: ChainHead = GENESIS;
  let fault: EventFault | undefined;
  for (const name of names) {
    const [first, end] = NAME.exec(name)!.slice(1).map(Number);
    const segment = { name, first: first!, last: end!, before: head };
    segments.push(segment);
    const last = await headOf(segment, head);
    if (last === undefined) {
      fault = { seq: head.seq + 1, fault: 'altered' };
      break;
    }
    head = last;
  }

  /**
   * Events of a segment, with hashes chained from the event before it, and finally the head
   * recorded at its end.
   */
  async function* read(
    { name }: Segment,
    before: ChainHead,
  ): AsyncGenerator<BotEventsTable | { readonly head: ChainHead }> {
    const file = createReadStream(join(directory, name));
    const text = file.pipe(createGunzip());
    file.on('error', (error) => text.destroy(error));
    let prev_hash = before.hash;
    for await (const line of createInterface({ input: text })) {
      const value = JSON.parse(line) as Archived | { readonly head: ChainHead };
      if ('head' in value) {
        yield value;
        continue;
      }
      const row = { ...value, bot_id, prev_hash };
      const hash = hashOf(row);
      prev_hash = hash;
      yield { ...row, hash };
    }
  }

  /** @returns its last event; undefined if the file was altered. */
  async function headOf(segment: Segment, before: ChainHead): Promise<ChainHead | undefined> {
    let last = before;
    try {
      for await (const one of read(segment, before)) {
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

  return {
    get head() {
      return head;
    },
    fault,
    async *rows(after_seq, until_seq) {
      for (const segment of segments) {
        if (segment.first > until_seq) return;
        if (segment.last <= after_seq) continue;
        for await (const one of read(segment, segment.before)) {
          if ('head' in one) break;
          if (one.seq > after_seq && one.seq <= until_seq) yield one;
        }
      }
    },
    async add(rows) {
      const end = rows.at(-1)!;
      const digits = [rows[0]!.seq, end.seq].map((seq) => String(seq).padStart(15, '0'));
      const name = `archive-${digits.join('-')}.ndjson.gz`;
      const next = { seq: end.seq, hash: end.hash };
      const path = join(directory, name);
      const lines = function* () {
        for (const { bot_id: _bot, prev_hash: _prev, hash: _hash, ...row } of rows) {
          yield `${JSON.stringify(row)}\n`;
        }
        yield `${JSON.stringify({ head: next })}\n`;
      };
      await pipeline(Readable.from(lines()), createGzip(), createWriteStream(`${path}.tmp`));
      await sync(`${path}.tmp`);
      await rename(`${path}.tmp`, path);
      await sync(directory);
      segments.push({ name, first: rows[0]!.seq, last: end.seq, before: head });
      head = next;
    },
  };
}

/** The rest follows from the events before it. */
type Archived = Omit<BotEventsTable, 'bot_id' | 'prev_hash' | 'hash'>;

async function sync(path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
