/** List of active workers, and how they share trading sessions. */
import { DAY } from '../../base/durations.ts';
import { packageVersion } from '../../base/package-version.ts';
import type { Storage } from '../../storage/storage.ts';
import type { Db, WorkersTable } from '../../storage/tables.ts';
import type { Claim, SessionKind } from './claim.ts';
import { countOpenTasks } from './open-tasks.ts';
import { SilenceWatch } from './silence-watch.ts';
import { hasEnded } from './worker-id.ts';

/** A worker writes its heartbeat every two seconds. Without one for this long, others take its share. */
const ALIVE_WITHIN_MS = 10_000;
/** After this wait, any worker with room takes a session, even beyond its share. */
const MOST_WAIT_MS = 5_000;
const FORGOTTEN_AFTER_MS = DAY;

const CAPACITY = { paper: 'paper_sessions', production: 'production_deployments' } as const;

type Capacities = Readonly<Record<SessionKind, number>>;

/** Records that a worker is alive, its version, and how many sessions it takes of each kind. */
export async function announceWorker(
  tx: Db,
  now: number,
  worker_id: string,
  { paper, production }: Capacities,
): Promise<void> {
  const row = {
    paper_sessions: paper,
    production_deployments: production,
    version: packageVersion(),
    heartbeat_at: now,
  };
  await tx
    .insertInto('workers')
    .values({ worker_id, ...row })
    .onConflict((conflict) => conflict.column('worker_id').doUpdateSet(row))
    .execute();
}

/** Removes a worker that stops, and workers without a heartbeat for a day. */
export async function removeWorker(tx: Db, now: number, worker_id: string): Promise<void> {
  await tx
    .deleteFrom('workers')
    .where((is) =>
      is.or([is('worker_id', '=', worker_id), is('heartbeat_at', '<', now - FORGOTTEN_AFTER_MS)]),
    )
    .execute();
}

export interface SessionShare {
  /** Number of sessions of a kind that the worker may have now, including running ones. */
  readonly most: (kind: SessionKind) => Promise<number>;
  /** Reports that no task of a kind waits for this worker. */
  readonly noneWaits: (kind: Claim['kind']) => void;
  /**
   * Forgets the observed silence of all workers, for example after an outage in which none could
   * write its heartbeat.
   */
  readonly reset: () => void;
}

/** Fair share of a worker; unlimited if no other process can take sessions. */
export function sessionShare(
  { kind: database, read }: Storage,
  worker_id: string,
  capacities: Capacities,
): SessionShare {
  const silence = new SilenceWatch();
  const liveOthers = async (): Promise<readonly Readonly<WorkersTable>[]> => {
    const rows = await otherWorkers(read, worker_id);
    const heartbeats = rows.map((one) => [one.worker_id, String(one.heartbeat_at)] as const);
    const silentFor = silence.observe(new Map(heartbeats));
    return rows.filter((one) => silentFor.get(one.worker_id)! <= ALIVE_WITHIN_MS);
  };
  /** Since when sessions have waited, by kind and `performance.now()`. */
  const waitingSince = new Map<Claim['kind'], number>();
  return {
    async most(kind) {
      if (database === 'sqlite') return Infinity;
      const now = performance.now();
      const since = waitingSince.get(kind) ?? now;
      waitingSince.set(kind, since);
      if (now - since > MOST_WAIT_MS) return Infinity;
      const rooms = (await liveOthers()).map((one) => one[CAPACITY[kind]]);
      return fairShare(await countOpenTasks(read, kind), [capacities[kind], ...rooms]);
    },
    noneWaits: (kind) => void waitingSince.delete(kind),
    reset: () => silence.reset(),
  };
}

/** The workers that have not stopped, dead ones included unless they were on this machine. */
async function otherWorkers(db: Db, worker_id: string): Promise<readonly Readonly<WorkersTable>[]> {
  const rows = await db
    .selectFrom('workers')
    .selectAll()
    .where('worker_id', '<>', worker_id)
    .execute();
  return rows.filter((one) => !hasEnded(one.worker_id));
}

/**
 * The lowest limit under which all sessions find room when no worker has more than that limit, nor
 * more than its capacity; Infinity when there is not enough room.
 */
export function fairShare(sessions: number, capacities: readonly number[]): number {
  let left = sessions;
  const sorted = capacities.toSorted((a, b) => a - b);
  for (const [place, capacity] of sorted.entries()) {
    const share = Math.ceil(left / (sorted.length - place));
    if (capacity >= share) return share;
    left -= capacity;
  }
  return Infinity;
}
