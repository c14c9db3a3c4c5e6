/** Cases about bars: Article 6(2)(b), with the data flows of RTS 7 Article 9(3). */
import { MINUTE } from '../../../base/durations.ts';
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
  'the session has all bars of the exchange, in order and with the same values',
  { of: 'bars', are: 'complete' },
  true,
);

export const BARS: readonly Case[] = [
  {
    id: 'B05',
    title: 'Lost market data',
    articles: [DATA, 'RTS 7 9(3)(c)', ...GENERAL],
    stimulus: 'The stream loses one bar, then 100 bars; the missing bars can be queried.',
    expectation:
      'The bot receives every bar exactly once and in order, and does not act on open bars.',
    exercises: ['trading/assembler.ts'],
    parts: [1, 100].map((count) =>
      part(`${count} lost`, [
        NO_BARS,
        { bars: count, drift: 1e-4 },
        HEAL,
        bars(1),
        // The bar that is open during the query changes afterwards.
        { others: 'quote', side: 'sell', price: 'price', quantity: 'quantity' },
        { others: 'take', side: 'buy', price: 'price', quantity: 'half' },
        { others: 'none' },
        bars(2),
        rightBars,
        expect('no bar is missing', { of: 'bar count' }, { least: count + 3 }),
      ]),
    ),
  },
  {
    id: 'B06',
    title: 'Two market data feeds, one delayed',
    articles: [DATA, 'RTS 7 9(3)(c)'],
    stimulus: 'Feeds A and B deliver messages in different orders, and one is delayed.',
    expectation: 'The first message with each sequence number is used.',
    notApplicable: 'The bot receives bars from a single stream.',
    parts: [],
  },
  {
    id: 'B07',
    title: 'No market data',
    articles: [DATA, 'RTS 7 9(3)(c)', '16(5)', ...GENERAL],
    stimulus: 'Market data stop and cannot be queried while an order works at the venue.',
    expectation: 'No order is sent on outdated data; an alert is raised.',
    exercises: ['trading/assembler.ts'],
    parts: [
      part('no data for ten minutes', [
        rest(),
        mark('begun'),
        NO_BARS,
        fault('GET /klines', { kind: 'lost_before' }),
        fault('GET /time', { kind: 'lost_before' }),
        { act: [bid()], bar: 'none' },
        bars(10),
        sent('no order is sent on outdated data', 0, 'begun'),
        expect(
          'an alert is raised within three bars',
          { of: 'alert', like: 'fetch missing bars|stale_data', since: 'begun' },
          { most: 3 * MINUTE },
        ),
        HEAL,
        bars(3),
        wait(2 * MINUTE),
        expect('later bars equal those of the exchange', { of: 'bars', are: 'genuine' }, true),
        alerted('the missing bars are reported', 'data\\.gap', 'begun'),
      ]),
    ],
  },
  {
    id: 'B08',
    title: 'One instrument without data',
    articles: [DATA, 'RTS 7 9(3)(c)', ...GENERAL],
    stimulus: 'The data of one instrument stop; the other instruments continue.',
    expectation:
      'The bot continues to trade the others and sends no orders for the instrument without data.',
    exercises: ['trading/assembler.ts'],
    notApplicable: { oneInstrument: 'The bot trades one instrument.' },
    parts: [
      part('frozen', [
        mark('begun'),
        exchange({ do: 'freeze' }),
        bars(5, { of: 'price', times: 1.001 }),
        expect('the other instruments continue', { of: 'bar count', since: 'begun' }, { least: 4 }),
        holds(
          'the session has no new bar of the instrument without data',
          'symbol in last bar',
          false,
        ),
        act(bid(), { ...bid(), instrument: 1 }),
        reasons('the order for the instrument without data is denied', 'order.denied', [
          'stale_data',
        ]),
        holds('orders for another instrument are sent', 'orders are for second symbol', true),
        sent('exactly one order is sent', 1),
      ]),
    ],
  },
  {
    id: 'B09',
    title: 'Impossible prices',
    articles: [DATA, '5(4)(d)', '15(1)(a)', ...GENERAL],
    stimulus: 'Bars have a price of 0, −1 and NaN; then a single trade is 20 % from the market.',
    expectation: 'The bars are rejected; a single price does not move the price collar.',
    exercises: ['trading/assembler.ts'],
    scope: 'The bot receives bars, not order books, so crossed and locked books are not tested.',
    parts: [
      part('invalid prices', [
        ...['0', '-1', 'NaN'].flatMap((l): Step[] => [
          fault('kline', { kind: 'patch', fields: { k: { l } } }, { count: 1 }),
          { bars: 2 },
        ]),
        expect('no invalid bar is accepted', { of: 'bars', are: 'positive' }, true),
        alerts('an alert is raised for each invalid bar', 'data\\.refused', { least: 3 }),
      ]),
      part('a single distant trade', [
        { requires: 'price' },
        bars(1, { of: 'price', times: 1.2 }),
        act({
          side: 'buy',
          type: 'limit',
          limit: { of: 'price', times: 1.2 },
          quantity: 'quantity',
        }),
        sent('an order at the distant price is not sent', 0),
      ]),
    ],
  },
  {
    id: 'B13',
    title: 'Bursts of market data',
    articles: [DATA, 'RTS 7 9(3)(c)', ...GENERAL],
    stimulus:
      "The rate rises from 1 message per second to 1000 for 1 s, to 100 for 3 s and to 20 for 5 s, while the bot's own strategy trades.",
    expectation: 'No bar is lost or wrong; the bot acts on the newest bar.',
    exercises: ['trading/assembler.ts'],
    parts: [
      part({ name: "the bot's own strategy during bursts", drive: 'own' }, [
        {
          bursts: 40,
          rates: [
            [5, 1000, 1],
            [11, 100, 3],
            [17, 20, 5],
          ],
        },
        expect('every bar equals that of the exchange', { of: 'bars', are: 'complete' }, true),
        holds('no bar is missing', 'bars received', { least: 35 }),
      ]),
    ],
  },
  {
    id: 'B14',
    title: 'Times in the past and in the future',
    articles: [DATA, '13(7)', ...GENERAL],
    stimulus: 'Bars arrive with times in the past and in the future.',
    expectation: 'The time of the session never goes backward; an alert is raised.',
    exercises: ['trading/assembler.ts', 'trading/feed.ts'],
    scope: 'Days are UTC days, so daylight saving time is not tested.',
    parts: (
      [
        ['backward', -3 * MINUTE],
        ['forward', 30 * MINUTE],
        ['between two bars', 1],
      ] as const
    ).map(([name, ms]) =>
      part(name, [
        bars(35),
        exchange({ do: 'misdate', ms }),
        bars(4),
        wait(2 * MINUTE),
        expect(
          'the time of the session never goes backward',
          { of: 'bars', are: 'ascending' },
          true,
        ),
        rightBars,
        alerts('an alert is raised', 'data\\.refused', { least: 1 }),
      ]),
    ),
  },
];
