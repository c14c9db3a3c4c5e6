import { mkdtemp, rm } from 'node:fs/promises';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { createBot, getBot } from '../../src/fleet/registry/bots.ts';
import { readEvents } from '../../src/events/read-events.ts';
import { verifyEvents } from '../../src/events/verify-events.ts';
import { openStorage, type Storage } from '../../src/storage/storage.ts';
import { inProcess } from '../cli/in-process.ts';
import { serviceLocal, type Result } from '../cli/service-local.ts';
import { isAtLength } from '../length.ts';
import { startPostgres, type Cluster } from '../storage/cluster.ts';
import { newDatabase, newSqlite, type TestDatabase } from '../storage/databases.ts';
import { fillCatalogue } from '../fleet/tasks/market.ts';
import { serveHere, startWorker, type ServerHere } from './running.ts';
import { addTrader, tradingDocument } from './trader.ts';

/** PostgreSQL that tests suspend and restart. Undefined in `npm test`, whose tests use the shared one. */
let cluster: Cluster | undefined;
let catalogueDir: string;
beforeAll(async () => {
  [cluster, catalogueDir] = await Promise.all([
    isAtLength ? startPostgres() : undefined,
    mkdtemp(join(tmpdir(), 'service-local-outage-test-')),
  ]);
  await fillCatalogue(catalogueDir, 1);
});
afterAll(async () => {
  await cluster?.stop();
  await rm(catalogueDir, { recursive: true });
});

let database: TestDatabase;
let storage: Storage;
let server: ServerHere;
let authorization: string;

async function start(): Promise<void> {
  database = await newDatabase('postgres', cluster?.url);
  storage = await openStorage(database.location);
  authorization = await addTrader(storage, Date.now());
  const service = { storage, clock: Date.now };
  await createBot(service, 'operator', { document: tradingDocument('sma', 'SPX', '1d', 1) });
  server = await serveHere(database, { SERVICE_LOCAL_CATALOGUE_DIR: catalogueDir });
}

async function stop(): Promise<void> {
  cluster?.resume();
  await server.stop();
  await storage.close();
  await database.remove();
}

