import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { HaltReport } from '../../../src/api/halts.ts';
import type { ProductionDeployment } from '../../../src/api/deployments.ts';
import type { RunnerReport } from '../../../src/api/runners.ts';
import type { Task } from '../../../src/api/tasks.ts';
import { connectAsRunner } from '../../../src/client/runner.ts';
import { takeReport } from '../../../src/fleet/deployments/runner-reports.ts';
import { openStorage } from '../../../src/storage/storage.ts';
import { inProcess } from '../../cli/in-process.ts';
import { startApiServer, type TestApiServer } from '../../deploy/kubernetes/api-server.ts';
import type { RunningPod } from '../../deploy/kubernetes/kubelet.ts';
import { SCRATCH } from '../../scratch.ts';
import {
  serveHere,
  startServer,
  type RunningServer,
  type ServerHere,
} from '../../server/running.ts';
import { addTrader, tradingDocument } from '../../server/trader.ts';
import { DATABASES, newTables, query, type TestDatabase } from '../../storage/databases.ts';

const VENUE = { connected: true, open_orders: 0, checked_at: null };

let directory: string;
let api: TestApiServer;
let database: TestDatabase;
let authorization: string;
let killed: RunningServer;
let servers: (RunningServer | ServerHere)[];
/** Commands that pods received, in order. */
let commands: string[];
let tokens: Set<string>;

/** The newest server, which runs even if earlier ones were killed. */
const alive = (): RunningServer | ServerHere => servers.at(-1)!;

beforeEach(async () => {
  directory = await mkdtemp(join(SCRATCH, 'production-'));
  api = await startApiServer();
  api.addNamespace('bots');
  api.kubelet.startsAs = trade;
  commands = [];
  tokens = new Set();
  servers = [];
  const kubeconfig = await api.writeKubeconfig(directory);
  const trading = {
    kubeconfig,
    owner: 'own',
    namespace: 'bots',
    image: 'registry.example/service-local:1',
    control_url: 'http://service-local.example:8787',
  };
  await writeFile(join(directory, 'clusters.yaml'), JSON.stringify({ trading }));
  await writeFile(join(directory, 'exchanges.yaml'), 'binance: {ccxt: binance}\n');
});
afterEach(async () => {
  await Promise.all(servers.map((server) => server.stop()));
  await api.close();
  await database.remove();
  await rm(directory, { recursive: true });
});

/** In a process of its own, which can be killed, or in this one. */
async function addServer(isOwn: boolean): Promise<void> {
  const variables = {
    SERVICE_LOCAL_CLUSTERS_FILE: join(directory, 'clusters.yaml'),
    SERVICE_LOCAL_EXCHANGES_FILE: join(directory, 'exchanges.yaml'),
    SERVICE_LOCAL_LICENSE_ENFORCEMENT_ENABLED: 'false',
    SERVICE_LOCAL_LICENSE_REGISTRY_ENFORCED: 'false',
  };
  if (isOwn) servers.push((killed = await startServer(database, [], variables)));
  else servers.push(await serveHere(database, variables));
}

/** Acts as a runner towards servers: reports until it must end, and cancels an order. */
async function trade({ files, ready, signal }: RunningPod): Promise<number> {
  const run = JSON.parse(files['/etc/service-local/run']!['run.json']!) as {
    deployment_id: string;
  };
  const token = files['/etc/service-local/runner']!['token']!;
  tokens.add(token);
  const report: RunnerReport = {
    instance_id: randomUUID(),
    epoch: null,
    status: 'trading',
    denying: null,
    batch: null,
    venue: { ...VENUE },
    ended: null,
  };
  const said = { ...report };
  while (!signal.aborted) {
    try {
      const client = connectAsRunner({ url: alive().url, token: () => token });
      const { epoch, command } = await client.report(run.deployment_id, said);
      said.epoch = epoch;
      commands.push(command);
      ready(true);
      if (said.ended !== null) return 0;
      const orders = [{ order: 7, symbol: 'SPX', verified: true }];
      const outcome = command === 'halt' ? 'halted' : 'stopped';
      if (command !== 'trade') said.ended = { outcome, verified: true, orders, error: null };
    } catch {
      // The server is gone: another comes.
    }
    await delay(150);
  }
  return 0;
}

