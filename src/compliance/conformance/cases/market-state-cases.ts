/** Thin books, auctions, halts and lost connections: Article 6(2)(a), by the flows of RTS 7 Article 9(3). */
import { MINUTE } from '../../../market/bar-time.ts';
import type { Case, Part } from '../case.ts';
import {
  act,
  alerted,
  bars,
  bid,
  events,
  exchange,
  expect,
  fill,
  GENERAL,
  holds,
  lead,
  mark,
  MATCHING,
  open,
  order,
  part,
  position,
  reasons,
  requests,
  rest,
  sent,
  wait,
} from './case-steps.ts';

export const MARKET_STATES: readonly Case[] = [
  {
    id: 'A10',
    title: 'An order at the market into a thin book',
    articles: [MATCHING, 'RTS 7 9(3)(a)', '15(1)(a)', '5(4)(d)', ...GENERAL],
    stimulus: 'Little is offered at the price, the next offer is far from it, and then nothing.',
    expectation: 'The collar holds for each order; what the book does not have is not chased.',
    parts: [
      {
        name: 'two levels, far apart',
        steps: [
          { requires: 'price' },
          {
            others: 'quote',
            side: 'sell',
            price: 'price',
            quantity: { of: 'quantity', times: 0.25 },
            more: 1,
          },
          { others: 'rest', side: 'sell', price: 'beyond collar', quantity: 'quantity' },
          act({ side: 'buy', quantity: 'quantity' }),
          wait(10_000),
          holds('no fill is farther from the price than the collar', 'worst fill', {
            most: 'collar',
          }),
          sent('nothing is sent after it', 1),
        ],
      },
    ],
  },
  {
    id: 'A11',
    title: 'Auctions',
    articles: [MATCHING, 'RTS 7 9(3)(c)', ...GENERAL],
    stimulus: 'Opening, volatility and closing auctions call, end at random, and uncross.',
    expectation:
      'Indicative prices are no trades; orders that an auction does not take are not sent; its fills are booked.',
    parts: [
      ...(['opening_auction', 'volatility_auction', 'closing_auction'] as const).map((phase) =>
        part({ name: phase, termsMs: 20_000 }, [
          exchange({ do: 'phase', phase }),
          { others: 'rest', side: 'buy', price: 'below', quantity: 'quantity' },
          { others: 'rest', side: 'sell', price: 'below', quantity: 'quantity' },
          {
            act: [{ side: 'buy', type: 'limit', limit: 'price', quantity: 'quantity' }],
            bar: 'quiet',
          },
          order('a limit order waits for the auction', 1, 'status', 'new'),
          wait(2 * MINUTE),
          expect('indicative prices are no trades', { of: 'bars', are: 'at price' }, true),
          events('nothing is filled before it ends', 'order.filled', 0),
          exchange({
            do: 'phase',
            phase: phase === 'closing_auction' ? 'closed' : 'continuous',
          }),
          wait(2 * MINUTE),
          position('its fills are booked', 1),
          holds('at one price', 'worst fill', { most: 'price' }),
        ]),
      ),
      part({ name: 'orders to be filled at once', termsMs: 20_000 }, [
        exchange({ do: 'phase', phase: 'volatility_auction' }),
        {
          act: [
            {
              side: 'buy',
              type: 'limit',
              limit: 'price',
              quantity: 'quantity',
              timeInForce: 'ioc',
            },
          ],
          bar: 'quiet',
        },
        wait(2 * MINUTE),
        sent('an order that the auction does not take is not sent', 0),
        reasons('the session knows why', 'order.denied', ['not_taken_in_auction']),
        exchange({ do: 'phase', phase: 'continuous' }),
        wait(MINUTE),
      ]),
    ],
  },
  {
    id: 'A12',
    title: 'A halt with resting orders',
    articles: [MATCHING, 'RTS 7 9(3)(c)', '16(5)', '5(4)(d)', ...GENERAL],
    stimulus: 'Trading is halted, resumed and halted again while an order rests.',
    expectation:
      'No new orders while it is halted, and after it only once there is a price; what rests too far from that is canceled; people are alerted within 5 s.',
    parts: [
      {
        name: 'halted twice',
        // The interval of production, which decides when people are alerted.
        termsMs: 4000,
        steps: [
          rest(),
          ...['first halt', 'second halt'].flatMap((halt) => [
            mark(halt),
            exchange({ do: 'phase', phase: 'halt' } as const),
            { act: [bid()], bar: 'quiet' } as const,
            wait(3 * MINUTE),
            sent('no order is sent while trading is halted', 0, halt),
            reasons(
              'the order is denied, and does not wait',
              'order.denied',
              ['market_halted'],
              halt,
            ),
            expect(
              'people are alerted of the halt within 5 s',
              { of: 'alert', like: 'halt|closed', since: halt },
              { most: 5000 },
            ),
            exchange({ do: 'phase', phase: 'continuous' } as const),
            bars(1),
          ]),
          open('the order that rested still does', { least: 1 }),
        ],
      },
      part({ name: 'closed', termsMs: 20_000 }, [
        exchange({ do: 'phase', phase: 'closed' }),
        { act: [bid()], bar: 'quiet' },
        sent('no order is sent while the market is closed', 0),
        reasons('the order is denied, and does not wait', 'order.denied', ['market_closed']),
      ]),
      part({ name: 'the price is another one after it', termsMs: 20_000 }, [
        { requires: 'price' },
        rest(),
        exchange({ do: 'phase', phase: 'halt' }),
        { quietBars: 1 },
        exchange({ do: 'phase', phase: 'continuous' }),
        wait(5000),
        open('the order that rested still does', 1),
        bars(4, 'jump'),
        open('too far from the price it is canceled', 0),
        mark('moved'),
        {
          act: [bid(), { side: 'buy', type: 'limit', limit: 'jump', quantity: 'quantity' }],
          price: 'jump',
        },
        // Unless the collar over a period holds back every order for now.
        expect(
          'by the new price orders are sent or held back, and by the old none',
          { of: 'follows market', since: 'moved' },
          true,
        ),
      ]),
    ],
  },
  {
    id: 'A14',
    title: 'The connection is lost',
    articles: [MATCHING, 'RTS 7 9(3)(c)', '17(3)', ...GENERAL],
    stimulus:
      'The connection breaks with an order at the venue, which cancels it then, or does not; it comes back after 5 s and after 5 minutes.',
    expectation:
      'Nothing is assumed: the state of the order is queried, and nothing is sent before.',
    parts: [true, false].flatMap((isCanceled) =>
      [5000, 5 * MINUTE].map((ms): Part => ({
        name: `${isCanceled ? '' : 'not '}canceled, back after ${ms / 1000} s`,
        steps: [
          rest(),
          mark('lost'),
          exchange({ do: 'network', is_up: false, of: 'accounts' }),
          wait(10),
          isCanceled ? exchange({ do: 'end_orders', status: 'canceled' }) : fill(0.25),
          rest(0.5),
          sent('nothing is sent while it is not connected', 0, 'lost'),
          ...(ms > 2 * MINUTE ? [wait(ms - 2 * MINUTE)] : []),
          mark('back'),
          exchange({ do: 'network', is_up: true }),
          wait(2 * MINUTE),
          alerted('people are alerted that the venue cannot be reached', 'connect|answer', 'lost'),
          lead(
            'the state of orders is queried before others are sent',
            'GET /order',
            'POST /order',
            { least: 0 },
            'back',
          ),
          holds('it is connected again', 'streaming', true),
        ],
      })),
    ),
  },
  {
    id: 'A17',
    title: 'An acknowledgement is lost',
    articles: [MATCHING, 'RTS 7 9(3)(b)', ...GENERAL],
    stimulus: 'The venue accepts an order, and its answer does not arrive.',
    expectation: 'The bot queries the state of the order; there is one order at most.',
    exercises: ['trading/host/pod/order-gateway.ts'],
    parts: (['answer', 'order', 'connection'] as const).map((what) =>
      part(`the ${what} is lost`, [
        exchange({
          do: 'fault',
          on: 'POST /order',
          count: 1,
          action: {
            kind: what === 'order' ? 'lost_before' : 'lost_after',
            ...(what !== 'connection' && { isSilent: true }),
          },
        }),
        rest(),
        ...(what === 'connection' ? [exchange({ do: 'cut' })] : []),
        wait(30_000),
        open('there is one order', 1),
        order('of its size', 1, 'quantity', { near: 'quantity' }),
        holds('under one client order id', 'client ids', 1),
        requests('its state is queried', 'GET /order', { least: 2 }),
      ]),
    ),
  },
  {
    id: 'A18',
    title: 'Failover to a second gateway',
    articles: [MATCHING, 'RTS 7 9(3)(c)'],
    stimulus: 'The gateway fails with orders in flight.',
    expectation: 'The sequence is resumed at the other one, and no order is guessed.',
    notApplicable:
      'The bot has one way to its venue, and no second gateway to fail over to; see A14 for its loss.',
    parts: [],
  },
];
