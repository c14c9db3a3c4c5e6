import { cp, mkdtemp, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { adoptAt, supersede } from '../../src/storage/database-identity.ts';
import { openStorage } from '../../src/storage/storage.ts';
import { differences, placeOf } from '../../src/storage/place.ts';
import { serviceLocal } from '../cli/service-local.ts';
import { SCRATCH } from '../scratch.ts';
import { newDatabase, query, type TestDatabase } from '../storage/databases.ts';
import { fillCatalogue } from '../fleet/tasks/market.ts';
import { serveHere, startServer, startWorker, type RunningServer } from './running.ts';
import { addTrader, tradingDocument } from './trader.ts';
import { isAtLength } from '../length.ts';

/** One bar per day, so that the session outlasts the test. */
const SLOW = { speed: 1 };

let scratch: string;
let args: string[];
/** Cleanup functions, newest first. */
let ends: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  scratch = await mkdtemp(join(SCRATCH, 'adopt-'));
  await fillCatalogue(scratch, 1);
  args = ['--catalogue-dir', scratch];
});
afterEach(async () => {
  for (const end of ends.toReversed()) await end();
  ends = [];
});
afterAll(() => rm(scratch, { recursive: true }));

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

type Send = (method: string, path: string, body?: object) => Promise<Answer>;

/** Creates a database with a trading administrator. */
async function databaseWithTrader(kind: 'sqlite' | 'postgres') {
  const database = await newDatabase(kind);
  ends.push(database.remove);
  const storage = await openStorage(database.location);
  const authorization = await addTrader(storage, Date.now());
  await storage.close();
  const to =
    (url: string): Send =>
    async (method, path, body) => {
      const headers = { authorization, 'content-type': 'application/json' };
      const sent = { method, headers, ...(body && { body: JSON.stringify(body) }) };
      const answer = await fetch(url + path, sent);
      return { status: answer.status, body: await answer.json() };
    };
  return { database, to };
}

async function start(database: TestDatabase): Promise<RunningServer> {
  const server = await startServer(database, args);
  ends.push(server.kill);
  return server;
}

/** Creates a bot and starts a paper session. */
async function trade(send: Send, slug = 'sma'): Promise<string> {
  await send('POST', '/bots', { document: tradingDocument(slug, 'SPX', '1d', 1) });
  const started = await send('POST', `/bots/${slug}/paper/start`, SLOW);
  expect(started, JSON.stringify(started.body)).toMatchObject({ status: 202 });
  return (started.body as { readonly task_id: string }).task_id;
}

const until = (send: Send, task_id: string, status: string): Promise<void> =>
  vi.waitFor(
    async () => expect((await send('GET', `/tasks/${task_id}`)).body).toMatchObject({ status }),
    { timeout: 20_000, interval: 50 },
  );

async function expectHeld(send: Send, reason: string): Promise<void> {
  expect(await send('POST', '/bots/sma/paper/start', SLOW)).toMatchObject({
    status: 409,
    body: { code: 'database_not_adopted', reason },
  });
  expect(await send('GET', '/readyz')).toMatchObject({
    status: 200,
    body: { status: 'degraded', missing: [{ part: 'trading', reason }] },
  });
}

describe('a copy of a SQLite file, made while its server runs', () => {
  it.runIf(isAtLength)('trades only once it is adopted', async () => {
    const { database, to } = await databaseWithTrader('sqlite');
    const first = to((await start(database)).url);
    const session = await trade(first);
    await until(first, session, 'running');

    const { file } = database.location as { readonly file: string };
    const home = join(scratch, 'copy');
    await cp(dirname(file), home, { recursive: true });
    const location = { file: join(home, 'server.sqlite') };
    const copy: TestDatabase = { ...database, location };
    const storage = await openStorage(location);
    // As on another machine, where the worker of the session does not exist.
    const worker_id = `${hostname()}/${2 ** 30}/0198c0de-0000-7000-8000-00000000aaaa`;
    await storage.write((tx) => tx.updateTable('tasks').set({ worker_id }).execute());
    await storage.close();

    const server = await serveHere(copy, { SERVICE_LOCAL_CATALOGUE_DIR: scratch });
    ends.push(server.stop);
    const second = to(server.url);
    await until(second, session, 'queued');
    await expectHeld(second, 'moved');
    expect(server.log()).toContain(
      'may be a copy of another one that trades: the inode of the file was',
    );
    const halted = await second('POST', '/bots/sma/halt', { reason: 'a test' });
    expect(halted.status).toBe(200);
    expect((await first('GET', `/tasks/${session}`)).body).toMatchObject({ status: 'running' });

    const { env } = server;
    const adopted = await serviceLocal(['server', 'adopt', '--yes', '--json'], { env });
    expect(JSON.parse(adopted.stdout)).toMatchObject({ epoch: 2, previous_epoch: 1 });
    expect((await second('GET', '/readyz')).body).toEqual({ status: 'ready', missing: [] });
    await until(second, await trade(second, 'other'), 'running');
    const audited = await openStorage(location);
    const entry = await audited.read
      .selectFrom('audit_entries')
      .select(['actor', 'details'])
      .where('action', '=', 'server.database.adopt')
      .executeTakeFirstOrThrow();
    await audited.close();
    expect(entry.actor).toBe('operator');
    expect(JSON.parse(entry.details)).toMatchObject({ epoch: 2, previous_epoch: 1 });
  });

  it('differs from the original in more than the device number, which can change at a restart', async () => {
    const database = await newDatabase('sqlite');
    ends.push(database.remove);
    const storage = await openStorage(database.location);
    const place = await placeOf(storage.read);
    expect(place).toEqual({
      inode: expect.any(String),
      born: expect.any(String),
      device: expect.any(String),
    });
    expect(differences(place, { ...place, device: '0' })).toEqual([]);
    expect(differences({ ...place, born: null }, { ...place, device: '0' })).toHaveLength(1);
    expect(differences(place, { ...place, born: '1' })).toHaveLength(1);
    await storage.close();
  });
});

