import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { hashOf, type EventFault } from '../../events/event.ts';
import { readArchiveHead } from '../../events/archive/archived-events.ts';
import { findPartFault, type ArchivePart } from '../../events/archive/part.ts';
import { verifyEvents } from '../../events/verify-events.ts';
import type { BotEventArchivesTable, BotEventsTable, Db } from '../../storage/tables.ts';
import { findFileFault, readArchiveFile } from './archive-file.ts';
import type { Archive, FiledPart } from './archive-bot.ts';

/** A fault of a log: of an archived file, or of an event, which is in a file or in the database. */
export interface LogFault {
  /** Null for an event in the database. */
  readonly file: string | null;
  /** Null for a fault of the whole file. */
  readonly seq: number | null;
  readonly fault: EventFault['fault'] | 'file_missing' | 'file_altered' | 'file_unreadable';
}

export interface VerifiedBot {
  readonly bot_id: string;
  readonly files: number;
  readonly archived_seq: number;
  /** The last event that is valid together with all events before it. */
  readonly seq: number;
  readonly fault: LogFault | null;
}

/** Files of a bot, oldest first. */
export async function listParts(
  db: Db,
  bot_id: string,
): Promise<readonly Readonly<BotEventArchivesTable>[]> {
  return db
    .selectFrom('bot_event_archives')
    .selectAll()
    .where('bot_id', '=', bot_id)
    .orderBy('first_seq')
    .execute();
}

/** Names the archived files of all bots that are not in a directory. */
export async function listMissingFiles(db: Db, directory: string): Promise<string[]> {
  const parts = await db
    .selectFrom('bot_event_archives')
    .select('file')
    .orderBy('bot_id')
    .orderBy('first_seq')
    .execute();
  return parts.map(({ file }) => file).filter((file) => !existsSync(join(directory, file)));
}

/** Verifies the whole log of a bot: every file of its archive, and the events in the database. */
export async function verifyBot(
  { storage: { read }, directory }: Omit<Archive, 'clock'>,
  bot_id: string,
): Promise<VerifiedBot> {
  const parts = await listParts(read, bot_id);
  const { seq: archived_seq, hash } = await readArchiveHead(read, bot_id);
  const common = { bot_id, files: parts.length, archived_seq };
  let before: FiledPart | undefined;
  for (const part of parts) {
    const fault = await verifyPart(read, directory, part, before);
    if (fault !== undefined) return { ...common, seq: part.first_seq - 1, fault };
    before = part;
  }
  if ((before?.last_seq ?? 0) !== archived_seq || (before && before.hash !== hash)) {
    const seq = before?.last_seq ?? 0;
    return { ...common, seq, fault: { file: null, seq: seq + 1, fault: 'not_linked' } };
  }
  const { head, fault } = await verifyEvents(read, bot_id);
  return { ...common, seq: head.seq, fault: fault === undefined ? null : { file: null, ...fault } };
}

/** Verifies a file and the events of it that stayed in the database. */
async function verifyPart(
  db: Db,
  directory: string,
  part: FiledPart,
  before: ArchivePart | undefined,
): Promise<LogFault | undefined> {
  const read = await readPart(directory, part, before);
  if ('fault' in read) return read;
  const hashes = new Map(read.rows.map(({ seq, hash }) => [seq, hash]));
  const kept = await db
    .selectFrom('bot_events')
    .selectAll()
    .where('bot_id', '=', part.bot_id)
    .where('seq', '>=', part.first_seq)
    .where('seq', '<=', part.last_seq)
    .execute();
  const altered = kept.find((row) => hashOf(row) !== hashes.get(row.seq));
  return altered && { file: null, seq: altered.seq, fault: 'altered' };
}

/** Reads and verifies the events of a file. */
export async function readPart(
  directory: string,
  part: FiledPart,
  before: ArchivePart | undefined,
): Promise<{ readonly rows: readonly BotEventsTable[] } | LogFault> {
  const { file, prev_hash } = part;
  const path = join(directory, file);
  const fileFault = await findFileFault(path, part);
  if (fileFault !== undefined) return { file, seq: null, fault: fileFault };
  let rows: readonly BotEventsTable[];
  try {
    rows = await readArchiveFile(path, prev_hash);
  } catch {
    // The digest is right, so this version of DuckDB cannot read the file.
    return { file, seq: null, fault: 'file_unreadable' };
  }
  const fault = findPartFault(part, rows, before);
  return fault === undefined ? { rows } : { file, ...fault };
}
