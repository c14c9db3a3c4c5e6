import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { appendEvents } from '../../src/events/append.ts';
import type { NewEvent } from '../../src/events/event.ts';
import { stateAt, takeSnapshot } from '../../src/events/snapshot.ts';
import { digestOf, foldState, STATE_KINDS, type BotState } from '../../src/events/bot-state.ts';
import { verifyEvents } from '../../src/events/verify-events.ts';
import { openStorage, type Storage } from '../../src/storage/storage.ts';
import { mainlyOn, newDatabase, type TestDatabase } from '../storage/databases.ts';
import { addBot, CREATED, tick, ticks } from './bots.ts';

const NOW = Date.parse('2026-02-03T04:05:06.007Z');
const MADE = '2026-01-02T03:04:05.006Z';
const LATER = '2026-01-02T03:04:06.006Z';

const later = (kind: string, payload: NewEvent['payload'] = {}, version = 1): NewEvent => ({
  kind,
  version,
  payload,
  occurred_at: CREATED.occurred_at + 1000,
});

const SESSION = {
  status: 'running',
  time: LATER,
  seq: 3,
  cash: 10,
  equity: 20.5,
  positions: { SPX: 2 },
  working: [],
} as const;

const ofRun = (kind: string, payload: NewEvent['payload'], run_id: string): NewEvent => ({
  ...later(kind, payload),
  occurred_at: CREATED.occurred_at + 5000,
  run_id,
});

const halt = (scope: string): NewEvent['payload'] => ({
  halt_id: 'h',
  by: 'administrator:ada',
  reason: 'why',
  scope,
});

const HALTED = { halt_id: 'h', by: 'administrator:ada', reason: 'why' } as const;

/** One event of each kind, with the state after it. */
const STORY: readonly (readonly [NewEvent, Partial<BotState>])[] = [
  [
    CREATED,
    { version: 0, versions: [], sessions: {}, halted: null, status: 'draft', updated_at: MADE },
  ],
  [later('version.created', { hash: 'h1' }), { version: 1, versions: ['h1'], updated_at: LATER }],
  [later('bot.updated', { slug: 'two' }), { slug: 'two' }],
  [later('bot.updated', { name: 'Two' }), { name: 'Two' }],
  [later('version.created', { hash: 'h2' }, 2), { version: 2, versions: ['h1', 'h2'] }],
  [later('bot.activated'), { status: 'active' }],
  [later('tick'), {}],
  [later('bot.archived'), { status: 'archived' }],
  [
    ofRun('session.state', { deployment_id: 'd', ...SESSION }, 'run'),
    { sessions: { run: { deployment_id: 'd', version: 1, ...SESSION } } },
  ],
  [
    ofRun('session.state', { deployment_id: 'd', ...SESSION, seq: 4 }, 'run'),
    { sessions: { run: { deployment_id: 'd', version: 1, ...SESSION, seq: 4 } } },
  ],
  [ofRun('run.ended', { deployment_id: 'e' }, 'backtest'), {}],
  [later('control.halted', halt('all')), {}],
  [later('control.halted', halt('bot')), { halted: { ...HALTED, at: LATER } }],
  [ofRun('run.ended', { deployment_id: 'd' }, 'run'), { sessions: {} }],
  [later('control.resumed', halt('all')), {}],
  [later('control.resumed', halt('bot')), { halted: null }],
];

const START = {
  slug: 'sma',
  name: 'SMA crossover',
  kind: 'trading',
  created_at: MADE,
} as const satisfies Partial<BotState>;

describe('the state of a bot', () => {
  test('changes with each kind of event as that event describes', () => {
    let state: BotState | undefined;
    let expected: Partial<BotState> = START;
    for (const [event, change] of STORY) {
      expected = { ...expected, ...change };
      state = foldState(state, event);
      expect(state).toEqual(expected);
    }
    const told = new Set(STORY.map(([{ kind }]) => kind));
    expect([...told].toSorted()).toEqual(['tick', ...STATE_KINDS].toSorted());
  });

  test('ignores unknown events, and is undefined before the bot is created', () => {
    const state = foldState(undefined, CREATED);
    expect(foldState(state, tick(1))).toBe(state);
    for (const kind of ['tick', 'bot.updated']) {
      expect(foldState(undefined, later(kind))).toBeUndefined();
    }
  });

  test('has a hash that can be verified with RFC 8785 and SHA-256', () => {
    const text =
      `{"created_at":"${MADE}","halted":null,"kind":"trading","name":"SMA crossover",` +
      `"sessions":{},"slug":"sma","status":"draft","updated_at":"${MADE}","version":0,"versions":[]}`;
    const hash = createHash('sha256').update(text).digest('hex');
    expect(digestOf(foldState(undefined, CREATED)!)).toEqual({ text, hash });
  });
});

