import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import type { Fault } from '../../../src/compliance/venue/session/faults.ts';
import type { Business } from '../../../src/compliance/venue/session/session-client.ts';
import type { VenueLine } from '../../../src/compliance/venue/session/simulated-venue.ts';
import { fault, gist, limit, logOn, newVenue, now, scenario, START } from './world.ts';
import { runs } from '../../length.ts';

const [setup] = scenario().sessions;

/** What a member hears of ten orders that others fill, once the faults on the way have ended. */
function trade(seed: number, faults: readonly Fault[]): readonly Business[] {
  const venue = newVenue({ seed, faults });
  const { client, heard, send } = logOn(venue);
  venue.run(venue.now + 5000);
  assert(client.isReady);
  for (let i = 1; i <= 10; i += 1) {
    send(limit('bot', `b${i}`, 'buy', 20, 10_000));
    venue.run(venue.now + 20);
    now(venue, limit('taker', `t${i}`, 'sell', 10, 10_000));
    venue.run(venue.now + 7);
  }
  venue.run(venue.now + 60_000);
  // Faults by chance can swallow the last messages and every heartbeat after them, so that nothing
  // shows the gap. The next heartbeat that arrives does, or the end of the silent connection.
  now(venue, { do: 'clear_faults' });
  venue.run(venue.now + 60_000);
  assert(client.isReady);
  return heard;
}

/** As it is whenever it is said. */
const undated = (heard: readonly Business[]): unknown[] =>
  heard.map((message) => ({ ...message, seq: 0, time: 0, possibly_duplicate: undefined }));

describe('numbers of messages', () => {
  const calm = undated(trade(1, []));
  const chance = fc.constantFrom(0, 0.05, 0.3);

  it('deliver each message once and in order, even if messages are lost, late, repeated or garbled on the way', () => {
    fc.assert(
      fc.property(fc.nat(), chance, chance, chance, chance, (seed, lost, late, twice, cut) => {
        const heard = trade(seed, [
          // The connection itself stands; heartbeats and resends are lost like anything else.
          fault('orders', { kind: 'drop' }, { chance: lost, seq: [2, 1e9] }),
          fault('orders', { kind: 'delay', ms: 15 }, { chance: late, seq: [2, 1e9] }),
          fault('orders', { kind: 'duplicate' }, { chance: twice }),
          fault('orders', { kind: 'truncate', length: 40 }, { chance: cut, seq: [2, 1e9] }),
        ]);
        assert.deepEqual(undated(heard), calm);
      }),
      {
        numRuns: runs(40),
        // The last three reports are lost, and the three messages that would show the gap.
        examples: [[1404634900, 0.3, 0.05, 0, 0.3]],
      },
    );
  });

  it('hold back what comes after a gap until it is filled, live messages and a second gap included', () => {
    const faults = [
      fault('orders', { kind: 'drop' }, { seq: [3, 6], is_resent: false }),
      fault('orders', { kind: 'drop' }, { seq: [4, 4], is_resent: true, count: 1 }),
    ];
    const venue = newVenue({ faults });
    const lines: VenueLine[] = [];
    venue.listen((line) => lines.push(line));
    const { client, heard, send } = logOn(venue);
    for (let i = 1; i <= 6; i += 1) send(limit('bot', `b${i}`, 'buy', 20, 10_000));
    venue.run(venue.now + 2);
    expect(client.isReady).toBe(false);
    expect(gist(heard)).toEqual(['new b1']);
    now(venue, limit('taker', 't1', 'sell', 10, 10_000));
    venue.run(venue.now + 100);
    expect(client.isReady).toBe(true);
    expect(gist(heard)).toEqual([
      'new b1',
      'new b2',
      'new b3',
      'new b4',
      'new b5',
      'new b6',
      'trade b1 10',
    ]);
    const asked = lines
      .filter(({ kind, message }) => kind === 'heard' && 'to' in message)
      .map(({ message }) => message);
    expect(asked).toMatchObject([
      { from: 3, to: 6 },
      { from: 4, to: 4 },
    ]);
  });

  it('step over orders that the venue has missed, which are not sent again', () => {
    const faults = [fault('inbound', { kind: 'drop' }, { type: 'new_order', count: 1 })];
    const venue = newVenue({ faults });
    const { heard, send } = logOn(venue);
    send(limit('bot', 'b1', 'buy', 20, 10_000));
    send(limit('bot', 'b2', 'buy', 20, 10_000));
    venue.run(venue.now + 50);
    expect(gist(heard)).toEqual(['new b2']);
    expect(venue.order('bot', 'b1')).toBeUndefined();
  });
});

