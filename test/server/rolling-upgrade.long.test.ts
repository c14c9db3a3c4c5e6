/** Servers and workers of two versions on one PostgreSQL database. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import type { Task } from '../../src/api/tasks.ts';
import { createLog } from '../../src/base/log.ts';
import { packageVersion } from '../../src/base/package-version.ts';
import { resolveSettings } from '../../src/base/resolve-settings.ts';
import { startWorker } from '../../src/server/worker.ts';
import { CONTRACT_STEPS } from '../../src/storage/contract-steps.ts';
import { checksum, textFor } from '../../src/storage/migrate.ts';
import { MIGRATIONS, type Migration } from '../../src/storage/migrations.ts';
import { openStorage } from '../../src/storage/storage.ts';
import { fillCatalogue } from '../fleet/tasks/market.ts';
import { newDatabase, query, type TestDatabase } from '../storage/databases.ts';
import { serveHere } from './running.ts';
import { addTrader, tradingDocument } from './trader.ts';

/** What the version that a test starts next knows. */
const version = vi.hoisted(() => ({ added: [] as Migration[], levels: 1 }));

vi.mock(import('../../src/storage/migrations.ts'), async (original) => {
  const { MIGRATIONS: released } = await original();
  return {
    get MIGRATIONS() {
      return [...released, ...version.added];
    },
  };
});
vi.mock(import('../../src/fleet/tasks/task-levels.ts'), async (original) => {
  const { TASK_LEVELS, ...rest } = await original();
  const released = TASK_LEVELS.slice(0, 1);
  const added = {
    since: '999.0.0',
    isNeededBy: (_kind: string, input: object) => 'params' in input,
  };
  const levels = () => [...released, added].slice(0, version.levels);
  return {
    ...rest,
    get TASK_LEVELS() {
      return levels();
    },
    ownTaskLevel: () => version.levels,
    neededTaskLevel: (kind, input) =>
      levels().findLastIndex(({ isNeededBy }) => isNeededBy(kind, input)) + 1,
  };
});

/** Number of migrations of version 0.1.0. */
const RELEASED = 13;

const EXPANDING: Migration = {
  name: 'a later expand step',
  statements: [
    'alter table tasks add column later text',
    'alter table bots add column later text',
    'alter table bot_versions add column later text',
    'alter table bot_deployments add column later text',
    'alter table bot_events add column later text',
    'alter table packed_bars add column later text',
    'alter table trading_sessions add column later text',
    'alter table workers add column later text',
    'alter table api_tokens add column later bigint not null default 1',
    'create table later (id bigint primary key)',
  ],
};
const CONTRACTING: Migration = {
  name: 'a later contract step',
  statements: ['alter table workers drop column version'],
};

let catalogueDir: string;
beforeAll(async () => {
  catalogueDir = await mkdtemp(join(tmpdir(), 'service-local-upgrade-test-'));
  await fillCatalogue(catalogueDir, 1000);
});
afterAll(() => rm(catalogueDir, { recursive: true }));

let database: TestDatabase;
let authorization: string;
let ends: (() => Promise<void>)[];
beforeEach(async () => {
  database = await newDatabase('postgres');
  ends = [];
});
afterEach(async () => {
  Object.assign(version, { added: [], levels: 1 });
  delete (CONTRACT_STEPS as Record<string, string>)[CONTRACTING.name];
  for (const end of ends.toReversed()) await end();
  await database.remove();
});

interface Program {
  readonly url: string;
  readonly log: () => string;
  readonly stop: () => Promise<void>;
}

async function startServer(runsTasks: boolean): Promise<Program> {
  const server = await serveHere(database, {
    SERVICE_LOCAL_CATALOGUE_DIR: catalogueDir,
    SERVICE_LOCAL_SERVER_TASKS: String(runsTasks),
  });
  ends.push(server.stop);
  return server;
}

async function startWorkerHere(): Promise<Program> {
  const { url } = database.location as { readonly url: string };
  const { values } = resolveSettings(tmpdir(), { SERVICE_LOCAL_CATALOGUE_DIR: catalogueDir });
  const lines: string[] = [];
  const log = createLog((line) => lines.push(line), false);
  const place = { host: '127.0.0.1', port: 0 };
  const worker = await startWorker(values, place, { DATABASE_URL: url }, log);
  ends.push(worker.stop);
  return { url: worker.url, log: () => lines.join('\n'), stop: worker.stop };
}

async function stop({ stop: end }: Program): Promise<void> {
  ends.splice(ends.indexOf(end), 1);
  await end();
}

