import type { Log } from '../../base/log.ts';
import { packageVersion } from '../../base/package-version.ts';
import type { Db } from '../../storage/tables.ts';
import { countNewerTasks } from './open-tasks.ts';

/** Warns when tasks begin to wait for workers of a newer version. */
export class NewerTasks {
  readonly #read: Db;
  readonly #level: number;
  readonly #log: Log;
  #isWaiting = false;

  constructor(read: Db, level: number, log: Log) {
    this.#read = read;
    this.#level = level;
    this.#log = log;
  }

  async check(): Promise<void> {
    const count = await countNewerTasks(this.#read, this.#level);
    if (count > 0 && !this.#isWaiting) {
      this.#log.warn(
        `${count} queued ${count === 1 ? 'task needs' : 'tasks need'} a newer worker than version ${packageVersion()} (task level ${this.#level}): upgrade the workers to the version of the servers`,
      );
    }
    this.#isWaiting = count > 0;
  }
}