describe('a connection', () => {
  it('takes no orders before a logon with the right password', () => {
    const venue = newVenue();
    const { client } = logOn(venue, { password: 'wrong' });
    venue.run(venue.now + 10_000);
    expect([client.isReady, client.isRefused]).toEqual([false, true]);
    const said: unknown[] = [];
    const receiver = {
      receive: (message: object) => said.push(message),
      dropped: () => said.push('dropped'),
    };
    venue.connect('primary', receiver)!.send({ type: 'heartbeat', seq: 1 });
    venue.run(venue.now + 10);
    expect(said).toEqual([{ type: 'logout', seq: 0, reason: 'not_logged_on' }, 'dropped']);
  });

  it('is kept by heartbeats, tested when they stop, and given up; then the member comes back', () => {
    const venue = newVenue();
    const { client } = logOn(venue);
    venue.run(venue.now + 120_000);
    expect(client.isReady).toBe(true);
    const said: string[] = [];
    venue.listen(({ kind, message }) => {
      if (kind === 'said' && 'type' in message) said.push(String(message.type));
    });
    const { now: cut } = venue;
    now(venue, {
      do: 'fault',
      fault: fault('inbound', { kind: 'drop' }, { time: [cut, cut + 30_000] }),
    });
    venue.run(cut + 60_000);
    expect(said.filter((type) => type === 'logon' || type === 'logout')).toEqual([
      'logout',
      'logon',
    ]);
    expect(said).toContain('test_request');
    expect(client.isReady).toBe(true);
  });

  test.each([true, false])('that is cut cancels the orders: %s, if so it was agreed', (cancels) => {
    const venue = newVenue();
    const { client, heard, send } = logOn(venue, { cancelOnDisconnect: cancels });
    send(limit('bot', 'b1', 'buy', 20, 10_000));
    venue.run(venue.now + 5);
    now(venue, { do: 'cut', session: 'bot-1' });
    expect(venue.openOrders('bot-1')).toHaveLength(cancels ? 0 : 1);
    expect([client.isReady, gist(heard)]).toEqual([false, ['new b1']]);
    venue.run(venue.now + 200);
    expect(client.isReady).toBe(true);
    expect(gist(heard).slice(1)).toEqual(cancels ? ['canceled b1 cancel_on_disconnect'] : []);
  });

  it('goes over to the other gateway with its numbers, and hears what it has missed', () => {
    const venue = newVenue();
    const { client, heard, send } = logOn(venue);
    send(limit('bot', 'b1', 'buy', 20, 10_000));
    venue.run(venue.now + 1);
    now(venue, { do: 'gateway', gateway: 'primary', is_up: false });
    now(venue, limit('taker', 't1', 'sell', 20, 10_000));
    venue.run(venue.now + 1000);
    expect(client.isReady).toBe(true);
    expect(gist(heard)).toEqual(['new b1', 'trade b1 20']);
    expect(heard.every((message) => message.possibly_duplicate)).toBe(true);
    now(venue, { do: 'log_out', session: 'bot-1', reason: 'end_of_day' });
    venue.run(venue.now + 1);
    expect(venue.isConnected('bot-1')).toBe(false);
  });
});

test.each([
  ['reject', ['new b1', 'new b2', 'rejected b3 throttled', 'rejected b4 throttled', 'new b5']],
  ['queue', ['new b1', 'new b2', 'new b3', 'new b4', 'new b5']],
] as const)('a throttle can %s what is too much', (policy, told) => {
  const throttle = { limit: 2, per_ms: 1000, policy };
  const venue = newVenue({ sessions: [{ ...setup!, throttle }] });
  const { heard, send } = logOn(venue);
  for (let i = 1; i <= 4; i += 1) send(limit('bot', `b${i}`, 'buy', 20, 10_000));
  venue.run(venue.now + 1100);
  send(limit('bot', 'b5', 'buy', 20, 10_000));
  venue.run(venue.now + 5);
  expect(gist(heard)).toEqual(told.slice(0, policy === 'queue' ? 4 : 5));
  venue.run(venue.now + 2000);
  expect(gist(heard)).toEqual(told);
});

describe('what is scripted', () => {
  it('delays an acknowledgement, loses it, and has drop copy say what the session does not', () => {
    const faults = [
      fault('orders', { kind: 'hold', ms: 2000 }, { type: 'new', count: 1 }),
      fault('orders', { kind: 'suppress' }, { type: 'trade' }),
      fault('drop_copy', { kind: 'patch', fields: { last_quantity: 11 } }, { type: 'trade' }),
    ];
    const venue = newVenue({ faults });
    const { client, heard, send } = logOn(venue);
    const copies: object[] = [];
    venue.watchDropCopy('bot', (copy) => copies.push(copy));
    send(limit('bot', 'b1', 'buy', 20, 10_000));
    send(limit('bot', 'b2', 'buy', 20, 10_000));
    venue.run(venue.now + 5);
    now(venue, limit('taker', 't1', 'sell', 10, 10_000));
    expect(gist(heard)).toEqual(['new b2']);
    venue.run(START + 3000);
    expect(gist(heard)).toEqual(['new b2', 'new b1']);
    expect(client.isReady).toBe(true);
    expect(copies).toMatchObject([
      { seq: 1, exec_type: 'new', client_order_id: 'b1' },
      { seq: 2, exec_type: 'new', client_order_id: 'b2' },
      { seq: 3, exec_type: 'trade', filled: 10, last_quantity: 11 },
    ]);
    venue.replayDropCopy('bot', 3);
    venue.run(venue.now + 5);
    expect(copies.at(-1)).toMatchObject({ seq: 3, possibly_duplicate: true });
  });

  it('says things that no member knows, which are passed by', () => {
    const faults = [
      fault('orders', { kind: 'patch', fields: { type: 'weather' } }, { type: 'new', count: 1 }),
      fault('orders', { kind: 'patch', fields: { moon: 'full' } }, { type: 'new', skip: 1 }),
    ];
    const venue = newVenue({ faults });
    const { client, heard, send } = logOn(venue);
    send(limit('bot', 'b1', 'buy', 20, 10_000));
    send(limit('bot', 'b2', 'buy', 20, 10_000));
    venue.run(venue.now + 50);
    expect(gist(heard)).toEqual(['new b2']);
    expect([client.garbled, client.isReady]).toEqual([1, true]);
  });
});
