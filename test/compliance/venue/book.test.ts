import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Book } from '../../../src/compliance/venue/session/book.ts';
import {
  makeOrder,
  type Order,
  type OrderTerms,
} from '../../../src/compliance/venue/session/order.ts';
import type { BookSide } from '../../../src/compliance/venue/session/side.ts';
import { runs } from '../../length.ts';
import { NaiveBook } from './naive-book.ts';

const price = fc.integer({ min: 95, max: 105 });
const quantity = fc.integer({ min: 1, max: 9 });

const terms: fc.Arbitrary<OrderTerms> = fc.record({
  side: fc.constantFrom('buy', 'sell'),
  order_type: fc.constantFrom('limit', 'limit', 'limit', 'market', 'stop', 'stop_limit'),
  time_in_force: fc.constantFrom('gtc', 'gtc', 'day', 'ioc', 'fok'),
  quantity,
  price,
  stop_price: price,
  self_trade: fc.constantFrom('none', 'cancel_newest', 'cancel_oldest', 'cancel_both'),
});

type Command =
  | { readonly do: 'submit'; readonly terms: OrderTerms; readonly account: number }
  | { readonly do: 'cancel'; readonly which: number }
  | {
      readonly do: 'amend';
      readonly which: number;
      readonly price: number;
      readonly quantity: number;
    };

const submit = fc.record({
  do: fc.constant('submit' as const),
  terms,
  account: fc.integer({ min: 0, max: 2 }),
});
const command: fc.Arbitrary<Command> = fc.oneof(
  { arbitrary: submit, weight: 6 },
  { arbitrary: fc.record({ do: fc.constant('cancel' as const), which: fc.nat(99) }), weight: 1 },
  {
    arbitrary: fc.record({
      do: fc.constant('amend' as const),
      which: fc.nat(99),
      price,
      quantity: fc.integer({ min: 1, max: 12 }),
    }),
    weight: 2,
  },
);

interface Played {
  readonly book: Book;
  readonly orders: Order[];
  readonly log: string[];
}

function newBook(): Played {
  const log: string[] = [];
  const book = new Book({
    traded: (taker, maker, at, units) => log.push(`traded ${taker.id} ${maker.id} ${at} ${units}`),
    ended: ({ id }, reason) => log.push(`ended ${id} ${reason}`),
    triggered: ({ id }) => log.push(`triggered ${id}`),
    amended: ({ id }) => log.push(`amended ${id}`),
  });
  return { book, orders: [], log };
}

function orderOf(orders: Order[], wanted: OrderTerms, account = 0): Order {
  const origin = { session: -1, instrument: 0, clientOrderId: '' };
  const order = makeOrder({ ...origin, id: orders.length + 1, account }, wanted);
  orders.push(order);
  return order;
}

const resting = (side: BookSide): unknown[] =>
  [...side.orders()].map((order) => [order.id, order.level!.price, order.leaves]);

/** Does as the commands say, in both books. */
function enact(
  commands: readonly Command[],
  after: (played: Played, naive: NaiveBook) => void,
): void {
  const played = newBook();
  const { book, orders } = played;
  const naive = new NaiveBook();
  for (const one of commands) {
    if (one.do === 'submit') {
      const order = orderOf(orders, one.terms, one.account);
      naive.submit(order);
      book.submit(order);
    } else {
      const waiting = orders.filter(({ level }) => level !== undefined);
      const order = waiting[one.which % waiting.length];
      if (order === undefined) continue;
      if (one.do === 'cancel') {
        naive.cancel(order.id);
        book.remove(order);
        order.status = 'canceled';
      } else {
        const asked = {
          price: Number.isFinite(order.price) ? one.price : order.price,
          stopPrice: order.stopPrice,
          quantity: Math.max(one.quantity, order.filled + 1),
        };
        naive.amend(order.id, asked.price, asked.stopPrice, asked.quantity);
        book.amend(order, asked, true);
      }
    }
    after(played, naive);
  }
}

