import { setTimeout as wait } from 'node:timers/promises';
import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { onAlert } from '../../src/events/raised-alerts.ts';
import { createLog } from '../../src/base/log.ts';
import { watchDatabase } from '../../src/server/database-watch.ts';
import { createProcessMetrics } from '../../src/server/process-metrics.ts';
import { openStorage, type Storage } from '../../src/storage/storage.ts';
import { newTables } from '../storage/databases.ts';

it('a slow database is not reported as clock skew', async () => {
  const database = await newTables('postgres');
  const storage = await openStorage(database.location);
  const register = new Registry();
  const metrics = createProcessMetrics(register, storage, Date.now);
  const alerts: string[] = [];
  const close = onAlert(({ control }) => alerts.push(control));
  // The longest time for which a read is retried while the database restarts.
  const late = storage.read.withPlugin({
    transformQuery: ({ node }) => node,
    async transformResult({ result }) {
      if (result.rows.some((row) => Object.hasOwn(row, 'now'))) await wait(1_500);
      return result;
    },
  });
  const slow: Storage = { ...storage, read: late };
  const stop = await watchDatabase(
    slow,
    metrics,
    createLog(() => {}, false),
  );
  try {
    const [gauge] = (await metrics.clockSkew.get()).values;
    expect(Math.abs(gauge!.value)).toBeLessThan(0.5);
    expect(alerts).toEqual([]);
  } finally {
    await stop();
    close();
    metrics.close();
    await storage.close();
    await database.remove();
  }
});
