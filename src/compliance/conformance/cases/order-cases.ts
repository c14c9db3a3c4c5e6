/** Cases about orders and trades: Article 6(2)(a), with the data flows of RTS 7 Article 9(3). */
import { MINUTE } from '../../../base/durations.ts';
import type { Case } from '../case.ts';
import {
  act,
  alerted,
  bars,
  bid,
  BUY,
  CANCEL,
  events,
  exchange,
  expect,
  fault,
  fill,
  GENERAL,
  holds,
  LOST,
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
  within,
  working,
} from './case-steps.ts';

const NO_AMENDMENTS =
  'The engine sends no amendments. It cancels the order and, after the confirmation, sends a new one.';

export const ORDERS: readonly Case[] = [
  {
    id: 'A01',
    title: 'Late acknowledgement of a resting order',
    articles: [MATCHING, 'RTS 7 9(3)(b)', '15(2)', ...GENERAL],
    stimulus: 'A passive limit order is acknowledged after 0, 50 and 2000 ms.',
    expectation:
      'The order is pending until then, is sent once, and counts toward the limits as soon as it is sent.',
    exercises: ['trading/host/pod/order-gateway.ts', 'engine/execution/venue-execution.ts'],
    parts: [
      ...[0, 50, 2000].map((ms) =>
        part(`acknowledged after ${ms} ms`, [
          fault('POST /order', { kind: 'slow', ms }, { count: 1 }),
          rest(),
          working('the order counts as working once sent', 1),
          wait(10_000),
          sent('the order is sent once', 1),
          order('the order rests at the exchange', 1, 'status', 'new'),
          order('the resting order has the requested quantity', 1, 'quantity', {
            near: 'quantity',
          }),
          order('the resting order has the requested side', 1, 'side', 'buy'),
          order('the resting order has the requested price', 1, 'price', { near: 'below' }),
        ]),
      ),
      part('orders are counted when they are sent', [
        fault('POST /order', { kind: 'slow', ms: 900 }),
        {
          repeat: [act({ ...bid(), count: 60 })],
          most: 4,
          until: { that: { of: 'events', kind: 'order.denied' }, is: { least: 1 } },
        },
        wait(2 * MINUTE),
        holds('the total value of the orders does not exceed the cash', 'ordered value', {
          most: 'cash',
        }),
        events('orders beyond the cash are denied before they are sent', 'order.denied', {
          least: 1,
        }),
      ]),
      part('sales are counted when they are sent', [
        ...BUY,
        act({ side: 'sell', type: 'limit', limit: 'above', quantity: 'quantity' }),
        act({ side: 'sell', type: 'limit', limit: 'above', quantity: 'quantity' }),
        expect(
          'units of a working sale are not sold again',
          { of: 'requests', call: 'POST /order', side: 'SELL' },
          1,
        ),
        reasons('the session records the reason', 'order.denied', ['short_not_allowed']),
      ]),
    ],
  },
  {
    id: 'A02',
    title: 'Partial fills, then the remaining quantity',
    articles: [MATCHING, 'RTS 7 9(3)(a)', ...GENERAL],
    stimulus:
      'A resting order is filled in three parts, then completely. Before the last fill, the bot orders an exit.',
    expectation:
      'Filled quantity, cost and remaining quantity are exact after each part; the exit has the filled quantity.',
    parts: [
      part('three parts and the remaining quantity', [
        rest(),
        ...[1, 2, 3].flatMap((count) => [
          fill(0.25),
          wait(1000),
          position(`the position is exact after part ${count}`, count / 4),
          holds(`the filled quantity is exact after part ${count}`, 'working fill', {
            near: { of: 'quantity', times: count / 4 },
          }),
          holds(`the cash is exact after part ${count}`, 'spent', {
            near: { of: 'bid value', times: count / 4 },
          }),
        ]),
        act({
          side: 'sell',
          type: 'limit',
          limit: 'above',
          quantity: 'quantity',
          reduceOnly: true,
        }),
        order('the exit has the filled quantity', 2, 'quantity', {
          near: { of: 'quantity', times: 0.75 },
        }),
        fill(0.25),
        bars(1),
        order('the entry is filled at the exchange', 1, 'status', 'filled'),
        working('only the exit still works', 1),
        holds('the strategy receives each filled unit once', 'fills received', {
          near: 'quantity',
        }),
        {
          others: 'take',
          side: 'buy',
          price: 'above',
          quantity: { of: 'quantity', times: 0.75 },
        },
        bars(1),
        position('the exit is booked', 0.25),
        holds('the cash contains the proceeds of the exit', 'spent', {
          near: { of: 'bid value', plus: { of: 'offer value', times: -0.75 } },
        }),
      ]),
    ],
  },
  {
    id: 'A03',
    title: 'Immediate orders',
    articles: [MATCHING, 'RTS 7 9(3)(a)', ...GENERAL],
    stimulus:
      'The book holds half the quantity of an immediate-or-cancel order, then of a fill-or-kill order.',
    expectation: 'The unfilled quantity counts as canceled, and no other order is sent.',
    parts: [
      ...(['ioc', 'fok'] as const).map((timeInForce) =>
        part(timeInForce, [
          {
            others: 'quote',
            side: 'sell',
            price: 'price',
            quantity: { of: 'quantity', times: 0.5 },
            more: 1,
          },
          act({ side: 'buy', type: 'limit', limit: 'price', quantity: 'quantity', timeInForce }),
          bars(1),
          working('no order still works', 0),
          holds('the filled quantity is booked', 'position', {
            near: { of: 'quantity', times: timeInForce === 'ioc' ? 0.5 : 0 },
            within: 'unit',
          }),
          reasons('the unfilled quantity has ended', 'order.expired', ['not_filled_at_once']),
          sent('no other order is sent', 1),
        ]),
      ),
      part('post only', [
        { others: 'quote', side: 'sell', price: 'price', quantity: 'quantity', more: 1 },
        act({ side: 'buy', type: 'limit', limit: 'price', quantity: 'quantity', postOnly: true }),
        bars(1),
        events('the post-only order is not filled', 'order.filled', 0),
        reasons('the post-only order is rejected', 'order.rejected', ['post_only_would_cross']),
        sent('no other order is sent', 1),
      ]),
    ],
  },
  {
    id: 'A04',
    title: 'Amendments of quantity and price',
    articles: [MATCHING, 'RTS 7 9(3)(b)'],
    stimulus: 'An order is amended to a smaller quantity, then to another price.',
    expectation: 'The bot knows whether the order kept its priority, and links the order ids.',
    notApplicable: NO_AMENDMENTS,
    parts: [],
  },
  {
    id: 'A05',
    title: 'Rejected amendments',
    articles: [MATCHING, 'RTS 7 9(3)(b)'],
    stimulus:
      'One amendment is rejected because the order is unknown, another because it is too late.',
    expectation: 'The last confirmed terms of the order apply again.',
    notApplicable: NO_AMENDMENTS,
    parts: [],
  },
  {
    id: 'A06',
    title: 'A cancel that crosses a fill',
    articles: [MATCHING, 'RTS 7 9(3)(b)', ...GENERAL],
    stimulus: 'An order is filled while its cancel is in flight.',
    expectation:
      'The fill is booked, the rejected cancel has no effect, and the position is correct.',
    parts: [
      part('filled before it is canceled', [
        rest(),
        { act: [], cancel: true, during: [fill()] },
        bars(1),
        requests('the cancel is sent', 'DELETE /order', { least: 1 }),
        events('the cancel is pending until the venue answers', 'order.pending_cancel', 1),
        events('the order does not count as canceled', 'order.canceled', 0),
        position('the fill is booked', 1),
        sent('no other order is sent', 1),
      ]),
      part('canceled in time', [
        rest(),
        CANCEL,
        order('the order is canceled at the exchange', 1, 'status', 'canceled'),
        reasons('the session records the reason', 'order.canceled', ['canceled_by_strategy']),
        working('no order still works', 0),
      ]),
    ],
  },
  {
    id: 'A07',
    title: 'Orders that the venue rejects',
    articles: [MATCHING, 'RTS 7 9(3)(a)', '16(5)', ...GENERAL],
    stimulus:
      'Tick, lot, price band, instrument or market phase change while an order is in flight, so the venue rejects it.',
    expectation:
      'Each rejection has the right reason, no order is sent again automatically, and an alert is raised.',
    parts: [
      ...(
        [
          ['tick', { do: 'set_terms', terms: { tick: 7919 } }, 'invalid_order'],
          ['lot', { do: 'set_terms', terms: { lot: 999_983 } }, 'invalid_order'],
          ['band', { do: 'set_terms', terms: { band: 1e-9 } }, 'invalid_order'],
          ['instrument', { do: 'delist' }, 'unknown_symbol'],
          ['closed market', { do: 'phase', phase: 'closed' }, 'market_closed'],
        ] as const
      ).map(([name, action, reason]) =>
        part(name, [
          mark('begun'),
          // The terms change in flight: the session does not send an order that it knows to be invalid.
          { act: [bid()], bar: 'quiet', during: [exchange(action)] },
          sent('the order is sent', 1),
          reasons(`the order is rejected as ${reason}`, 'order.rejected', [reason]),
          wait(3 * MINUTE),
          sent('the order is not sent again', 1),
          working('no order still works', 0),
          alerted('an alert is raised', 'order\\.rejected', 'begun'),
        ]),
      ),
      part('unsupported order types', [
        act(
          { ...bid(), timeInForce: 'day' },
          { ...bid(), stopLoss: { percent: 0.1 } },
          { ...bid(), ocoGroup: 1 },
          { side: 'buy', type: 'trailing_stop', trail: { percent: 0.1 }, quantity: 'quantity' },
        ),
        reasons('each order is denied', 'order.denied', Array(4).fill('not_supported_by_venue')),
        sent('no order is sent', 0),
      ]),
    ],
  },
  {
    id: 'A08',
    title: 'Throttling by the venue',
    articles: [MATCHING, 'RTS 7 9(3)(c)', '15(1)(d)', ...GENERAL],
    stimulus:
      'The bot sends more messages than the venue accepts; the venue rejects or queues the excess.',
    expectation:
      'Rejected messages are repeated more slowly, cancels succeed, and no order is duplicated.',
    exercises: ['trading/host/pod/order-gateway.ts'],
    parts: (['reject', 'queue'] as const).map((policy) =>
      part(policy, [
        exchange({ do: 'throttle', throttle: { limit: 2, per_ms: 1000, policy } }),
        act({ ...bid(), count: 'burst' }),
        wait(20_000),
        holds('each accepted order rests at the exchange once', 'unplaced', 0),
        reasons('no order is abandoned', 'order.rejected', []),
        exchange({ do: 'throttle', throttle: { limit: 1, per_ms: 1000, policy } }),
        CANCEL,
        within('all orders are canceled', MINUTE, 'open orders', 0),
      ]),
    ),
  },
  {
    id: 'A09',
    title: 'Self-trade prevention',
    articles: [MATCHING, 'RTS 7 9(3)(a)', ...GENERAL],
    stimulus:
      "A purchase matches the bot's own resting sale; the venue cancels the newest order, the oldest, or both.",
    expectation: 'The bot does not trade with itself, and knows which of its orders have ended.',
    parts: (['cancel_newest', 'cancel_oldest', 'cancel_both'] as const).map((selfTrade) =>
      part({ name: selfTrade, selfTrade }, [
        ...BUY,
        act({ side: 'sell', type: 'limit', limit: 'above', quantity: 'half' }),
        act({ side: 'buy', type: 'limit', limit: 'above', quantity: 'half' }),
        wait(20_000),
        holds('no trade takes place', 'holding', { near: 'quantity' }),
        working(
          'the other order still works, if there is one',
          selfTrade === 'cancel_both' ? 0 : 1,
        ),
        events(
          'the session knows which orders have ended',
          'order.expired',
          selfTrade === 'cancel_both' ? 2 : 1,
        ),
      ]),
    ),
  },
  {
    id: 'A13',
    title: 'Cancellation of all orders, some delayed',
    articles: [MATCHING, 'RTS 7 9(3)(b)', '12(1)', ...GENERAL],
    stimulus: 'The bot must cancel all of its orders; two of the cancels do not reach the venue.',
    expectation:
      'The cancels are sent again, and no order counts as canceled before the venue confirms it.',
    exercises: ['trading/host/pod/venue-connection.ts'],
    scope: 'The engine has no mass cancel by instrument or side.',
    parts: [
      part({ name: 'two cancels are lost', ends: 'halted' }, [
        ...[0, 1, 2].map(() => rest(0.5)),
        fault('DELETE /order', LOST, { skip: 1, count: 2 }),
        wait(1),
        open('three orders rest', 3),
        mark('halted'),
        { server: 'halt' },
        within(
          'the session ends once the exchange reports no open orders',
          MINUTE,
          'end',
          'verified',
        ),
        open('no order is open', 0),
        expect(
          'the lost cancels are sent again',
          { of: 'attempts', call: 'DELETE /order', since: 'halted' },
          { least: 4 },
        ),
      ]),
    ],
  },
  {
    id: 'A15',
    title: 'Orders that the venue ends',
    articles: [MATCHING, 'RTS 7 9(3)(b)', ...GENERAL],
    stimulus: "The venue's operator cancels one order; another expires at the end of the day.",
    expectation: 'The bot ends the orders too, records the reason, and does not place them again.',
    parts: [
      part('canceled by the operator', [
        rest(),
        exchange({ do: 'end_orders', status: 'canceled' }),
        bars(2),
        working('the order no longer works in the session', 0),
        reasons('the session records the reason', 'order.canceled', ['canceled_by_venue']),
        sent('the order is not placed again', 1),
      ]),
      part('expired', [
        rest(),
        exchange({ do: 'end_orders', status: 'expired' }),
        bars(2),
        events('the order counts as expired', 'order.expired', 1),
        sent('the order is not placed again', 1),
      ]),
    ],
  },
  {
    id: 'A16',
    title: 'Busted and corrected trades',
    articles: [MATCHING, 'RTS 7 9(3)(a)', '17(3)', ...GENERAL],
    stimulus: 'Half an hour after a fill, the venue busts the trade or corrects its price.',
    expectation: 'Position, cash and limits match the venue; an alert is raised.',
    parts: (['undo_trade', 'correct_trade'] as const).map((what) =>
      part(what === 'undo_trade' ? 'bust' : 'correct', [
        ...BUY,
        wait(30 * MINUTE),
        mark('begun'),
        exchange({ do: what }),
        bars(1),
        wait(MINUTE),
        expect(
          'an alert is raised within 5 s',
          { of: 'alert', like: 'order\\.corrected', since: 'begun' },
          { most: 5000 },
        ),
        events('the correction is booked once', 'order.corrected', 1),
        ...(what === 'undo_trade'
          ? [holds('a busted trade has no effect on the equity', 'equity', { near: 'cash' })]
          : []),
      ]),
    ),
  },
];
