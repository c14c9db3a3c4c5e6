import { type ChainHead, GENESIS } from '../../src/base/hash-chain.ts';
import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { validate, version } from 'uuid';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { appendEvents, appendToMany } from '../../src/events/append.ts';
import { type NewEvent } from '../../src/events/event.ts';
import { readEvents } from '../../src/events/read-events.ts';
import { stateAt } from '../../src/events/snapshot.ts';
import type { EventFault } from '../../src/events/event.ts';
import { verifyEvents } from '../../src/events/verify-events.ts';
import { openStorage, type Storage } from '../../src/storage/storage.ts';
import { DATABASES, newDatabase, type TestDatabase } from '../storage/databases.ts';
import { isAtLength } from '../length.ts';
import { addBot, CREATED, tick, ticks } from './bots.ts';

const NOW = Date.parse('2026-02-03T04:05:06.007Z');

describe.each(DATABASES)('the event log on %s', (kind) => {
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

  const append = (events: readonly NewEvent[], now = NOW, bot = 'a'): Promise<ChainHead> =>
    storage.write((tx) => appendEvents(tx, bot, now, events));
  const read = async (after_seq = 0, limit = 1000) =>
    (await readEvents(storage.read, 'a', { after_seq, limit })).events;
  const seqs = async (request: Partial<Parameters<typeof readEvents>[2]>): Promise<number[]> => {
    const page = await readEvents(storage.read, 'a', { after_seq: 0, limit: 1000, ...request });
    return page.events.map(({ seq }) => seq);
  };

  test('is a hash chain that can be verified with SHA-256', async () => {
    await append([CREATED]);
    const told = { run_id: 'run "1"', causation_id: 'é', payload: { b: 1, a: ['é', null, 1e21] } };
    const head = await append([{ ...tick(1), ...told }], NOW + 5);
    const { events, head: same } = await readEvents(storage.read, 'a', { after_seq: 0, limit: 9 });
    expect(same).toEqual(head);
    const [first, second] = events;
    const lines = [
      [GENESIS.hash, 'a', '1', first!.event_id, '1', 'null', 'bot.created', '1767323045006'],
      [`${NOW}`, 'null', '{"slug":"sma","name":"SMA crossover","kind":"trading"}'],
    ];
    const more = [
      [first!.hash, 'a', '2', second!.event_id, '1', String.raw`"run \"1\""`, 'tick'],
      ['1767323045007', `${NOW + 5}`, '"é"', '{"b":1,"a":["é",null,1e+21]}'],
    ];
    const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
    expect(first!.hash).toBe(sha256(lines.flat().join('\n')));
    expect(second).toEqual({
      bot_id: 'a',
      seq: 2,
      event_id: second!.event_id,
      version: 1,
      kind: 'tick',
      ...told,
      occurred_at: 1_767_323_045_007,
      recorded_at: NOW + 5,
      prev_hash: first!.hash,
      hash: sha256(more.flat().join('\n')),
    });
    expect(head).toEqual({ seq: 2, hash: second!.hash });
  });

  test('gives each event a distinct UUID of version 7 with its recording time', async () => {
    await append([CREATED, ...ticks(20)]);
    const ids = (await read()).map(({ event_id }) => event_id);
    expect(new Set(ids).size).toBe(21);
    expect(ids.filter((id) => validate(id) && version(id) === 7)).toEqual(ids);
    const times = ids.map((id) => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16));
    expect(new Set(times)).toEqual(new Set([NOW]));
  });

  test('returns events as they were appended, whatever their number', async () => {
    await append([CREATED]);
    const payload = fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue());
    const payloads = fc.sample(payload, 700);
    const events = payloads.map((one, n) => ({ ...tick(n), payload: one }));
    for (const [from, to] of [
      [0, 0],
      [0, 1],
      [1, 4],
      [4, 40],
      [40, 700],
    ]) {
      await append(events.slice(from, to));
    }
    const [, ...found] = await read();
    expect(found.map(({ seq }) => seq)).toEqual(events.map((_, i) => i + 2));
    // JSON drops the sign of -0.
    const json = (all: readonly unknown[]): string => JSON.stringify(all);
    expect(json(found.map((event) => event.payload))).toBe(json(payloads));
    expect(await verifyEvents(storage.read, 'a')).toMatchObject({ head: { seq: 701 } });
  });

  test('appends events of many bots in one write with the same result as one by one', async () => {
    const bots = Array.from({ length: 300 }, (_, n) => `bot-${n}`);
    await storage.write(async (tx) => {
      for (const bot of bots) await addBot(tx, bot);
      const logs = bots.map((bot_id) => ({ bot_id, events: [CREATED] }));
      await appendToMany(tx, NOW, logs);
      // Two bots have entries in both calls, and one has two entries in one call.
      await appendEvents(tx, 'bot-0', NOW, ticks(2));
      const again = [
        { bot_id: 'bot-0', events: ticks(1200) },
        { bot_id: 'bot-1', events: ticks(3) },
        { bot_id: 'bot-0', events: ticks(2) },
      ];
      const ends = await appendToMany(tx, NOW - 5, again);
      expect(ends.map(({ seq }) => seq)).toEqual([1203, 4, 1205]);
    });
    for (const [bot, seq] of Object.entries({ 'bot-0': 1205, 'bot-1': 4, 'bot-299': 1 })) {
      const verified = await verifyEvents(storage.read, bot);
      expect(verified).toMatchObject({ fault: undefined, head: { seq } });
    }
    const kept = storage.read.selectFrom('bot_snapshots').select(['bot_id', 'seq']);
    expect(await kept.execute()).toEqual([{ bot_id: 'bot-0', seq: 1205 }]);
    const unknown = storage.write((tx) =>
      appendToMany(tx, NOW, [{ bot_id: 'nobody', events: [CREATED] }]),
    );
    await expect(unknown).rejects.toMatchObject({ code: 'not_found' });
  });

  test('keeps events in order when two servers append concurrently', async () => {
    // Two connections in one process would block each other on SQLite.
    const other = kind === 'postgres' ? await openStorage(database.location) : storage;
    await append([CREATED]);
    await storage.write((tx) => addBot(tx, 'b'));
    await append([CREATED], NOW, 'b');
    await Promise.all(
      Array.from({ length: 60 }, (_, n) =>
        (n % 2 === 0 ? storage : other).write((tx) =>
          appendEvents(tx, n % 3 === 0 ? 'b' : 'a', NOW, ticks(3)),
        ),
      ),
    );
    if (other !== storage) await other.close();
    expect(await verifyEvents(storage.read, 'a')).toMatchObject({ head: { seq: 121 } });
    expect(await verifyEvents(storage.read, 'b')).toMatchObject({ head: { seq: 61 } });
  });

  test('returns each event exactly once while events are being appended', async () => {
    await append([CREATED]);
    const total = 301;
    const writing = Promise.all(Array.from({ length: 60 }, () => append(ticks(5))));
    const seen: number[] = [];
    const heads: number[] = [];
    while (seen.length < total) {
      const after_seq = seen.at(-1) ?? 0;
      const page = await readEvents(storage.read, 'a', { after_seq, limit: 7 });
      seen.push(...page.events.map(({ seq }) => seq));
      heads.push(page.head.seq);
      if (page.events.length < 7) expect(seen.at(-1)).toBe(page.head.seq);
      await setImmediate();
    }
    await writing;
    expect(seen).toEqual(Array.from({ length: total }, (_, i) => i + 1));
    expect(heads).toEqual(heads.toSorted((a, b) => a - b));
  });

  test('orders events by sequence number when the clock is set back', async () => {
    await append([CREATED], NOW);
    await append([tick(1)], NOW - 1000);
    await storage.write(async (tx) => {
      await appendEvents(tx, 'a', NOW + 1, [tick(2)]);
      await appendEvents(tx, 'a', NOW, [tick(3)]);
    });
    const times = (await read()).map(({ recorded_at }) => recorded_at - NOW);
    expect(times).toEqual([0, 0, 1, 1]);
  });

  test('keeps no events of a failed write, and no gap for the next write', async () => {
    await append([CREATED]);
    const results = await Promise.allSettled([
      append(ticks(2)),
      storage.write(async (tx) => {
        await appendEvents(tx, 'a', NOW, ticks(5));
        throw new RangeError('no');
      }),
      append(ticks(3)),
    ]);
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(await verifyEvents(storage.read, 'a')).toMatchObject({ head: { seq: 6 } });
  });

  test('accepts only bot.created as the first event, and only valid kinds and times', async () => {
    await expect(append([tick(1)])).rejects.toThrow('the first event');
    await append([CREATED]);
    for (const name of ['', 'a\nb', 'A', 'a b', '.a']) {
      await expect(append([{ ...tick(1), kind: name }])).rejects.toThrow('invalid event kind');
    }
    for (const occurred_at of [Number.NaN, Infinity, 1.5, 9e15]) {
      await expect(append([{ ...tick(1), occurred_at }])).rejects.toThrow('invalid event time');
    }
    expect(await seqs({})).toEqual([1]);
  });

  test('returns the events of one run without those of a concurrent run', async () => {
    const of = (run_id: string, name: string): NewEvent => ({ ...tick(0), run_id, kind: name });
    await append([CREATED, tick(1), of('x', 'run.queued'), of('x', 'tick'), of('y', 'run.queued')]);
    await append([
      of('y', 'tick'),
      tick(2),
      of('x', 'order.filled'),
      of('x', 'run.ended'),
      tick(3),
    ]);
    await append([of('y', 'tick')]);
    expect(await seqs({ run_id: 'x' })).toEqual([3, 4, 8, 9]);
    expect(await seqs({ run_id: 'y' })).toEqual([5, 6, 11]);
    expect(await seqs({ run_id: 'x', after_seq: 3, until_seq: 8 })).toEqual([4, 8]);
    expect(await seqs({ run_id: 'x', limit: 2, last: true })).toEqual([8, 9]);
    expect(await seqs({ run_id: 'x', kinds: ['tick', 'run.ended'] })).toEqual([4, 9]);
    expect(await seqs({ run_id: 'z' })).toEqual([]);
    await storage.write((tx) => addBot(tx, 'b'));
    expect(
      (await readEvents(storage.read, 'b', { after_seq: 0, limit: 9, run_id: 'x' })).head,
    ).toEqual(GENESIS);
  });

  test('filters events by range, kind and count', async () => {
    const kinds = ['order.filled', 'tick', 'order.filled', 'tick', 'bar', 'tick', 'order.filled'];
    await append([CREATED, ...kinds.map((name, n) => ({ ...tick(n), kind: name }))]);
    expect(await seqs({ after_seq: 2 })).toEqual([3, 4, 5, 6, 7, 8]);
    expect(await seqs({ after_seq: 2, until_seq: 6 })).toEqual([3, 4, 5, 6]);
    expect(await seqs({ after_seq: 2, limit: 2 })).toEqual([3, 4]);
    expect(await seqs({ after_seq: 9 })).toEqual([]);
    expect(await seqs({ kinds: ['tick'] })).toEqual([3, 5, 7]);
    const both = ['tick', 'order.filled', 'tick', 'no.such'];
    expect(await seqs({ kinds: both })).toEqual([2, 3, 4, 5, 7, 8]);
    expect(await seqs({ kinds: both, after_seq: 2, until_seq: 7, limit: 3 })).toEqual([3, 4, 5]);
    expect(await seqs({ kinds: [] })).toHaveLength(8);
    const none = await readEvents(storage.read, 'a', {
      after_seq: 0,
      kinds: ['no.such'],
      limit: 1,
    });
    expect(none).toMatchObject({ events: [], head: { seq: 8 } });
  });

  test('fails with not_found for a bot that does not exist', async () => {
    const missing = { code: 'not_found', message: 'there is no bot "x"' };
    await expect(append([CREATED], NOW, 'x')).rejects.toMatchObject(missing);
    const none = { after_seq: 0, limit: 1 };
    await expect(readEvents(storage.read, 'x', none)).rejects.toMatchObject(missing);
    await expect(verifyEvents(storage.read, 'x')).rejects.toMatchObject(missing);
    await expect(stateAt(storage.read, 'x', 'head')).rejects.toMatchObject(missing);
  });

  const row = (change: string): string => `update bot_events set ${change} where seq = 4`;
  const altered: EventFault = { seq: 4, fault: 'altered' };

  test.runIf(isAtLength || kind === 'sqlite').each<[what: string, sql: string, EventFault]>([
    ['seq', row('seq = 40'), { seq: 4, fault: 'missing' }],
    ['seq', row('seq = -4'), { seq: 4, fault: 'missing' }],
    ['event_id', row(`event_id = 'x'`), altered],
    ['version', row('version = 2'), altered],
    ['run_id', row(`run_id = ''`), altered],
    ['run_id', row(`run_id = 'null'`), altered],
    ['kind', row(`kind = 'order.filled'`), altered],
    ['occurred_at', row('occurred_at = 9000000000000000000'), altered],
    ['recorded_at', row('recorded_at = recorded_at + 1'), altered],
    ['causation_id', row(`causation_id = ''`), altered],
    ['payload', row(`payload = '{"n":5}'`), altered],
    ['payload', row(`payload = '{"n": 2}'`), altered],
    ['payload', row(`payload = ''`), altered],
    ['prev_hash', row(`prev_hash = '${GENESIS.hash}'`), { seq: 4, fault: 'not_linked' }],
    ['hash', row('hash = prev_hash'), altered],
    ['a row', `delete from bot_events where seq = 4`, { seq: 4, fault: 'missing' }],
    ['the first row', `delete from bot_events where seq = 1`, { seq: 1, fault: 'missing' }],
    ['the last row', `delete from bot_events where seq = 8`, { seq: 8, fault: 'missing' }],
    ['all rows', `delete from bot_events`, { seq: 1, fault: 'missing' }],
    [
      'a row put at the end',
      `insert into bot_events select bot_id, 9, event_id, version, run_id, kind, occurred_at,
        recorded_at, causation_id, payload, hash, hash from bot_events where seq = 8`,
      { seq: 9, fault: 'altered' },
    ],
    [
      'a row of another bot',
      `update bot_events set bot_id = 'x' where seq = 1 and bot_id = 'a';
       update bot_events set bot_id = 'a' where seq = 1 and bot_id = 'b'`,
      { seq: 1, fault: 'altered' },
    ],
    ['the head', `update bots set event_seq = 7`, { seq: 8, fault: 'beyond_head' }],
    ['the head', `update bots set event_hash = ''`, { seq: 8, fault: 'altered' }],
    [
      'two rows',
      `update bot_events set seq = 40 where seq = 4; update bot_events set seq = 4 where seq = 5;
       update bot_events set seq = 5 where seq = 40`,
      { seq: 4, fault: 'not_linked' },
    ],
  ])('show that somebody tampered with %s: %s', async (_what, sql, fault) => {
    await storage.write((tx) => addBot(tx, 'b'));
    await append([CREATED, ...ticks(7)]);
    const first = { ...CREATED, payload: { ...CREATED.payload, slug: 'x' } };
    await append([first], NOW, 'b');
    await database.execute(sql);
    expect(await verifyEvents(storage.read, 'a')).toMatchObject({ fault });
    // Readers are not stopped by the fault.
    await read();
  });
});
