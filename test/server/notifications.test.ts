import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Channel, Delivery } from '../../src/api/notifications.ts';
import type { HaltReport } from '../../src/api/halts.ts';
import { HOUR, MINUTE } from '../../src/base/durations.ts';
import { appendEvents } from '../../src/events/append.ts';
import { openChannels } from '../../src/fleet/notifications/channels.ts';
import { readChannelsFile } from '../../src/fleet/notifications/channels-file.ts';
import { Notifier } from '../../src/fleet/notifications/notifier.ts';
import {
  isSigned,
  receiveHttp,
  receiveMail,
  SMTP_PASSWORD,
  TELEGRAM_TOKEN,
  WEBHOOK_SECRET,
  type HttpReceiver,
} from '../fleet/notifications/receivers.ts';
import { makeSessions, STATE, type MadeSession } from '../fleet/halts/sessions.ts';
import { sqliteReadCostOf } from '../storage/count-statements.ts';
import { newSignedIn } from './console/visitor.ts';
import { notifierOf } from './idle-tasks.ts';
import { newTestApp, type TestApp } from './in-process.ts';
import { OPEN_GATE } from './open-gate.ts';
import { EMBEDDED } from '../../src/research/embedded.ts';

const ENV = { HOOK: WEBHOOK_SECRET, RELAY: SMTP_PASSWORD, TELEGRAM: TELEGRAM_TOKEN };
const SECRETS = [WEBHOOK_SECRET.slice(6), SMTP_PASSWORD, TELEGRAM_TOKEN];

let directory: string;
let ends: (() => Promise<unknown>)[];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'service-local-notifications-'));
  ends = [() => rm(directory, { recursive: true })];
});
afterEach(async () => {
  for (const end of ends.toReversed()) await end();
});

/** A server with these channels, as in `notifications.yaml`, and administrators. */
async function serve(channels: object): Promise<TestApp & { readonly admin: string }> {
  const file = join(directory, 'notifications.yaml');
  await writeFile(file, JSON.stringify({ timeout_seconds: 5, channels }));
  const opened = openChannels(readChannelsFile(file), ENV);
  const server = await newTestApp({}, { ...OPEN_GATE }, EMBEDDED, opened);
  ends.push(() => server.close());
  const admin = await server.bearer('admin', 'read', 'halt');
  return Object.assign(server, { admin });
}

type Server = Awaited<ReturnType<typeof serve>>;

async function receiver(...answers: Parameters<typeof receiveHttp>): Promise<HttpReceiver> {
  const made = await receiveHttp(...answers);
  ends.push(made.close);
  return made;
}

const webhook = ({ url }: HttpReceiver) =>
  ({
    type: 'webhook',
    url: `${url}/hook`,
    secret_env: 'HOOK',
    allow_private_address: true,
  }) as const;

async function add(server: Server, rule: object): Promise<void> {
  const headers = { authorization: server.admin };
  const { status, body } = await server.send('POST', '/notifications/rules', {
    headers,
    body: { channel: 'ops', ...rule },
  });
  expect(status, JSON.stringify(body)).toBe(201);
}

async function halt(server: Server, slug = 'bot-0', reason = 'a drill'): Promise<HaltReport> {
  const headers = { authorization: server.admin };
  const answer = await server.send('POST', `/bots/${slug}/halt`, { headers, body: { reason } });
  expect(answer.status).toBe(200);
  return answer.body as HaltReport;
}

/** Evaluates the rules, and waits for the attempts that are due. */
async function poll({ notifier }: Pick<TestApp, 'notifier'>): Promise<void> {
  await notifier.poll();
  await notifier.settle();
}

async function deliveries(server: Server): Promise<readonly Delivery[]> {
  const headers = { authorization: server.admin };
  const { body } = await server.send('GET', '/notifications/deliveries', { headers });
  return (body as { readonly items: readonly Delivery[] }).items;
}

/** Changes the only session of a bot. */
async function setSession(
  { services: { identity } }: TestApp,
  { task_id }: MadeSession,
  values: { readonly state?: string; readonly recorded_at?: number },
): Promise<void> {
  await identity.storage.write((tx) =>
    tx.updateTable('trading_sessions').set(values).where('task_id', '=', task_id).execute(),
  );
}

