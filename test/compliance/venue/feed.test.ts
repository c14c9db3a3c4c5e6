import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bookChecksum } from '../../../src/compliance/venue/session/feed.ts';
import { viewOf } from '../../../src/compliance/venue/session/listing.ts';
import type {
  FeedMessage,
  LevelView,
  RawMessage,
} from '../../../src/compliance/venue/session/messages.ts';
import type { Deed } from '../../../src/compliance/venue/session/scenario.ts';
import type { SimulatedVenue } from '../../../src/compliance/venue/session/simulated-venue.ts';
import { beginTranscript } from '../../../src/compliance/venue/session/transcript.ts';
import { fault, limit, newVenue, now, START } from './world.ts';
import { runs } from '../../length.ts';

/** Books as a listener makes them from the feed: by number, once, from whichever side is first. */
class Listener {
  readonly #levels = new Map<string, readonly [number, number]>();
  readonly #held = new Map<number, FeedMessage>();
  next = 1;

  hear(message: FeedMessage | RawMessage): void {
    if (message.type === 'raw' || message.type === 'heartbeat' || message.seq < this.next) return;
    this.#held.set(message.seq, message);
    for (;;) {
      const held = this.#held.get(this.next);
      if (held === undefined) return;
      this.#held.delete(this.next);
      this.next += 1;
      if (held.type !== 'book') continue;
      const key = `${held.instrument} ${held.side} ${held.price}`;
      if (held.quantity === 0) this.#levels.delete(key);
      else this.#levels.set(key, [held.quantity, held.orders]);
    }
  }

