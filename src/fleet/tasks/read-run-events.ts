import { join } from 'node:path';
import { ServiceError } from '../../base/errors.ts';
import { isSystemError } from '../../base/system-errors.ts';
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
const INPUT_KINDS = ['data.bars', 'data.warm_up', ...SUPERVISION_KINDS];

/**
 * Reads the inputs of a paper session as `recordedEvents` does. Each call of the result returns a page;
 * the page after the last is empty.
 */
export function recordedInputs(
  db: Db,
  directory: string,
  { bot_id, task_id: run_id, after_seq }: SessionLog,
): () => Promise<readonly RecordedInput[]> {
  const range = { bot_id, run_id, kinds: INPUT_KINDS, after_seq };
  const read = recordedEvents(db, directory, range);
  return async () => {
    const { events } = await read();
    return events.map(({ kind, payload }) => ({ kind: kind as RecordedInput['kind'], payload }));
  };
}

export interface SessionLog {
  readonly bot_id: string;
  readonly task_id: string;
  /** A sequence number before the first event of the session. */
  readonly after_seq: number;
}

export interface RecordedRange {
  readonly bot_id: string;
  readonly run_id: string;
  readonly kinds: readonly string[];
  /** A sequence number before the first event of the run. */
  readonly after_seq: number;
}

export type RecordedEvent = Pick<BotEventsTable, 'seq' | 'kind' | 'payload'>;

interface RecordedPage {
  readonly events: readonly RecordedEvent[];
  /** Last event that was considered, of any kind; on the last page, the head of the log. */
  readonly until_seq: number;
  readonly isLast: boolean;
}

/**
 * Reads the recorded events of a run in order, from archived files and the database. Each call of the
 * result returns the next page. Calls after the last page return events that were added meanwhile. A call
 * that has failed can be repeated.
 *
 * @throws ServiceError `storage_unavailable`, reason `archive_unreadable`, for a file that is missing,
 *   altered or unreadable; `archived` for a run that has ended and whose first event is archived.
 */
export function recordedEvents(
  db: Db,
  directory: string,
  { bot_id, ...range }: RecordedRange,
): () => Promise<RecordedPage> {
  let { after_seq } = range;
  const verified = new Set<string>();

  const readPage = async (): Promise<RecordedPage | undefined> => {
    const part = await readNextArchived(db, bot_id, after_seq);
    if (part === undefined) return readStored(db, { ...range, bot_id, after_seq });
    return readArchived(part);
  };
  const readArchived = async (part: ArchivedPart): Promise<RecordedPage> => {
    const path = join(directory, part.file);
    const first = Math.max(after_seq, part.first_seq - 1);
    const until_seq = Math.min(part.last_seq, first + FILE_PAGE);
    try {
      const fault = verified.has(part.file) ? undefined : await findFileFault(path, part);
      if (fault !== undefined) throw unreadable(part, FILE_FAULTS[fault]);
      verified.add(part.file);
      const events = await inTurn(() => readFileRange(path, { ...range, after_seq, until_seq }));
      return { events, until_seq, isLast: false };
    } catch (error) {
      // Verified again by the next call, since another file may be there by then.
      verified.delete(part.file);
      throw error instanceof ServiceError ? error : unreadable(part, 'cannot be read', error);
    }
  };

  return async () => {
    for (;;) {
      const page = await readPage();
      if (page === undefined) continue;
      after_seq = page.until_seq;
      if (page.events.length > 0 || page.isLast) return page;
    }
  };
}

/** @returns undefined if the next events were archived meanwhile. */
async function readStored(
  db: Db,
  { bot_id, ...range }: RecordedRange,
): Promise<RecordedPage | undefined> {
  try {
    const { rows, head } = await readRows(db, bot_id, { ...range, limit: PAGE });
    const isLast = rows.length < PAGE;
    const until_seq = Math.max(range.after_seq, rows.at(-1)?.seq ?? 0, isLast ? head.seq : 0);
    return { events: rows, until_seq, isLast };
  } catch (error) {
    const isArchived = error instanceof ServiceError && error.code === 'archived';
    if (isArchived && (await readNextArchived(db, bot_id, range.after_seq)) !== undefined)
      return undefined;
    throw error;
  }
}

/**
 * Names the file without its directory, since clients get the message. The log also has the cause.
 *
 * @param fault predicate about the file
 */
function unreadable(part: ArchivedPart, fault: string, cause?: unknown): ServiceError {
  const { file, first_seq, last_seq, bot_id } = part;
  const events = `events ${first_seq} to ${last_seq} of bot ${bot_id}`;
  const why = isSystemError(cause) ? `: ${cause.code}` : '';
  return new ServiceError('storage_unavailable', `${file} with ${events} ${fault}${why}`, {
    reason: 'archive_unreadable',
    remedy:
      'Make the directory of archives available to this process (setting event_archive_dir), or copy the file from a backup. Sessions that resume wait until then.',
    cause,
  });
}

let last: Promise<unknown> = Promise.resolve();

/** Runs queries of files one after another, because each uses all processors and much memory. */
function inTurn<T>(query: () => Promise<T>): Promise<T> {
  const result = last.then(query);
  last = result.catch(() => {});
  return result;
}
