import { haltAll } from '../../src/fleet/halts/halt.ts';
import { openStorage, type Storage } from '../../src/storage/storage.ts';
import { makeSessions } from '../fleet/halts/sessions.ts';
import { startPostgres } from '../storage/cluster.ts';
import { newDatabase, type TestDatabase } from '../storage/databases.ts';
import { figure, median, round, type Figure } from './figure.ts';

const DEPLOYMENTS = 10_000;
const ROUNDS = 3;
const GOALS = { seconds: 10, ratio: 10 };

/** The kill switch while so many paper sessions have two orders each at work, until all is verified. */
export async function halts(): Promise<Figure[]> {
  const onSqlite = await compare('SQLite', () => newDatabase('sqlite'));
  const cluster = await startPostgres(['-c', 'fsync=on', '-c', 'synchronous_commit=on']);
  try {
    const newOne = () => newDatabase('postgres', cluster.url);
    return [...onSqlite, ...(await compare('PostgreSQL', newOne))];
  } finally {
    await cluster.stop();
  }
}

async function compare(on: string, newOne: () => Promise<TestDatabase>): Promise<Figure[]> {
  const times = { floor: [] as number[], ours: [] as number[] };
  for (let i = 0; i < ROUNDS; i += 1) {
    const database = await newOne();
    const storage = await openStorage(database.location);
    await makeSessions(storage, { count: DEPLOYMENTS });
    // As the database itself does within a minute.
    if (storage.kind === 'postgres') await database.execute('analyze');
    times.floor.push(await timeOf(() => updateAll(storage)));
    times.ours.push(await timeOf(() => haltThem(storage)));
    await storage.close();
    await database.remove();
  }
  const [floor, ours] = [median(times.floor), median(times.ours)];
  const what = `halt-all of ${DEPLOYMENTS} paper deployments, ${on}`;
  const text = (ms: number): string => `${round(ms / 1000)} s`;
  return [
    figure(`${what}, seconds`, [text(GOALS.seconds * 1000), text(ours)], ours / 1000, {
      atMost: GOALS.seconds,
    }),
    figure(`${what}, against an update of as many rows`, [text(floor), text(ours)], ours / floor, {
      atMost: GOALS.ratio,
    }),
  ];
}

/** What the halt has to do at least, and no more: in one statement. */
async function updateAll(storage: Storage): Promise<void> {
  await storage.write((tx) => tx.updateTable('bot_deployments').set({ created_at: 1 }).execute());
}

async function haltThem(storage: Storage): Promise<void> {
  const service = { storage, clock: Date.now, wake() {}, release() {}, log: console };
  const { verified, deployments } = await haltAll(service, 'operator', 'a benchmark');
  if (!verified || deployments.length !== DEPLOYMENTS) throw new Error('not all were halted');
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const begin = performance.now();
  await work();
  return performance.now() - begin;
}
