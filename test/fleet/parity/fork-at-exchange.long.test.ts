import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { BotFork } from '../../../src/api/fork.ts';
import { hostedBot } from '../../../src/bots/load-bot.ts';
import { readChangedSpec } from '../../../src/bots/hosted.ts';
import { prepare } from '../../../src/bots/prepare.ts';
import { stepsOf } from '../../../src/engine/steps.ts';
import type { SessionState } from '../../../src/events/session-state.ts';
import { readRows } from '../../../src/events/read-events.ts';
import { getBotId } from '../../../src/fleet/registry/bots.ts';
import { appendSession, startSession } from '../../../src/fleet/tasks/session-record.ts';
import { queueTask } from '../../../src/fleet/tasks/tasks.ts';
import {
  inputEvent,
  orderEvent,
  type SessionEvent,
  type SessionInput,
} from '../../../src/trading/session-events.ts';
import { TradingSession } from '../../../src/trading/trading-session.ts';
import type { VenueRules } from '../../../src/trading/venue.ts';
import { newTestApp, type TestApp } from '../../server/in-process.ts';
import { fillCatalogue } from '../tasks/market.ts';
import { tradingDocument } from './play.ts';

const RULES: VenueRules = {
  types: ['market', 'limit', 'stop', 'stop_limit'],
  instruments: { SPX: { step: 0.001, min_quantity: 0.001, min_value: 1, tick: 0.01 } },
};
/** The exchange fills at this multiple of the newest close. */
const FILLS_AT = 1.0005;

let server: TestApp;
let bearer: string;
let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'service-local-fork-at-exchange-'));
  await fillCatalogue(directory, 1);
  server = await newTestApp();
  bearer = await server.bearer('read', 'write');
  await cp(directory, server.services.tasks.catalogueDir, { recursive: true });
  const headers = { authorization: bearer };
  const body = { document: tradingDocument('sma', 10) };
  await server.send('POST', '/bots', { headers, body });
});
afterAll(async () => {
  await server.close();
  await rm(directory, { recursive: true });
});

/** Records a session that has traded at an exchange, and returns its run and the number of its events. */
async function tradeAtExchange({ recordsRules = true } = {}) {
  const { storage, clock, catalogueDir } = server.services.tasks;
  const now = clock();
  const bot_id = await getBotId(storage.read, 'sma');
  return storage.write(async (tx) => {
    const work = { kind: 'production', bot_id, version: 1, input: { production: {} } } as const;
    const task = await queueTask(tx, now, 'operator', work);
    const { deployment_id, task_id } = task;
    const plan = JSON.stringify({ params: { fast: 12 }, venue: 'exchange' });
    const place = { deployment_id, bot_id, cluster: 'c', namespace: 'n', plan };
    await tx
      .insertInto('production_deployments')
      .values({ ...place, waits: 0, begun_at: now } as never)
      .execute();
    const { events, state } = await play(deployment_id, catalogueDir, recordsRules);
    await startSession(tx, task, now, { cash: 10_000, subjects: '{}' });
    const last = { kind: 'session.state', occurred_at: now, payload: { ...state } };
    await appendSession(tx, task, now, [...events, last]);
    return task_id;
  });
}

async function play(
  deployment_id: string,
  catalogueDir: string,
  recordsRules: boolean,
): Promise<{ readonly events: readonly SessionEvent[]; readonly state: SessionState }> {
  const document = tradingDocument('sma', 10);
  const bot = hostedBot(readChangedSpec(document, { params: { fast: 12 } }));
  const { job } = await prepare(bot, { catalogueDir, assertions: [] });
  const { symbols } = bot.spec.spec.universe;
  const venue = { deployment_id, rules: RULES };
  const session = new TradingSession({ ...job, symbols, timeoutMs: Infinity, venue });
  const events: SessionEvent[] = [];
  const take = (input: SessionInput): void => {
    events.push(inputEvent(input, 0), ...session.take(input).events.map(orderEvent));
  };
  if (recordsRules) take({ kind: 'venue.terms', rules: RULES });
  for (const step of stepsOf(job.instruments)) {
    take({ kind: 'data.bars', step });
    for (const request of session.outbox()) {
      if (!('place' in request)) continue;
      const { order, client_order_id, quantity } = request.place;
      const cost = quantity * step.bars['SPX']!.close * FILLS_AT;
      const sums = { filled: quantity, cost, fee: 0, fee_units: 0 };
      const report = { order, client_order_id, status: 'filled' as const, ...sums };
      take({ kind: 'venue.report', report: { ...report, time: step.time + 1000 } });
    }
  }
  return { events, state: session.state() };
}

async function fork(body: object) {
  const headers = { authorization: bearer };
  return server.send('POST', '/bots/sma/fork', { headers, body });
}

async function eventOfBars(run_id: string, count: number): Promise<number> {
  const { read } = server.services.tasks.storage;
  const range = { after_seq: 0, kinds: ['data.bars'], run_id, limit: 500 };
  const { rows } = await readRows(read, await getBotId(read, 'sma'), range);
  return rows[count - 1]!.seq;
}

test('a session at an exchange shares its fills with the fork, which simulates those that follow', async () => {
  const run_id = await tradeAtExchange();
  const at_seq = await eventOfBars(run_id, 150);
  const same = await fork({ run_id, at_seq, params: { fast: 12 } });
  expect(same).toMatchObject({ status: 200 });
  const { comparison } = same.body as BotFork;
  const { simulates_fills, first_difference, at, curves, steps } = comparison!;
  expect({ simulates_fills, steps }).toEqual({
    simulates_fills: true,
    steps: { before: 150, after: 150 },
  });
  // The orders are the same, so the first difference is the price of a fill.
  const { session, fork: simulated } = first_difference!;
  expect(session).toMatchObject({ kind: 'order.filled' });
  expect(simulated).toMatchObject({ kind: 'order.filled', order: session!['order'] });
  expect(simulated!['price']).not.toBe(session!['price']);
  expect(Date.parse(String(session!['time']))).toBeGreaterThan(Date.parse(at.time));
  const [own, other] = curves.growth as [number[], number[]];
  expect(other.slice(0, 150)).toEqual(own.slice(0, 150));

  const changed = await fork({ run_id, at_seq, params: { fast: 4 } });
  const { events, failure } = (changed.body as BotFork).comparison!;
  expect(failure).toBeNull();
  expect(events.fork).toBeGreaterThan(events.session);
});

test('a session that did not record the rules of its exchange is rejected with the reason', async () => {
  const run_id = await tradeAtExchange({ recordsRules: false });
  const at_seq = await eventOfBars(run_id, 150);
  expect(await fork({ run_id, at_seq, params: { fast: 4 } })).toMatchObject({
    status: 409,
    body: { code: 'conflict', reason: 'no_venue_rules' },
  });
});
