import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { openStorage } from '../../src/storage/storage.ts';
import { startServer } from '../server/running.ts';
import { addVendor } from '../server/vendor.ts';
import { startPostgres } from '../storage/cluster.ts';
import { newDatabase } from '../storage/databases.ts';
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

/**
 * Leases over HTTP: from a route that only signs, and from servers with durable databases. In turn,
 * so that what else the machine does meets them alike.
 */
export async function issuance(): Promise<Figure[]> {
  const bare: Measured[] = [];
  const served = new Map<string, Measured[]>();
  const cluster = await startPostgres(['-c', 'fsync=on', '-c', 'synchronous_commit=on']);
  try {
    for (let i = 0; i < PROCESSES; i += 1) {
      await withServers(cluster.url, async (floor, targets) => {
        for (const target of [floor, ...targets.values()]) await measure({ ...target, ...WARM_UP });
        for (let k = 0; k < ROUNDS; k += 1) {
          bare.push(await measure({ ...floor, ...ROUND }));
          for (const [name, target] of targets) {
            const measured = await measure({ ...target, ...ROUND });
            served.set(name, [...(served.get(name) ?? []), measured]);
          }
        }
      });
    }
  } finally {
    await cluster.stop();
  }
  return [...served].flatMap(([name, ours]) => compare(name, bare, ours));
}

function compare(name: string, bare: readonly Measured[], ours: readonly Measured[]): Figure[] {
  const row = (key: keyof Measured, unit: string, goal?: Goal): Figure => {
    const typical = (all: readonly Measured[]): string =>
      `${round(median(all.map((one) => one[key])))} ${unit}`;
    const ratios = ours.map((one, i) => one[key] / bare[i]![key]);
    const what = key === 'perSecond' ? name : `${name}, ${key}`;
    return figure(what, [typical(bare), typical(ours)], median(ratios), goal);
  };
  const isIssuing = name.startsWith('issue');
  return [row('perSecond', '/s', isIssuing ? GOAL : undefined), row('p50', 'ms'), row('p99', 'ms')];
}

/** Starts each server anew, on a new database; all of it is gone afterwards. */
async function withServers(
  cluster: string,
  work: (floor: Target, targets: ReadonlyMap<string, Target>) => Promise<void>,
): Promise<void> {
  const undo: (() => Promise<unknown>)[] = [];
  try {
    const bare = spawn(process.execPath, [join(import.meta.dirname, 'bare-server.ts')], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    undo.push(async () => bare.kill());
    const [line] = (await once(bare.stdout, 'data')) as [Buffer];
    const anybody = { authorization: 'Bearer none', body: '{"deployment_id":"deployment-1"}' };
    const floor = {
      url: line.toString().trim(),
      callers: Array.from({ length: CONNECTIONS }, () => anybody),
    };

    const targets = new Map<string, Target>();
    for (const kind of ['sqlite', 'postgres'] as const) {
      const database = await newDatabase(kind, cluster);
      undo.push(database.remove);
      const storage = await openStorage(database.location);
      const { authorization, devices } = await addVendor(storage, Date.now(), {
        deployments: CONNECTIONS,
      });
      await storage.close();
      const server = await startServer(database, ['--log-json']);
      undo.push(server.stop);
      const name = kind === 'sqlite' ? 'SQLite' : 'PostgreSQL';
      targets.set(`issue, ${name}`, {
        url: server.url,
        callers: devices.map(({ deployment_id }) => ({
          authorization,
          body: JSON.stringify({ deployment_id }),
        })),
      });
      targets.set(`renew, ${name}`, {
        url: server.url,
        callers: devices.map(({ key: { device_id, x, privateKey } }) => ({
          device_id,
          x,
          pem: privateKey.export({ type: 'pkcs8', format: 'pem' }),
        })),
      });
    }
    await work(floor, targets);
  } finally {
    for (const one of undo.toReversed()) await one();
  }
}

async function measure(target: Omit<Load, 'path'>): Promise<Measured> {
  const load: Load = { path: '/auth/license/leases', ...target };
  const child = spawn(process.execPath, [join(import.meta.dirname, 'load.ts')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.end(JSON.stringify(load));
  const printed = await text(child.stdout);
  if (printed === '') throw new Error('the load failed');
  return JSON.parse(printed) as Measured;
}
