/** Cases about market rules, connections and order reports: Article 6(2)(b), with the data flows of RTS 7 Article 9(3). */
import { MINUTE } from '../../../base/durations.ts';
import type { Case, Part, Step } from '../case.ts';
import {
  act,
  alerted,
  alerts,
  bars,
  bid,
  BUY,
  DATA,
  events,
  exchange,
  fault,
  fill,
  GENERAL,
  holds,
  lead,
  LOST,
  mark,
  open,
  order,
  part,
  position,
  reasons,
  requests,
  rest,
  sent,
  wait,
  working,
} from './case-steps.ts';

export const VENUE_MESSAGES: readonly Case[] = [
  {
    id: 'B01',
    title: 'Reference data and intraday changes',
    articles: [DATA, 'RTS 7 9(3)(b)', ...GENERAL],
    stimulus:
      'The bot downloads the market rules; then the tick changes, and then the instrument is delisted.',
    expectation: 'Orders follow the current rules; no orders are sent for a delisted instrument.',
    parts: [
      part('downloaded before the first order', [
        act({
          side: 'buy',
          type: 'limit',
          limit: { of: 'below', plus: -0.0049 },
          quantity: { of: 'quantity', plus: { of: 'unit', times: 1 / 3 } },
        }),
        lead(
          'the market rules are queried before the first order',
          'GET /exchangeInfo',
          'POST /order',
          {
            least: 1,
          },
        ),
        order('the order conforms to tick and lot', 1, 'status', 'new'),
        order('the limit is not above the requested one', 1, 'price', {
          most: { of: 'below', plus: -0.0049 },
        }),
        holds('the session has the quantity of the exchange', 'working quantity', {
          near: 'quantity',
        }),
      ]),
      part({ name: 'the tick changes', termsMs: 20_000 }, [
        // Makes the market price the only valid price nearby.
        exchange({ do: 'set_terms', terms: { tick: 'price units' } }),
        rest(),
        wait(10_000),
        reasons('no order violates the new tick', 'order.rejected', []),
        sent('an order without a valid price is not sent', 0),
      ]),
      part({ name: 'the instrument is delisted', termsMs: 20_000 }, [
        exchange({ do: 'delist' }),
        { act: [bid()], bar: 'quiet' },
        wait(5 * MINUTE),
        sent('no order is sent for the instrument', 0),
        reasons('the session records the reason', 'order.denied', ['unknown_symbol']),
        alerts('an alert is raised', 'deleted', { least: 1 }),
        working('no order counts as working', 0),
      ]),
    ],
  },
  {
    id: 'B02',
    title: 'Logon, logout and lost heartbeats',
    articles: [DATA, 'RTS 7 9(3)(c)', '16(5)', ...GENERAL],
    stimulus:
      'The venue is unreachable at the start; it logs the bot out; heartbeats of the bot are lost.',
    expectation: 'No order is sent before the bot is connected again; an alert is raised.',
    exercises: ['trading/host/pod/venue-connection.ts'],
    scope:
      'The exchange has no logon: instead, its streams disconnect, or no message arrives for 100 s.',
    parts: [
      part({ name: 'unreachable at the start', begins: false }, [
        exchange({ do: 'network', is_up: false }),
        wait(1),
        mark('begun'),
        { session: 'start' },
        { act: [bid()], bar: 'none' },
        bars(3),
        sent('no order is sent', 0),
        alerted('an alert is raised', 'venue', 'begun'),
        exchange({ do: 'network', is_up: true }),
        wait(MINUTE),
        bars(3),
        sent('the bot trades once the venue is reachable', 1),
        lead('open orders are queried first', 'GET /openOrders', 'POST /order', { least: 1 }),
      ]),
      ...(['logged out', 'heartbeats are lost'] as const).map((name) =>
        part(name, [
          rest(),
          mark('begun'),
          ...(name === 'logged out'
            ? [exchange({ do: 'cut' })]
            : [
                exchange(
                  { do: 'fault', on: 'requests', action: LOST, lasting: 100_000 },
                  { do: 'fault', on: 'pushed', action: { kind: 'drop' }, lasting: 100_000 },
                ),
              ]),
          wait(2 * MINUTE),
          alerted('an alert is raised', 'connect|logged|answer', 'begun'),
          wait(MINUTE),
          holds('the bot is connected again', 'streaming', true),
          bars(2),
          rest(0.5),
          wait(10_000),
          open('the bot trades again', 2),
        ]),
      ),
    ],
  },
  {
    id: 'B03',
    title: 'A gap in the order reports',
    articles: [DATA, 'RTS 7 9(3)(c)', ...GENERAL],
    stimulus: 'Execution reports and the answer to a query are lost, while other reports arrive.',
    expectation: 'Missed executions are queried and counted once.',
    scope:
      'Messages of the exchange have no sequence numbers, so only the next query reveals a loss.',
    parts: [
      {
        name: 'lost report and lost answer',
        steps: [
          rest(),
          mark('begun'),
          fault('executionReport', { kind: 'drop' }, { where: { x: 'TRADE' }, count: 2 }),
          fault('GET /order', { kind: 'lost_after', isSilent: true }, { count: 1 }),
          ...[0, 1, 2, 3].flatMap(() => [fill(0.25), wait(200)]),
          wait(30_000),
          position('all fills are counted once', 1),
          requests('the missed executions are queried', 'GET /order', { least: 1 }, 'begun'),
          bars(1),
          holds('the strategy receives each filled unit once', 'fills received', {
            near: 'quantity',
          }),
        ],
      },
      part('never reported', [
        rest(),
        fault('executionReport', { kind: 'drop' }),
        fill(0.25),
        wait(30_000),
        position('a query finds the unreported fill', 0.25),
      ]),
    ],
  },
  {
    id: 'B04',
    title: 'Duplicate and late reports',
    articles: [DATA, 'RTS 7 9(3)(a)', ...GENERAL],
    stimulus:
      'Execution messages are duplicated; each report arrives three times, with an older one in between.',
    expectation: 'Each execution counts once.',
    parts: [false, true].map((repeats) =>
      part({ name: repeats ? 'reports' : 'messages', repeats }, [
        fault('executionReport', { kind: 'duplicate' }),
        rest(),
        fill(0.25),
        bars(1),
        fill(0.25),
        bars(1),
        position('the position is correct', 0.5),
        events('each fill is booked once', 'order.filled', 2),
        holds('the strategy receives no fill twice', 'fills received', {
          most: { of: 'quantity', times: 0.5, plus: 1e-9 },
        }),
      ]),
    ),
  },
  {
    id: 'B10',
    title: 'Unreadable messages',
    articles: [DATA, 'RTS 7 9(3)(a)', '16(5)', ...GENERAL],
    stimulus:
      'One message is truncated, one has an unknown type, and one has text in place of numbers.',
    expectation: 'The message is ignored, the process continues, and an alert is raised.',
    parts: (
      [
        ['truncated', 'executionReport', { kind: 'truncate', length: 40 }],
        ['unknown type', 'executionReport', { kind: 'patch', fields: { e: 'unknown' } }],
        [
          'text in place of numbers',
          'GET /order',
          { kind: 'patch', fields: { executedQty: 'many' } },
        ],
      ] as const
    ).map(([name, on, action]) =>
      part(name, [
        rest(),
        mark('begun'),
        fault(on, action, { count: 1 }),
        fill(0.25),
        wait(30_000),
        alerted('an alert is raised', 'read|order stream|fetch the state|report', 'begun'),
        position('the fill is not lost', 0.25),
        rest(0.5),
        open('the bot continues to trade', 2),
      ]),
    ),
  },
  {
    id: 'B11',
    title: 'Market phases',
    articles: [DATA, 'RTS 7 9(3)(c)'],
    stimulus: 'The market phase changes; the changes are reported on time, late or not at all.',
    expectation: 'The session has the same phase as the venue.',
    parts: (['in order', 'reported late', 'one of them lost'] as const).map((name) =>
      part({ name, termsMs: 4000 }, [
        ...(
          [
            ['opening_auction', 'auction'],
            ['continuous', 'open'],
            ['volatility_auction', 'auction'],
            ['continuous', 'open'],
            ['halt', 'halted'],
            ['continuous', 'open'],
            ['closing_auction', 'auction'],
            ['closed', 'closed'],
          ] as const
        ).flatMap(([phase, expected], at): Step[] => [
          ...(name === 'reported late' && at % 2 === 0
            ? [fault('GET /exchangeInfo', { kind: 'slow', ms: 4000 }, { count: 1 })]
            : []),
          ...(name === 'one of them lost' && phase === 'halt'
            ? [fault('GET /exchangeInfo', LOST, { count: 1 })]
            : []),
          exchange({ do: 'phase', phase }),
          // Auctions end at a random time, up to half a minute later.
          wait(40_000),
          holds(
            `the session has the phase ${expected} while the venue is in ${phase}`,
            'phase',
            expected,
          ),
        ]),
        wait(90_000),
        holds('the session has the phase closed at the end', 'phase', 'closed'),
      ]),
    ),
  },
  {
    id: 'B12',
    title: 'Restart of a killed process',
    articles: [DATA, 'RTS 7 9(3)(c)', '15(2)', ...GENERAL],
    stimulus:
      'The process is killed while its order works at the venue, is in flight, or is lost; other participants trade in the meantime.',
    expectation: 'The bot queries orders and holdings before it trades, and sends no order twice.',
    exercises: ['trading/restore-session.ts', 'trading/venues/reconcile.ts'],
    scope: 'The journal is in memory, so its files are not tested.',
    parts: [
      part('while an order works at the venue', [
        rest(),
        fill(0.25),
        bars(1),
        { session: 'kill' },
        wait(MINUTE),
        fill(0.25),
        wait(MINUTE),
        mark('back'),
        { session: 'start' },
        wait(10_000),
        position('the session has all fills', 0.5),
        sent('the order is not sent again', 1),
        bars(1),
        rest(0.5),
        ...['GET /openOrders', 'GET /account'].map((call) =>
          lead(`${call} precedes the next order`, call, 'POST /order', { least: 1 }, 'back'),
        ),
        open('the bot continues to trade', 2),
      ]),
      ...[false, true].map((isLost): Part => {
        const kind = isLost ? 'lost_before' : 'lost_after';
        return part(isLost ? 'before the order arrives' : 'before the order is confirmed', [
          fault('POST /order', { kind, isSilent: true }, { count: 1 }),
          { act: [bid()] },
          { session: 'kill' },
          wait(MINUTE),
          { session: 'start' },
          wait(20_000),
          sent('the order is not sent again', isLost ? 0 : 1),
          working('the session knows whether the order exists', isLost ? 0 : 1),
        ]);
      }),
      ...(['units', 'cash'] as const).map((what) =>
        part(`while the account loses ${what}`, [
          ...BUY,
          ...(what === 'cash'
            ? ([
                { others: 'quote', side: 'buy', price: 'price', quantity: 'quantity', more: 1 },
                act({ side: 'sell', quantity: 'quantity' }),
                { others: 'none' },
              ] as const)
            : []),
          { session: 'kill' },
          exchange({ do: 'withdraw', what }),
          { tolerate: 'holdings' },
          wait(MINUTE),
          mark('back'),
          { session: 'start' },
          ...[0, 1, 2].map(() => rest(0.5)),
          sent('no order is sent while the holdings differ', 0, 'back'),
          alerted('an alert is raised', 'mismatch', 'back'),
        ]),
      ),
      part('while a trade is busted', [
        ...BUY,
        { session: 'kill' },
        exchange({ do: 'undo_trade' }),
        { tolerate: 'holdings' },
        wait(MINUTE),
        mark('back'),
        { session: 'start' },
        wait(10_000),
        ...[0, 1, 2].map(() => rest(0.5)),
        alerted('an alert is raised', 'mismatch', 'back'),
        sent('no order is sent while the holdings differ', 0, 'back'),
      ]),
      part('with a lost log', [
        rest(),
        { session: 'kill' },
        { session: 'lose log' },
        wait(MINUTE),
        { session: 'start' },
        wait(30_000),
        open('the order that the session does not know is canceled', 0),
        alerts('an alert is raised', 'not known|orphan', { least: 1 }),
        { tolerate: 'log' },
      ]),
    ],
  },
  {
    id: 'B15',
    title: 'A fill that only the drop copy reports',
    articles: [DATA, '17(3)'],
    stimulus: 'Only the drop copy reports a fill.',
    expectation: 'The difference raises an alert at once and is resolved.',
    notApplicable:
      'The bot reads no drop copy. It finds unreported fills by queries; see case B03.',
    parts: [],
  },
];