/** Nothing that the server stores, logs or returns contains a secret. */
async function expectNoSecrets(server: Server): Promise<void> {
  const headers = { authorization: server.admin };
  const rows = await server.services.identity.storage.read
    .selectFrom('notification_deliveries')
    .selectAll()
    .execute();
  const listed = await server.send('GET', '/notifications', { headers });
  const shown = JSON.stringify([server.log, rows, listed.body, await deliveries(server)]);
  for (const secret of SECRETS) expect(shown).not.toContain(secret);
}

test('a repeated request with an Idempotency-Key adds one rule', async () => {
  const server = await serve({ ops: webhook(await receiver()) });
  const headers = { authorization: server.admin, 'idempotency-key': randomUUID() };
  const body = { name: 'halts', condition: 'halted', channel: 'ops' };
  const send = () => server.send('POST', '/notifications/rules', { headers, body });
  const first = await send();
  const again = await send();
  expect([first.status, again.status]).toEqual([201, 201]);
  expect(again.body).toEqual(first.body);
  expect(again.headers.get('idempotency-replayed')).toBe('true');
});

test('a halt sends one signed webhook, however often the rules are evaluated', async () => {
  const ops = await receiver();
  const server = await serve({ ops: webhook(ops) });
  await makeSessions(server.services.tasks.storage, { count: 2 });
  await add(server, { name: 'halts', condition: 'halted', bots: ['bot-0'] });
  const { halt_id } = await halt(server);
  await halt(server, 'bot-1');
  for (let again = 0; again < 3; again += 1) {
    await poll(server);
    server.now += 1000;
  }
  expect(ops.requests).toHaveLength(1);
  const [request] = ops.requests;
  expect(isSigned(request!, WEBHOOK_SECRET)).toBe(true);
  expect(isSigned({ ...request!, body: `${request!.body} ` }, WEBHOOK_SECRET)).toBe(false);
  expect(isSigned(request!, `${WEBHOOK_SECRET.slice(0, -2)}A=`)).toBe(false);
  expect(isSigned(request!, WEBHOOK_SECRET, Date.now() + 10 * MINUTE)).toBe(false);
  expect(request!.path).toBe('/hook');
  expect(JSON.parse(request!.body)).toEqual({
    type: 'bot.halted',
    timestamp: '2026-01-02T03:04:05.000Z',
    data: {
      rule: 'halts',
      summary: 'bot-0 is halted: a drill',
      bot: { id: expect.any(String) as string, slug: 'bot-0', name: 'bot-0' },
      url: 'https://licenses.example/console/bots/bot-0',
      details: { halt_id, reason: 'a drill' },
    },
  });
  expect(await deliveries(server)).toMatchObject([
    { delivery_id: request!.headers['webhook-id'], rule: 'halts', status: 'sent', attempts: 1 },
  ]);
  await expectNoSecrets(server);
});

test('a receiver that fails twice gets the notification with the third attempt, under the same id', async () => {
  const ops = await receiver(
    (response, count) => void response.writeHead(count < 3 ? 503 : 204).end(),
  );
  const server = await serve({ ops: webhook(ops) });
  await makeSessions(server.services.tasks.storage, { count: 1 });
  await add(server, { name: 'halts', condition: 'halted' });
  await halt(server);
  await poll(server);
  expect(await deliveries(server)).toMatchObject([
    { status: 'pending', attempts: 1, error: 'the receiver answered with status 503' },
  ]);
  await poll(server);
  expect(ops.requests).toHaveLength(1);
  for (let attempt = 2; attempt <= 3; attempt += 1) {
    server.now += MINUTE;
    await poll(server);
  }
  expect(new Set(ops.requests.map(({ headers }) => headers['webhook-id']))).toHaveLength(1);
  expect(ops.requests).toHaveLength(3);
  expect(await deliveries(server)).toMatchObject([{ status: 'sent', attempts: 3, error: null }]);
});

test('after twelve attempts a notification fails with the reason, and metrics count it', async () => {
  const ops = await receiver((response) => void response.writeHead(302, { location: '/' }).end());
  const server = await serve({ ops: webhook(ops) });
  await makeSessions(server.services.tasks.storage, { count: 1 });
  await add(server, { name: 'halts', condition: 'halted' });
  await halt(server);
  for (let attempt = 1; attempt <= 13; attempt += 1) {
    await poll(server);
    server.now += HOUR;
  }
  expect(ops.requests).toHaveLength(12);
  const error = 'the receiver answered with status 302; redirects are not followed';
  expect(await deliveries(server)).toMatchObject([{ status: 'failed', attempts: 12, error }]);
  const headers = { authorization: server.admin };
  const { body } = await server.send('GET', '/metrics', { headers });
  expect(body).toContain('service_local_notifications{status="failed"} 1');
});

