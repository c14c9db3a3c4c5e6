import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import type { Task } from '../../src/api/tasks.ts';
import { createLog } from '../../src/base/log.ts';
import { packageVersion } from '../../src/base/package-version.ts';
import { resolveSettings } from '../../src/base/resolve-settings.ts';
import { startServer, type RunningServer } from '../../src/server/server.ts';
import { openStorage } from '../../src/storage/storage.ts';
import { fillCatalogue } from '../fleet/tasks/market.ts';
import { newSqliteTables } from '../storage/databases.ts';
import { startOtlpReceiver, type OtlpReceiver, type ReceivedSpan } from './otlp-receiver.ts';
import { addTrader, tradingDocument } from './trader.ts';

const CALLER = { trace: '0af7651916cd43dd8448eb211c80319c', span: 'b7ad6b7169203331' };
const SECOND = '1af7651916cd43dd8448eb211c80319d';
const SEARCH = '2af7651916cd43dd8448eb211c80319e';

let catalogueDir: string;
let database: Awaited<ReturnType<typeof newSqliteTables>>;
let receiver: OtlpReceiver;
let server: RunningServer;
let authorization: string;
let lines: string[];
let spans: readonly ReceivedSpan[];

/** Runs a backtest, a paper session and a shard in traces of their callers, and stops the server. */
beforeAll(async () => {
  catalogueDir = await mkdtemp(join(tmpdir(), 'service-local-tracing-test-'));
  await fillCatalogue(catalogueDir, 10);
  database = await newSqliteTables();
  receiver = await startOtlpReceiver();
  lines = [];
  const storage = await openStorage(database.location);
  authorization = await addTrader(storage, Date.now());
  await storage.close();
  const env = {
    SERVICE_LOCAL_HOME: join(database.location.file, '..'),
    SERVICE_LOCAL_SERVER_PORT: '0',
    SERVICE_LOCAL_CATALOGUE_DIR: catalogueDir,
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
  };
  const { values } = resolveSettings(tmpdir(), env);
  server = await startServer(
    values,
    env,
    createLog((line) => lines.push(line), true),
  );
  await send('POST', '/bots', { document: tradingDocument('days', 'SPX', '1d', 5) });
  await succeeds('/bots/days/backtest', {}, CALLER.trace);
  await succeeds('/bots/days/paper/start', { speed: 'max', to: '2000-03-01' }, SECOND);
  await runShard();
  await server.stop();
  spans = receiver.spans();
});
afterAll(async () => {
  await receiver.close();
  await database.remove();
  await rm(catalogueDir, { recursive: true });
});

async function send(method: string, path: string, body?: object, trace?: string): Promise<Task> {
  const answer = await fetch(server.url + path, {
    method,
    headers: {
      authorization,
      'content-type': 'application/json',
      ...(trace !== undefined && { traceparent: `00-${trace}-${CALLER.span}-01` }),
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  const json: unknown = answer.status === 204 ? {} : await answer.json();
  expect(answer.status, JSON.stringify(json)).toBeLessThan(300);
  return json as Task;
}

async function succeeds(path: string, body: object, trace: string): Promise<void> {
  const { task_id } = await send('POST', path, body, trace);
  await vi.waitFor(
    async () => expect(await send('GET', `/tasks/${task_id}`)).toMatchObject({ status: 'success' }),
    { timeout: 20_000, interval: 50 },
  );
}

/** The input of its shard is damaged, so that it ends at once. */
async function runShard(): Promise<void> {
  const about = { title: 'sweep', package: packageVersion(), has_code: false };
  const { search_id } = (await send(
    'POST',
    '/searches',
    { ...about, digest: 'a'.repeat(64) },
    SEARCH,
  )) as unknown as { readonly search_id: string };
  const input = 'b'.repeat(64);
  await send('PUT', `/searches/${search_id}/inputs/${input}/0`, { parts: 1, data: 'AAAA' });
  const shard = { id: 'c'.repeat(64), input, trials: [{ index: 0, params: {} }] };
  await send('POST', `/searches/${search_id}/shards`, { received: 0, shards: [shard] });
  await vi.waitFor(
    async () =>
      expect(await send('GET', '/searches')).toMatchObject({ items: [{ failed: 1, running: 0 }] }),
    { timeout: 20_000, interval: 50 },
  );
}

const inTrace = (traceId: string, name: string): ReceivedSpan[] =>
  spans.filter((span) => span.traceId === traceId && span.name === name);

it('a backtest over HTTP is one trace of the caller, the request and the task', () => {
  const [request] = inTrace(CALLER.trace, 'POST /bots/:bot_ref/backtest');
  const [task] = inTrace(CALLER.trace, 'task backtest');
  expect(request).toMatchObject({
    parentSpanId: CALLER.span,
    service: 'service-local-server',
    attributes: { 'http.response.status_code': 202 },
  });
  expect(task).toMatchObject({
    parentSpanId: request!.spanId,
    attributes: { 'task.status': 'success', 'task.attempt': 1 },
  });
});

it('the orders of a paper session and their fills belong to the trace of its start', () => {
  const [request] = inTrace(SECOND, 'POST /bots/:bot_ref/paper/start');
  const [task] = inTrace(SECOND, 'task paper');
  const [session] = inTrace(SECOND, 'session');
  const orders = inTrace(SECOND, 'order');
  const fills = inTrace(SECOND, 'venue filled');
  expect(task!.parentSpanId).toBe(request!.spanId);
  expect(session!.parentSpanId).toBe(task!.spanId);
  expect(orders.length).toBeGreaterThan(0);
  for (const { parentSpanId } of orders) expect(parentSpanId).toBe(session!.spanId);
  const filled = orders.find(({ attributes }) => attributes['order.outcome'] === 'filled');
  expect(fills.map(({ parentSpanId }) => parentSpanId)).toContain(filled!.spanId);
});

it('a search and its shards are one trace of the caller', () => {
  const [request] = inTrace(SEARCH, 'POST /searches');
  expect(request!.parentSpanId).toBe(CALLER.span);
  expect(inTrace(SEARCH, 'shard')).toMatchObject([{ parentSpanId: request!.spanId }]);
});

it('log lines of a request carry the ids of its trace and span', () => {
  const entries = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  const [request] = inTrace(CALLER.trace, 'POST /bots/:bot_ref/backtest');
  expect(entries.find(({ path }) => path === '/bots/days/backtest')).toMatchObject({
    trace_id: CALLER.trace,
    span_id: request!.spanId,
  });
});

it('exports contain no token, and the metrics of the server', () => {
  expect(receiver.text()).not.toContain(authorization.replace('Bearer ', ''));
  expect(receiver.text()).not.toContain('authorization');
  const requests = receiver
    .metrics()
    .find(({ name }) => name === 'service_local_http_request_duration_seconds');
  const [point] = requests!.histogram!.dataPoints;
  expect(point!.bucketCounts).toHaveLength(point!.explicitBounds.length + 1);
  expect(point!.bucketCounts.reduce((sum, count) => sum + count)).toBe(point!.count);
});
