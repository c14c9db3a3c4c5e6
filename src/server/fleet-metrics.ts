import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { fleetFigures, type FleetFigures } from '../fleet/tasks/fleet-figures.ts';
import { archiveWaits, watchTasks } from '../fleet/tasks/task-notices.ts';
import type { Storage } from '../storage/storage.ts';
import { cachedFigures, type CachedFigures } from './cached-figures.ts';
import { openStreams } from './open-streams.ts';

/** Figures change with every task, and reading them takes milliseconds. */
const FRESH_MS = 5_000;

export interface FleetMetrics extends CachedFigures {
  readonly close: () => void;
}

/** Metrics of trading: what runs and waits on all workers, and what this process records. */
export function createFleetMetrics(
  register: Registry,
  { read }: Pick<Storage, 'read'>,
  clock: () => number,
): FleetMetrics {
  const registers = [register];
  const gauge = <L extends string>(name: string, help: string, labelNames: L[] = []): Gauge<L> =>
    new Gauge({ name: `service_local_${name}`, help, labelNames, registers });

  const workers = gauge('workers', 'Processes that run tasks of this PostgreSQL database');
  const versions = gauge(
    'worker_versions',
    'The same processes by version; `unknown` for versions that do not announce theirs',
    ['version'],
  );
  const tasks = gauge(
    'tasks',
    'Tasks and shards of all workers that have not ended; running paper and production tasks are sessions',
    ['kind', 'status'],
  );
  const queueAge = gauge(
    'task_queue_age_seconds',
    'Seconds since the creation of the oldest task that waits for a worker',
    ['kind'],
  );
  const heartbeatAge = gauge(
    'task_heartbeat_age_seconds',
    'Seconds since the oldest heartbeat of a running task',
    ['kind'],
  );
  const recordAge = gauge(
    'session_record_age_seconds',
    'Seconds since the oldest last record of a running paper session; a session records each bar',
  );
  const halts = gauge('halts', 'Halts in force, of one bot or of all', ['scope']);

  const drop = (): void => {
    workers.remove();
    for (const one of [versions, tasks, queueAge, heartbeatAge, halts]) one.reset();
    recordAge.remove();
  };
  const show = (figures: FleetFigures): void => {
    drop();
    const secondsSince = (time: number): number => Math.max(0, clock() - time) / 1000;
    workers.set(figures.workers.reduce((sum, { count }) => sum + count, 0));
    for (const { version, count } of figures.workers) {
      versions.set({ version: version ?? 'unknown' }, count);
    }
    halts.set({ scope: 'bot' }, figures.halts.bot);
    halts.set({ scope: 'all' }, figures.halts.all);
    for (const { kind, status, count, created_at, heartbeat_at } of figures.tasks) {
      tasks.set({ kind, status }, count);
      if (status === 'queued') queueAge.set({ kind }, secondsSince(created_at));
      else if (heartbeat_at !== null) heartbeatAge.set({ kind }, secondsSince(heartbeat_at));
    }
    if (figures.recorded_at !== null) recordAge.set(secondsSince(figures.recorded_at));
  };
  const figures = cachedFigures({
    freshMs: FRESH_MS,
    clock,
    read: () => fleetFigures(read),
    show,
    drop,
  });
  return { ...figures, close: countOwn(register) };
}

/**
 * Counts what this process records.
 * @returns a function that ends this.
 */
function countOwn(register: Registry): () => void {
  const registers = [register];
  const counter = <L extends string>(name: string, help: string, labelNames: L[]): Counter<L> =>
    new Counter({ name: `service_local_${name}`, help, labelNames, registers });
  const ended = counter('tasks_ended_total', 'Tasks and shards that this process has ended', [
    'kind',
    'status',
  ]);
  const requeued = counter(
    'tasks_requeued_total',
    'Tasks and shards that this process has put back into the queue',
    ['kind', 'reason'],
  );
  const lag = new Histogram({
    name: 'service_local_session_record_seconds',
    help: 'Seconds from the oldest event of a batch of a paper session to its record',
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    registers,
  });
  const streams = new Gauge({
    name: 'service_local_event_streams',
    help: 'Open streams of events',
    registers: [],
    collect() {
      this.set(openStreams.size);
    },
  });
  const waits = new Gauge({
    name: 'service_local_sessions_waiting_for_archive',
    help: 'Paper sessions of this process that wait for a file of archived events',
    registers: [],
    collect() {
      this.set(archiveWaits.size);
    },
  });
  for (const one of [streams, waits]) register.registerMetric(one);
  return watchTasks({
    ended: (kind, status) => ended.inc({ kind, status }),
    requeued: (kind, reason) => requeued.inc({ kind, reason }),
    recorded: (ms) => lag.observe(ms / 1000),
  });
}
