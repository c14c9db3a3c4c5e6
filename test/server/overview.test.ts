import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Overview, RaisedAlert } from '../../src/api/overview.ts';
import { appendEvents } from '../../src/events/append.ts';
import { newTestApp, type TestApp } from './in-process.ts';
import { newSignedIn, type Visitor } from './console/visitor.ts';
import { tradingDocument } from './trader.ts';

let server: TestApp;
let authorization: string;
let visitor: Visitor;

beforeAll(async () => {
  server = await newTestApp();
  authorization = await server.bearer('read', 'write', 'halt');
  for (const slug of ['one', 'two']) {
    const document = tradingDocument(slug, 'SPX', '1d', 2);
    await server.send('POST', '/bots', { headers: { authorization }, body: { document } });
  }
});
afterAll(() => server.close());

async function get<T>(path: string): Promise<T> {
  const { status, body } = await server.send('GET', path, { headers: { authorization } });
  expect(status).toBe(200);
  return body as T;
}

async function raise(slug: string, severity: RaisedAlert['severity']): Promise<void> {
  const at = server.now;
  const { id } = await get<{ readonly id: string }>(`/bots/${slug}`);
  const payload = { control: 'max_order_qty', severity, event_seq: 1, count: 1, latency_ms: 2 };
  const event = { kind: 'alert.raised', version: 1, occurred_at: at, payload };
  await server.services.identity.storage.write((tx) => appendEvents(tx, id, at, [event]));
}

interface Alerts {
  readonly items: readonly RaisedAlert[];
  readonly next_cursor: string | null;
}

test('alerts of all bots are listed once each, newest first, and counted for a day', async () => {
  const hour = 3_600_000;
  await raise('one', 'critical');
  server.now += 30 * hour;
  await raise('one', 'warning');
  server.now += 1;
  await raise('two', 'critical');
  server.now += hour;
  await raise('two', 'warning');
  authorization = await server.bearer('read', 'write', 'halt');
  ({ visitor } = await newSignedIn(server));
  const all = await get<Alerts>('/alerts');
  expect(all.items.map(({ bot_slug, severity }) => `${bot_slug} ${severity}`)).toEqual([
    'two warning',
    'two critical',
    'one warning',
    'one critical',
  ]);
  const paged: RaisedAlert[] = [];
  let cursor: string | null = '';
  while (cursor !== null) {
    const page: Alerts = await get(`/alerts?limit=1${cursor && `&cursor=${cursor}`}`);
    paged.push(...page.items);
    cursor = page.next_cursor;
  }
  expect(paged).toEqual(all.items);
  expect(await get<Overview>('/overview')).toEqual({
    bots: 2,
    running_bots: 0,
    halts: { bot: 0, all: 0 },
    failed_tasks: 0,
    alerts: { critical: 1, warning: 2 },
  });
});

test('the start page says in one line whether something is wrong', async () => {
  const calm = await visitor.open('/console?show=all');
  expect(calm.text).toContain('1 critical alert');
  const body = { reason: 'a drill' };
  await server.send('POST', '/bots/one/halt', { headers: { authorization }, body });
  const { text, status } = await visitor.open('/console');
  expect(status).toBe(200);
  expect(text).toContain('1 bot halted');
  expect(text).toContain('Needs attention:');
});

test('the start page needs the same number of requests for any number of bots', async () => {
  const count = async (): Promise<number> => {
    const { app } = server;
    const request = app.request.bind(app);
    let calls = 0;
    app.request = (...args) => {
      calls += 1;
      return request(...args);
    };
    try {
      await visitor.open('/console?show=all');
    } finally {
      app.request = request;
    }
    return calls;
  };
  const few = await count();
  for (let at = 0; at < 8; at += 1) {
    const document = tradingDocument(`more-${at}`, 'SPX', '1d', 2);
    await server.send('POST', '/bots', { headers: { authorization }, body: { document } });
  }
  expect(await count()).toBe(few);
});

test('a form sent after the session has ended leads back to its page', async () => {
  const { visitor: late } = await newSignedIn(server);
  const headers = { referer: 'https://licenses.example/console/bots/one/halt?a=1' };
  const csrf = await late.csrf();
  late.cookies.clear();
  const { status, location } = await late.submit(
    '/console/bots/one/halt',
    { csrf, reason: 'x' },
    headers,
  );
  expect(status).toBe(303);
  expect(location).toBe('/console/sign-in?next=%2Fconsole%2Fbots%2Fone%2Fhalt%3Fa%3D1');
});
