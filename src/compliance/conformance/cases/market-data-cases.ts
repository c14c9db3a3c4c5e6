/** Downloaded data: Article 6(2)(b), by the flows of RTS 7 Article 9(3). */
import { MINUTE } from '../../../market/bar-time.ts';
import type { Fault } from '../../venue/faults.ts';
import type { Case, Part, Step } from '../case.ts';
import {
  act,
  alerted,
  bars,
  bid,
  BUY,
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

const DATA = '6(2)(b)';
const GENERAL = ['5(4)(a)', '5(4)(c)'];

const fault = (on: string, action: Fault['action'], more: Omit<Fault, 'on' | 'action'> = {}) =>
  exchange({ do: 'fault', on, action, ...more });

const HEAL = exchange({ do: 'clear_faults' });
const LOST = { kind: 'lost_before', isSilent: true } as const;
const NO_BARS = fault('kline', { kind: 'drop' });

const rightBars = expect(
  'the bars are those that the exchange made, complete and in order',
  {
    of: 'bars',
    are: 'complete',
  },
  true,
);

export const MARKET_DATA: readonly Case[] = [
  {
    id: 'B01',
    title: 'Reference data, and changes of them within the day',
    articles: [DATA, 'RTS 7 9(3)(b)', ...GENERAL],
    stimulus: 'Terms are downloaded; then the tick changes, and then the instrument is deleted.',
    expectation: 'Orders keep to the terms that hold; none are sent for what is not there.',
    parts: [
      {
        name: 'downloaded before the first order',
        steps: [
          act({
            side: 'buy',
            type: 'limit',
            limit: { of: 'below', plus: -0.0049 },
            quantity: { of: 'quantity', plus: { of: 'unit', times: 1 / 3 } },
          }),
          expect(
            'the terms are queried before the first order',
            { of: 'lead', call: 'GET /exchangeInfo', before: 'POST /order' },
            { least: 1 },
          ),
          expect(
            'the order keeps to tick and lot',
            { of: 'order', number: 1, field: 'status' },
            'new',
          ),
          expect(
            'it is no dearer than was asked for',
            { of: 'order', number: 1, field: 'price' },
            { most: { of: 'below', plus: -0.0049 } },
          ),
        ],
      },
      {
        name: 'the tick changes',
        termsMs: 20_000,
        steps: [
          // The market price is a multiple of it, and no other price near it.
          exchange({ do: 'set_terms', terms: { tick: 'price units' } }),
          rest(),
          wait(10_000),
          reasons('orders keep to the new tick', 'order.rejected', []),
          sent('what the tick leaves no price for is not sent', 0),
        ],
      },
      {
        name: 'the instrument is deleted',
        termsMs: 20_000,
        steps: [
          exchange({ do: 'delist' }),
          { act: [bid()], bar: 'quiet' },
          wait(5 * MINUTE),
          sent('nothing is sent for it', 0),
          reasons('the session knows why', 'order.denied', ['unknown_symbol']),
          expect('people are alerted', { of: 'alerts', like: 'deleted' }, { least: 1 }),
          working('nothing counts as working', 0),
        ],
      },
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
      {
        name: 'not to be reached at the start',
        begins: false,
        steps: [
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
          expect(
            'open orders are queried first',
            { of: 'lead', call: 'GET /openOrders', before: 'POST /order' },
            { least: 1 },
          ),
        ],
      },
      ...(['logged out', 'heartbeats are lost'] as const).map((name): Part => ({
        name,
        steps: [
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
          expect('it is connected again', { of: 'streaming' }, true),
          bars(2),
          rest(0.5),
          wait(10_000),
          open('it trades', 2),
        ],
      })),
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
          expect(
            'what was missed is queried',
            { of: 'requests', call: 'GET /order', since: 'begun' },
            { least: 1 },
          ),
          bars(1),
          expect(
            'the strategy receives each unit once',
            { of: 'fills received' },
            { near: 'quantity' },
          ),
        ],
      },
      {
        name: 'never reported',
        steps: [
          rest(),
          fault('executionReport', { kind: 'drop' }),
          fill(0.25),
          wait(30_000),
          position('what no message reported is found by a query', 0.25),
        ],
      },
    ],
  },
  {
    id: 'B04',
    title: 'Reports that come twice, and late',
    articles: [DATA, 'RTS 7 9(3)(a)', ...GENERAL],
    stimulus: 'Executions are duplicated; each report comes three times, an older one between.',
    expectation: 'Each counts once.',
    parts: [false, true].map((repeats): Part => ({
      name: repeats ? 'reports' : 'messages',
      repeats,
      steps: [
        fault('executionReport', { kind: 'duplicate' }),
        rest(),
        fill(0.25),
        bars(1),
        fill(0.25),
        bars(1),
        position('the position is right', 0.5),
        expect('each fill is booked once', { of: 'events', kind: 'order.filled' }, 2),
        expect(
          'the strategy receives none twice',
          { of: 'fills received' },
          { most: { of: 'quantity', times: 0.5, plus: 1e-9 } },
        ),
      ],
    })),
  },
  {
    id: 'B05',
    title: 'Market data are lost',
    articles: [DATA, 'RTS 7 9(3)(c)', ...GENERAL],
    stimulus: 'The stream loses one bar, and 100; what was missed can be queried.',
    expectation:
      'The bot receives every bar, each once and in order, and acts on none that is open.',
    exercises: ['trading/assembler.ts'],
    parts: [1, 100].map((count): Part => ({
      name: `${count} lost`,
      steps: [
        NO_BARS,
        { bars: count, drift: 1e-4 },
        HEAL,
        bars(3),
        rightBars,
        expect('none is missing', { of: 'bar count' }, { least: count + 3 }),
      ],
    })),
  },
  {
    id: 'B06',
    title: 'Two feeds of market data, one of them late',
    articles: [DATA, 'RTS 7 9(3)(c)'],
    stimulus: 'Feeds A and B are reordered, and one is late.',
    expectation: 'What comes first counts, by its number.',
    notApplicable: 'The bot takes bars by one stream: there is no second one to choose from.',
    parts: [],
  },
  {
    id: 'B07',
    title: 'Market data fall silent',
    articles: [DATA, 'RTS 7 9(3)(c)', '16(5)', ...GENERAL],
    stimulus: 'No market data come, and none can be queried, with an order at the venue.',
    expectation: 'Nothing is sent on old data; people are alerted.',
    exercises: ['trading/assembler.ts'],
    parts: [
      {
        name: 'silent for ten minutes',
        steps: [
          rest(),
          mark('begun'),
          NO_BARS,
          fault('GET /klines', { kind: 'lost_before' }),
          fault('GET /time', { kind: 'lost_before' }),
          { act: [bid()], bar: 'none' },
          bars(10),
          sent('nothing is sent on old data', 0, 'begun'),
          expect(
            'people are alerted within three bars',
            { of: 'alert', like: 'fetch missing bars|stale_data', since: 'begun' },
            { most: 3 * MINUTE },
          ),
          HEAL,
          bars(3),
          wait(2 * MINUTE),
          expect('what comes after it is right', { of: 'bars', are: 'genuine' }, true),
          alerted('what is missing is reported', 'data\\.gap', 'begun'),
        ],
      },
    ],
  },
  {
    id: 'B08',
    title: 'One instrument stands still while others move',
    articles: [DATA, 'RTS 7 9(3)(c)', ...GENERAL],
    stimulus: 'One instrument has no more data; the others go on.',
    expectation: 'The others are traded on; orders for what stands still are not sent.',
    exercises: ['trading/assembler.ts'],
    notApplicable: { oneInstrument: 'The bot trades one instrument.' },
    parts: [
      {
        name: 'frozen',
        steps: [
          mark('begun'),
          exchange({ do: 'freeze' }),
          bars(5, { of: 'price', times: 1.001 }),
          expect('the others go on', { of: 'bar count', since: 'begun' }, { least: 4 }),
          expect(
            'the session has no bar of what stands still',
            { of: 'symbol in last bar' },
            false,
          ),
          act(bid(), { ...bid(), instrument: 1 }),
          reasons('nothing is sent by old prices', 'order.denied', ['stale_data']),
          expect('the others are traded on', { of: 'orders are for second symbol' }, true),
          sent('one order is sent', 1),
        ],
      },
    ],
  },
  {
    id: 'B09',
    title: 'Prices that cannot be',
    articles: [DATA, '5(4)(d)', '15(1)(a)', ...GENERAL],
    stimulus: 'Bars with a price of 0, below 0 and NaN; then a single trade 20 % off.',
    expectation: 'They are not accepted; the collar does not follow a single price.',
    exercises: ['trading/assembler.ts'],
    scope: 'The bot takes bars, not books: none is crossed or locked.',
    parts: [
      {
        name: 'no prices',
        steps: [
          ...['0', '-1', 'NaN'].flatMap((l): Step[] => [
            fault('kline', { kind: 'patch', fields: { k: { l } } }, { count: 1 }),
            { bars: 2 },
          ]),
          expect('none of them is accepted', { of: 'bars', are: 'positive' }, true),
          expect(
            'people are alerted of each',
            { of: 'alerts', like: 'data\\.refused' },
            { least: 3 },
          ),
        ],
      },
      {
        name: 'a single trade far off',
        steps: [
          { requires: 'price' },
          bars(1, { of: 'price', times: 1.2 }),
          act({
            side: 'buy',
            type: 'limit',
            limit: { of: 'price', times: 1.2 },
            quantity: 'quantity',
          }),
          sent('an order at that price is denied', 0),
        ],
      },
    ],
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
    ).map(([name, on, action]): Part => ({
      name,
      steps: [
        rest(),
        mark('begun'),
        fault(on, action, { count: 1 }),
        fill(0.25),
        wait(30_000),
        alerted('people are alerted', 'read|order stream|fetch the state|report', 'begun'),
        position('the fill is not lost', 0.25),
        rest(0.5),
        open('the bot trades on', 2),
      ],
    })),
  },
  {
    id: 'B11',
    title: 'The phase of the market',
    articles: [DATA, 'RTS 7 9(3)(c)'],
    stimulus: 'Phases follow each other, and are reported late or not at all.',
    expectation: "The bot's idea of the phase is the venue's.",
    parts: (['in order', 'reported late', 'one of them lost'] as const).map((name): Part => ({
      name,
      termsMs: 4000,
      steps: [
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
          expect(`in ${phase} it is ${expected} for the session, too`, { of: 'phase' }, expected),
        ]),
        wait(90_000),
        expect('in the end it is closed', { of: 'phase' }, 'closed'),
      ],
    })),
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
      {
        name: 'with an order at the venue',
        steps: [
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
            expect(
              `${call} comes before the next order`,
              { of: 'lead', call, before: 'POST /order', since: 'back' },
              { least: 1 },
            ),
          ),
          open('it trades on', 2),
        ],
      },
      ...[false, true].map((isLost): Part => {
        const kind = isLost ? 'lost_before' : 'lost_after';
        return {
          name: isLost ? 'before its order arrives' : 'before its order is confirmed',
          steps: [
            fault('POST /order', { kind, isSilent: true }, { count: 1 }),
            { act: [bid()] },
            { session: 'kill' },
            wait(MINUTE),
            { session: 'start' },
            wait(20_000),
            sent('it is not sent again', isLost ? 0 : 1),
            working('the session knows whether it is there', isLost ? 0 : 1),
          ],
        };
      }),
      ...(['units', 'cash'] as const).map((what): Part => ({
        name: `while it came to hold less ${what}`,
        steps: [
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
        ],
      })),
      {
        name: 'while a trade was undone',
        steps: [
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
        ],
      },
      {
        name: 'having lost its log',
        steps: [
          rest(),
          { session: 'kill' },
          { session: 'lose log' },
          wait(MINUTE),
          { session: 'start' },
          wait(30_000),
          open('an order that the session does not know is canceled', 0),
          expect('people are alerted', { of: 'alerts', like: 'not known|orphan' }, { least: 1 }),
          { tolerate: 'log' },
        ],
      },
    ],
  },
  {
    id: 'B13',
    title: 'Bursts of market data',
    articles: [DATA, 'RTS 7 9(3)(c)', ...GENERAL],
    stimulus:
      "1 to 1000 messages per second for 1 s, to 100 for 3 s, to 20 for 5 s, while the bot's own strategy trades.",
    expectation: 'No bar is lost or wrong; the bot acts on the newest.',
    exercises: ['trading/assembler.ts'],
    parts: [
      {
        name: 'the own strategy in bursts',
        drive: 'own',
        steps: [
          {
            bursts: 40,
            rates: [
              [5, 1000, 1],
              [11, 100, 3],
              [17, 20, 5],
            ],
          },
          expect(
            'every bar is the one that the exchange made',
            { of: 'bars', are: 'complete' },
            true,
          ),
          expect('none is missing', { of: 'bars received' }, { least: 35 }),
        ],
      },
    ],
  },
  {
    id: 'B14',
    title: 'Times that go backward, and ahead',
    articles: [DATA, '13(7)', ...GENERAL],
    stimulus: 'Bars come with times that have passed, and with times that are yet to come.',
    expectation: 'The time of the bot only advances; people are alerted.',
    exercises: ['trading/assembler.ts', 'trading/feed.ts'],
    scope: 'Days are those of UTC, without summer time.',
    parts: (
      [
        ['backward', -3 * MINUTE],
        ['ahead', 30 * MINUTE],
        ['between two bars', 1],
      ] as const
    ).map(([name, ms]): Part => ({
      name,
      steps: [
        bars(35),
        exchange({ do: 'misdate', ms }),
        bars(4),
        wait(2 * MINUTE),
        expect('the time of the session only advances', { of: 'bars', are: 'ascending' }, true),
        rightBars,
        expect('people are alerted', { of: 'alerts', like: 'data\\.refused' }, { least: 1 }),
      ],
    })),
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
