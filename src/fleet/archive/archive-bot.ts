import { join, dirname } from 'node:path';
import { removeAbandoned, syncDirectory } from '../../base/atomic-file.ts';
import { ServiceError } from '../../base/errors.ts';
import { isSystemError } from '../../base/system-errors.ts';
import { moveToArchive, type ArchiveFile } from '../../events/archive/move-events.ts';
import { findChainFault, readNextPart, type ArchivePart } from '../../events/archive/part.ts';
import { appendAudit } from '../../identity/audit.ts';
import type { Storage } from '../../storage/storage.ts';
import type { BotEventsTable } from '../../storage/tables.ts';
import { botWrite } from '../tasks/session-record.ts';
import { digestFile, fileNameOf, readArchiveFile, writeArchiveFile } from './archive-file.ts';
import { findKeptEvents, requireArchiveReaders } from './needed-events.ts';

export interface Archive {
  readonly storage: Storage;
  /** Directory of the archived files. */
  readonly directory: string;
  readonly clock: () => number;
}

export interface FiledPart extends ArchivePart, ArchiveFile {}

/**
 * Moves the events of a bot from before a time to files, one part after another. Events leave the
 * database only once their file is durable and was read back, so that a crash loses nothing.
 *
 * @param before start of a month, ms since the Unix epoch.
 * @throws ServiceError `output_not_writable`; `events_tampered`; `conflict`, reason `archive_moved`.
 */
export async function* archiveBot(
  { storage, directory, clock }: Archive,
  bot_id: string,
  before: number,
): AsyncGenerator<FiledPart, void, void> {
  for (;;) {
    const next = await readNextPart(storage.read, bot_id, before);
    if (next === undefined) return;
    const { part, rows } = next;
    const file = await writeVerified(directory, part, rows);
    await storage.write(async (tx) => {
      const now = clock();
      await requireArchiveReaders(tx, bot_id, part.last_seq);
      await moveToArchive(tx, now, part, file, await findKeptEvents(tx, bot_id));
      const { month, first_seq, last_seq, hash } = part;
      await appendAudit(tx, now, {
        actor: 'operator',
        action: 'server.events.archive',
        target: `bot:${bot_id}`,
        details: { month, first_seq, last_seq, hash, file: file.file, sha256: file.file_sha256 },
      });
    }, botWrite({ bot_id }));
    yield { ...part, ...file };
  }
}

/** Writes the file of a part, unless an interrupted command has left it, and verifies it. */
async function writeVerified(
  directory: string,
  part: ArchivePart,
  rows: readonly BotEventsTable[],
): Promise<ArchiveFile> {
  const file = fileNameOf(part);
  const path = join(directory, file);
  if (!(await holdsEvents(path, part))) {
    await writeArchiveFile(path, rows);
    if (!(await holdsEvents(path, part))) {
      throw new ServiceError(
        'output_not_writable',
        `${path} does not hold what was written to it`,
        {
          remedy: 'Check the disk. No event was removed from the database.',
        },
      );
    }
  }
  await removeAbandoned(dirname(path));
  await syncNames(path, directory);
  return { file, ...(await digestFile(path)) };
}

/** Reads a file back; false if it is missing, unreadable or different. */
async function holdsEvents(path: string, part: ArchivePart): Promise<boolean> {
  try {
    await digestFile(path);
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return false;
    throw error;
  }
  // DuckDB rejects a file that is not Parquet or has other columns.
  const rows = await readArchiveFile(path, part.prev_hash).catch(() => []);
  return findChainFault(part, rows) === undefined;
}

/** Makes the names of the file and of its directories durable, even if an earlier command created them. */
async function syncNames(path: string, directory: string): Promise<void> {
  const top = dirname(directory);
  for (let at = dirname(path); ; at = dirname(at)) {
    await syncDirectory(at);
    if (at === top) return;
  }
}
