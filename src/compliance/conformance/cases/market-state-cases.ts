/** Cases about thin books, auctions, halts and lost connections: Article 6(2)(a), with the data flows of RTS 7 Article 9(3). */
import { MINUTE } from '../../../base/durations.ts';
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
    title: 'A market order in a thin book',
    articles: [MATCHING, 'RTS 7 9(3)(a)', '15(1)(a)', '5(4)(d)', ...GENERAL],
    stimulus: 'The best offer is small, the next one is far away, and there are no others.',
    expectation:
      'Every order stays within the price collar; no further order follows for the unfilled quantity.',
    parts: [
      {
        name: 'two distant levels',
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
          holds('no fill is beyond the price collar', 'worst fill', {
            most: 'collar',
          }),
          sent('no other order is sent', 1),
        ],
      },
    ],
  },
  {
    id: 'A11',
    title: 'Auctions',
    articles: [MATCHING, 'RTS 7 9(3)(c)', ...GENERAL],
    stimulus:
      'Opening, volatility and closing auctions collect orders, end at random times, and uncross.',
    expectation:
      'Indicative prices do not count as trades; orders that an auction does not accept are not sent; its fills are booked.',
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
          expect('indicative prices do not count as trades', { of: 'bars', are: 'at price' }, true),
          events('no order is filled before the auction ends', 'order.filled', 0),
          exchange({
            do: 'phase',
            phase: phase === 'closing_auction' ? 'closed' : 'continuous',
          }),
          wait(2 * MINUTE),
          position('the fills of the auction are booked', 1),
          holds('the fills are at the auction price', 'worst fill', { most: 'price' }),
        ]),
      ),
      part({ name: 'immediate orders', termsMs: 20_000 }, [
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
        sent('an order that the auction does not accept is not sent', 0),
        reasons('the session records the reason', 'order.denied', ['not_taken_in_auction']),
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
      'No order is sent during the halt, nor afterwards until there is a price. Resting orders too far from that price are canceled. An alert is raised within 5 s.',
    parts: [
      {
        name: 'halted twice',
        // The interval of production, on which the delay of the alert depends.
        termsMs: 4000,
        steps: [
          rest(),
          ...['first halt', 'second halt'].flatMap((halt) => [
            mark(halt),
            exchange({ do: 'phase', phase: 'halt' } as const),
            { act: [bid()], bar: 'quiet' } as const,
            wait(3 * MINUTE),
            sent('no order is sent while trading is halted', 0, halt),
            reasons('the order is denied at once', 'order.denied', ['market_halted'], halt),
            expect(
              'an alert about the halt is raised within 5 s',
              { of: 'alert', like: 'halt|closed', since: halt },
              { most: 5000 },
            ),
            exchange({ do: 'phase', phase: 'continuous' } as const),
            bars(1),
          ]),
          open('the resting order still rests', { least: 1 }),
        ],
      },
      part({ name: 'closed', termsMs: 20_000 }, [
        exchange({ do: 'phase', phase: 'closed' }),
        { act: [bid()], bar: 'quiet' },
        sent('no order is sent while the market is closed', 0),
        reasons('the order is denied at once', 'order.denied', ['market_closed']),
      ]),
      part({ name: 'another price after the halt', termsMs: 20_000 }, [
        { requires: 'price' },
        rest(),
        exchange({ do: 'phase', phase: 'halt' }),
        { quietBars: 1 },
        exchange({ do: 'phase', phase: 'continuous' }),
        wait(5000),
        open('the resting order still rests', 1),
        bars(4, 'jump'),
        open('the order too far from the price is canceled', 0),
        mark('moved'),
        {
          act: [bid(), { side: 'buy', type: 'limit', limit: 'jump', quantity: 'quantity' }],
          price: 'jump',
        },
        // The collar over a period may still deny every order.
        expect(
          'orders are sent by the new price only, unless the collar over a period denies them',
          { of: 'follows market', since: 'moved' },
          true,
        ),
      ]),
    ],
  },
  {
    id: 'A14',
    title: 'Loss of the connection',
    articles: [MATCHING, 'RTS 7 9(3)(c)', '17(3)', ...GENERAL],
    stimulus:
      'The connection breaks while an order works at the venue, which cancels the order or keeps it. The connection returns after 5 s or 5 minutes.',
    expectation: 'The bot queries the state of the order before it sends other orders.',
    parts: [true, false].flatMap((isCanceled) =>
      [5000, 5 * MINUTE].map((ms): Part => ({
        name: `${isCanceled ? '' : 'not '}canceled, reconnected after ${ms / 1000} s`,
        steps: [
          rest(),
          mark('lost'),
          exchange({ do: 'network', is_up: false, of: 'accounts' }),
          wait(10),
          isCanceled ? exchange({ do: 'end_orders', status: 'canceled' }) : fill(0.25),
          rest(0.5),
          sent('no order is sent while the connection is down', 0, 'lost'),
          ...(ms > 2 * MINUTE ? [wait(ms - 2 * MINUTE)] : []),
          mark('back'),
          exchange({ do: 'network', is_up: true }),
          wait(2 * MINUTE),
          alerted('an alert is raised that the venue cannot be reached', 'connect|answer', 'lost'),
          lead(
            'the state of the order is queried before other orders are sent',
            'GET /order',
            'POST /order',
            { least: 0 },
            'back',
          ),
          holds('the bot is connected again', 'streaming', true),
        ],
      })),
    ),
  },
  {
    id: 'A17',
    title: 'A lost acknowledgement',
    articles: [MATCHING, 'RTS 7 9(3)(b)', ...GENERAL],
    stimulus: 'The venue accepts an order, but its answer does not arrive.',
    expectation: 'The bot queries the state of the order and creates no second order.',
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
        open('exactly one order is open', 1),
        order('the order has the requested quantity', 1, 'quantity', { near: 'quantity' }),
        holds('all requests have the same client order id', 'client ids', 1),
        requests('the state of the order is queried', 'GET /order', { least: 2 }),
      ]),
    ),
  },
  {
    id: 'A18',
    title: 'Failover to a second gateway',
    articles: [MATCHING, 'RTS 7 9(3)(c)'],
    stimulus: 'The gateway fails with orders in flight.',
    expectation:
      'The bot resumes the message sequence at the second gateway and assumes no order states.',
    notApplicable: 'The bot has a single connection to its venue; case A14 tests the loss of it.',
    parts: [],
  },
];
