import { Gauge, type Registry } from 'prom-client';
import { countDeliveries } from '../fleet/notifications/deliveries.ts';
import type { Storage } from '../storage/storage.ts';
import { cachedFigures, type CachedFigures } from './cached-figures.ts';

const FRESH_MS = 5_000;

/** Metrics of the notifications of all servers on the database. */
export function createNotificationMetrics(
  register: Registry,
  { read }: Pick<Storage, 'read'>,
  clock: () => number,
): CachedFigures {
  const notifications = new Gauge({
    name: 'service_local_notifications',
    help: 'Notifications that are not sent yet, and those of rules that failed within a day',
    labelNames: ['status'],
    registers: [register],
  });
  return cachedFigures({
    freshMs: FRESH_MS,
    clock,
    read: () => countDeliveries(read, clock()),
    show({ pending, failed }) {
      notifications.set({ status: 'pending' }, pending);
      notifications.set({ status: 'failed' }, failed);
    },
    drop: () => notifications.reset(),
  });
}
