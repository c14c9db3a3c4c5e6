import { join } from 'node:path';

/** Files of the daemon alone, in the home directory; those of the license are in `licenseFiles`. */
export interface DaemonFiles {
  /** Held while it runs. */
  readonly lock: string;
  /** Who it is; see `daemon/note.ts`. */
  readonly note: string;
  /** What it logs: a JSON object a line. */
  readonly log: string;
  /** What was logged before. */
  readonly olderLog: string;
}

export function daemonFiles(home: string): DaemonFiles {
  const log = join(home, 'daemon.log');
  return {
    lock: join(home, 'daemon.lock'),
    note: join(home, 'daemon.json'),
    log,
    olderLog: `${log}.1`,
  };
}
