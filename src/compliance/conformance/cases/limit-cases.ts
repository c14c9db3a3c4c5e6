/** Limits and the kill switch: no part of Article 6, but evidence for Articles 9 and 10. */
import { MINUTE } from '../../../market/bar-time.ts';
import type { Case } from '../case.ts';
import {
  act,
  alerted,
  alerts,
  bars,
  bid,
  events,
  exchange,
  expect,
  fill,
  holds,
  mark,
  open,
  part,
  reasons,
  requests,
  rest,
  sent,
  wait,
  within,
} from './case-steps.ts';

const DEAF = { on: 'requests', action: { kind: 'lost_before', isSilent: true } } as const;

/** An order beyond the limit of volume. */
const LARGE = { side: 'buy', type: 'limit', limit: 'below', quantity: 'beyond volume' } as const;
const ASK = { act: [LARGE], cancel: true } as const;

export const LIMITS: readonly Case[] = [
  {
    id: 'C01',
    title: 'The bot is halted',
    articles: ['12(1)', '12(2)', '12(3)'],
    stimulus: 'The bot is halted with orders at the venue, one of them partly filled.',
    expectation: 'Every order is canceled; nothing more is sent, nor after a restart.',
    exercises: ['trading/session-lifecycle.ts', 'trading/host/pod/venue-connection.ts'],
    scope: 'Which bots a halt reaches (one, all) is decided by the server.',
    parts: [
      part({ name: 'halted', ends: 'halted' }, [
        ...[0, 1, 2].map(() => rest(0.5)),
        fill(1 / 8),
        wait(1000),
        mark('begun'),
        { server: 'halt' },
        within('it ends, and the exchange confirms that', MINUTE, 'end', 'verified'),
        open('no order is open', 0),
        reasons('the session knows why', 'order.canceled', ['halted', 'halted', 'halted']),
        expect(
          'all cancels are sent within 1 s (internal threshold)',
          { of: 'last request', call: 'DELETE /order', since: 'begun' },
          { most: 1000 },
        ),
        alerted('it is on record', 'halted', 'begun'),
        mark('ended'),
        { act: [bid()], bar: 'none' },
        bars(1),
        { session: 'start' },
        wait(5000),
        ...[0, 1, 2].map(() => rest()),
        sent('started again, it sends nothing', 0, 'ended'),
      ]),
    ],
  },
  {
    id: 'C02',
    title: 'The bot is halted while the venue does not answer',
    articles: ['12(1)', 'RTS 7 18(2)(c)(i)', '14(2)(g)'],
    stimulus: 'The venue receives nothing from when the bot is halted.',
    expectation:
      'Cancels are tried again until the process has to end; nothing counts as canceled; people are alerted of what is left.',
    exercises: ['trading/host/pod/venue-connection.ts', 'trading/host/pod/order-gateway.ts'],
    parts: [
      part({ name: 'deaf for good', ends: 'unverified' }, [
        rest(),
        exchange({ do: 'fault', ...DEAF }),
        wait(1),
        { server: 'halt' },
        wait(2 * MINUTE),
        holds('it keeps canceling for as long as it may', 'end', null),
        { session: 'terminate' },
        within('it reports that it does not know', MINUTE, 'end', 'unverified'),
        holds('it reports the order', 'unverified orders', 1),
        holds('that order does not count as canceled', 'pending cancel', true),
        alerts('people are alerted', 'cancel', { least: 1 }),
      ]),
      part({ name: 'deaf for 10 s', ends: 'halted' }, [
        rest(),
        mark('begun'),
        exchange({ do: 'fault', ...DEAF, lasting: 10_000 }),
        wait(1),
        { server: 'halt' },
        within('it ends once the exchange has confirmed it', 2 * MINUTE, 'end', 'verified'),
        expect('not before that', { of: 'time', since: 'begun' }, { least: 10_000 }),
        open('no order is open', 0),
      ]),
    ],
  },
  {
    id: 'C03',
    title: 'The same is executed again and again',
    articles: ['15(3)'],
    stimulus:
      'As many orders of one side are executed within the window of the limit as it allows; then it is asked for another, started again, and asked once the window is over.',
    expectation:
      'After a number that is set it is disabled, until a named person enables it again.',
    exercises: ['engine/risk/risk-gate.ts'],
    parts: [part('as often as the limit allows', [{ probe: 'repeated execution' }])],
  },
  {
    id: 'C04',
    title: 'Limits of an order, just kept and just broken',
    articles: ['15(1)(a)', '15(1)(b)', '15(1)(c)', '15(1)(d)', '8(b)'],
    stimulus: 'Orders below, at and above each limit: price, value, volume and messages.',
    expectation:
      'What is above is denied and not sent; what is not is accepted. Every limit is set.',
    exercises: ['engine/risk/risk-gate.ts'],
    parts: (['volume', 'value', 'price', 'messages', 'position'] as const).map((limit) =>
      part(limit, [{ requires: limit }, { probe: limit }]),
    ),
  },
  {
    id: 'C05',
    title: 'An instrument that the bot may not trade',
    articles: ['15(5)', '8(a)'],
    stimulus: 'The strategy orders an instrument that is not of its universe.',
    expectation: 'Nothing is sent.',
    parts: [
      part('of no universe', [
        act({ side: 'buy', quantity: 'quantity', instrument: 'foreign' }),
        holds('the order is refused', 'refusal', true),
        sent('nothing is sent', 0),
      ]),
    ],
  },
  {
    id: 'C06',
    title: 'An order beyond a limit with one approver missing',
    articles: ['15(6)'],
    stimulus:
      'An order beyond a limit is asked for without a permit, with permits for other orders, with its permit, and once more.',
    expectation: 'It passes once, and only with its permit.',
    exercises: ['trading/session-supervision.ts'],
    scope: 'That two people permit it is checked by the server, which reports it only then.',
    parts: [
      part('beyond the limit of volume', [
        { requires: 'volume' },
        ASK,
        { permit: 'sale', side: 'sell', quantity: 'beyond volume', lasting: 60 * MINUTE },
        ASK,
        { permit: 'old', side: 'buy', quantity: 'beyond volume', lasting: 0 },
        ASK,
        { permit: 'less', side: 'buy', quantity: 'volume', lasting: 60 * MINUTE },
        ASK,
        sent('it is not sent without a permit for it', 0),
        events('it is denied each time', 'order.denied', 4),
        { permit: 'it', side: 'buy', quantity: 'beyond volume', lasting: 60 * MINUTE },
        ASK,
        requests('it is sent with its permit', 'POST /order', { near: 'payable' }),
        ASK,
        sent('it is not sent again', { most: 1 }),
      ]),
    ],
  },
  {
    id: 'C07',
    title: 'People are alerted within five seconds',
    articles: ['16(5)'],
    stimulus: 'An order is rejected, one is denied, the connection breaks, the server is lost.',
    expectation: 'Each raises an alert within 5 s.',
    parts: [
      part('an order is rejected', [
        mark('begun'),
        {
          act: [bid()],
          during: [exchange({ do: 'set_terms', terms: { tick: 'price units' } })],
        },
        alertedInTime('order\\.rejected'),
      ]),
      part('an order is denied', [
        mark('begun'),
        act({ side: 'sell', quantity: 'quantity' }),
        alertedInTime('order\\.denied'),
      ]),
      part('the connection breaks', [
        bars(1),
        mark('begun'),
        exchange({ do: 'cut' }),
        wait(10_000),
        alertedInTime('connect|hung up'),
      ]),
      part('the server is lost', [
        mark('lost'),
        { server: 'lost' },
        wait(2 * MINUTE),
        expect(
          'an alert within 5 s of the end of the claim',
          { of: 'alert', like: 'control_unreachable', since: 'lost' },
          { most: 45_000 },
        ),
        rest(),
        sent('nothing is sent without the server', 0, 'lost'),
        mark('back'),
        { server: 'back' },
        wait(5000),
        rest(),
        sent('orders are sent once the server is there again', 1, 'back'),
      ]),
    ],
  },
];

/** The alert of an event at the end of a bar. */
function alertedInTime(like: string) {
  return expect(
    'the alert is raised within 5 s',
    { of: 'alert', like, since: 'begun', fromMinute: true },
    { most: 5000 },
  );
}