describe('a copy of a PostgreSQL database', () => {
  it.runIf(isAtLength)(
    'starts no session before it is adopted, and reports why to probes and metrics',
    async () => {
      const { database, to } = await databaseWithTrader('postgres');
      const variables = { SERVICE_LOCAL_CATALOGUE_DIR: scratch };
      const server = await serveHere(database, variables);
      const session = await trade(to(server.url));
      await until(to(server.url), session, 'running');
      await server.stop();

      const url = new URL((database.location as { readonly url: string }).url);
      const name = url.pathname.slice(1);
      await query(inject('postgres'), `create database ${name}_copy template ${name}`);
      ends.push(() => query(inject('postgres'), `drop database ${name}_copy with (force)`));
      url.pathname = `/${name}_copy`;
      const copy: TestDatabase = { ...database, location: { url: url.href } };

      const second = await serveHere(copy, variables);
      ends.push(second.stop);
      const send = to(second.url);
      await expectHeld(send, 'moved');
      expect((await send('GET', `/tasks/${session}`)).body).toMatchObject({ status: 'queued' });
      expect(second.log()).toContain('the OID of the database was');

      const worker = await startWorker(copy, args);
      ends.push(worker.kill);
      const [, metricsAt] = /health and metrics at (\S+)/.exec(worker.log())!;
      const metrics = await (await fetch(`${metricsAt}/metrics`)).text();
      expect(metrics).toMatch(/^service_local_trading_held 1$/m);
      expect(metrics).toMatch(/^service_local_storage_up 1$/m);
      const ready = await (await fetch(`${metricsAt}/readyz`)).json();
      expect(ready).toMatchObject({ status: 'degraded', missing: [{ part: 'trading' }] });

      const { code } = await serviceLocal(['server', 'adopt', '--yes'], { env: second.env });
      expect(code).toBe(0);
      await until(send, session, 'running');

      // The original has not moved.
      const again = await serveHere(database, variables);
      ends.push(again.stop);
      const { body } = await to(again.url)('GET', '/readyz');
      expect(body).toEqual({ status: 'ready', missing: [] });
    },
  );

  it.runIf(isAtLength)(
    'stops its running session when a runner knows of an adopted copy, until it is adopted itself',
    async () => {
      const { database, to } = await databaseWithTrader('postgres');
      const server = await serveHere(database, { SERVICE_LOCAL_CATALOGUE_DIR: scratch });
      ends.push(server.stop);
      const send = to(server.url);
      const session = await trade(send);
      await until(send, session, 'running');
      const storage = await openStorage(database.location);
      await storage.write((tx) => supersede(tx, 2));
      await until(send, session, 'queued');
      const { items } = (await send('GET', '/bots/sma/state/events?kind=run.requeued')).body as {
        readonly items: readonly object[];
      };
      expect(items).toMatchObject([{ payload: { reason: 'database_not_adopted' } }]);
      await expectHeld(send, 'superseded');
      await storage.write(async (tx) => adoptAt(tx, await placeOf(storage.read)));
      await storage.close();
      await until(send, session, 'running');
    },
  );

  it.runIf(isAtLength)(
    'is distinguished from the original even by users without privileges',
    async () => {
      const database = await newDatabase('postgres');
      ends.push(database.remove);
      const { url } = database.location as { readonly url: string };
      const role = `plain_${Date.now().toString(36)}`;
      await query(
        url,
        `create role ${role} login password 'plain'; grant all on schema public to ${role}`,
      );
      ends.push(() => query(url, `drop owned by ${role}; drop role ${role}`));
      const plain = new URL(url);
      plain.username = role;
      plain.password = 'plain';
      const storage = await openStorage({ url: plain.href });
      const place = await placeOf(storage.read);
      await storage.close();
      expect(place).toEqual({
        system: expect.stringMatching(/^\d{15,}$/),
        timeline: '00000001',
        oid: expect.stringMatching(/^\d+$/),
      });
    },
  );
});