describe.each(mainlyOn('sqlite'))('reading the state of a bot on %s', (kind) => {
  let database: TestDatabase;
  let storage: Storage;

  beforeAll(async () => {
    database = await newDatabase(kind);
    storage = await openStorage(database.location);
  });

  beforeEach(async () => {
    await database.execute(`delete from bot_events; delete from bot_snapshots; delete from bots`);
    await storage.write((tx) => addBot(tx, 'a'));
  });

  afterAll(async () => {
    await storage.close();
    await database.remove();
  });

  const append = (events: readonly NewEvent[], now = NOW) =>
    storage.write((tx) => appendEvents(tx, 'a', now, events));
  const at = (moment: Parameters<typeof stateAt>[2]) => stateAt(storage.read, 'a', moment);
  const snapshots = async (): Promise<number[]> => {
    const rows = await storage.read.selectFrom('bot_snapshots').select('seq').execute();
    return rows.map(({ seq }) => seq).toSorted((a, b) => a - b);
  };

  test('returns the state after an event, without later changes', async () => {
    await append(STORY.map(([event]) => event));
    let expected: Partial<BotState> = START;
    for (const [i, [, change]] of STORY.entries()) {
      expected = { ...expected, ...change };
      const state = expected as BotState;
      const { hash } = digestOf(state);
      const seq = i + 1;
      expect(await at({ seq })).toEqual({ seq, head_seq: STORY.length, state, state_hash: hash });
      expect(await verifyEvents(storage.read, 'a', { seq })).toMatchObject({
        state,
        state_hash: hash,
        fault: undefined,
        head: { seq },
      });
    }
    expect(await at('head')).toEqual(await at({ seq: STORY.length }));
  });

  test('by time returns the state after the last event recorded by then', async () => {
    await append([CREATED], NOW);
    await append(ticks(4), NOW + 10);
    await append([later('bot.archived'), tick(9)], NOW + 20);
    for (const [time, seq, status] of [
      [0, 1, 'draft'],
      [9, 1, 'draft'],
      [10, 5, 'draft'],
      [19, 5, 'draft'],
      [20, 7, 'archived'],
      [1e9, 7, 'archived'],
    ] as const) {
      expect(await at({ at: NOW + time })).toMatchObject({ seq, head_seq: 7, state: { status } });
    }
    const replay = await verifyEvents(storage.read, 'a', { at: NOW + 19 });
    expect(replay).toMatchObject({ head: { seq: 5 }, fault: undefined });
  });

  test('fails with not_found for an event that does not exist', async () => {
    await append([CREATED, tick(1)]);
    for (const seq of [0, -1, 3]) {
      const missing = { code: 'not_found', message: `bot a has no event ${seq}` };
      await expect(at({ seq })).rejects.toMatchObject(missing);
      await expect(verifyEvents(storage.read, 'a', { seq })).rejects.toMatchObject(missing);
    }
    await expect(at({ at: NOW - 1 })).rejects.toMatchObject({ code: 'not_found' });
  });

  test('stores a snapshot every 1000 events or on request, and returns the same state without snapshots', async () => {
    await append([CREATED, ...ticks(998)]);
    expect(await snapshots()).toEqual([]);
    await append([later('version.created', { hash: 'h1' })]);
    await append(ticks(1500));
    expect(await snapshots()).toEqual([1000, 2500]);
    await append([later('bot.archived'), ...ticks(10)]);
    const taken = await storage.write((tx) => takeSnapshot(tx, 'a'));
    expect(await snapshots()).toEqual([1000, 2500, 2511]);
    expect(taken).toEqual(await at('head'));
    const moments = [999, 1000, 1001, 2499, 2500, 2501, 2511];
    const states = () => Promise.all(moments.map((seq) => at({ seq })));
    const before = await states();
    expect(await verifyEvents(storage.read, 'a')).toMatchObject({
      fault: undefined,
      state: taken.state,
      state_hash: taken.state_hash,
    });
    await database.execute(`delete from bot_snapshots`);
    expect(await states()).toEqual(before);
  });

  test('finds a wrong snapshot, which can then be deleted', async () => {
    await append([CREATED, ...ticks(3)]);
    const take = () => storage.write((tx) => takeSnapshot(tx, 'a'));
    for (const change of [`state = replace(state, 'sma', 'ama')`, `state_hash = ''`]) {
      await take();
      await database.execute(`update bot_snapshots set ${change}`);
      const replay = await verifyEvents(storage.read, 'a');
      expect(replay).toMatchObject({ fault: { seq: 4, fault: 'wrong_snapshot' } });
      await database.execute(`delete from bot_snapshots`);
    }
    await take();
    await take();
    expect(await verifyEvents(storage.read, 'a')).toMatchObject({ fault: undefined });
  });

  test('returns the state before a fault together with the fault', async () => {
    await append([CREATED, later('bot.activated'), tick(1), later('bot.archived')]);
    await database.execute(`update bot_events set payload = '{"n":2}' where seq = 3`);
    expect(await verifyEvents(storage.read, 'a')).toMatchObject({
      head: { seq: 2 },
      state: { status: 'active' },
      fault: { seq: 3, fault: 'altered' },
    });
    const before = await verifyEvents(storage.read, 'a', { seq: 2 });
    expect(before).toMatchObject({ head: { seq: 2 }, fault: undefined });
  });

  test('gives the same result from any snapshot', async () => {
    const event = fc.oneof(
      fc.constant(tick(1)),
      fc.constant(later('bot.archived')),
      fc.constant(later('bot.activated')),
      fc.string().map((name) => later('bot.updated', { name })),
      fc.string().map((hash) => later('version.created', { hash })),
    );
    const events = fc.sample(event, 60);
    await append([CREATED]);
    let state = foldState(undefined, CREATED);
    for (const [i, one] of events.entries()) {
      await append([one]);
      state = foldState(state, one);
      if (i % 7 === 0) await storage.write((tx) => takeSnapshot(tx, 'a'));
      expect((await at('head')).state).toEqual(state);
    }
    expect(await verifyEvents(storage.read, 'a')).toMatchObject({ state, fault: undefined });
  });
});
