/** Orders and their trades: Article 6(2)(a), by the flows of RTS 7 Article 9(3). */
import { MINUTE } from '../../../market/bar-time.ts';
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
  'The engine sends no amendments: a change is a cancel and, once that is confirmed, a new order.';

export const ORDERS: readonly Case[] = [
  {
    id: 'A01',
    title: 'A resting order whose acknowledgement is late',
    articles: [MATCHING, 'RTS 7 9(3)(b)', '15(2)', ...GENERAL],
    stimulus: 'A passive limit order is acknowledged after 0, 50 and 2000 ms.',
    expectation:
      'It is pending until then, sent once, and counts towards the limits from when it is sent.',
    exercises: ['trading/host/pod/order-gateway.ts', 'engine/execution/venue-execution.ts'],
    parts: [
      ...[0, 50, 2000].map((ms) =>
        part(`acknowledged after ${ms} ms`, [
          fault('POST /order', { kind: 'slow', ms }, { count: 1 }),
          rest(),
          working('the order counts as working once sent', 1),
          wait(10_000),
          sent('the order is sent once', 1),
          order('it rests at the exchange', 1, 'status', 'new'),
          order('it rests in its size', 1, 'quantity', { near: 'quantity' }),
          order('it rests on its side', 1, 'side', 'buy'),
          order('it rests at its price', 1, 'price', { near: 'below' }),
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
        holds('no more is ordered than can be paid for', 'ordered value', { most: 'cash' }),
        events('what is too much is denied before it is sent', 'order.denied', { least: 1 }),
      ]),
      part('sales are counted when they are sent', [
        ...BUY,
        act({ side: 'sell', type: 'limit', limit: 'above', quantity: 'quantity' }),
        act({ side: 'sell', type: 'limit', limit: 'above', quantity: 'quantity' }),
        expect(
          'what is being sold is not sold again',
          { of: 'requests', call: 'POST /order', side: 'SELL' },
          1,
        ),
        reasons('the session knows why', 'order.denied', ['short_not_allowed']),
      ]),
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
      part('three parts and the rest', [
        rest(),
        ...[1, 2, 3].flatMap((count) => [
          fill(0.25),
          wait(1000),
          position(`after part ${count}: the position`, count / 4),
          holds(`after part ${count}: what is filled`, 'working fill', {
            near: { of: 'quantity', times: count / 4 },
          }),
          holds(`after part ${count}: the cash`, 'spent', {
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
        order('the exit is of what is filled', 2, 'quantity', {
          near: { of: 'quantity', times: 0.75 },
        }),
        fill(0.25),
        bars(1),
        order('the exchange has filled it', 1, 'status', 'filled'),
        working('only the exit is left', 1),
        holds('the strategy receives each unit once', 'fills received', { near: 'quantity' }),
        {
          others: 'take',
          side: 'buy',
          price: 'above',
          quantity: { of: 'quantity', times: 0.75 },
        },
        bars(1),
        position('the exit is booked', 0.25),
        holds('the cash has what the exit brought in', 'spent', {
          near: { of: 'bid value', plus: { of: 'offer value', times: -0.75 } },
        }),
      ]),
    ],
  },
  {
    id: 'A03',
    title: 'Orders to be filled at once',
    articles: [MATCHING, 'RTS 7 9(3)(a)', ...GENERAL],
    stimulus: 'Half of an immediate-or-cancel order is there; of a fill-or-kill order, too.',
    expectation: 'The rest is taken for canceled, and nothing is sent after it.',
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
          working('nothing is left working', 0),
          holds('what was filled is booked', 'position', {
            near: { of: 'quantity', times: timeInForce === 'ioc' ? 0.5 : 0 },
            within: 'unit',
          }),
          reasons('the rest has ended', 'order.expired', ['not_filled_at_once']),
          sent('nothing is sent after it', 1),
        ]),
      ),
      part('post only', [
        { others: 'quote', side: 'sell', price: 'price', quantity: 'quantity', more: 1 },
        act({ side: 'buy', type: 'limit', limit: 'price', quantity: 'quantity', postOnly: true }),
        bars(1),
        events('a post-only order takes nothing', 'order.filled', 0),
        reasons('it is rejected', 'order.rejected', ['post_only_would_cross']),
        sent('nothing is sent after it', 1),
      ]),
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
      part('filled before it is canceled', [
        rest(),
        { act: [], cancel: true, during: [fill()] },
        bars(1),
        requests('the cancel is sent', 'DELETE /order', { least: 1 }),
        events('it is pending until answered', 'order.pending_cancel', 1),
        events('the order counts as filled', 'order.canceled', 0),
        position('the fill is booked', 1),
        sent('nothing is sent after it', 1),
      ]),
      part('canceled in time', [
        rest(),
        CANCEL,
        order('the exchange has canceled it', 1, 'status', 'canceled'),
        reasons('the session knows why', 'order.canceled', ['canceled_by_strategy']),
        working('nothing is left working', 0),
      ]),
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
      ).map(([name, deed, reason]) =>
        part(name, [
          mark('begun'),
          // An order that the session knew to be invalid would not be sent.
          { act: [bid()], bar: 'quiet', during: [exchange(deed)] },
          sent('the order is sent', 1),
          reasons(`it is rejected as ${reason}`, 'order.rejected', [reason]),
          wait(3 * MINUTE),
          sent('it is not sent again', 1),
          working('nothing is left working', 0),
          alerted('people are alerted', 'order\\.rejected', 'begun'),
        ]),
      ),
      part('kinds of orders that it does not have', [
        act(
          { ...bid(), timeInForce: 'day' },
          { ...bid(), stopLoss: { percent: 0.1 } },
          { ...bid(), ocoGroup: 1 },
          { side: 'buy', type: 'trailing_stop', trail: { percent: 0.1 }, quantity: 'quantity' },
        ),
        reasons('each is denied', 'order.denied', Array(4).fill('not_supported_by_venue')),
        sent('none is sent', 0),
      ]),
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
    parts: (['reject', 'queue'] as const).map((policy) =>
      part(policy, [
        exchange({ do: 'throttle', throttle: { limit: 2, per_ms: 1000, policy } }),
        act({ ...bid(), count: 'burst' }),
        wait(20_000),
        holds('the accepted orders rest at the exchange, once each', 'unplaced', 0),
        reasons('none is given up', 'order.rejected', []),
        exchange({ do: 'throttle', throttle: { limit: 1, per_ms: 1000, policy } }),
        CANCEL,
        within('the cancels get through', MINUTE, 'open orders', 0),
      ]),
    ),
  },
  {
    id: 'A09',
    title: 'An order that would meet an own one',
    articles: [MATCHING, 'RTS 7 9(3)(a)', ...GENERAL],
    stimulus:
      "A purchase meets the bot's own resting sale; the account has the venue cancel the newest, the oldest, both.",
    expectation: 'The bot does not trade with itself, and knows which of its orders is gone.',
    parts: (['cancel_newest', 'cancel_oldest', 'cancel_both'] as const).map((selfTrade) =>
      part({ name: selfTrade, selfTrade }, [
        ...BUY,
        act({ side: 'sell', type: 'limit', limit: 'above', quantity: 'half' }),
        act({ side: 'buy', type: 'limit', limit: 'above', quantity: 'half' }),
        wait(20_000),
        holds('nothing was traded', 'holding', { near: 'quantity' }),
        working('the other orders still work', selfTrade === 'cancel_both' ? 0 : 1),
        events(
          'the session knows what is gone',
          'order.expired',
          selfTrade === 'cancel_both' ? 2 : 1,
        ),
      ]),
    ),
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
      part({ name: 'two cancels are lost', ends: 'halted' }, [
        ...[0, 1, 2].map(() => rest(0.5)),
        fault('DELETE /order', LOST, { skip: 1, count: 2 }),
        wait(1),
        open('three orders rest', 3),
        mark('halted'),
        { server: 'halt' },
        within('it ends once the exchange reports that none is open', MINUTE, 'end', 'verified'),
        open('none is open', 0),
        expect(
          'what survived was canceled again',
          { of: 'attempts', call: 'DELETE /order', since: 'halted' },
          { least: 4 },
        ),
      ]),
    ],
  },
  {
    id: 'A15',
    title: 'Orders that end unasked',
    articles: [MATCHING, 'RTS 7 9(3)(b)', ...GENERAL],
    stimulus: "The venue's operator cancels an order; another one expires with the day.",
    expectation: 'The bot follows the venue, knows the reason, and does not place them again.',
    parts: [
      part('canceled by the operator', [
        rest(),
        exchange({ do: 'end_orders', status: 'canceled' }),
        bars(2),
        working('the order is gone for the session, too', 0),
        reasons('the session knows why', 'order.canceled', ['canceled_by_venue']),
        sent('it is not placed again', 1),
      ]),
      part('expired', [
        rest(),
        exchange({ do: 'end_orders', status: 'expired' }),
        bars(2),
        events('it counts as expired', 'order.expired', 1),
        sent('it is not placed again', 1),
      ]),
    ],
  },
  {
    id: 'A16',
    title: 'A trade is undone or corrected',
    articles: [MATCHING, 'RTS 7 9(3)(a)', '17(3)', ...GENERAL],
    stimulus: 'Half an hour after a fill the venue undoes the trade, or corrects its price.',
    expectation: 'Position, cash and limits are those of the venue; people are alerted.',
    parts: (['undo_trade', 'correct_trade'] as const).map((what) =>
      part(what === 'undo_trade' ? 'bust' : 'correct', [
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
        events('it counts once', 'order.corrected', 1),
        ...(what === 'undo_trade'
          ? [holds('an undone trade neither gained nor lost', 'equity', { near: 'cash' })]
          : []),
      ]),
    ),
  },
];
