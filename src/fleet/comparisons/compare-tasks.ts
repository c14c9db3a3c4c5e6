import { createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fromErrorData } from '../../base/error-data.ts';
import { ServiceError } from '../../base/errors.ts';
import { endThread } from '../../base/end-thread.ts';
import { acquireThread, releaseThread } from '../../base/thread-pool.ts';
import type { Db } from '../../storage/tables.ts';
import { listFiles, readFile } from '../tasks/task-files.ts';
import { getResult, getTask } from '../tasks/tasks.ts';
import type { ComparisonMessage, ComparisonWork, RunComparison } from './comparison-worker.ts';

const FILE = new URL(`./comparison-worker${import.meta.url.slice(-3)}`, import.meta.url);
/** Each comparison holds the equity of up to eight runs in memory. */
const MOST_AT_ONCE = 2;
const FILES = ['equity.parquet', 'equity.csv', 'trades.csv'];

let atOnce = 0;

/**
 * Compares finished backtests and paper sessions with the first of them, as `runs compare` does.
 * @throws ServiceError `not_found` for a task or its files; `conflict` for a task without such a
 * result; `overloaded` if too many comparisons are running.
 */
export async function compareTasks(db: Db, task_ids: readonly string[]): Promise<RunComparison> {
  if (atOnce >= MOST_AT_ONCE) {
    throw new ServiceError('overloaded', `${MOST_AT_ONCE} comparisons are already running`, {
      remedy: 'Try again in a few seconds.',
      retryAfterSeconds: 5,
    });
  }
  atOnce += 1;
  try {
    return await compareIn(
      await mkdtemp(join(tmpdir(), 'service-local-comparison-')),
      db,
      task_ids,
    );
  } finally {
    atOnce -= 1;
  }
}

/** Compares with result files in the directory, and deletes it. */
async function compareIn(
  directory: string,
  db: Db,
  task_ids: readonly string[],
): Promise<RunComparison> {
  try {
    const directories = [];
    for (const [place, task_id] of task_ids.entries()) {
      const own = join(directory, String(place));
      await unpackRun(db, task_id, own);
      directories.push(own);
    }
    return await compareInThread({ directories, names: task_ids });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Writes the result files of a task that a comparison reads. */
async function unpackRun(db: Db, task_id: string, directory: string): Promise<void> {
  const { kind } = await getTask(db, task_id);
  if (kind !== 'backtest' && kind !== 'paper') {
    throw new ServiceError('conflict', `task ${task_id} is a ${kind} task`, {
      reason: 'not_comparable',
      remedy: 'Compare backtests and paper sessions.',
    });
  }
  const summary = await getResult(db, task_id);
  await mkdir(directory);
  await writeFile(join(directory, 'summary.json'), summary);
  const stored = await listFiles(db, task_id);
  for (const name of FILES.filter((one) => stored.includes(one))) {
    await pipeline(await readFile(db, task_id, name), createWriteStream(join(directory, name)));
  }
  if (stored.includes('trades.csv')) return;
  throw new ServiceError('not_found', `task ${task_id} no longer has its result files`, {
    remedy: 'Run it again; the server keeps result files for `task_file_days`.',
  });
}

/** Runs in a thread, because reading and comparing long runs would delay other requests. */
async function compareInThread(work: ComparisonWork): Promise<RunComparison> {
  const thread = acquireThread(FILE);
  const { promise, resolve, reject } = Promise.withResolvers<RunComparison>();
  thread.on('message', (message: ComparisonMessage) => {
    if ('done' in message) resolve(message.done);
    else reject((message.bug as Error | undefined) ?? fromErrorData(message.error));
  });
  thread.on('error', reject);
  thread.on('exit', (code) => {
    reject(new Error(`the thread of a comparison ended with code ${code}`));
  });
  thread.postMessage(work);
  try {
    const done = await promise;
    releaseThread(FILE, thread);
    return done;
  } catch (error) {
    await endThread(thread);
    throw error;
  }
}
