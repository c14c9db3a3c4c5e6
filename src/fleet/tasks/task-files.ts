/** Result files of tasks, stored in the database so that every server can read them. */
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { ServiceError } from '../../base/errors.ts';
import type { Storage } from '../../storage/storage.ts';
import type { Db } from '../../storage/tables.ts';
import { isHeld, type Claim } from './claim.ts';
import { getTask } from './tasks.ts';

/** Bytes per part: a multiple of three for base64, and small enough for a short write. */
const PART = 3 << 16;

interface StoreOptions {
  /** Contains each file as `<name>.gz`. */
  readonly directory: string;
  /** Repeats an access while the database does not answer. */
  readonly persist: <T>(access: () => Promise<T>) => Promise<T>;
  readonly signal: AbortSignal;
}

/**
 * @returns false when the claim is no longer valid.
 * @throws the reason with which `signal` was aborted.
 */
export async function storeFiles(
  storage: Pick<Storage, 'write'>,
  claim: Claim,
  names: readonly string[],
  { directory, persist, signal }: StoreOptions,
): Promise<boolean> {
  for (const name of names) {
    const path = join(directory, `${name}.gz`);
    if (!(await persist(() => storeFile(storage, claim, name, path, signal)))) return false;
  }
  return true;
}

/**
 * Stores a file, one part per write.
 * @param path of the file, compressed by gzip.
 */
async function storeFile(
  { write }: Pick<Storage, 'write'>,
  claim: Claim,
  name: string,
  path: string,
  signal: AbortSignal,
): Promise<boolean> {
  const { task_id } = claim;
  const file = await open(path);
  try {
    for (let place = 0; ; place += 1) {
      signal.throwIfAborted();
      const { bytesRead, buffer } = await file.read(Buffer.alloc(PART), 0, PART, place * PART);
      if (bytesRead === 0) return true;
      const data = buffer.toString('base64', 0, bytesRead);
      const isKept = await write(async (tx) => {
        if (!(await isHeld(tx, claim))) return false;
        await tx
          .insertInto('task_files')
          .values({ task_id, name, place, data })
          // A part is written again if its write was not acknowledged.
          .onConflict((conflict) => conflict.doNothing())
          .execute();
        return true;
      });
      if (!isKept) return false;
    }
  } finally {
    await file.close();
  }
}

/**
 * Lists the files of a task by name. A failed task has at most the log of its strategy, and a task that
 * is open or canceled has none.
 * @throws ServiceError `not_found`
 */
export async function listFiles(db: Db, task_id: string): Promise<string[]> {
  const { status } = await getTask(db, task_id);
  if (status !== 'success' && status !== 'failed') return [];
  const rows = await db
    .selectFrom('task_files')
    .select('name')
    .where('task_id', '=', task_id)
    .where('place', '=', 0)
    .orderBy('name')
    .execute();
  return rows.map(({ name }) => name);
}

/** @throws ServiceError `not_found` */
export async function readFile(db: Db, task_id: string, name: string): Promise<Readable> {
  if ((await listFiles(db, task_id)).includes(name)) {
    const parts = Readable.from(partsOf(db, task_id, name));
    const file = createGunzip();
    parts.on('error', (error) => file.destroy(error));
    file.on('close', () => parts.destroy());
    return parts.pipe(file);
  }
  throw new ServiceError('not_found', `task ${task_id} has no file ${JSON.stringify(name)}`, {
    remedy: `See \`service-local tasks get ${task_id}\`. Successful tasks have files, and failed backtests the log of their strategy, until \`task_file_days\` of the server have passed.`,
  });
}

/** Tasks whose files are deleted in one write, so that other writes wait only briefly. */
const TASKS_AT_ONCE = 20;

/**
 * Deletes the files of tasks that ended by a time, ms since the Unix epoch. Files of conformance and
 * stress tests stay as evidence.
 */
export async function deleteOldFiles(
  { read, write }: Pick<Storage, 'read' | 'write'>,
  endedBy: number,
): Promise<void> {
  for (;;) {
    const old = await read
      .selectFrom('task_files')
      .innerJoin('tasks', 'tasks.task_id', 'task_files.task_id')
      .select('tasks.task_id')
      .distinct()
      .where('place', '=', 0)
      .where('ended_at', '<=', endedBy)
      .where('kind', 'not in', ['conformance', 'stress'])
      .limit(TASKS_AT_ONCE)
      .execute();
    if (old.length === 0) return;
    const task_ids = old.map(({ task_id }) => task_id);
    await write(async (tx) => {
      await tx.deleteFrom('task_files').where('task_id', 'in', task_ids).execute();
    });
  }
}

async function* partsOf(db: Db, task_id: string, name: string): AsyncGenerator<Buffer, void> {
  for (let place = 0; ; place += 1) {
    const part = await db
      .selectFrom('task_files')
      .select('data')
      .where('task_id', '=', task_id)
      .where('name', '=', name)
      .where('place', '=', place)
      .executeTakeFirst();
    if (part === undefined) return;
    yield Buffer.from(part.data, 'base64');
  }
}
