/** `node issuance.ts sqlite|postgres`: leases of a durable server against a route that only signs. */
import { openStorage } from '../../src/storage/storage.ts';
import { startServer } from '../server/running.ts';
import { addVendor } from '../server/vendor.ts';
import type { TestDatabase } from '../storage/databases.ts';
import { withDatabases } from './durable-databases.ts';
import { startScript, timePerRequest } from './http.ts';
import { alternate, peakMemory, printMeasurement, type Pair } from './measurement.ts';

const CONNECTIONS = 64;
/** V8 compiles differently in each process, so there are several of each server. */
const PROCESSES = 3;
const ROUNDS = 3;
const ROUND = { warmUpMs: 500, measureMs: 2000 };
/** Once for each process, until its code is compiled. */
const WARM_UP = { warmUpMs: 3000, measureMs: 100 };

const pairs: Pair[] = [];
const peaks: number[] = [];
await withDatabases(process.argv[2] as 'sqlite' | 'postgres', async (newOne) => {
  for (let i = 0; i < PROCESSES; i += 1) await measureServers(await newOne());
});
printMeasurement({ pairs, peakBytes: Math.max(...peaks) });

async function measureServers(database: TestDatabase): Promise<void> {
  const storage = await openStorage(database.location);
  const size = { installations: CONNECTIONS };
  const { authorization, devices } = await addVendor(storage, Date.now(), size);
  await storage.close();
  const requests = devices.map(({ deployment_id }) => ({
    authorization,
    body: JSON.stringify({ deployment_id }),
  }));
  const bare = await startScript('bare-server.ts');
  const server = await startServer(database, ['--log-json']);
  try {
    const path = '/auth/license/leases';
    const timeAt = ({ url }: { readonly url: string }, phase: typeof ROUND): Promise<number> =>
      timePerRequest({ url, path, requests, ...phase });
    for (const one of [bare, server]) await timeAt(one, WARM_UP);
    const sides = { floor: () => timeAt(bare, ROUND), ours: () => timeAt(server, ROUND) };
    pairs.push(...(await alternate(ROUNDS, sides)));
    peaks.push(peakMemory(server.pid));
  } finally {
    await bare.stop();
    await server.stop();
    await database.remove();
  }
}