async function addBot({ url }: Program): Promise<void> {
  const storage = await openStorage(database.location);
  authorization = await addTrader(storage, Date.now());
  await storage.close();
  await send(url, 'POST', '/bots', { document: tradingDocument('days', 'SPX', '1d', 5) });
}

async function send(url: string, method: string, path: string, body?: object): Promise<Task> {
  const answer = await fetch(url + path, {
    method,
    headers: { authorization, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  const json: unknown = await answer.json();
  expect(answer.status, JSON.stringify(json)).toBeLessThan(300);
  return json as Task;
}

async function succeeds({ url }: Program, path: string, body: object = {}): Promise<Task> {
  const { task_id } = await send(url, 'POST', path, body);
  return vi.waitFor(
    async () => {
      const task = await send(url, 'GET', `/tasks/${task_id}`);
      expect(task).toMatchObject({ status: 'success' });
      return task;
    },
    { timeout: 20_000, interval: 50 },
  );
}

/** Runs a backtest and a paper session. */
async function works(server: Program): Promise<void> {
  await succeeds(server, '/bots/days/backtest');
  await succeeds(server, '/bots/days/paper/start', { speed: 'max', to: '2000-03-01' });
}

it('a server migrates the schema of the last release and runs tasks on it', async () => {
  const released = MIGRATIONS.slice(0, RELEASED);
  const texts = released.flatMap(({ statements }) =>
    statements.map((statement) => textFor(statement, 'postgres')),
  );
  const rows = released.map((one, index) => `(${index + 1}, '${one.name}', '${checksum(one)}')`);
  await database.execute(
    [
      'create table schema_migrations (number bigint primary key, name text not null, checksum text not null)',
      ...texts.filter((text) => text !== undefined),
      `insert into schema_migrations values ${rows.join()}`,
    ].join(';'),
  );
  const server = await startServer(true);
  await addBot(server);
  await works(server);
  const { url } = database.location as { readonly url: string };
  const [last] = await query(url, 'select max(number) as number from schema_migrations');
  expect(last).toEqual({ number: String(MIGRATIONS.length) });
});

it('an older server and worker keep working while a newer server adds to the schema, and after a restart', async () => {
  const old = await startServer(false);
  const worker = await startWorkerHere();
  await addBot(old);
  await works(old);
  version.added = [EXPANDING];
  const newer = await startServer(false);
  await works(old);
  await works(newer);
  version.added = [];
  await stop(old);
  await stop(worker);
  const again = await startServer(true);
  await works(again);
  expect((await fetch(`${again.url}/readyz`)).status).toBe(200);
  const { url } = database.location as { readonly url: string };
  expect(
    await query(url, 'select phase from schema_migrations order by number desc limit 1'),
  ).toEqual([{ phase: 'expand' }]);
});

it('after a contract step, an older server and its worker are not ready, and do not start again', async () => {
  const old = await startServer(false);
  const worker = await startWorkerHere();
  await addBot(old);
  version.added = [EXPANDING, CONTRACTING];
  (CONTRACT_STEPS as Record<string, string>)[CONTRACTING.name] = 'a test';
  await startServer(false);
  version.added = [];
  for (const { url } of [old, worker]) {
    const ready = await fetch(`${url}/readyz`);
    expect(ready.status).toBe(503);
    expect(await ready.json()).toMatchObject({ missing: [{ reason: 'newer_schema' }] });
  }
  await expect(startWorkerHere()).rejects.toMatchObject({
    code: 'storage_unavailable',
    reason: 'newer_schema',
    message: expect.stringContaining('a later contract step') as string,
    remedy: `Start version ${packageVersion()} or newer, or restore the backup from before the upgrade.`,
  });
});

it('a task that needs a newer worker waits for one, and the older worker logs the remedy', async () => {
  const old = await startWorkerHere();
  version.levels = 2;
  const server = await startServer(false);
  await addBot(server);
  await succeeds(server, '/bots/days/backtest');
  const { task_id } = await send(server.url, 'POST', '/bots/days/backtest', {
    params: { fast: 4 },
  });
  await vi.waitFor(() => expect(old.log()).toMatch(/1 queued task needs a newer worker/), 10_000);
  expect(await send(server.url, 'GET', `/tasks/${task_id}`)).toMatchObject({ status: 'queued' });
  await startWorkerHere();
  await vi.waitFor(
    async () =>
      expect(await send(server.url, 'GET', `/tasks/${task_id}`)).toMatchObject({
        status: 'success',
        attempts: 1,
      }),
    10_000,
  );
});