test('a receiver that hangs delays neither a halt nor another channel', async () => {
  const hanging = await receiver(() => {});
  const ops = await receiver();
  const server = await serve({ hanging: webhook(hanging), ops: webhook(ops) });
  await makeSessions(server.services.tasks.storage, { count: 2 });
  await add(server, { name: 'hangs', condition: 'halted', channel: 'hanging' });
  await add(server, { name: 'halts', condition: 'halted' });
  await halt(server, 'bot-0');
  await server.notifier.poll();
  await Promise.all([hanging.received(1), ops.received(1)]);
  // The first attempt hangs meanwhile.
  const report = await halt(server, 'bot-1');
  expect(report).toMatchObject({ verified: true });
  server.now += 1000;
  await server.notifier.poll();
  await ops.received(2);
  const pending = (await deliveries(server)).filter(({ channel }) => channel === 'hanging');
  expect(pending).toMatchObject([{ status: 'pending' }, { status: 'pending' }]);
  await server.notifier.stop();
  const stopped = (await deliveries(server)).filter(({ channel }) => channel === 'hanging');
  const left = { status: 'pending', attempts: 0, error: 'the server stopped' };
  expect(stopped).toMatchObject([left, left]);
});

test('a server sends again, under the same id, what another server did not finish', async () => {
  let isDead = true;
  const ops = await receiver((response) => void (isDead || response.writeHead(204).end()));
  const server = await serve({ ops: webhook(ops) });
  await makeSessions(server.services.tasks.storage, { count: 1 });
  await add(server, { name: 'halts', condition: 'halted' });
  await halt(server);
  await server.notifier.poll();
  await ops.received(1);
  const { channels } = server.services.notifier;
  const other = notifierOf(server.services.identity, channels);
  ends.push(() => other.stop());
  isDead = false;
  await poll({ notifier: other });
  expect(ops.requests).toHaveLength(1);
  server.now += 61_000;
  await poll({ notifier: other });
  expect(ops.requests).toHaveLength(2);
  const [first, second] = ops.requests.map(({ headers }) => headers['webhook-id']);
  expect(second).toBe(first);
  expect(await deliveries(server)).toMatchObject([{ status: 'sent', attempts: 2 }]);
});

test('e-mail reaches the mail server with the subject, a wrong password is not repeated, and no password is sent unencrypted to another host', async () => {
  const mail = await receiveMail();
  ends.push(mail.close);
  const settings = {
    type: 'email',
    host: 'localhost',
    port: mail.port,
    security: 'none',
    user: 'alerts',
    password_env: 'RELAY',
    from: 'alerts@example.com',
    to: ['desk@example.com', 'risk@example.com'],
    allow_private_address: true,
  };
  const server = await serve({
    ops: settings,
    wrong: { ...settings, password_env: 'HOOK' },
    far: { ...settings, host: 'mail.example' },
  });
  await makeSessions(server.services.tasks.storage, { count: 1 });
  await add(server, { name: 'halts', condition: 'halted' });
  await halt(server, 'bot-0', 'too much');
  await poll(server);
  const [{ delivery_id }] = (await deliveries(server)) as [Delivery];
  expect(mail.messages).toHaveLength(1);
  const [message] = mail.messages;
  expect(message).toContain('To: desk@example.com, risk@example.com');
  expect(message).toContain(`Message-ID: <${delivery_id}@service-local>`);
  expect(message).toContain('Subject: bot-0 is halted: too much');
  const headers = { authorization: server.admin };
  const failed = await server.send('POST', '/notifications/channels/wrong/test', { headers });
  expect(failed.body).toMatchObject({
    status: 'failed',
    error: 'the mail server rejected the login (535)',
    refused_status: null,
  });
  const far = await server.send('POST', '/notifications/channels/far/test', { headers });
  expect(far.body).toMatchObject({
    status: 'failed',
    error: expect.stringMatching(/^security: none would send the password unencrypted; /) as string,
  });
  await expectNoSecrets(server);
});

