/** Market rules, connections and reports of orders: Article 6(2)(b), by the flows of RTS 7 Article 9(3). */
import { MINUTE } from '../../../market/bar-time.ts';
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
    title: 'Reference data, and changes of them within the day',
    articles: [DATA, 'RTS 7 9(3)(b)', ...GENERAL],
    stimulus: 'Terms are downloaded; then the tick changes, and then the instrument is deleted.',
    expectation: 'Orders keep to the terms that hold; none are sent for what is not there.',
    parts: [
      part('downloaded before the first order', [
        act({
          side: 'buy',
          type: 'limit',
          limit: { of: 'below', plus: -0.0049 },
          quantity: { of: 'quantity', plus: { of: 'unit', times: 1 / 3 } },
        }),
        lead('the terms are queried before the first order', 'GET /exchangeInfo', 'POST /order', {
          least: 1,
        }),
        order('the order keeps to tick and lot', 1, 'status', 'new'),
        order('it is no dearer than was asked for', 1, 'price', {
          most: { of: 'below', plus: -0.0049 },
        }),
        holds('the session counts what is at the exchange', 'working quantity', {
          near: 'quantity',
        }),
      ]),
      part({ name: 'the tick changes', termsMs: 20_000 }, [
        // The market price is a multiple of it, and no other price near it.
        exchange({ do: 'set_terms', terms: { tick: 'price units' } }),
        rest(),
        wait(10_000),
        reasons('orders keep to the new tick', 'order.rejected', []),
        sent('what the tick leaves no price for is not sent', 0),
      ]),
      part({ name: 'the instrument is deleted', termsMs: 20_000 }, [
        exchange({ do: 'delist' }),
        { act: [bid()], bar: 'quiet' },
        wait(5 * MINUTE),
        sent('nothing is sent for it', 0),
        reasons('the session knows why', 'order.denied', ['unknown_symbol']),
        alerts('people are alerted', 'deleted', { least: 1 }),
        working('nothing counts as working', 0),
      ]),
    ],
  },
  {
    id: 'B02',
    title: 'Logon, logout and lost heartbeats',
    articles: [DATA, 'RTS 7 9(3)(c)', '16(5)', ...GENERAL],
    stimulus:
      'The venue cannot be reached at the start; it logs the bot out; heartbeats of the bot are lost.',
    expectation: 'No order before the session is there again; people are alerted.',
    exercises: ['trading/host/pod/venue-connection.ts'],
    scope: 'The exchange has no logon: its streams are disconnected, or nothing arrives for 100 s.',
    parts: [
      part({ name: 'not to be reached at the start', begins: false }, [
        exchange({ do: 'network', is_up: false }),
        wait(1),
        mark('begun'),
        { session: 'start' },
        { act: [bid()], bar: 'none' },
        bars(3),
        sent('nothing is sent', 0),
        alerted('people are alerted', 'venue', 'begun'),
        exchange({ do: 'network', is_up: true }),
        wait(MINUTE),
        bars(3),
        sent('once it is there, the bot trades', 1),
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
          alerted('people are alerted', 'connect|logged|answer', 'begun'),
          wait(MINUTE),
          holds('it is connected again', 'streaming', true),
          bars(2),
          rest(0.5),
          wait(10_000),
          open('it trades', 2),
        ]),
      ),
    ],
  },
  {
    id: 'B03',
    title: 'A gap in what the venue reports of orders',
    articles: [DATA, 'RTS 7 9(3)(c)', ...GENERAL],
    stimulus: 'Executions are lost, and one of the answers to queries; live ones come between.',
    expectation: 'What was missed is queried, and counted once.',
    scope: 'Messages of the exchange have no sequence numbers: a loss shows by the next query.',
    parts: [
      {
        name: 'lost, and lost again',
        steps: [
          rest(),
          mark('begun'),
          fault('executionReport', { kind: 'drop' }, { where: { x: 'TRADE' }, count: 2 }),
          fault('GET /order', { kind: 'lost_after', isSilent: true }, { count: 1 }),
          ...[0, 1, 2, 3].flatMap(() => [fill(0.25), wait(200)]),
          wait(30_000),
          position('all of it is counted once', 1),
          requests('what was missed is queried', 'GET /order', { least: 1 }, 'begun'),
          bars(1),
          holds('the strategy receives each unit once', 'fills received', { near: 'quantity' }),
        ],
      },
      part('never reported', [
        rest(),
        fault('executionReport', { kind: 'drop' }),
        fill(0.25),
        wait(30_000),
        position('what no message reported is found by a query', 0.25),
      ]),
    ],
  },
  {
    id: 'B04',
    title: 'Reports that come twice, and late',
    articles: [DATA, 'RTS 7 9(3)(a)', ...GENERAL],
    stimulus: 'Executions are duplicated; each report comes three times, an older one between.',
    expectation: 'Each counts once.',
    parts: [false, true].map((repeats) =>
      part({ name: repeats ? 'reports' : 'messages', repeats }, [
        fault('executionReport', { kind: 'duplicate' }),
        rest(),
        fill(0.25),
        bars(1),
        fill(0.25),
        bars(1),
        position('the position is right', 0.5),
        events('each fill is booked once', 'order.filled', 2),
        holds('the strategy receives none twice', 'fills received', {
          most: { of: 'quantity', times: 0.5, plus: 1e-9 },
        }),
      ]),
    ),
  },
  {
    id: 'B10',
    title: 'Messages that cannot be read',
    articles: [DATA, 'RTS 7 9(3)(a)', '16(5)', ...GENERAL],
    stimulus:
      'A message is cut off, one is of an unknown kind, one has no numbers where they belong.',
    expectation: 'The message is passed over, the process goes on, and people are alerted.',
    parts: (
      [
        ['cut off', 'executionReport', { kind: 'truncate', length: 40 }],
        ['of an unknown kind', 'executionReport', { kind: 'patch', fields: { e: 'riddle' } }],
        ['without numbers', 'GET /order', { kind: 'patch', fields: { executedQty: 'many' } }],
      ] as const
    ).map(([name, on, action]) =>
      part(name, [
        rest(),
        mark('begun'),
        fault(on, action, { count: 1 }),
        fill(0.25),
        wait(30_000),
        alerted('people are alerted', 'read|order stream|fetch the state|report', 'begun'),
        position('the fill is not lost', 0.25),
        rest(0.5),
        open('the bot trades on', 2),
      ]),
    ),
  },
  {
    id: 'B11',
    title: 'The phase of the market',
    articles: [DATA, 'RTS 7 9(3)(c)'],
    stimulus: 'Phases follow each other, and are reported late or not at all.',
    expectation: "The bot's idea of the phase is the venue's.",
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
          // Auctions end at random, half a minute later at most.
          wait(40_000),
          holds(`in ${phase} it is ${expected} for the session, too`, 'phase', expected),
        ]),
        wait(90_000),
        holds('in the end it is closed', 'phase', 'closed'),
      ]),
    ),
  },
  {
    id: 'B12',
    title: 'The process is killed and started again',
    articles: [DATA, 'RTS 7 9(3)(c)', '15(2)', ...GENERAL],
    stimulus:
      'It is killed with an order at the venue, on its way, and lost; meanwhile others trade.',
    expectation: 'Orders and holdings are queried before it trades; none is made twice.',
    exercises: ['trading/restore-session.ts', 'trading/venues/reconcile.ts'],
    scope: 'The journal is kept in memory: its files are not tested here.',
    parts: [
      part('with an order at the venue', [
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
        position('it knows what was filled', 0.5),
        sent('the order is not sent again', 1),
        bars(1),
        rest(0.5),
        ...['GET /openOrders', 'GET /account'].map((call) =>
          lead(`${call} comes before the next order`, call, 'POST /order', { least: 1 }, 'back'),
        ),
        open('it trades on', 2),
      ]),
      ...[false, true].map((isLost): Part => {
        const kind = isLost ? 'lost_before' : 'lost_after';
        return part(isLost ? 'before its order arrives' : 'before its order is confirmed', [
          fault('POST /order', { kind, isSilent: true }, { count: 1 }),
          { act: [bid()] },
          { session: 'kill' },
          wait(MINUTE),
          { session: 'start' },
          wait(20_000),
          sent('it is not sent again', isLost ? 0 : 1),
          working('the session knows whether it is there', isLost ? 0 : 1),
        ]);
      }),
      ...(['units', 'cash'] as const).map((what) =>
        part(`while it came to hold less ${what}`, [
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
          sent('nothing is sent while holdings do not agree', 0, 'back'),
          alerted('people are alerted', 'mismatch', 'back'),
        ]),
      ),
      part('while a trade was undone', [
        ...BUY,
        { session: 'kill' },
        exchange({ do: 'undo_trade' }),
        { tolerate: 'holdings' },
        wait(MINUTE),
        mark('back'),
        { session: 'start' },
        wait(10_000),
        ...[0, 1, 2].map(() => rest(0.5)),
        alerted('people are alerted', 'mismatch', 'back'),
        sent('nothing is sent while holdings do not agree', 0, 'back'),
      ]),
      part('having lost its log', [
        rest(),
        { session: 'kill' },
        { session: 'lose log' },
        wait(MINUTE),
        { session: 'start' },
        wait(30_000),
        open('an order that the session does not know is canceled', 0),
        alerts('people are alerted', 'not known|orphan', { least: 1 }),
        { tolerate: 'log' },
      ]),
    ],
  },
  {
    id: 'B15',
    title: 'The drop copy shows a fill that the session did not',
    articles: [DATA, '17(3)'],
    stimulus: 'A fill is reported by the drop copy alone.',
    expectation: 'The break is raised at once, and resolved.',
    notApplicable:
      'The bot reads no drop copy: what no message reported of an order it finds by a query; see B03.',
    parts: [],
  },
];
