/** Metrics that servers and workers share, about themselves and their database. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { onAlert } from '../events/raised-alerts.ts';
import { setTimeout as wait } from 'node:timers/promises';
import { storageProbe } from '../storage/probe.ts';
import type { Storage } from '../storage/storage.ts';
import type { CachedFigures } from './cached-figures.ts';
import { createFleetMetrics } from './fleet-metrics.ts';
import { createStorageMetrics } from './storage-metrics.ts';

export interface ProcessMetrics {
  /** 1 while trading is blocked because the database is not adopted. */
  readonly held: Gauge;
  readonly epoch: Gauge;
  /** Lead of this process's clock over the database's clock, in seconds. */
  readonly clockSkew: Gauge;
  /** Checks within one second whether the database responds, and updates the metric. */
  readonly checkStorage: () => Promise<boolean>;
  /** Checks the database, and reads figures that are too old from it, within five seconds. */
  readonly refresh: () => Promise<void>;
  readonly close: () => void;
}

/** Prometheus gives up after ten seconds by default. */
const FIGURES_WITHIN_MS = 5_000;

/** @param own figures of the process that are read from the database, too. */
export function createProcessMetrics(
  register: Registry,
  storage: Pick<Storage, 'check' | 'read' | 'kind' | 'connections'>,
  clock: () => number,
  own: readonly CachedFigures[] = [],
): ProcessMetrics {
  const registers = [register];
  const latency = new Histogram({
    name: 'service_local_alert_latency_seconds',
    help: 'Time from the cause of an alert to its record; Article 16(5) of RTS 6 allows 5 seconds',
    labelNames: ['control', 'severity'],
    buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers,
  });
  const raised = new Counter({
    name: 'service_local_alerts_total',
    help: 'Alerts recorded by this process',
    labelNames: ['control', 'severity'],
    registers,
  });
  const endAlerts = onAlert(({ control, severity, latency_ms }) => {
    raised.inc({ control, severity });
    if (latency_ms !== null) latency.observe({ control, severity }, latency_ms / 1000);
  });
  const gauge = (name: string, help: string): Gauge =>
    new Gauge({ name: `service_local_${name}`, help, registers });
  const up = gauge('storage_up', '1 if the database responds, else 0');
  const isUp = storageProbe(storage);
  const fleet = createFleetMetrics(register, storage, clock);
  const load = createStorageMetrics(register, storage, clock);
  const figures = [...own, fleet, load];
  const checkStorage = async (): Promise<boolean> => {
    const answers = await isUp();
    up.set(answers ? 1 : 0);
    return answers;
  };
  return {
    checkStorage,
    async refresh() {
      if (await checkStorage()) {
        const read = Promise.all(figures.map(({ refresh }) => refresh()));
        await Promise.race([read, wait(FIGURES_WITHIN_MS, undefined, { ref: false })]);
      } else for (const { drop } of figures) drop();
    },
    held: gauge(
      'trading_held',
      '1 while trading is blocked because the database may be a copy; see `server adopt`',
    ),
    epoch: gauge(
      'database_epoch',
      'Number that rises by one each time a copy of the database is adopted',
    ),
    clockSkew: gauge(
      'clock_skew_seconds',
      'Seconds by which the clock of this process is ahead of that of PostgreSQL',
    ),
    close() {
      endAlerts();
      fleet.close();
      load.close();
    },
  };
}
