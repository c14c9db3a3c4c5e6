/** Runs the paper sessions of a database in a process of its own, until that is killed. */
import { createLog } from '../../../src/base/log.ts';
import { startTaskRunner } from '../../../src/fleet/tasks/task-runner.ts';
import { openStorage, type StorageLocation } from '../../../src/storage/storage.ts';

export interface SessionProcess {
  readonly location: StorageLocation;
  readonly catalogueDir: string;
  readonly archiveDir: string;
  /** Time at the start, ms since the Unix epoch. */
  readonly now: number;
}

const { location, now, ...directories } = JSON.parse(process.argv[2]!) as SessionProcess;
const ahead = now - Date.now();
const storage = await openStorage(location);
startTaskRunner(
  { storage, clock: () => Date.now() + ahead, ...directories },
  {
    workers: 1,
    paperSessions: 10,
    timeoutMs: 60_000,
    log: createLog((line) => process.stderr.write(`${line}\n`), false),
  },
);
