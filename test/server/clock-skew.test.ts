import { afterEach, beforeEach, expect, test } from 'vitest';
import { exampleDocument } from '../../src/api/bots.ts';
import { type BotEvent } from '../../src/api/bot-state.ts';
import { newTestApp, type Answer, type TestApp } from './in-process.ts';

const AHEAD = Date.parse('2036-01-01T00:00:00Z');
const DAY_MS = 86_400_000;

let server: TestApp;
let started: number;

beforeEach(async () => {
  server = await newTestApp();
  started = server.now;
  await send('POST', '/bots', { document: exampleDocument('sma', 10) });
});

afterEach(() => server.close());

/** Creates a new token, since tokens do not last for ten years. */
async function send(
  method: string,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const authorization = await server.bearer('read', 'write');
  return server.send(method, path, { headers: { authorization, ...headers }, body });
}

/** Adds version `fast - 9`. */
async function addVersion(now: number, fast: number): Promise<void> {
  server.now = now;
  const body = { document: exampleDocument('sma', fast) };
  const { status } = await send('PUT', '/bots/sma', body, { 'if-match': '*' });
  expect(status).toBe(200);
}

interface Snapshot {
  readonly state: { readonly version: number };
  readonly in_doubt?: { readonly first_seq: number; readonly last_seq: number };
}

async function snapshotAt(time: number): Promise<Snapshot> {
  const at = new Date(time).toISOString();
  const path = `/bots/sma/state/snapshot?at=${at}`;
  const { status, body } = await send('GET', path);
  expect(status).toBe(200);
  return body as Snapshot;
}

async function events(): Promise<readonly BotEvent[]> {
  const { body } = await send('GET', '/bots/sma/state/events?limit=100');
  return (body as { readonly items: readonly BotEvent[] }).items;
}

test('one write with a clock ten years ahead does not affect the times of later events', async () => {
  await addVersion(AHEAD, 11);
  await addVersion(started + DAY_MS, 12);
  await addVersion(started + 2 * DAY_MS, 13);
  server.now = started + 4 * DAY_MS;

  const { recorded_at } = (await events()).at(-1)!;
  expect(Date.parse(recorded_at)).toBe(started + 2 * DAY_MS);
  for (const [days, version] of [
    [0.5, 1],
    [1, 3],
    [1.5, 3],
    [2, 4],
    [3, 4],
  ] as const) {
    const snapshot = await snapshotAt(started + days * DAY_MS);
    expect(snapshot.state.version, `after ${days} days`).toBe(version);
    expect(snapshot.in_doubt === undefined, `after ${days} days`).toBe(days >= 1);
  }
});

test('a clock that is set back is recorded in the log, as an alert and in the metrics', async () => {
  await addVersion(AHEAD, 11);
  const { seq: ahead } = (await events()).at(-1)!;
  await addVersion(started + DAY_MS, 12);

  const [step, alert] = (await events()).filter(({ seq }) => seq > ahead);
  expect(step).toMatchObject({
    seq: ahead + 1,
    kind: 'clock.set_back',
    payload: {
      previous_seq: ahead,
      previous_recorded_at: '2036-01-01T00:00:00.000Z',
      skew_ms: AHEAD - started - DAY_MS,
    },
  });
  expect(alert).toMatchObject({
    kind: 'alert.raised',
    payload: { control: 'clock_skew', severity: 'critical', event_seq: ahead + 1 },
  });
  const metrics = await server.services.metrics.text();
  expect(metrics).toContain(
    'service_local_alerts_total{control="clock_skew",severity="critical"} 1',
  );
  const verified = await send('POST', '/bots/sma/replay', {});
  expect(verified.body).toMatchObject({ verified: true, state: { version: 3 } });
});

test('events recorded while a clock was behind are reported as in doubt', async () => {
  await addVersion(started + DAY_MS, 11);
  await addVersion(started - 3650 * DAY_MS, 12);
  await addVersion(started + 2 * DAY_MS, 13);
  server.now = started + 4 * DAY_MS;

  const { in_doubt } = await snapshotAt(started + DAY_MS / 2);
  const versions = (await events()).filter(({ kind }) => kind === 'version.created');
  expect(in_doubt).toEqual({ first_seq: versions[1]!.seq, last_seq: expect.any(Number) });
  expect(in_doubt!.last_seq).toBeGreaterThanOrEqual(versions[2]!.seq);
  const later = await snapshotAt(started + 3 * DAY_MS);
  expect(later).toMatchObject({ state: { version: 4 } });
  expect(later.in_doubt).toBeUndefined();
});

test('events with future times are in doubt for earlier moments, but not for the current time', async () => {
  await addVersion(AHEAD, 11);
  server.now = started + 2 * DAY_MS;
  const before = await snapshotAt(started + DAY_MS);
  expect(before.state.version).toBe(1);
  expect(before.in_doubt).toBeDefined();
  const now = await snapshotAt(server.now);
  expect(now).toMatchObject({ state: { version: 2 } });
  expect(now.in_doubt).toBeUndefined();
});

test('clocks that differ by less than five seconds keep times in order', async () => {
  await addVersion(started + 4_000, 11);
  await addVersion(started, 12);
  const all = await events();
  expect(all.map(({ kind }) => kind)).not.toContain('clock.set_back');
  const times = all.map(({ recorded_at }) => Date.parse(recorded_at));
  expect(times).toEqual(times.toSorted((a, b) => a - b));
});