  view(instrument: string, side: 'buy' | 'sell'): LevelView[] {
    const sign = side === 'buy' ? -1 : 1;
    return [...this.#levels]
      .filter(([key]) => key.startsWith(`${instrument} ${side} `))
      .map(([key, [quantity, orders]]) => [Number(key.split(' ')[2]), quantity, orders] as const)
      .sort((a, b) => sign * (a[0] - b[0]));
  }
}

const deeds: fc.Arbitrary<readonly Deed[]> = fc
  .array(
    fc.record({
      as: fc.constantFrom('maker', 'taker'),
      side: fc.constantFrom('buy' as const, 'sell' as const),
      quantity: fc.integer({ min: 1, max: 9 }),
      price: fc.integer({ min: -5, max: 5 }),
      instrument: fc.constantFrom('X', 'Y'),
      cancels: fc.integer({ min: 0, max: 60 }),
    }),
    { minLength: 10, maxLength: 50 },
  )
  .map((all) =>
    all.map(({ as, side, quantity, price, instrument, cancels }, at): Deed => {
      const before = all[cancels];
      if (before !== undefined && cancels < at && before.as === as) {
        const names = { client_order_id: `c${at}`, orig_client_order_id: `o${cancels}` };
        return { do: 'cancel', as, ...names };
      }
      const order = limit(as, `o${at}`, side, quantity * 10, 10_000 + price * 5);
      return { ...order, instrument };
    }),
  );

function play(venue: SimulatedVenue, all: readonly Deed[]): void {
  for (const [at, deed] of all.entries()) venue.at(START + 10 + at * 3, deed);
  venue.run(START + 10_000);
}

function assertSame(venue: SimulatedVenue, listener: Listener): void {
  for (const symbol of ['X', 'Y']) {
    const { bids, asks } = venue.instrument(symbol).book;
    assert.deepEqual(listener.view(symbol, 'buy'), viewOf(bids.levels));
    assert.deepEqual(listener.view(symbol, 'sell'), viewOf(asks.levels));
  }
}

describe('market data', () => {
  const chance = fc.constantFrom(0, 0.1, 0.5);

  it('two sides that lose, repeat and reorder messages, and a replay, build the same books', () => {
    fc.assert(
      fc.property(fc.nat(), deeds, chance, chance, chance, (seed, all, lost, late, twice) => {
        const sides = ['feed_a', 'feed_b'] as const;
        const faults = sides.flatMap((side) => [
          fault(side, { kind: 'drop' }, { chance: lost }),
          fault(side, { kind: 'delay', ms: 40 }, { chance: late }),
          fault(side, { kind: 'duplicate' }, { chance: twice }),
        ]);
        const venue = newVenue({ seed, faults });
        const listener = new Listener();
        for (const side of ['a', 'b'] as const) {
          venue.subscribe(side, (message) => listener.hear(message));
        }
        play(venue, all);
        venue.replay(listener.next, 1e9, (message) => {
          if (message.type !== 'replay_refused') listener.hear(message);
        });
        venue.run(venue.now + 10);
        expect(() => assertSame(venue, listener)).not.toThrow();
      }),
      { numRuns: runs(60) },
    );
  });

  it('a snapshot contains the book and the checksum that the feed published', () => {
    fc.assert(
      fc.property(deeds, (all) => {
        const venue = newVenue({
          feed: { latency_ms: { a: 1, b: 2 }, heartbeat_ms: 1000, replay_depth: 5 },
        });
        const listener = new Listener();
        let checksum = 0;
        venue.subscribe('a', (message) => {
          listener.hear(message);
          if (message.type === 'checksum' && message.instrument === 'X') ({ checksum } = message);
        });
        play(venue, all);
        venue.run(venue.now + 10);
        const answers: unknown[] = [];
        venue.snapshot('X', (message) => answers.push(message));
        venue.replay(1, 2, (message) => answers.push(message.type));
        venue.run(venue.now + 10);
        const [bids, asks] = [listener.view('X', 'buy'), listener.view('X', 'sell')];
        assert.equal(checksum, bookChecksum(bids, asks));
        expect(answers).toEqual([
          expect.objectContaining({
            type: 'snapshot',
            seq: listener.next - 1,
            bids,
            asks,
            checksum,
          }),
          'replay_refused',
        ]);
      }),
      { numRuns: runs(20) },
    );
  });

  it('scripted faults silence the feed, freeze one instrument and send invalid prices', () => {
    const faults = [
      fault('feed', { kind: 'suppress' }, { instrument: 'Y' }),
      fault('feed_a', { kind: 'drop' }, { time: [START + 2000, START + 3000] }),
      fault('feed', { kind: 'patch', fields: { price: Number.NaN } }, { type: 'trade' }),
      fault('feed_a', { kind: 'patch', fields: { price: -1 } }, { type: 'trade' }),
      fault('feed_a', { kind: 'shift_time', ms: -5000 }, { type: 'status' }),
    ];
    const venue = newVenue({
      faults,
      feed: { latency_ms: { a: 0, b: 0 }, heartbeat_ms: 1000, replay_depth: 5 },
    });
    const heard: { readonly type: string; readonly time?: number; readonly seq?: number }[] = [];
    venue.subscribe('a', (message) => heard.push(message));
    venue.run(START + 500);
    expect(heard).toMatchObject([{ type: 'status', instrument: 'X', time: START - 5000 }]);
    now(venue, limit('maker', 'o1', 'sell', 10, 10_000), limit('taker', 'o2', 'buy', 10, 10_000));
    now(venue, { ...limit('maker', 'o3', 'sell', 10, 10_000), instrument: 'Y' });
    const book = { type: 'book', time: START, instrument: 'X', orders: 1 } as const;
    now(venue, { do: 'make_up', message: { ...book, side: 'buy', price: 99_999, quantity: 1 } });
    expect(heard.slice(1)).toMatchObject([
      { type: 'book', quantity: 10, seq: 2 },
      { type: 'trade', price: -1, seq: 3 },
      { type: 'book', quantity: 0, seq: 4 },
      { type: 'book', price: 99_999, seq: 5 },
    ]);
    venue.run(START + 4000);
    const beats = heard.filter(({ type }) => type === 'heartbeat').map(({ time }) => time! - START);
    expect(beats).toEqual([1000, 4000]);
  });

  it('all messages are the same for the same seed and scenario', () => {
    fc.assert(
      fc.property(fc.nat(), deeds, (seed, all) => {
        const hashOf = (): string => {
          const faults = [fault('feed_a', { kind: 'drop' }, { chance: 0.3 })];
          const venue = newVenue({ seed, faults });
          const transcript = beginTranscript(venue);
          venue.subscribe('a', () => {});
          play(venue, all);
          return transcript.hash();
        };
        assert.equal(hashOf(), hashOf());
      }),
      { numRuns: runs(20) },
    );
  });
});
