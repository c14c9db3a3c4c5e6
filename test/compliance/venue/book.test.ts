import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Book } from '../../../src/compliance/venue/book.ts';
import {
  makeOrder,
  type Order,
  type OrderTerms,
  type SelfTrade,
} from '../../../src/compliance/venue/book-order.ts';
import type { BookSide } from '../../../src/compliance/venue/side.ts';
import { runs } from '../../length.ts';
import { NaiveBook } from './naive-book.ts';

const price = fc.integer({ min: 95, max: 105 });
const quantity = fc.integer({ min: 1, max: 9 });

const terms: fc.Arbitrary<Terms> = fc.record({
  clientOrderId: fc.constant(''),
  side: fc.constantFrom('buy', 'sell'),
  type: fc.constantFrom('limit', 'limit', 'limit', 'market', 'stop', 'stop_limit'),
  timeInForce: fc.constantFrom('gtc', 'gtc', 'ioc', 'fok'),
  quantity,
  price,
  stopPrice: price,
  selfTrade: fc.constantFrom('none', 'cancel_newest', 'cancel_oldest', 'cancel_both'),
});

type Terms = OrderTerms & { readonly selfTrade?: SelfTrade };

type Command =
  | { readonly do: 'submit'; readonly terms: Terms; readonly account: number }
  | { readonly do: 'cancel'; readonly which: number };

const submit = fc.record({
  do: fc.constant('submit' as const),
  terms,
  account: fc.integer({ min: 0, max: 2 }),
});
const command: fc.Arbitrary<Command> = fc.oneof(
  { arbitrary: submit, weight: 6 },
  { arbitrary: fc.record({ do: fc.constant('cancel' as const), which: fc.nat(99) }), weight: 1 },
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
  });
  return { book, orders: [], log };
}

function orderOf(orders: Order[], { selfTrade = 'none', ...wanted }: Terms, account = 0): Order {
  const origin = { instrument: 0, time: 0, selfTrade, account };
  const order = makeOrder({ ...origin, id: orders.length + 1 }, wanted);
  orders.push(order);
  return order;
}

const resting = (side: BookSide, isParked = false): unknown[] =>
  side.orders().map((order) => [order.id, isParked ? order.stopPrice : order.price, order.leaves]);

/** Applies the commands to both books. */
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
      const waiting = book.orders();
      const order = waiting[one.which % waiting.length];
      if (order === undefined) continue;
      naive.cancel(order.id);
      book.remove(order);
      order.status = 'canceled';
    }
    after(played, naive);
  }
}

describe('continuous trading', () => {
  it('trades, triggers, ends and keeps the same orders as a naive book that sorts all orders each time', () => {
    fc.assert(
      fc.property(fc.array(command, { minLength: 5, maxLength: 60 }), (commands) => {
        enact(commands, ({ book, log }, naive) => {
          assert.deepEqual(log, naive.log);
          assert.deepEqual(resting(book.bids), naive.queue('buy', false));
          assert.deepEqual(resting(book.asks), naive.queue('sell', false));
          assert.deepEqual(resting(book.buyStops, true), naive.queue('buy', true));
          assert.deepEqual(resting(book.sellStops, true), naive.queue('sell', true));
        });
      }),
      { numRuns: runs(63) },
    );
  });

  it('is never crossed, has the right quantity at each level, and loses no quantity', () => {
    fc.assert(
      fc.property(fc.array(command, { maxLength: 60 }), (commands) => {
        enact(commands, ({ book, orders, log }) => {
          const [bid, ask] = [book.bids.best?.price, book.asks.best?.price];
          assert(bid === undefined || ask === undefined || bid < ask);
          for (const side of [book.bids, book.asks]) {
            const levels = side.levels();
            const all = side.orders();
            assert.equal(new Set(all.map((order) => order.price)).size, levels.length);
            for (const { price: at, quantity: units } of levels) {
              const here = all.filter((order) => order.price === at);
              const sum = here.reduce((total, { leaves }) => total + leaves, 0);
              assert.equal(units, sum);
            }
          }
          const traded = log.filter((line) => line.startsWith('traded'));
          const sum = traded.reduce((all, line) => all + Number(line.split(' ')[4]), 0);
          const filled = orders.reduce((all, order) => all + order.filled, 0);
          assert.equal(filled, 2 * sum);
          const inBook = new Set(book.orders());
          for (const order of orders) {
            const { quantity: asked, filled: got, leaves, status } = order;
            assert(got >= 0 && got <= asked);
            if (inBook.has(order)) assert.equal(got + leaves, asked);
            assert.equal(status === 'filled', got === asked);
          }
        });
      }),
      { numRuns: runs(38) },
    );
  });

  it('never trades two orders of an account with self-trade prevention', () => {
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
});

const waiting = fc.array(
  fc.record({
    clientOrderId: fc.constant(''),
    side: fc.constantFrom('buy' as const, 'sell' as const),
    type: fc.constantFrom('limit' as const, 'limit' as const, 'limit' as const, 'market' as const),
    timeInForce: fc.constant('gtc' as const),
    quantity,
    price,
  }),
  { maxLength: 25 },
);

describe('an auction', () => {
  const REFERENCE = 100;

  it('trades the largest quantity with the smallest surplus, at the documented price', () => {
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

  it('fills by price and time, and leaves neither a crossed book nor market orders', () => {
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
