/** Parquet files of archived events. */
import { createHash } from 'node:crypto';
import { createReadStream, existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fillAtomically } from '../../base/atomic-file.ts';
import { ServiceError } from '../../base/errors.ts';
import { makeDirectory } from '../../base/make-directory.ts';
import { isSystemError, writeRemedy } from '../../base/system-errors.ts';
import { quotePath, quoteText, withDuckDB } from '../../market/duckdb.ts';
import { writeParquet } from '../../market/write.ts';
import type { ArchivePart } from '../../events/archive/part.ts';
import type { ArchiveFile } from '../../events/archive/move-events.ts';
import type { BotEventsTable } from '../../storage/tables.ts';

const INTEGERS = ['seq', 'version', 'occurred_at', 'recorded_at'] as const;
const TEXTS = [
  'bot_id',
  'event_id',
  'run_id',
  'kind',
  'causation_id',
  'payload',
  'hash',
] as const satisfies readonly (keyof BotEventsTable)[];

/**
 * Path of the file of a part, below the directory of archives. It contains the beginning of the hash of
 * the last event, so that two copies of a database that differ share no file.
 */
export function fileNameOf({ bot_id, month, first_seq, last_seq, hash }: ArchivePart): string {
  return `${bot_id}/${month}/${first_seq}-${last_seq}-${hash.slice(0, 8)}.parquet`;
}

/**
 * Writes the events to a durable file that appears under its name when it is complete. It has all
 * columns but `prev_hash`, which is the hash of the row before.
 *
 * @throws ServiceError `output_not_writable`
 */
export async function writeArchiveFile(
  path: string,
  rows: readonly BotEventsTable[],
): Promise<void> {
  const columns = Object.fromEntries([
    ...INTEGERS.map((name) => [name, Float64Array.from(rows, (row) => row[name])] as const),
    ...TEXTS.map((name) => [name, rows.map((row) => row[name])] as const),
  ]) as Parameters<typeof writeParquet<(typeof INTEGERS | typeof TEXTS)[number]>>[1];
  const options = { integers: INTEGERS, compression: 'zstd' } as const;
  try {
    makeDirectory(dirname(path), 0o700);
    await fillAtomically(path, (temporary) =>
      writeParquet(temporary, columns, [...INTEGERS, ...TEXTS], options),
    );
  } catch (error) {
    throw notWritten(path, error);
  }
}

function notWritten(path: string, error: unknown): ServiceError {
  const why = error instanceof Error ? error.message : String(error);
  const retry = 'Choose a directory that you may write to.';
  return new ServiceError('output_not_writable', `cannot write ${path}: ${why}`, {
    remedy: isSystemError(error) ? writeRemedy(error, retry) : retry,
    cause: error,
  });
}

/**
 * Reads the events of a file in order.
 * @param prev_hash hash of the event before the first.
 * @throws Error of DuckDB if the file is unreadable or has other columns.
 */
export async function readArchiveFile(path: string, prev_hash: string): Promise<BotEventsTable[]> {
  const columns = [...INTEGERS.map((name) => `${name}::DOUBLE AS ${name}`), ...TEXTS];
  return withDuckDB(path, async (connection) => {
    const result = await connection.stream(
      `SELECT ${columns.join(', ')} FROM read_parquet(${quotePath(path)})`,
    );
    const rows: BotEventsTable[] = [];
    let before = prev_hash;
    for await (const some of result.yieldRowObjects()) {
      for (const row of some as unknown as Omit<BotEventsTable, 'prev_hash'>[]) {
        rows.push({ ...row, prev_hash: before });
        before = row.hash;
      }
    }
    return rows;
  });
}

/** Size and SHA-256 of a file. */
export async function digestFile(path: string): Promise<Omit<ArchiveFile, 'file'>> {
  const hash = createHash('sha256');
  const { size } = await stat(path);
  await pipeline(createReadStream(path), hash);
  return { file_bytes: size, file_sha256: hash.digest('hex') };
}

/** Predicates for messages about files. */
export const FILE_FAULTS = {
  file_missing: 'is missing',
  file_altered: 'was altered: its digest differs from the recorded one',
  file_unreadable: 'cannot be read by this version of service-local',
} as const;

/** Finds out whether a file is missing or its digest differs from the recorded one. */
export async function findFileFault(
  path: string,
  { file_sha256 }: Pick<ArchiveFile, 'file_sha256'>,
): Promise<'file_missing' | 'file_altered' | undefined> {
  if (!existsSync(path)) return 'file_missing';
  return (await digestFile(path)).file_sha256 === file_sha256 ? undefined : 'file_altered';
}

/** Some events of a run in a file. */
export interface FileRange {
  readonly run_id: string;
  readonly kinds: readonly string[];
  readonly after_seq: number;
  readonly until_seq: number;
}

/** Reads some payloads of a file in order, without verifying it. */
export async function readFileRange(
  path: string,
  { run_id, kinds, after_seq, until_seq }: FileRange,
): Promise<Pick<BotEventsTable, 'seq' | 'kind' | 'payload'>[]> {
  return withDuckDB(path, async (connection) => {
    const result = await connection.runAndReadAll(
      `SELECT seq::DOUBLE AS seq, kind, payload FROM read_parquet(${quotePath(path)})
       WHERE seq > ${after_seq} AND seq <= ${until_seq} AND run_id = ${quoteText(run_id)}
         AND kind IN (${kinds.map(quoteText).join(', ')})
       ORDER BY seq`,
    );
    return result.getRowObjects() as unknown as Pick<BotEventsTable, 'seq' | 'kind' | 'payload'>[];
  });
}
