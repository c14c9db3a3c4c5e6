import { randomUUID } from 'node:crypto';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { isSystemError } from '../../base/system-errors.ts';

const alive = new Set<string>();

/** Creates the id of a worker in this process, `<host>/<pid>/<UUID>`, valid until `retire`. */
export function newWorkerId(): string {
  const worker_id = `${hostname()}/${process.pid}/${randomUUID()}`;
  alive.add(worker_id);
  return worker_id;
}

export function retire(worker_id: string): void {
  alive.delete(worker_id);
}

/** Whether a worker on this machine has ended; always false for workers on other machines. */
export function hasEnded(worker_id: string): boolean {
  const [host, pid] = worker_id.split('/');
  if (host !== hostname()) return false;
  // In a container, a restarted process has the same process id as before.
  if (Number(pid) === process.pid) return !alive.has(worker_id);
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return isSystemError(error, 'ESRCH');
  }
}

/** Temporary directory of a worker on its own machine. */
export function workDirectory(worker_id: string): string {
  return join(tmpdir(), `service-local-tasks-${worker_id.split('/').at(-1)}`);
}