async function send<T>(method: 'GET' | 'POST', path: string, body?: object): Promise<T> {
  const answer = await fetch(alive().url + path, {
    method,
    headers: { authorization, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  const json: unknown = await answer.json();
  expect(answer.status, JSON.stringify(json)).toBeLessThan(300);
  return json as T;
}

const bots = async (code: number, ...words: string[]) => {
  const env = { ...alive().env, SERVICE_LOCAL_TOKEN: authorization.slice('Bearer '.length) };
  const result = await inProcess(['bots', ...words], { env });
  expect(result, result.stderr).toMatchObject({ code });
  return result;
};

const patiently = (what: () => unknown): Promise<unknown> =>
  vi.waitFor(what, { timeout: 15_000, interval: 100 });

/** Kind and name of what the cluster has, and how often each was changed. */
const objects = (): string[] =>
  ['Secret', 'ConfigMap', 'PersistentVolumeClaim', 'Deployment', 'NetworkPolicy'].flatMap((kind) =>
    api.store
      .all(kind, 'bots')
      .map(({ metadata }) => `${kind} ${String(metadata.resourceVersion)}`),
  );

/** By the command line, one after the other. */
async function deployAndReplace(): Promise<void> {
  await send('POST', '/bots/sma/resume', { reason: 'it was a test' });
  await bots(0, 'deploy', 'sma', '--wait', '--quiet');
  await bots(0, 'deploy', 'rollback', 'sma', '--to', '1', '--wait');
  assert(commands.includes('stop'));
  await bots(0, 'deploy', 'stop', 'sma', '--wait');
  assert.deepEqual(api.store.all('Pod', 'bots'), []);
  assert.equal(tokens.size, 3);
}

/** Content of the database: the text of each file, or of each table. */
async function allKept(): Promise<readonly string[]> {
  const { location } = database;
  if ('file' in location) {
    const home = join(location.file, '..');
    const files = (await readdir(home)).map((name) => join(home, name));
    return Promise.all(files.map((file) => readFile(file, 'latin1').catch(() => '')));
  }
  const tables = await query<{ name: string }>(
    location.url,
    "select quote_ident(tablename) as name from pg_tables where schemaname = 'public'",
  );
  const kept: string[] = [];
  for (const { name } of tables) {
    const rows = await query<{ row: string }>(location.url, `select t::text as row from ${name} t`);
    kept.push(rows.map(({ row }) => row).join('\n'));
  }
  assert(kept.some((text) => text.includes('SPX')));
  return kept;
}

/** A server whose clock is ahead must not take a claim for over that another has just granted. */
async function claimByAnotherClock(deployment_id: string): Promise<void> {
  const storage = await openStorage(database.location);
  const ahead = { storage, clock: () => Date.now() + 60_000 };
  const other = { instance_id: randomUUID(), epoch: null, status: 'starting' as const };
  const nothing = { denying: null, batch: null, venue: VENUE, ended: null };
  const report = { ...other, ...nothing };
  const program = { version: undefined, protocol: 1 };
  const claim = takeReport(ahead, deployment_id, [...tokens][0]!, report, program);
  await assert.rejects(claim, { reason: 'fenced' });
  await storage.close();
}

describe.each(DATABASES)('a deployment whose server on %s is killed', (kind) => {
  it('a deployment of a killed server continues on one other server without duplicates, and can be halted there', async () => {
    database = await newTables(kind);
    const storage = await openStorage(database.location);
    authorization = await addTrader(storage, Date.now());
    await storage.close();
    await addServer(true);
    await send('POST', '/bots', { document: tradingDocument('sma', 'SPX', '1d', 1) });
    // Its first half is applied, and the rest hangs.
    api.fail('silent', {
      times: 1,
      matches: ({ method, path }) => method === 'PATCH' && path.includes('deployments'),
    });
    const deployed = await send<Task>('POST', '/bots/sma/deploy', { cluster: 'trading' });
    const { task_id, deployment_id } = deployed;
    await patiently(() =>
      expect(api.asked.at(-1)).toMatchObject({ path: expect.stringContaining('deployments') }),
    );
    const half = objects();
    expect(half.filter((one) => one.startsWith('Deployment'))).toEqual([]);
    if (kind === 'postgres') await addServer(false);
    await killed.kill();
    api.recover();
    if (kind === 'sqlite') await addServer(false);

    await patiently(async () =>
      expect(
        await send<ProductionDeployment>('GET', `/bots/sma/deployments/${deployment_id}`),
      ).toMatchObject({ cluster_state: { phase: 'ready' }, runner: { claimed: true, epoch: 1 } }),
    );
    if (kind === 'postgres') await claimByAnotherClock(deployment_id);
    expect(objects()).toEqual(expect.arrayContaining(half));
    expect(objects()).toHaveLength(5);
    const { stdout } = await bots(0, 'deploy', 'status', 'sma');
    expect(stdout).toMatch(/ready[^]*trading[^]*Running/);
    await bots(6, 'deploy', 'sma');

    const { stdout: halted } = await bots(0, 'halt', 'sma', '--reason', 'a test', '--json');
    const orders = [{ order: 7, symbol: 'SPX', verified: true }];
    expect(JSON.parse(halted) as HaltReport).toMatchObject({
      verified: true,
      deployments: [{ deployment_id, target: 'k8s', status: 'halted', faults: [], orders }],
    });
    expect(api.store.all('Pod', 'bots')).toEqual([]);
    const [deployment] = api.store.all('Deployment', 'bots');
    expect(deployment).toMatchObject({ spec: { replicas: 0 } });
    expect(api.kubelet.mostPods(deployment!.metadata.name)).toBe(1);
    expect(await send('GET', `/tasks/${task_id}`)).toMatchObject({
      status: 'canceled',
      attempts: 2,
    });

    await deployAndReplace();

    const logs = servers.map((server) => server.log()).join('\n');
    const secrets = [...tokens, api.token];
    const kept = await allKept();
    for (const secret of secrets) {
      expect(logs).not.toContain(secret);
      expect(kept.filter((text) => text.includes(secret))).toEqual([]);
    }
  });
});