test('an e-mail whose attempt was aborted is not sent afterwards', async () => {
  const asked = Promise.withResolvers<() => void>();
  const mail = await receiveMail(asked.resolve);
  ends.push(mail.close);
  const server = await serve({
    ops: {
      type: 'email',
      host: 'localhost',
      port: mail.port,
      security: 'none',
      user: 'alerts',
      password_env: 'RELAY',
      from: 'alerts@example.com',
      to: ['desk@example.com'],
      allow_private_address: true,
    },
  });
  await makeSessions(server.services.tasks.storage, { count: 1 });
  await add(server, { name: 'halts', condition: 'halted' });
  await halt(server);
  await server.notifier.poll();
  const accept = await asked.promise;
  await server.notifier.stop();
  accept();
  await mail.disconnected;
  expect(mail.messages).toEqual([]);
  expect(await deliveries(server)).toMatchObject([{ status: 'pending', attempts: 0 }]);
});

test('a receiver that accepts a notification with a long page gets it once', async () => {
  const ops = await receiver((response) => void response.writeHead(200).end('a'.repeat(200_000)));
  const server = await serve({ ops: webhook(ops) });
  await makeSessions(server.services.tasks.storage, { count: 1 });
  await add(server, { name: 'halts', condition: 'halted' });
  await halt(server);
  await poll(server);
  expect(await deliveries(server)).toMatchObject([{ status: 'sent', attempts: 1 }]);
});

test('an alert beside a flood of another bot has its own notification', async () => {
  const ops = await receiver();
  const server = await serve({ ops: webhook(ops) });
  const { storage } = server.services.tasks;
  const [flood, quiet] = await makeSessions(storage, { count: 2 });
  await add(server, { name: 'errors', condition: 'error' });
  const payload = { control: 'feed', severity: 'critical', event_seq: 1, count: 1, latency_ms: 2 };
  const event = { kind: 'alert.raised', version: 1, occurred_at: server.now, payload };
  const many = Array.from({ length: 30 }, () => event);
  await storage.write((tx) => appendEvents(tx, flood!.bot_id, server.now, many));
  await storage.write((tx) => appendEvents(tx, quiet!.bot_id, server.now, [event]));
  await poll(server);
  const summaries = (await deliveries(server)).map(({ summary }) => summary);
  expect(summaries.toSorted()).toEqual([
    'bot-0 has a critical alert: feed',
    'bot-1 has a critical alert: feed',
  ]);
});

test('Telegram gets the text for the chat, and its token is in no error', async () => {
  let status = 200;
  const telegram = await receiver((response) => {
    response.writeHead(status, { 'retry-after': '7' }).end(`{"description":"${TELEGRAM_TOKEN}"}`);
  });
  const settings = { type: 'telegram', token_env: 'TELEGRAM', chat_id: -100_123 };
  const chat = { ...settings, api_url: telegram.url, allow_private_address: true };
  const server = await serve({ ops: chat });
  await makeSessions(server.services.tasks.storage, { count: 1 });
  await add(server, { name: 'halts', condition: 'halted' });
  await halt(server);
  await poll(server);
  const [request] = telegram.requests;
  expect(request!.path).toBe(`/bot${TELEGRAM_TOKEN}/sendMessage`);
  const { chat_id, text } = JSON.parse(request!.body) as Record<string, string>;
  expect(chat_id).toBe('-100123');
  expect(text).toMatch(/^bot-0 is halted: a drill\n/);
  const headers = { authorization: server.admin };
  for (const [answered, error, refused_status] of [
    [401, 'Telegram rejected the token; compare it with the one of BotFather', null],
    [400, 'Telegram rejected the chat; check chat_id, and add the bot to the chat', null],
    [429, 'the receiver answered with status 429', 429],
  ] as const) {
    status = answered;
    const failed = await server.send('POST', '/notifications/channels/ops/test', { headers });
    expect(failed.body).toMatchObject({ status: 'failed', error, refused_status });
  }
  await expectNoSecrets(server);
});

