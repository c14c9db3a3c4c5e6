import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { databaseSize } from '../storage/database-size.ts';
import { countEvents, readSizes } from '../storage/table-sizes.ts';
import { watchStorageLoad } from '../storage/storage-load.ts';
import type { Storage } from '../storage/storage.ts';
import { cachedFigures, type CachedFigures } from './cached-figures.ts';

/** Sizes change slowly, and PostgreSQL reads the state of a file for each table and index. */
const FRESH_MS = 5 * 60_000;

export interface StorageMetrics extends CachedFigures {
  readonly close: () => void;
}

/** Metrics of the database and of the queue of writes to it. */
export function createStorageMetrics(
  register: Registry,
  storage: Pick<Storage, 'read' | 'kind' | 'connections'>,
  clock: () => number,
): StorageMetrics {
  const registers = [register];
  const wait = new Histogram({
    name: 'service_local_write_wait_seconds',
    help: 'Seconds that a write waited for those before it; after 10 seconds it is rejected',
    buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  });
  const failures = new Counter({
    name: 'service_local_storage_failures_total',
    help: 'Attempts that failed because the database was unreachable or busy; most are repeated',
    registers,
  });
  const close = watchStorageLoad({
    waited: (ms) => wait.observe(ms / 1000),
    failed: () => failures.inc(),
  });
  const connections = new Gauge({
    name: 'service_local_database_connections',
    help: 'Connections to PostgreSQL by state, and queries that wait for one',
    labelNames: ['state'],
    registers: [],
    collect() {
      for (const [state, count] of Object.entries(storage.connections() ?? {})) {
        this.set({ state }, count);
      }
    },
  });
  register.registerMetric(connections);
  const total = new Gauge({
    name: 'service_local_database_bytes',
    help: 'Size of the database',
    registers,
  });
  const tables = new Gauge({
    name: 'service_local_table_bytes',
    help: 'Size of a table with its indexes; for SQLite only tables of at least 1 MB, as measured hourly',
    labelNames: ['table'],
    registers,
  });
  const growth = new Gauge({
    name: 'service_local_table_growth_bytes_per_day',
    help: 'Average growth of a table of at least 1 MB over the last 30 days',
    labelNames: ['table'],
    registers,
  });
  const events = new Gauge({
    name: 'service_local_bot_events',
    help: 'Events of all bots by place: in the database, or in archived files',
    labelNames: ['place'],
    registers,
  });
  const drop = (): void => {
    total.remove();
    tables.reset();
    growth.reset();
    events.reset();
  };
  const figures = cachedFigures({
    freshMs: FRESH_MS,
    clock,
    read: async () => ({
      size: await databaseSize(storage),
      sampled: await readSizes(storage.read),
      counts: await countEvents(storage.read),
    }),
    show({ size, sampled, counts }) {
      drop();
      total.set(size.total);
      const measured = size.tables.length > 0 ? size.tables : sampled;
      for (const { name: table, bytes } of measured) tables.set({ table }, bytes);
      for (const { name: table, bytes_per_day } of sampled) {
        if (bytes_per_day !== null) growth.set({ table }, bytes_per_day);
      }
      for (const [place, count] of Object.entries(counts)) events.set({ place }, count);
    },
    drop,
  });
  return { ...figures, close };
}
