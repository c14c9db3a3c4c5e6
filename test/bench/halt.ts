/** `node halt.ts sqlite|postgres`: the kill switch for all paper deployments against one update. */
import { haltAll } from '../../src/fleet/halts/halt.ts';
import { openStorage, type Storage } from '../../src/storage/storage.ts';
import { makeSessions } from '../fleet/halts/sessions.ts';
import { withDatabases } from './durable-databases.ts';
import { alternate, peakMemory, printMeasurement, timeOf, type Pair } from './measurement.ts';

/** Each has a paper session with two working orders. */
const DEPLOYMENTS = 10_000;
const ROUNDS = 3;

const pairs: Pair[] = [];
await withDatabases(process.argv[2] as 'sqlite' | 'postgres', async (newOne) => {
  for (let i = 0; i < ROUNDS; i += 1) {
    const database = await newOne();
    const storage = await openStorage(database.location);
    await makeSessions(storage, { count: DEPLOYMENTS });
    // PostgreSQL does this itself within a minute.
    if (storage.kind === 'postgres') await database.execute('analyze');
    const sides = {
      floor: () => timeOf(() => updateAll(storage)),
      ours: () => timeOf(() => haltThem(storage)),
    };
    pairs.push(...(await alternate(1, sides)));
    await storage.close();
    await database.remove();
  }
});
printMeasurement({ pairs, peakBytes: peakMemory() });

/** The least that a halt has to write, in one statement. */
async function updateAll(storage: Storage): Promise<void> {
  await storage.write((tx) => tx.updateTable('bot_deployments').set({ created_at: 1 }).execute());
}

async function haltThem(storage: Storage): Promise<void> {
  const service = { storage, clock: Date.now, wake() {}, release() {}, log: console };
  const { verified, deployments } = await haltAll(service, 'operator', 'a benchmark');
  if (!verified || deployments.length !== DEPLOYMENTS) throw new Error('not all were halted');
}
