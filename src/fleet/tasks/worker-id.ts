import { randomUUID } from 'node:crypto';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { isSystemError } from '../../base/errors.ts';

/** Of this process. */
const alive = new Set<string>();

/** Names who works on tasks in this process, until `retire`: `<host>/<pid>/<UUID>`. */
export function newWorkerId(): string {
  const worker_id = `${hostname()}/${process.pid}/${randomUUID()}`;
  alive.add(worker_id);
  return worker_id;
}

export function retire(worker_id: string): void {
  alive.delete(worker_id);
}

/** Whether it was on this machine and has ended. Of others nothing can be said. */
export function hasEnded(worker_id: string): boolean {
  const [host, pid] = worker_id.split('/');
  if (host !== hostname()) return false;
  // In a container, each process that is started has the number of the one before it.
  if (Number(pid) === process.pid) return !alive.has(worker_id);
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return isSystemError(error, 'ESRCH');
  }
}

/** Where it puts what it works on, on its own machine. */
export function workDirectory(worker_id: string): string {
  return join(tmpdir(), `service-local-tasks-${worker_id.split('/').at(-1)}`);
}