describe('continuous trading', () => {
  it('trades, triggers, ends and keeps the same orders as a book that sorts them all each time', () => {
    fc.assert(
      fc.property(fc.array(command, { minLength: 5, maxLength: 60 }), (commands) => {
        enact(commands, ({ book, log }, naive) => {
          assert.deepEqual(log, naive.log);
          assert.deepEqual(resting(book.bids), naive.queue('buy', false));
          assert.deepEqual(resting(book.asks), naive.queue('sell', false));
          assert.deepEqual(resting(book.buyStops), naive.queue('buy', true));
          assert.deepEqual(resting(book.sellStops), naive.queue('sell', true));
        });
      }),
      { numRuns: runs(63) },
    );
  });

  it('is never crossed, counts each level right, and loses no quantity', () => {
    fc.assert(
      fc.property(fc.array(command, { maxLength: 60 }), (commands) => {
        enact(commands, ({ book, orders, log }) => {
          const [bid, ask] = [book.bids.best?.price, book.asks.best?.price];
          assert(bid === undefined || ask === undefined || bid < ask);
          for (const side of [book.bids, book.asks]) {
            for (const level of side.levels) {
              const here = [...side.orders()].filter((order) => order.level === level);
              assert.equal(level.count, here.length);
              assert(here.length > 0);
              assert.equal(
                level.quantity,
                here.reduce((sum, { leaves }) => sum + leaves, 0),
              );
            }
          }
          const traded = log.filter((line) => line.startsWith('traded'));
          const sum = traded.reduce((all, line) => all + Number(line.split(' ')[4]), 0);
          const filled = orders.reduce((all, order) => all + order.filled, 0);
          assert.equal(filled, 2 * sum);
          for (const { quantity: asked, filled: got, leaves, level, status } of orders) {
            assert(got >= 0 && got <= asked);
            if (level !== undefined) assert.equal(got + leaves, asked);
            assert.equal(status === 'filled', got === asked);
          }
        });
      }),
      { numRuns: runs(38) },
    );
  });

  it('lets nobody trade with himself who asks for that', () => {
    fc.assert(
      fc.property(fc.array(command, { maxLength: 60 }), (commands) => {
        enact(commands, ({ orders, log }) => {
          for (const line of log) {
            const [what, taker, maker] = line.split(' ');
            if (what !== 'traded') continue;
            const [a, b] = [orders[Number(taker) - 1]!, orders[Number(maker) - 1]!];
            assert(a.account !== b.account || a.selfTrade === 'none');
          }
        });
      }),
      { numRuns: runs(15) },
    );
  });

  it('stops before a trade beyond its bounds, and keeps what is left for an auction', () => {
    const { book, orders, log } = newBook();
    const limit = (side: 'buy' | 'sell', at: number, units: number): Order =>
      orderOf(
        orders,
        {
          side,
          order_type: 'limit',
          time_in_force: 'gtc',
          quantity: units,
          price: at,
        },
        orders.length,
      );
    book.submit(limit('sell', 100, 2));
    book.submit(limit('sell', 110, 2));
    book.high = 105;
    expect(book.submit(limit('buy', 112, 3))).toBe(true);
    expect(log).toEqual(['traded 3 1 100 2']);
    expect(resting(book.bids)).toEqual([[3, 112, 1]]);
    expect(book.uncross(100)).toEqual({ price: 110, quantity: 1, surplus: -1 });
    expect(resting(book.asks)).toEqual([[2, 110, 1]]);
  });
});

const waiting = fc.array(
  fc.record({
    side: fc.constantFrom('buy' as const, 'sell' as const),
    order_type: fc.constantFrom(
      'limit' as const,
      'limit' as const,
      'limit' as const,
      'market' as const,
    ),
    time_in_force: fc.constant('gtc' as const),
    quantity,
    price,
  }),
  { maxLength: 25 },
);

describe('an auction', () => {
  const REFERENCE = 100;

  it('trades the most that any price allows, with the least left over, at the price that is documented', () => {
    fc.assert(
      fc.property(waiting, (all) => {
        const { book, orders } = newBook();
        for (const one of all) book.enter(orderOf(orders, one));
        const want = (side: 'buy' | 'sell', at: number): number =>
          orders
            .filter((order) => order.side === side)
            .filter((order) => (side === 'buy' ? order.price >= at : order.price <= at))
            .reduce((sum, order) => sum + order.quantity, 0);
        const tries = Array.from({ length: 21 }, (_, i) => {
          const [demand, supply] = [want('buy', 90 + i), want('sell', 90 + i)];
          return {
            price: 90 + i,
            quantity: Math.min(demand, supply),
            surplus: demand - supply,
          };
        });
        const most = Math.max(...tries.map((one) => one.quantity));
        const auction = book.uncross(REFERENCE);
        expect(auction?.quantity ?? 0).toBe(most);
        if (auction === undefined) return;
        const named = new Set([REFERENCE, ...orders.map((order) => order.price)]);
        const ties = tries
          .filter((one) => one.quantity === most && named.has(one.price))
          .sort((a, b) => Math.abs(a.surplus) - Math.abs(b.surplus));
        const best = ties.filter((one) => Math.abs(one.surplus) === Math.abs(ties[0]!.surplus));
        const prices = best.map((one) => one.price).sort((a, b) => a - b);
        const nearest = prices.toSorted(
          (a, b) => Math.abs(a - REFERENCE) - Math.abs(b - REFERENCE) || b - a,
        );
        const expected = best.every(({ surplus }) => surplus > 0)
          ? prices.at(-1)
          : best.every(({ surplus }) => surplus < 0)
            ? prices[0]
            : nearest[0];
        expect(auction.price).toBe(expected);
      }),
      { numRuns: runs(50) },
    );
  });

  it('fills by price and time, leaves no book crossed and nothing at any price', () => {
    fc.assert(
      fc.property(waiting, (all) => {
        const { book, orders, log } = newBook();
        for (const one of all) book.enter(orderOf(orders, one));
        const auction = book.uncross(REFERENCE);
        const [bid, ask] = [book.bids.best?.price, book.asks.best?.price];
        assert(bid === undefined || ask === undefined || bid < ask);
        assert([bid, ask].every((one) => one === undefined || Number.isFinite(one)));
        const rank = ({ side, price: at }: Order): number => (side === 'buy' ? -at : at);
        for (const side of ['buy', 'sell'] as const) {
          const queue = orders
            .filter((order) => order.side === side)
            .sort((a, b) => (rank(a) === rank(b) ? a.id - b.id : rank(a) - rank(b)));
          const firstOpen = queue.findIndex((order) => order.filled < order.quantity);
          if (firstOpen >= 0) {
            assert(queue.slice(firstOpen + 1).every((order) => order.filled === 0));
          }
          const filled = queue.reduce((sum, order) => sum + order.filled, 0);
          assert.equal(filled, auction?.quantity ?? 0);
        }
        assert(
          log.every((line) => !line.startsWith('traded') || line.includes(` ${auction!.price} `)),
        );
      }),
      { numRuns: runs(38) },
    );
  });
});