test('private addresses are refused, by name and by number, unless the channel allows them', async () => {
  const ops = await receiver();
  const { port } = new URL(ops.url);
  const { allow_private_address: _allowed, ...hook } = webhook(ops);
  const mail = { type: 'email', host: 'localhost', port: 25, from: 'a@b.c', to: ['d@e.f'] };
  const chat = { type: 'telegram', token_env: 'TELEGRAM', chat_id: 1 };
  const server = await serve({
    number: hook,
    name: { ...hook, url: `http://localhost:${port}/` },
    decimal: { ...hook, url: `http://2130706433:${port}/` },
    metadata: { ...hook, url: 'http://169.254.169.254/latest/meta-data' },
    mapped: { ...hook, url: `http://[::ffff:127.0.0.1]:${port}/` },
    mail,
    telegram: { ...chat, api_url: `http://localhost:${port}` },
  });
  const headers = { authorization: server.admin };
  for (const channel of ['number', 'name', 'decimal', 'metadata', 'mapped', 'mail', 'telegram']) {
    const path = `/notifications/channels/${channel}/test`;
    const { body } = await server.send('POST', path, { headers });
    expect(body, channel).toMatchObject({
      status: 'failed',
      error: expect.stringMatching(/^the address of .+ is private; /) as string,
    });
  }
  expect(ops.requests).toEqual([]);
  const { body } = await server.send('GET', '/notifications', { headers });
  const { channels } = body as { readonly channels: readonly Channel[] };
  const faulty = channels.filter(({ fault }) => fault !== null).map(({ name }) => name);
  // Names are resolved only when sending.
  expect(faulty).toEqual(['number', 'decimal', 'metadata', 'mapped']);
});

test('a drawdown notifies once until a new peak, and only above the amount of the rule', async () => {
  const ops = await receiver();
  const server = await serve({ ops: webhook(ops) });
  const [session] = await makeSessions(server.services.tasks.storage, { count: 1 });
  await add(server, { name: 'loss', condition: 'drawdown', amount: 0.1 });
  const at = async (equity: number, peak_equity: number): Promise<number> => {
    const risk = { peak_equity, day_start_equity: peak_equity, day: null };
    const state = JSON.stringify({ ...STATE, equity, carry: { marks: {}, risk } });
    await setSession(server, session!, { state });
    server.now += MINUTE;
    await poll(server);
    return ops.requests.length;
  };
  expect(await at(91, 100)).toBe(0);
  expect(await at(89, 100)).toBe(1);
  expect(await at(80, 100)).toBe(1);
  expect(await at(120, 120)).toBe(1);
  expect(await at(107, 120)).toBe(2);
  expect(JSON.parse(ops.requests[0]!.body)).toMatchObject({
    type: 'bot.drawdown',
    data: { summary: 'bot-0 has lost 11.00% since its highest equity' },
  });
});

test('a session without bars notifies once, but not while its exchange is closed', async () => {
  const ops = await receiver();
  const server = await serve({ ops: webhook(ops) });
  const { storage } = server.services.tasks;
  const [always, stocks] = await makeSessions(storage, { count: 2 });
  const document = JSON.stringify({ spec: { universe: { calendar: 'XNYS' } } });
  await storage.write((tx) =>
    tx.updateTable('bot_versions').set({ document }).where('bot_id', '=', stocks!.bot_id).execute(),
  );
  const silentFrom = Date.parse('2026-01-05T20:59:00Z');
  for (const one of [always!, stocks!]) await setSession(server, one, { recorded_at: silentFrom });
  server.now = silentFrom;
  const admin = await server.bearer('admin', 'read');
  Object.assign(server, { admin });
  await add(server, { name: 'silence', condition: 'no_bars', amount: 600 });
  const summaries = async (time: string): Promise<string[]> => {
    server.now = Date.parse(time);
    await poll(server);
    return ops.requests.map(
      ({ body }) => (JSON.parse(body) as { data: { summary: string } }).data.summary,
    );
  };
  expect(await summaries('2026-01-05T21:08:00Z')).toEqual([]);
  const first = 'bot-0 has received no bars for 12 minutes';
  expect(await summaries('2026-01-05T21:11:00Z')).toEqual([first]);
  expect(await summaries('2026-01-06T14:35:00Z')).toEqual([first]);
  const second = 'bot-1 has received no bars for 10 minutes';
  expect(await summaries('2026-01-06T14:40:00Z')).toEqual([first, second]);
});

test('ten of many occurrences at the same time are reported one by one, and the others together', async () => {
  const ops = await receiver();
  const server = await serve({ ops: webhook(ops) });
  await makeSessions(server.services.tasks.storage, { count: 40 });
  await server.execute(`update trading_sessions set recorded_at = ${server.now - HOUR}`);
  await add(server, { name: 'silence', condition: 'no_bars', amount: 600 });
  for (let again = 0; again < 5; again += 1) {
    server.now += MINUTE;
    await poll(server);
  }
  const types = ops.requests.map(({ body }) => (JSON.parse(body) as { type: string }).type);
  expect(types.filter((type) => type === 'bot.no_bars')).toHaveLength(10);
  expect(types.filter((type) => type === 'many')).toHaveLength(1);
  const many = (await deliveries(server)).find(({ summary }) => summary.startsWith('30 more for'));
  expect(many!.summary).toMatch(
    /^30 more for the rule silence, such as: bot-\d+ has received no bars/,
  );
});

