/** Bars: Article 6(2)(b), by the flows of RTS 7 Article 9(3). */
import { MINUTE } from '../../../market/bar-time.ts';
import type { Case, Step } from '../case.ts';
import {
  act,
  alerted,
  alerts,
  bars,
  bid,
  DATA,
  exchange,
  expect,
  fault,
  GENERAL,
  holds,
  mark,
  part,
  reasons,
  rest,
  sent,
  wait,
} from './case-steps.ts';

const HEAL = exchange({ do: 'clear_faults' });
const NO_BARS = fault('kline', { kind: 'drop' });

const rightBars = expect(
  'the bars are those that the exchange made, complete and in order',
  { of: 'bars', are: 'complete' },
  true,
);

export const BARS: readonly Case[] = [
  {
    id: 'B05',
    title: 'Market data are lost',
    articles: [DATA, 'RTS 7 9(3)(c)', ...GENERAL],
    stimulus: 'The stream loses one bar, and 100; what was missed can be queried.',
    expectation:
      'The bot receives every bar, each once and in order, and acts on none that is open.',
    exercises: ['trading/assembler.ts'],
    parts: [1, 100].map((count) =>
      part(`${count} lost`, [
        NO_BARS,
        { bars: count, drift: 1e-4 },
        HEAL,
        bars(1),
        // The bar that is open when it is queried changes after that.
        { others: 'quote', side: 'sell', price: 'price', quantity: 'quantity' },
        { others: 'take', side: 'buy', price: 'price', quantity: 'half' },
        { others: 'none' },
        bars(2),
        rightBars,
        expect('none is missing', { of: 'bar count' }, { least: count + 3 }),
      ]),
    ),
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
      part('silent for ten minutes', [
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
      ]),
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
      part('frozen', [
        mark('begun'),
        exchange({ do: 'freeze' }),
        bars(5, { of: 'price', times: 1.001 }),
        expect('the others go on', { of: 'bar count', since: 'begun' }, { least: 4 }),
        holds('the session has no bar of what stands still', 'symbol in last bar', false),
        act(bid(), { ...bid(), instrument: 1 }),
        reasons('nothing is sent by old prices', 'order.denied', ['stale_data']),
        holds('the others are traded on', 'orders are for second symbol', true),
        sent('one order is sent', 1),
      ]),
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
      part('no prices', [
        ...['0', '-1', 'NaN'].flatMap((l): Step[] => [
          fault('kline', { kind: 'patch', fields: { k: { l } } }, { count: 1 }),
          { bars: 2 },
        ]),
        expect('none of them is accepted', { of: 'bars', are: 'positive' }, true),
        alerts('people are alerted of each', 'data\\.refused', { least: 3 }),
      ]),
      part('a single trade far off', [
        { requires: 'price' },
        bars(1, { of: 'price', times: 1.2 }),
        act({
          side: 'buy',
          type: 'limit',
          limit: { of: 'price', times: 1.2 },
          quantity: 'quantity',
        }),
        sent('an order at that price is denied', 0),
      ]),
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
      part({ name: 'the own strategy in bursts', drive: 'own' }, [
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
        holds('none is missing', 'bars received', { least: 35 }),
      ]),
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
    ).map(([name, ms]) =>
      part(name, [
        bars(35),
        exchange({ do: 'misdate', ms }),
        bars(4),
        wait(2 * MINUTE),
        expect('the time of the session only advances', { of: 'bars', are: 'ascending' }, true),
        rightBars,
        alerts('people are alerted', 'data\\.refused', { least: 1 }),
      ]),
    ),
  },
];
