import { join } from 'node:path';

/** Files of the daemon in the home directory, in addition to `licenseFiles`. */
export interface DaemonFiles {
  /** Locked while the daemon runs. */
  readonly lock: string;
  /** Describes the running daemon, see `daemon/note.ts`. */
  readonly note: string;
  /** One JSON object per line. */
  readonly log: string;
  /** The previous log, after a rotation. */
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
