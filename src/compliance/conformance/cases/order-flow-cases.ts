/** Interaction with the matching logic: Article 6(2)(a), by the flows of RTS 7 Article 9(3). */
import { MINUTE } from '../../../market/bar-time.ts';
import type { Case, Part } from '../case.ts';
import {
  act,
  alerted,
  bars,
  bid,
  BUY,
  CANCEL,
  exchange,
  expect,
  fill,
  mark,
  open,
  position,
  reasons,
  rest,
  sent,
  wait,
  working,
} from './case-steps.ts';

const MATCHING = '6(2)(a)';
const GENERAL = ['5(4)(a)', '5(4)(c)'];
const NO_AMENDMENTS =
  'The engine sends no amendments: a change is a cancel and, once that is confirmed, a new order.';

export const ORDER_FLOW: readonly Case[] = [
  {
    id: 'A01',
    title: 'A resting order whose acknowledgement is late',
    articles: [MATCHING, 'RTS 7 9(3)(b)', '15(2)', ...GENERAL],
    stimulus: 'A passive limit order is acknowledged after 0, 50 and 2000 ms.',
    expectation:
      'It is pending until then, sent once, and counts towards the limits from when it is sent.',
    exercises: ['trading/host/pod/order-gateway.ts', 'engine/execution/venue-execution.ts'],
    parts: [
      ...[0, 50, 2000].map((ms): Part => ({
        name: `acknowledged after ${ms} ms`,
        steps: [
          exchange({ do: 'fault', on: 'POST /order', count: 1, action: { kind: 'slow', ms } }),
          rest(),
          working('the order counts as working once sent', 1),
          wait(10_000),
          sent('the order is sent once', 1),
          expect('it rests at the exchange', { of: 'order', number: 1, field: 'status' }, 'new'),
          expect(
            'it rests in its size',
            { of: 'order', number: 1, field: 'quantity' },
            { near: 'quantity' },
          ),
          expect('it rests on its side', { of: 'order', number: 1, field: 'side' }, 'buy'),
          expect(
            'it rests at its price',
            { of: 'order', number: 1, field: 'price' },
            { near: 'below' },
          ),
        ],
      })),
      {
        name: 'orders are counted when they are sent',
        steps: [
          exchange({ do: 'fault', on: 'POST /order', action: { kind: 'slow', ms: 900 } }),
          {
            repeat: [act({ ...bid(), count: 60 })],
            most: 4,
            until: { that: { of: 'events', kind: 'order.denied' }, is: { least: 1 } },
          },
          wait(2 * MINUTE),
          expect(
            'no more is ordered than can be paid for',
            { of: 'ordered value' },
            { most: 'cash' },
          ),
          expect(
            'what is too much is denied before it is sent',
            { of: 'events', kind: 'order.denied' },
            { least: 1 },
          ),
        ],
      },
      {
        name: 'sales are counted when they are sent',
        steps: [
          ...BUY,
          act({ side: 'sell', type: 'limit', limit: 'above', quantity: 'quantity' }),
          act({ side: 'sell', type: 'limit', limit: 'above', quantity: 'quantity' }),
          expect(
            'what is being sold is not sold again',
            { of: 'requests', call: 'POST /order', side: 'SELL' },
            1,
          ),
          reasons('the session knows why', 'order.denied', ['short_not_allowed']),
        ],
      },
    ],
  },
  {
    id: 'A02',
    title: 'Partial fills, then the rest',
    articles: [MATCHING, 'RTS 7 9(3)(a)', ...GENERAL],
    stimulus:
      'A resting order is filled in three parts, then in full; an exit is asked for between.',
    expectation:
      'Quantity, cost and what is left are exact after each part; exits are of what is filled.',
    parts: [
      {
        name: 'three parts and the rest',
        steps: [
          rest(),
          ...[1, 2, 3].flatMap((part) => [
            fill(0.25),
            wait(1000),
            position(`after part ${part}: the position`, part / 4),
            expect(
              `after part ${part}: what is filled`,
              { of: 'working fill' },
              { near: { of: 'quantity', times: part / 4 } },
            ),
            expect(
              `after part ${part}: the cash`,
              { of: 'spent' },
              { near: { of: 'bid value', times: part / 4 } },
            ),
          ]),
          act({
            side: 'sell',
            type: 'limit',
            limit: 'above',
            quantity: 'quantity',
            reduceOnly: true,
          }),
          expect(
            'the exit is of what is filled',
            { of: 'order', number: 2, field: 'quantity' },
            { near: { of: 'quantity', times: 0.75 } },
          ),
          fill(0.25),
          bars(1),
          expect(
            'the exchange has filled it',
            { of: 'order', number: 1, field: 'status' },
            'filled',
          ),
          working('only the exit is left', 1),
          expect(
            'the strategy receives each unit once',
            { of: 'fills received' },
            { near: 'quantity' },
          ),
          {
            others: 'take',
            side: 'buy',
            price: 'above',
            quantity: { of: 'quantity', times: 0.75 },
          },
          bars(1),
          position('the exit is booked', 0.25),
          expect(
            'the cash has what the exit brought in',
            { of: 'spent' },
            { near: { of: 'bid value', plus: { of: 'offer value', times: -0.75 } } },
          ),
        ],
      },
    ],
  },
  {
    id: 'A03',
    title: 'Orders to be filled at once',
    articles: [MATCHING, 'RTS 7 9(3)(a)', ...GENERAL],
    stimulus: 'Half of an immediate-or-cancel order is there; of a fill-or-kill order, too.',
    expectation: 'The rest is taken for canceled, and nothing is sent after it.',
    parts: [
      ...(['ioc', 'fok'] as const).map((timeInForce): Part => ({
        name: timeInForce,
        steps: [
          {
            others: 'quote',
            side: 'sell',
            price: 'price',
            quantity: { of: 'quantity', times: 0.5 },
            more: 1,
          },
          act({ side: 'buy', type: 'limit', limit: 'price', quantity: 'quantity', timeInForce }),
          bars(1),
          working('nothing is left working', 0),
          expect(
            'what was filled is booked',
            { of: 'position' },
            { near: { of: 'quantity', times: timeInForce === 'ioc' ? 0.5 : 0 }, within: 'unit' },
          ),
          reasons('the rest has ended', 'order.expired', ['not_filled_at_once']),
          sent('nothing is sent after it', 1),
        ],
      })),
      {
        name: 'post only',
        steps: [
          { others: 'quote', side: 'sell', price: 'price', quantity: 'quantity', more: 1 },
          act({ side: 'buy', type: 'limit', limit: 'price', quantity: 'quantity', postOnly: true }),
          bars(1),
          expect('a post-only order takes nothing', { of: 'events', kind: 'order.filled' }, 0),
          reasons('it is rejected', 'order.rejected', ['post_only_would_cross']),
          sent('nothing is sent after it', 1),
        ],
      },
    ],
  },
  {
    id: 'A04',
    title: 'Amendments of quantity and price',
    articles: [MATCHING, 'RTS 7 9(3)(b)'],
    stimulus: 'An order is amended to a smaller quantity, then to another price.',
    expectation: 'Priority is known to be kept or lost, and ids are chained.',
    notApplicable: NO_AMENDMENTS,
    parts: [],
  },
  {
    id: 'A05',
    title: 'A rejected amendment',
    articles: [MATCHING, 'RTS 7 9(3)(b)'],
    stimulus: 'An amendment is rejected as unknown, and as too late.',
    expectation: 'The terms that were confirmed last are restored.',
    notApplicable: NO_AMENDMENTS,
    parts: [],
  },
  {
    id: 'A06',
    title: 'A cancel that crosses a fill',
    articles: [MATCHING, 'RTS 7 9(3)(b)', ...GENERAL],
    stimulus: 'An order is filled while the cancel of it is on its way.',
    expectation:
      'The fill is booked, the rejection of the cancel is harmless, the position is right.',
    parts: [
      {
        name: 'filled before it is canceled',
        steps: [
          rest(),
          { act: [], cancel: true, during: [fill()] },
          bars(1),
          expect('the cancel is sent', { of: 'requests', call: 'DELETE /order' }, { least: 1 }),
          expect('it is pending until answered', { of: 'events', kind: 'order.pending_cancel' }, 1),
          expect('the order counts as filled', { of: 'events', kind: 'order.canceled' }, 0),
          position('the fill is booked', 1),
          sent('nothing is sent after it', 1),
        ],
      },
      {
        name: 'canceled in time',
        steps: [
          rest(),
          CANCEL,
          expect(
            'the exchange has canceled it',
            { of: 'order', number: 1, field: 'status' },
            'canceled',
          ),
          reasons('the session knows why', 'order.canceled', ['canceled_by_strategy']),
          working('nothing is left working', 0),
        ],
      },
    ],
  },
  {
    id: 'A07',
    title: 'Orders that the venue rejects',
    articles: [MATCHING, 'RTS 7 9(3)(a)', '16(5)', ...GENERAL],
    stimulus:
      'Orders are rejected for tick, lot, price band, instrument and closed market, which change while they are on their way.',
    expectation: 'Each is classified, none is sent again by itself, and people are alerted.',
    parts: [
      ...(
        [
          ['tick', { do: 'set_terms', terms: { tick: 7919 } }, 'invalid_order'],
          ['lot', { do: 'set_terms', terms: { lot: 999_983 } }, 'invalid_order'],
          ['band', { do: 'set_terms', terms: { band: 1e-9 } }, 'invalid_order'],
          ['instrument', { do: 'delist' }, 'unknown_symbol'],
          ['closed market', { do: 'phase', phase: 'closed' }, 'market_closed'],
        ] as const
      ).map(([name, deed, reason]): Part => ({
        name,
        steps: [
          mark('begun'),
          // An order that the session knew to be invalid would not be sent.
          { act: [bid()], bar: 'quiet', during: [exchange(deed)] },
          sent('the order is sent', 1),
          reasons(`it is rejected as ${reason}`, 'order.rejected', [reason]),
          wait(3 * MINUTE),
          sent('it is not sent again', 1),
          working('nothing is left working', 0),
          alerted('people are alerted', 'order\\.rejected', 'begun'),
        ],
      })),
      {
        name: 'kinds of orders that it does not have',
        steps: [
          act(
            { ...bid(), timeInForce: 'day' },
            { ...bid(), stopLoss: { percent: 0.1 } },
            { ...bid(), ocoGroup: 1 },
            { side: 'buy', type: 'trailing_stop', trail: { percent: 0.1 }, quantity: 'quantity' },
          ),
          reasons('each is denied', 'order.denied', Array(4).fill('not_supported_by_venue')),
          sent('none is sent', 0),
        ],
      },
    ],
  },
  {
    id: 'A08',
    title: 'The throttle of the venue',
    articles: [MATCHING, 'RTS 7 9(3)(c)', '15(1)(d)', ...GENERAL],
    stimulus: 'More is sent than the venue accepts; it rejects the rest, or queues it.',
    expectation:
      'What was rejected is tried again more slowly, cancels get through, and no order is there twice.',
    exercises: ['trading/host/pod/order-gateway.ts'],
    parts: (['reject', 'queue'] as const).map((policy): Part => ({
      name: policy,
      steps: [
        exchange({ do: 'throttle', throttle: { limit: 2, per_ms: 1000, policy } }),
        act({ ...bid(), count: 'burst' }),
        wait(20_000),
        expect('the accepted orders rest at the exchange, once each', { of: 'unplaced' }, 0),
        reasons('none is given up', 'order.rejected', []),
        exchange({ do: 'throttle', throttle: { limit: 1, per_ms: 1000, policy } }),
        CANCEL,
        {
          await: { that: { of: 'open orders' }, is: 0 },
          withinMs: MINUTE,
          expect: 'the cancels get through',
        },
      ],
    })),
  },
  {
    id: 'A09',
    title: 'An order that would meet an own one',
    articles: [MATCHING, 'RTS 7 9(3)(a)', ...GENERAL],
    stimulus:
      "A purchase meets the bot's own resting sale; the account has the venue cancel the newest, the oldest, both.",
    expectation: 'The bot does not trade with itself, and knows which of its orders is gone.',
    parts: (['cancel_newest', 'cancel_oldest', 'cancel_both'] as const).map((selfTrade): Part => ({
      name: selfTrade,
      selfTrade,
      steps: [
        ...BUY,
        act({ side: 'sell', type: 'limit', limit: 'above', quantity: 'half' }),
        act({ side: 'buy', type: 'limit', limit: 'above', quantity: 'half' }),
        wait(20_000),
        expect('nothing was traded', { of: 'holding' }, { near: 'quantity' }),
        working('the other orders still work', selfTrade === 'cancel_both' ? 0 : 1),
        expect(
          'the session knows what is gone',
          { of: 'events', kind: 'order.expired' },
          selfTrade === 'cancel_both' ? 2 : 1,
        ),
      ],
    })),
  },
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
          expect(
            'no fill is farther from the price than the collar',
            { of: 'worst fill' },
            { most: 'collar' },
          ),
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
      ...(['opening_auction', 'volatility_auction', 'closing_auction'] as const).map(
        (phase): Part => ({
          name: phase,
          termsMs: 20_000,
          steps: [
            exchange({ do: 'phase', phase }),
            { others: 'rest', side: 'buy', price: 'below', quantity: 'quantity' },
            { others: 'rest', side: 'sell', price: 'below', quantity: 'quantity' },
            {
              act: [{ side: 'buy', type: 'limit', limit: 'price', quantity: 'quantity' }],
              bar: 'quiet',
            },
            expect(
              'a limit order waits for the auction',
              { of: 'order', number: 1, field: 'status' },
              'new',
            ),
            wait(2 * MINUTE),
            expect('indicative prices are no trades', { of: 'bars', are: 'at price' }, true),
            expect('nothing is filled before it ends', { of: 'events', kind: 'order.filled' }, 0),
            exchange({
              do: 'phase',
              phase: phase === 'closing_auction' ? 'closed' : 'continuous',
            }),
            wait(2 * MINUTE),
            position('its fills are booked', 1),
            expect('at one price', { of: 'worst fill' }, { most: 'price' }),
          ],
        }),
      ),
      {
        name: 'orders to be filled at once',
        termsMs: 20_000,
        steps: [
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
        ],
      },
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
      {
        name: 'closed',
        termsMs: 20_000,
        steps: [
          exchange({ do: 'phase', phase: 'closed' }),
          { act: [bid()], bar: 'quiet' },
          sent('no order is sent while the market is closed', 0),
          reasons('the order is denied, and does not wait', 'order.denied', ['market_closed']),
        ],
      },
      {
        name: 'the price is another one after it',
        termsMs: 20_000,
        steps: [
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
        ],
      },
    ],
  },
  {
    id: 'A13',
    title: 'All orders are canceled, one of them not at once',
    articles: [MATCHING, 'RTS 7 9(3)(b)', '12(1)', ...GENERAL],
    stimulus:
      'The bot is to cancel all of its orders; the venue does not receive two of the cancels.',
    expectation: 'What survives is canceled again, and nothing counts as canceled before it is.',
    exercises: ['trading/host/pod/venue-connection.ts'],
    scope: 'By instrument or side the engine has no mass cancel.',
    parts: [
      {
        name: 'two cancels are lost',
        ends: 'halted',
        steps: [
          ...[0, 1, 2].map(() => rest(0.5)),
          exchange({
            do: 'fault',
            on: 'DELETE /order',
            skip: 1,
            count: 2,
            action: { kind: 'lost_before', isSilent: true },
          }),
          wait(1),
          open('three orders rest', 3),
          mark('halted'),
          { server: 'halt' },
          {
            await: { that: { of: 'end' }, is: 'verified' },
            withinMs: MINUTE,
            expect: 'it ends once the exchange reports that none is open',
          },
          open('none is open', 0),
          expect(
            'what survived was canceled again',
            { of: 'attempts', call: 'DELETE /order', since: 'halted' },
            { least: 4 },
          ),
        ],
      },
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
          expect(
            'the state of orders is queried before others are sent',
            { of: 'lead', call: 'GET /order', before: 'POST /order', since: 'back' },
            { least: 0 },
          ),
          expect('it is connected again', { of: 'streaming' }, true),
        ],
      })),
    ),
  },
  {
    id: 'A15',
    title: 'Orders that end unasked',
    articles: [MATCHING, 'RTS 7 9(3)(b)', ...GENERAL],
    stimulus: "The venue's operator cancels an order; another one expires with the day.",
    expectation: 'The bot follows the venue, knows the reason, and does not place them again.',
    parts: [
      {
        name: 'canceled by the operator',
        steps: [
          rest(),
          exchange({ do: 'end_orders', status: 'canceled' }),
          bars(2),
          working('the order is gone for the session, too', 0),
          reasons('the session knows why', 'order.canceled', ['canceled_by_venue']),
          sent('it is not placed again', 1),
        ],
      },
      {
        name: 'expired',
        steps: [
          rest(),
          exchange({ do: 'end_orders', status: 'expired' }),
          bars(2),
          expect('it counts as expired', { of: 'events', kind: 'order.expired' }, 1),
          sent('it is not placed again', 1),
        ],
      },
    ],
  },
  {
    id: 'A16',
    title: 'A trade is undone or corrected',
    articles: [MATCHING, 'RTS 7 9(3)(a)', '17(3)', ...GENERAL],
    stimulus: 'Half an hour after a fill the venue undoes the trade, or corrects its price.',
    expectation: 'Position, cash and limits are those of the venue; people are alerted.',
    parts: (['undo_trade', 'correct_trade'] as const).map((what): Part => ({
      name: what === 'undo_trade' ? 'bust' : 'correct',
      steps: [
        ...BUY,
        wait(30 * MINUTE),
        mark('begun'),
        exchange({ do: what }),
        bars(1),
        wait(MINUTE),
        expect(
          'people are alerted within 5 s',
          { of: 'alert', like: 'order\\.corrected', since: 'begun' },
          { most: 5000 },
        ),
        expect('it counts once', { of: 'events', kind: 'order.corrected' }, 1),
        ...(what === 'undo_trade'
          ? [expect('an undone trade neither gained nor lost', { of: 'equity' }, { near: 'cash' })]
          : []),
      ],
    })),
  },
  {
    id: 'A17',
    title: 'An acknowledgement is lost',
    articles: [MATCHING, 'RTS 7 9(3)(b)', ...GENERAL],
    stimulus: 'The venue accepts an order, and its answer does not arrive.',
    expectation: 'The bot queries the state of the order; there is one order at most.',
    exercises: ['trading/host/pod/order-gateway.ts'],
    parts: (['answer', 'order', 'connection'] as const).map((what): Part => ({
      name: `the ${what} is lost`,
      steps: [
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
        expect('of its size', { of: 'order', number: 1, field: 'quantity' }, { near: 'quantity' }),
        expect('under one client order id', { of: 'client ids' }, 1),
        expect('its state is queried', { of: 'requests', call: 'GET /order' }, { least: 2 }),
      ],
    })),
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
