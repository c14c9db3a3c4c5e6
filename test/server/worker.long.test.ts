import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Task } from '../../src/api/tasks.ts';
import { createLog } from '../../src/base/log.ts';
import { startServer as startInProcess } from '../../src/server/server.ts';
import { startWorker as startWorkerInProcess } from '../../src/server/worker.ts';
import { resolveSettings } from '../../src/base/resolve-settings.ts';
import { openStorage, type Storage } from '../../src/storage/storage.ts';
import { newTables, type TestDatabase } from '../storage/databases.ts';
import { fillCatalogue } from '../fleet/tasks/market.ts';
import { startServer, startWorker, type RunningServer, type RunningWorker } from './running.ts';
import { addTrader, tradingDocument } from './trader.ts';

let catalogueDir: string;
beforeAll(async () => {
  catalogueDir = await mkdtemp(join(tmpdir(), 'service-local-worker-test-'));
  await fillCatalogue(catalogueDir, 20_000);
});
afterAll(() => rm(catalogueDir, { recursive: true }));

describe('workers', () => {
  let database: TestDatabase;
  let storage: Storage;
  let authorization: string;
  let server: RunningServer;
  let workers: RunningWorker[];

  const args = () => ['--catalogue-dir', catalogueDir, '--workers', '1', '--paper-sessions', '1'];
  const addWorker = async (): Promise<void> => {
    workers.push(await startWorker(database, args()));
  };

  beforeAll(async () => {
    database = await newTables('postgres');
    storage = await openStorage(database.location);
    authorization = await addTrader(storage, Date.now());
    workers = [];
    server = await startServer(database, [...args(), '--server-tasks', 'false']);
    await send('POST', '/bots', { document: tradingDocument('long', 'LONG', '1m', 5) });
  });
  beforeEach(async () => {
    // Tests end workers.
    const missing = Array.from({ length: 2 - workers.length }, addWorker);
    await Promise.all(missing);
  });

  afterAll(async () => {
    await Promise.all([server, ...workers].map((process) => process.kill()));
    await storage.close();
    await database.remove();
  });

  async function send<T = Task>(method: 'GET' | 'POST', path: string, body?: object): Promise<T> {
    const answer = await fetch(server.url + path, {
      method,
      headers: { authorization, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    const json: unknown = await answer.json();
    expect(answer.status, JSON.stringify(json)).toBeLessThan(300);
    return json as T;
  }

  const patiently = (what: () => Promise<void>, interval = 20): Promise<void> =>
    vi.waitFor(what, { timeout: 30_000, interval });

  async function ended(task_id: string): Promise<Task> {
    const hasEnded = async (): Promise<void> =>
      expect(await send('GET', `/tasks/${task_id}`)).not.toMatchObject({ ended_at: null });
    await patiently(hasEnded, 200);
    return send('GET', `/tasks/${task_id}`);
  }

  /** The worker of a task that has processed this number of bars; undefined once it has ended. */
  async function workerOf(task_id: string, bars: number): Promise<RunningWorker | undefined> {
    let found: RunningWorker | undefined;
    await patiently(async () => {
      const row = await storage.read
        .selectFrom('tasks')
        .select(['worker_id', 'progress_done', 'ended_at'])
        .where('task_id', '=', task_id)
        .executeTakeFirstOrThrow();
      found = workers.find(({ pid }) => String(pid) === row.worker_id?.split('/')[1]);
      if (row.ended_at === null) expect(found).toBeDefined();
      if (row.ended_at === null) expect(row.progress_done).toBeGreaterThanOrEqual(bars);
    });
    return found;
  }

  /** @returns the task that the worker was running. */
  async function killOneAtBacktest(): Promise<string> {
    for (;;) {
      const { task_id } = await send('POST', '/bots/long/backtest', {});
      const worker = await workerOf(task_id, 0);
      if (worker === undefined) continue;
      process.kill(worker.pid, 'SIGSTOP');
      if ((await workerOf(task_id, 0)) === worker) {
        await worker.kill();
        workers.splice(workers.indexOf(worker), 1);
        return task_id;
      }
      process.kill(worker.pid, 'SIGCONT');
    }
  }

  const hashOf = async (task_id: string): Promise<string> => {
    const result = await send<{ hashes: { events: string } }>('GET', `/tasks/${task_id}/result`);
    return result.hashes.events;
  };

  it('export the alerts of their sessions and their latency in their own metrics', async () => {
    const document = tradingDocument('limited', 'SPX', '1d', 1);
    const { spec } = document as { readonly spec: { readonly risk: object } };
    const risk = { ...spec.risk, max_order_qty: '0.001' };
    await send('POST', '/bots', { document: { ...document, spec: { ...spec, risk } } });
    const start = { to: '2000-03-01', speed: 'max' };
    const { task_id } = await send('POST', '/bots/limited/paper/start', start);
    expect(await ended(task_id)).toMatchObject({ status: 'success' });
    const texts = await Promise.all(
      workers.map(async (worker) => {
        const [, url] = /health and metrics at (\S+)/.exec(worker.log())!;
        const health = await fetch(`${url}/healthz`);
        expect([health.status, await health.json()]).toEqual([200, { status: 'ok' }]);
        const ready = await fetch(`${url}/readyz`);
        expect(await ready.json()).toEqual({ status: 'ready', missing: [] });
        return (await fetch(`${url}/metrics`)).text();
      }),
    );
    const labels = '{control="max_order_qty",severity="warning"}';
    const counted = texts.filter((text) => text.includes(`service_local_alerts_total${labels}`));
    expect(counted).toHaveLength(1);
    const [, count] = /alert_latency_seconds_count\{control="max_order_qty".*\} (\d+)/.exec(
      counted[0]!,
    )!;
    const [, fast] = /alert_latency_seconds_bucket\{le="5",control="max_order_qty".*\} (\d+)/.exec(
      counted[0]!,
    )!;
    expect(Number(count)).toBeGreaterThan(0);
    expect(fast).toBe(count);
  });

  it('run tasks that servers leave to them, and continue the tasks of a worker that dies', async () => {
    const backtest = await killOneAtBacktest();
    expect(await ended(backtest)).toMatchObject({ status: 'success', attempts: 2 });
    const [last] = workers;
    const [, url] = /health and metrics at (\S+)/.exec(last!.log())!;
    const metrics = await (await fetch(`${url}/metrics`)).text();
    const backtests = (name: string, labels: string): number =>
      Number(
        new RegExp(`^service_local_${name}\\{kind="backtest",${labels}\\} (\\d+)$`, 'm').exec(
          metrics,
        )?.[1],
      );
    expect(backtests('tasks_ended_total', 'status="success"')).toBeGreaterThan(0);
    expect(backtests('tasks_requeued_total', 'reason="worker_died"')).toBe(1);
    expect(metrics).toMatch(/^service_local_database_connections\{state="used"\} \d+$/m);
    expect(metrics).toMatch(/^service_local_table_bytes\{table="bot_events"\} [1-9]\d+$/m);
    expect(metrics).toMatch(/^service_local_write_wait_seconds_count [1-9]\d*$/m);
    expect(await last!.stop()).toBe(0);
    workers = [];
    expect(last!.log()).toMatch(/^running tasks of PostgreSQL localhost/m);
    expect(last!.log()).not.toContain('error');
    expect(server.log()).not.toContain('dead');
  });

  it('share sessions, and take over from those that stop', async () => {
    await send('POST', '/bots', { document: tradingDocument('days', 'SPX', '1d', 1) });
    // 100 days in 8 seconds: no session must end before its worker does.
    const start = () =>
      send('POST', '/bots/days/paper/start', {
        to: '2000-04-09',
        speed: 86_400 * 12.5,
      });
    const sessions = [(await start()).task_id, (await start()).task_id];
    const [one, other] = await Promise.all(sessions.map((task_id) => workerOf(task_id, 10)));
    expect(one).not.toBe(other);

    const backtest = await killOneAtBacktest();
    const [last] = workers;
    const kept = sessions[last === one ? 0 : 1]!;
    const moved = sessions[last === one ? 1 : 0]!;
    expect(await ended(backtest)).toMatchObject({ status: 'success', attempts: 2 });
    expect(await ended(kept)).toMatchObject({ status: 'success', attempts: 1 });
    expect(await workerOf(moved, 50)).toBe(last);
    expect(await last!.stop()).toBe(0);
    workers = [];
    expect(await send('GET', `/tasks/${moved}`)).toMatchObject({ status: 'queued', attempts: 1 });
    await addWorker();
    expect(await ended(moved)).toMatchObject({ status: 'success', attempts: 2 });
    expect(await hashOf(moved)).toBe(await hashOf(kept));
  });
});

it('workers and servers without tasks are rejected with SQLite', async () => {
  const env = { SERVICE_LOCAL_HOME: catalogueDir, SERVICE_LOCAL_SERVER_PORT: '0' };
  const { values } = resolveSettings(catalogueDir, env);
  const log = createLog(() => {}, true);
  const refusal = { code: 'invalid_setting', remedy: expect.any(String) as string };
  await expect(
    startWorkerInProcess(values, { host: '127.0.0.1', port: 0 }, {}, log),
  ).rejects.toMatchObject(refusal);
  const idle = { ...values, server_tasks: false };
  await expect(startInProcess(idle, {}, log)).rejects.toMatchObject(refusal);
});