test('an error is a failed session or a critical alert, sent at most once in each hour of the clock', async () => {
  const ops = await receiver();
  const server = await serve({ ops: webhook(ops) });
  const { storage } = server.services.tasks;
  const [bot] = await makeSessions(storage, { count: 1 });
  await add(server, { name: 'errors', condition: 'error' });
  const raise = async (severity: string, control: string): Promise<number> => {
    const payload = { control, severity, event_seq: 1, count: 1, latency_ms: 2 };
    const event = { kind: 'alert.raised', version: 1, occurred_at: server.now, payload };
    await storage.write((tx) => appendEvents(tx, bot!.bot_id, server.now, [event]));
    await poll(server);
    server.now += MINUTE;
    return ops.requests.length;
  };
  expect(await raise('warning', 'max_order_qty')).toBe(0);
  expect(await raise('critical', 'reconciliation')).toBe(1);
  expect(await raise('critical', 'reconciliation')).toBe(1);
  expect(await raise('critical', 'margin_call')).toBe(2);
  server.now += HOUR;
  expect(await raise('critical', 'reconciliation')).toBe(3);
  const error = JSON.stringify({ code: 'strategy_failed', message: 'the strategy threw' });
  await storage.write((tx) =>
    tx
      .updateTable('tasks')
      .set({ status: 'failed', worker_id: null, ended_at: server.now, error })
      .where('task_id', '=', bot!.task_id)
      .execute(),
  );
  await poll(server);
  expect(
    ops.requests.map(
      ({ body }) => (JSON.parse(body) as { data: { summary: string } }).data.summary,
    ),
  ).toEqual([
    'bot-0 has a critical alert: reconciliation',
    'bot-0 has a critical alert: margin call',
    'bot-0 has a critical alert: reconciliation',
    'bot-0 has failed: the strategy threw',
  ]);
});

test('evaluating rules and counting deliveries read no whole table of tasks, events or deliveries', async () => {
  const ops = await receiver();
  const server = await serve({ ops: webhook(ops) });
  for (const condition of ['halted', 'error']) await add(server, { name: condition, condition });
  const headers = { authorization: server.admin };
  const { plans } = await sqliteReadCostOf(async () => {
    await poll(server);
    await server.send('GET', '/notifications', { headers });
  });
  expect(plans).toContain('SEARCH tasks USING INDEX tasks_failed (kind=? AND ended_at>?)');
  expect(plans).toContain('SEARCH bot_events USING INDEX bot_events_alerts (recorded_at>?)');
  const whole = /^SCAN (tasks|bot_events|notification_deliveries)$/;
  expect(plans.filter((step) => whole.test(step))).toEqual([]);
});

test('the lease of the server and of an installation notify before they expire', async () => {
  const ops = await receiver();
  const server = await serve({ ops: webhook(ops) });
  await add(server, { name: 'leases', condition: 'lease', amount: 48 });
  const { identity, notifier } = server.services;
  const expires_at = server.now + 50 * HOUR;
  const own = new Notifier({
    ...identity,
    channels: notifier.channels,
    timeoutMs: 5000,
    ownLease: () => ({ lease_id: 'own', expires_at }),
    origin: 'https://licenses.example',
    log: { info() {}, warn() {} },
  });
  ends.push(() => own.stop());
  await poll({ notifier: own });
  expect(ops.requests).toEqual([]);
  server.now += 3 * HOUR;
  await poll({ notifier: own });
  await poll({ notifier: own });
  expect(ops.requests).toHaveLength(1);
  expect(JSON.parse(ops.requests[0]!.body)).toMatchObject({
    type: 'license.lease_expires',
    data: { summary: 'the lease of this server expires at 2026-01-04T05:04:05.000Z', bot: null },
  });
});