interface Answer {
  readonly path: string;
  readonly status: number;
  readonly type: string | null;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Fails if there is no response long before clients time out. */
async function send(path: string, init: RequestInit = {}): Promise<Answer> {
  const answer = await fetch(server.url + path, {
    headers: { authorization, 'content-type': 'application/json' },
    signal: AbortSignal.timeout(20_000),
    ...init,
  });
  const text = await answer.text();
  const type = answer.headers.get('content-type');
  const body = type?.includes('json') ? (JSON.parse(text) as Answer['body']) : { text };
  return { path, status: answer.status, type, body };
}

const post = (path: string, body: object): Promise<Answer> =>
  send(path, { method: 'POST', body: JSON.stringify(body) });

const halt = (...args: string[]): Promise<Result> =>
  serviceLocal(['bots', ...args, '--reason', 'it buys too much'], {
    env: { ...server.env, SERVICE_LOCAL_TOKEN: authorization.replace('Bearer ', '') },
  });

const SESSIONS = 3;
/** One bar of a day per second. */
const PACE = 20;

interface Session {
  readonly task_id: string;
  readonly status: string;
  readonly attempts: number;
  readonly steps: number;
  readonly failures: number;
}
const sessions = async (): Promise<Session[]> =>
  storage.read
    .selectFrom('tasks')
    .innerJoin('trading_sessions as session', 'session.task_id', 'tasks.task_id')
    .select(['tasks.task_id', 'tasks.status', 'attempts', 'steps', 'failures'])
    .execute();
const until = (isSo: (session: Session) => boolean): Promise<void> =>
  vi.waitFor(
    async () => {
      const all = await sessions();
      expect(all.filter(isSo)).toHaveLength(SESSIONS);
    },
    { timeout: 20_000, interval: 50 },
  );

async function startSessions(): Promise<void> {
  for (let i = 0; i < SESSIONS; i += 1) {
    const started = await post('/bots/sma/paper/start', { speed: 86_400 * PACE });
    expect(started.status).toBe(202);
  }
  await until(({ steps }) => steps >= 10);
}

/** Waits, then checks that no session was interrupted and no event is missing. */
async function expectUninterrupted(): Promise<void> {
  const at = new Map((await sessions()).map(({ task_id, steps }) => [task_id, steps]));
  // A task that its worker has lost would restart after 30 seconds.
  await until(({ task_id, steps }) => steps >= at.get(task_id)! + PACE);
  const all = await sessions();
  for (const session of all) expect(session).toMatchObject({ attempts: 1, failures: 0 });

  const { bot_id } = await getBot(storage.read, 'sma');
  expect(await verifyEvents(storage.read, bot_id, 'head')).toMatchObject({ fault: undefined });
  const { events } = await readEvents(storage.read, bot_id, { after_seq: 0, limit: 10_000 });
  expect(events.filter(({ kind }) => kind === 'run.requeued')).toEqual([]);
  for (const { task_id } of all) {
    const bars = events.filter((one) => one.run_id === task_id && one.kind === 'data.bars');
    const days = bars.map(({ payload }) => Date.parse((payload as { time: string }).time));
    expect(days).toEqual(days.map((_, i) => days[0]! + i * 86_400_000));
  }
}

describe('while the database hangs', () => {
  beforeEach(start);
  afterEach(stop);

  it.runIf(isAtLength)(
    'each route but /metrics answers 503, a halt reports that it is not in force, and sessions wait',
    async () => {
      await startSessions();
      const before = await send('/metrics');
      expect(before).toMatchObject({ status: 200 });
      expect(before.body['text']).toMatch(/^service_local_storage_up 1$/m);
      expect(before.body['text']).toMatch(/^service_local_license_leases\{/m);
      await cluster!.hang();
      const login = {
        administrator: 'trader',
        password: 'wrong',
        code: '123456',
        label: 'test',
        scopes: ['read'],
      };
      const lease = { deployment_id: 'acme-tokyo' };
      const reason = { reason: 'it buys too much' };
      // All at once, since each waits until the server considers the database lost.
      const halts = Promise.all([post('/bots/sma/halt', reason), post('/bots/halt-all', reason)]);
      const results = Promise.all([halt('halt', 'sma'), halt('halt-all')]);
      const answers = await Promise.all([
        send('/bots'),
        send('/tasks'),
        send('/bots/sma/state/events', {
          headers: { authorization, accept: 'text/event-stream' },
        }),
        send('/console', { headers: { cookie: 'service-local=sls_0123456789012345678901' } }),
        post('/auth/license/leases', lease),
        post('/identity/tokens', login),
        post('/bots/sma/paper/start', {}),
      ]);
      for (const { path, status, type, body } of answers) {
        expect({ path, status, type, body }).toMatchObject({
          status: 503,
          type: 'application/problem+json',
          body: { code: 'storage_unavailable', retryable: true },
        });
      }
      const during = await send('/metrics');
      expect(during).toMatchObject({ status: 200 });
      expect(during.body['text']).toMatch(/^service_local_storage_up 0$/m);
      expect(during.body['text']).toMatch(/^service_local_http_request_duration_seconds_count\{/m);
      expect(during.body['text']).not.toMatch(/^service_local_license_leases\{/m);
      const unknown = { authorization: `${authorization}x` };
      expect(await send('/metrics', { headers: unknown })).toMatchObject({ status: 503 });
      for (const one of await halts) {
        expect(one).toMatchObject({
          status: 503,
          body: {
            code: 'storage_unavailable',
            retryable: true,
            reason: 'halt_not_in_force',
            detail: expect.stringMatching(/^THE HALT IS NOT IN FORCE: /) as string,
          },
        });
      }
      for (const { code, stderr } of await results) {
        expect(stderr).toMatch(/^error halt_not_verified: THE HALT IS NOT IN FORCE: /);
        expect(code).toBe(7);
      }
      cluster!.resume();
      expect(await send('/halts')).toMatchObject({ status: 200, body: { items: [] } });
      await expectUninterrupted();
      expect(await halt('halt', 'sma')).toMatchObject({ code: 0 });
    },
  );
});

describe('readiness of a worker whose database hangs', () => {
  it.runIf(isAtLength)('is reported as unavailable within the timeout of a probe', async () => {
    database = await newDatabase('postgres', cluster?.url);
    const worker = await startWorker(database, ['--catalogue-dir', catalogueDir]);
    try {
      const [, url] = /health and metrics at (\S+)/.exec(worker.log())!;
      await cluster!.hang();
      const answer = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(3_000) });
      expect(answer.status).toBe(503);
      expect(await answer.json()).toMatchObject({ missing: [{ part: 'storage' }] });
    } finally {
      cluster!.resume();
      await worker.kill();
      await database.remove();
    }
  });
});

describe('a database that breaks off while a halt is committed', () => {
  beforeEach(start);
  afterEach(stop);

  /** Breaks the connection at the first commit of a halt, or at each. */
  const cut = (when: 'once' | 'always'): Promise<void> =>
    database.execute(`
      create sequence halts_tried;
      create function cut() returns trigger language plpgsql as $$ begin
        if nextval('halts_tried') = 1 or ${when === 'always'} then
          perform pg_terminate_backend(pg_backend_pid());
        end if;
        return null;
      end $$;
      create constraint trigger cut after insert on halts
        deferrable initially deferred for each row execute function cut()`);

  it('allows the halt to be requested again and verified', async () => {
    await cut('once');
    const { code, stderr } = await halt('halt', 'sma');
    expect(stderr).toBe('');
    expect(code).toBe(0);
  });

  it.runIf(isAtLength)(
    'has the halt reported as unknown when each attempt breaks off',
    async () => {
      await cut('always');
      const { code, stderr } = await halt('halt', 'sma');
      expect(stderr).toMatch(
        /^error halt_not_verified: IT IS NOT KNOWN WHETHER THE HALT IS IN FORCE/,
      );
      expect(code).toBe(7);
    },
  );
});

describe('a restart of the database', () => {
  beforeEach(start);
  afterEach(stop);

  it.runIf(isAtLength)(
    'interrupts no paper session: none restarts, fails, loses an event or repeats one',
    async () => {
      await startSessions();
      await cluster!.shutDown();
      const document = tradingDocument('other', 'SPX', '1d', 1);
      const asked = Promise.all([send('/bots'), post('/bots', { document })]);
      // The outage lasts as long as a restart of a real database.
      await setTimeout(1500);
      await cluster!.startAgain();
      expect((await asked).map(({ status }) => status)).toEqual([200, 201]);
      await expectUninterrupted();
    },
  );
});

it.runIf(isAtLength)(
  'a SQLite file that another process keeps locked is 503, and serves again afterwards',
  async () => {
    const locked = await newSqlite();
    const own = await openStorage(locked.location);
    const bearer = await addTrader(own, Date.now());
    const here = await serveHere(locked, { SERVICE_LOCAL_CATALOGUE_DIR: catalogueDir });
    const other = new Database(locked.location.file);
    other.exec('begin immediate');
    const create = (): Promise<Response> =>
      fetch(`${here.url}/bots`, {
        method: 'POST',
        headers: { authorization: bearer, 'content-type': 'application/json' },
        body: JSON.stringify({ document: tradingDocument('sma', 'SPX', '1d', 1) }),
      });
    const creating = create();
    // Meanwhile the process is not blocked, and committed data can be read.
    const list = await fetch(`${here.url}/bots`, { headers: { authorization: bearer } });
    expect(list.status).toBe(200);
    const refused = await creating;
    expect(refused.status).toBe(503);
    expect(await refused.json()).toMatchObject({ code: 'storage_unavailable', retryable: true });
    const creatingAgain = create();
    other.exec('commit');
    other.close();
    expect((await creatingAgain).status).toBe(201);
    await here.stop();
    await own.close();
    await locked.remove();
  },
);

describe('a halt whose server', () => {
  const haltAt = (url: string): Promise<Result> =>
    inProcess(['bots', 'halt', 'sma', '--reason', 'it buys too much', '--json'], {
      env: { SERVICE_LOCAL_SERVER_URL: url, SERVICE_LOCAL_TOKEN: 'a-token' },
    });
  const listening = async (onConnection: (socket: Socket) => void) => {
    const listener = createServer(onConnection);
    listener.listen(0, '127.0.0.1');
    await once(listener, 'listening');
    const { port } = listener.address() as AddressInfo;
    return { listener, url: `http://127.0.0.1:${port}` };
  };

  it('cannot be reached is reported as not in force', async () => {
    const { listener, url } = await listening(() => {});
    listener.close();
    await once(listener, 'close');
    const { code, stdout } = await haltAt(url);
    expect(JSON.parse(stdout)).toMatchObject({
      error: {
        code: 'halt_not_verified',
        reason: 'halt_not_in_force',
        message: expect.stringMatching(/^THE HALT IS NOT IN FORCE: .*connection refused/) as string,
      },
    });
    expect(code).toBe(7);
  });

  it('disconnects before it answers is reported as unknown', async () => {
    const { listener, url } = await listening((socket) => {
      socket.once('data', () => socket.destroy());
    });
    const { code, stdout } = await haltAt(url);
    expect(JSON.parse(stdout)).toMatchObject({
      error: {
        code: 'halt_not_verified',
        reason: 'halt_unknown',
        message: expect.stringMatching(/^IT IS NOT KNOWN WHETHER THE HALT IS IN FORCE: /) as string,
      },
    });
    expect(code).toBe(7);
    listener.close();
  });
});
