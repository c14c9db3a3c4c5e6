import { join } from 'node:path';
import { ServiceError } from '../../base/errors.ts';
import { readNextArchived, type ArchivedPart } from '../../events/archive/archived-events.ts';
import { readRows } from '../../events/read-events.ts';
import type { BotEventsTable, Db } from '../../storage/tables.ts';
import type { RecordedInput } from '../../trading/host/threads/session-work.ts';
import { SUPERVISION_KINDS } from '../../trading/session-supervision.ts';
import { FILE_FAULTS, findFileFault, readFileRange } from '../archive/archive-file.ts';

/** Rows per page. Other work of the process runs between pages. */
const PAGE = 500;
/** Events of a file per page: a larger page needs fewer passes over the file, but more memory. */
const FILE_PAGE = 10_000;
const KINDS = ['data.bars', 'data.warm_up', ...SUPERVISION_KINDS];

export interface SessionLog {
  readonly bot_id: string;
  readonly task_id: string;
  /** A sequence number before the first event of the session. */
  readonly after_seq: number;
}

interface InputsPage {
  readonly inputs: readonly RecordedInput[];
  /** The last event that was considered. */
  readonly until_seq: number;
  readonly isLast: boolean;
}

/**
 * Reads the recorded inputs of a paper session in order, from archived files and the database. Each call
 * returns a page; the page after the last is empty. A call that has failed can be repeated.
 *
 * @throws ServiceError `storage_unavailable`, reason `archive_unreadable`, for a file that is missing, altered or
 *   cannot be read.
 */
export function recordedInputs(
  db: Db,
  directory: string,
  { bot_id, task_id: run_id, ...log }: SessionLog,
): () => Promise<readonly RecordedInput[]> {
  let { after_seq } = log;
  const verified = new Set<string>();

  const readPage = async (): Promise<InputsPage | undefined> => {
    const part = await readNextArchived(db, bot_id, after_seq);
    if (part === undefined) return readStored(db, bot_id, { after_seq, run_id });
    return readArchived(part);
  };
  const readArchived = async (part: ArchivedPart): Promise<InputsPage> => {
    const path = join(directory, part.file);
    const first = Math.max(after_seq, part.first_seq - 1);
    const until_seq = Math.min(part.last_seq, first + FILE_PAGE);
    const range = { run_id, kinds: KINDS, after_seq, until_seq };
    try {
      if (!verified.has(part.file)) await verifyFile(path, part);
      verified.add(part.file);
      const inputs = inputsOf(await inTurn(() => readFileRange(path, range)));
      return { inputs, until_seq, isLast: false };
    } catch (error) {
      // Verified again by the next call, since another file may be there by then.
      verified.delete(part.file);
      throw error instanceof ServiceError ? error : unreadable(path, part, 'cannot be read', error);
    }
  };

  return async () => {
    for (;;) {
      const page = await readPage();
      if (page === undefined) continue;
      after_seq = page.until_seq;
      if (page.inputs.length > 0 || page.isLast) return page.inputs;
    }
  };
}

/** @returns undefined if the next events were archived meanwhile. */
async function readStored(
  db: Db,
  bot_id: string,
  { after_seq, run_id }: { readonly after_seq: number; readonly run_id: string },
): Promise<InputsPage | undefined> {
  try {
    const range = { after_seq, kinds: KINDS, run_id, limit: PAGE };
    const { rows } = await readRows(db, bot_id, range);
    const until_seq = rows.at(-1)?.seq ?? after_seq;
    return { inputs: inputsOf(rows), until_seq, isLast: rows.length < PAGE };
  } catch (error) {
    const isArchived = error instanceof ServiceError && error.code === 'archived';
    if (isArchived && (await readNextArchived(db, bot_id, after_seq)) !== undefined)
      return undefined;
    throw error;
  }
}

function inputsOf(
  rows: readonly Pick<BotEventsTable, 'kind' | 'payload'>[],
): readonly RecordedInput[] {
  return rows.map(({ kind, payload }) => ({ kind: kind as RecordedInput['kind'], payload }));
}

async function verifyFile(path: string, part: ArchivedPart): Promise<void> {
  const fault = await findFileFault(path, part);
  if (fault !== undefined) throw unreadable(path, part, FILE_FAULTS[fault]);
}

/** @param fault predicate about the file */
function unreadable(
  path: string,
  part: ArchivedPart,
  fault: string,
  cause?: unknown,
): ServiceError {
  const events = `events ${part.first_seq} to ${part.last_seq} of bot ${part.bot_id}`;
  const why = cause instanceof Error ? `: ${cause.message}` : '';
  return new ServiceError(
    'storage_unavailable',
    `a session cannot resume, because ${path} with ${events} ${fault}${why}`,
    {
      reason: 'archive_unreadable',
      remedy:
        'Make the directory of archives available to this process (setting event_archive_dir), or copy the file from a backup. The session waits until then.',
      cause,
    },
  );
}

let last: Promise<unknown> = Promise.resolve();

/** Runs queries of files one after another, because each uses all processors and much memory. */
function inTurn<T>(query: () => Promise<T>): Promise<T> {
  const result = last.then(query);
  last = result.catch(() => {});
  return result;
}