test('only the scope admin changes rules, and changes are audited', async () => {
  const ops = await receiver();
  const server = await serve({ ops: webhook(ops), mute: { ...webhook(ops), secret_env: 'NONE' } });
  const reader = await server.bearer('read', 'write', 'trade', 'halt');
  const rule = { name: 'halts', condition: 'halted', channel: 'ops' };
  const send = async (authorization: string, method: string, path: string, body?: object) => {
    const answer = await server.send(method, path, { headers: { authorization }, body });
    return { status: answer.status, ...(answer.body as object) };
  };
  for (const [method, path, body] of [
    ['POST', '/notifications/rules', rule],
    ['DELETE', '/notifications/rules/halts', undefined],
    ['POST', '/notifications/channels/ops/test', undefined],
  ] as const) {
    expect(await send(reader, method, path, body)).toMatchObject({ status: 403 });
  }
  const { admin } = server;
  const post = (body: object) => send(admin, 'POST', '/notifications/rules', body);
  expect(await post({ ...rule, channel: 'oops' })).toMatchObject({
    status: 409,
    reason: 'unknown_channel',
    remedy: expect.stringMatching(/^Choose one of ops, mute, or add it to the file /) as string,
  });
  expect(await post({ ...rule, bots: ['no-such-bot'] })).toMatchObject({ status: 404 });
  expect(await post({ ...rule, amount: 1 })).toMatchObject({ status: 400 });
  expect(await post({ ...rule, condition: 'drawdown' })).toMatchObject({ status: 400 });
  expect(await post({ ...rule, condition: 'drawdown', amount: 10 })).toMatchObject({
    status: 400,
    detail: 'the condition drawdown needs a fraction of the highest equity from 0.0001 to 0.9999',
  });
  expect(await post(rule)).toMatchObject({
    status: 201,
    bots: null,
    amount: null,
    channel_fault: null,
  });
  expect(await post(rule)).toMatchObject({ status: 409, reason: 'exists' });
  expect(await send(reader, 'GET', '/notifications')).toMatchObject({
    channels: [
      { name: 'ops', type: 'webhook', fault: null },
      { name: 'mute', fault: 'NONE is not set in the environment of the server' },
    ],
    rules: [{ name: 'halts', condition: 'halted' }],
    pending: 0,
    failed: 0,
  });
  expect(await send(admin, 'POST', '/notifications/channels/ops/test')).toMatchObject({
    status: 'sent',
    refused_status: null,
  });
  expect((await send(admin, 'DELETE', '/notifications/rules/halts')).status).toBe(204);
  expect((await send(admin, 'DELETE', '/notifications/rules/halts')).status).toBe(404);
  const entries = await server.services.identity.storage.read
    .selectFrom('audit_entries')
    .select('action')
    .where('action', 'like', 'notifications.%')
    .orderBy('seq')
    .execute();
  expect(entries.map(({ action }) => action)).toEqual([
    'notifications.rules.add',
    'notifications.channels.test',
    'notifications.rules.remove',
  ]);
});

test('the console shows rules, channels and deliveries, and sends a test', async () => {
  const ops = await receiver();
  const broken = await receiver((response) => void response.writeHead(500).end());
  const server = await serve({ ops: webhook(ops), broken: webhook(broken) });
  await makeSessions(server.services.tasks.storage, { count: 1 });
  await add(server, { name: 'loss', condition: 'drawdown', amount: 0.1, bots: ['bot-0'] });
  const { visitor } = await newSignedIn(server);
  const path = '/console/notifications';
  expect((await visitor.open(path)).text).toMatch(/loss.*drawdown 0\.1.*bot-0.*ready/s);
  const csrf = await visitor.csrf();
  const sent = await visitor.submit(`${path}/test`, { csrf, channel: 'ops' });
  expect(sent).toMatchObject({ status: 303, location: path });
  expect(ops.requests).toHaveLength(1);
  expect((await visitor.open(path)).text).toContain('Channel ops has accepted the test.');
  // Deliveries of one millisecond have no order.
  server.now += 1000;
  const failed = await visitor.submit(`${path}/test`, { csrf, channel: 'broken' });
  expect(failed.status).toBe(409);
  expect(failed.text).toContain('Channel broken: the receiver answered with status 500.');
  const { text } = await visitor.open(path);
  expect(text).toMatch(/This is a test of the channel broken\..*failed.*This is a test.*sent/s);
  await server.services.identity.storage.write((tx) =>
    tx.updateTable('notification_rules').set({ channel: 'gone' }).execute(),
  );
  const { text: missing } = await visitor.open(path);
  expect(missing).toContain(
    'not in the notifications_file of this server, but used by rules: loss',
  );
  expect(missing).not.toContain('Send a test to gone');
});
