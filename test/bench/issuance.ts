import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { openStorage } from '../../src/storage/storage.ts';
import { startServer } from '../server/running.ts';
import { addVendor } from '../server/vendor.ts';
import { startPostgres } from '../storage/cluster.ts';
import { newDatabase, type TestDatabase } from '../storage/databases.ts';
import { figure, median, round, type Figure, type Goal } from './figure.ts';
import type { Load, Measured } from './load.ts';

const CONNECTIONS = 64;
/** V8 does not compile alike in each process, so there are several of each server. */
const PROCESSES = 3;
const ROUNDS = 3;
const ROUND = { warmUpMs: 500, measureMs: 2000 };
/** Once for each process, until it is compiled. */
const WARM_UP = { warmUpMs: 3000, measureMs: 100 };

const GOAL: Goal = { atLeast: 0.5 };

/** A server, and who asks it. */
type Target = Pick<Load, 'url' | 'callers'>;

/** What is measured in turn, so that what else the machine does meets all of them alike. */
type Targets = Readonly<Record<'bare' | 'issue' | 'renew', Target>>;

/** Leases over HTTP: from a route that only signs, and from servers with durable databases. */
export async function issuance(): Promise<Figure[]> {
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
  const samples: Record<keyof Targets, Measured[]> = { bare: [], issue: [], renew: [] };
  for (let i = 0; i < PROCESSES; i += 1) {
    await withServers(newOne, async (targets) => {
      for (const target of Object.values(targets)) await measure({ ...target, ...WARM_UP });
      for (let k = 0; k < ROUNDS; k += 1) {
        for (const name of ['bare', 'issue', 'renew'] as const) {
          samples[name].push(await measure({ ...targets[name], ...ROUND }));
        }
      }
    });
  }
  const row = (name: keyof Targets, key: keyof Measured, unit: string, goal?: Goal): Figure => {
    const typical = (of: keyof Targets): string =>
      `${round(median(samples[of].map((one) => one[key])))} ${unit}`;
    const ratios = samples[name].map((one, i) => one[key] / samples.bare[i]![key]);
    const what = [`${name}, ${on}`, ...(key === 'perSecond' ? [] : [key])].join(', ');
    return figure(what, [typical('bare'), typical(name)], median(ratios), goal);
  };
  return (['issue', 'renew'] as const).flatMap((name) => [
    row(name, 'perSecond', '/s', name === 'issue' ? GOAL : undefined),
    row(name, 'p50', 'ms'),
    row(name, 'p99', 'ms'),
  ]);
}

/** Starts both servers anew, on a new database; all of it is gone afterwards. */
async function withServers(
  newOne: () => Promise<TestDatabase>,
  work: (targets: Targets) => Promise<void>,
): Promise<void> {
  const undo: (() => Promise<unknown>)[] = [];
  try {
    const bare = spawn(process.execPath, [join(import.meta.dirname, 'bare-server.ts')], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    undo.push(async () => bare.kill());
    const [line] = (await once(bare.stdout, 'data')) as [Buffer];

    const database = await newOne();
    undo.push(database.remove);
    const storage = await openStorage(database.location);
    const size = { installations: CONNECTIONS };
    const { authorization, devices } = await addVendor(storage, Date.now(), size);
    await storage.close();
    const server = await startServer(database, ['--log-json']);
    undo.push(server.stop);

    const administrators = devices.map(({ deployment_id }) => ({
      authorization,
      body: JSON.stringify({ deployment_id }),
    }));
    const machines = devices.map(({ key: { device_id, x, privateKey } }) => ({
      device_id,
      x,
      pem: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    }));
    await work({
      bare: { url: line.toString().trim(), callers: administrators },
      issue: { url: server.url, callers: administrators },
      renew: { url: server.url, callers: machines },
    });
  } finally {
    for (const one of undo.toReversed()) await one();
  }
}

/** Puts load on a server from a process of its own; on the route that gives leases by default. */
export async function measure(
  target: Omit<Load, 'path'> & Partial<Pick<Load, 'path'>>,
): Promise<Measured> {
  const load: Load = { path: '/auth/license/leases', ...target };
  const child = spawn(process.execPath, [join(import.meta.dirname, 'load.ts')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.end(JSON.stringify(load));
  const printed = await text(child.stdout);
  if (printed === '') throw new Error('the load failed');
  return JSON.parse(printed) as Measured;
}
