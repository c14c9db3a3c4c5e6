/** Cases about limits and the kill switch: evidence for Articles 9 and 10, not part of Article 6. */
import { MINUTE } from '../../../base/durations.ts';
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

const UNREACHABLE = { on: 'requests', action: { kind: 'lost_before', isSilent: true } } as const;

/** An order beyond the limit of volume. */
const LARGE = { side: 'buy', type: 'limit', limit: 'below', quantity: 'beyond volume' } as const;
const ASK = { act: [LARGE], cancel: true } as const;

export const LIMITS: readonly Case[] = [
  {
    id: 'C01',
    title: 'Halt of the bot',
    articles: ['12(1)', '12(2)', '12(3)'],
    stimulus: 'The bot is halted while orders work at the venue, one of them partly filled.',
    expectation: 'Every order is canceled; no order is sent afterwards, even after a restart.',
    exercises: ['trading/session-lifecycle.ts', 'trading/host/pod/venue-connection.ts'],
    scope: 'The server decides whether a halt covers one bot or all bots.',
    parts: [
      part({ name: 'halted', ends: 'halted' }, [
        ...[0, 1, 2].map(() => rest(0.5)),
        fill(1 / 8),
        wait(1000),
        mark('begun'),
        { server: 'halt' },
        within(
          'the session ends, and the exchange confirms that no order is open',
          MINUTE,
          'end',
          'verified',
        ),
        open('no order is open', 0),
        reasons('the session records the reason', 'order.canceled', ['halted', 'halted', 'halted']),
        expect(
          'all cancels are sent within 1 s (internal threshold)',
          { of: 'last request', call: 'DELETE /order', since: 'begun' },
          { most: 1000 },
        ),
        alerted('the halt is recorded', 'halted', 'begun'),
        mark('ended'),
        { act: [bid()], bar: 'none' },
        bars(1),
        { session: 'start' },
        wait(5000),
        ...[0, 1, 2].map(() => rest()),
        sent('no order is sent after a restart', 0, 'ended'),
      ]),
    ],
  },
  {
    id: 'C02',
    title: 'Halt while the venue does not answer',
    articles: ['12(1)', 'RTS 7 18(2)(c)(i)', '14(2)(g)'],
    stimulus: 'From the halt on, no request reaches the venue.',
    expectation:
      'Cancels are repeated until the process must end; no order counts as canceled; an alert names the remaining orders.',
    exercises: ['trading/host/pod/venue-connection.ts', 'trading/host/pod/order-gateway.ts'],
    parts: [
      part({ name: 'unreachable until the end', ends: 'unverified' }, [
        rest(),
        exchange({ do: 'fault', ...UNREACHABLE }),
        wait(1),
        { server: 'halt' },
        wait(2 * MINUTE),
        holds('the session repeats the cancels until it must end', 'end', null),
        { session: 'terminate' },
        within('the session reports that the outcome is unknown', MINUTE, 'end', 'unverified'),
        holds('the session reports the order as unverified', 'unverified orders', 1),
        holds('the order does not count as canceled', 'pending cancel', true),
        alerts('an alert is raised', 'cancel', { least: 1 }),
      ]),
      part({ name: 'unreachable for 10 s', ends: 'halted' }, [
        rest(),
        mark('begun'),
        exchange({ do: 'fault', ...UNREACHABLE, lasting: 10_000 }),
        wait(1),
        { server: 'halt' },
        within(
          'the session ends once the exchange has confirmed the cancels',
          2 * MINUTE,
          'end',
          'verified',
        ),
        expect(
          'the session does not end earlier',
          { of: 'time', since: 'begun' },
          { least: 10_000 },
        ),
        open('no order is open', 0),
      ]),
    ],
  },
  {
    id: 'C03',
    title: 'Repeated automated execution',
    articles: ['15(3)'],
    stimulus:
      'Orders of one side are executed until the limit is reached. The bot then tries to order again: at once, after a restart, and after the window of the limit.',
    expectation:
      'The bot is disabled after the configured number of executions, until a designated person enables it again.',
    exercises: ['engine/risk/risk-gate.ts'],
    parts: [part('up to the limit', [{ probe: 'repeated execution' }])],
  },
  {
    id: 'C04',
    title: 'Orders at the limits',
    articles: ['15(1)(a)', '15(1)(b)', '15(1)(c)', '15(1)(d)', '8(b)'],
    stimulus: 'Orders below, at and above each limit: price, value, volume and messages.',
    expectation:
      'Every limit is set. Orders above a limit are denied and not sent; all others are accepted.',
    exercises: ['engine/risk/risk-gate.ts'],
    parts: (['volume', 'value', 'price', 'messages', 'position'] as const).map((limit) =>
      part(limit, [{ requires: limit }, { probe: limit }]),
    ),
  },
  {
    id: 'C05',
    title: 'An instrument without permission',
    articles: ['15(5)', '8(a)'],
    stimulus: 'The strategy orders an instrument outside its universe.',
    expectation: 'No order is sent.',
    parts: [
      part('outside the universe', [
        act({ side: 'buy', quantity: 'quantity', instrument: 'foreign' }),
        holds('the session rejects the order', 'refusal', true),
        sent('no order is sent', 0),
      ]),
    ],
  },
  {
    id: 'C06',
    title: 'An order beyond a limit without full approval',
    articles: ['15(6)'],
    stimulus:
      'The bot submits an order beyond a limit without a permit, with permits for other orders, with its own permit, and once more.',
    expectation: 'The order passes once, and only with its own permit.',
    exercises: ['trading/session-supervision.ts'],
    scope:
      'The server checks that two people have approved the permit, and passes it to the session only then.',
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
        sent('the order is not sent without its own permit', 0),
        events('the order is denied each time', 'order.denied', 4),
        { permit: 'it', side: 'buy', quantity: 'beyond volume', lasting: 60 * MINUTE },
        ASK,
        requests('the order is sent with its permit', 'POST /order', { near: 'payable' }),
        ASK,
        sent('the order is not sent again', { most: 1 }),
      ]),
    ],
  },
  {
    id: 'C07',
    title: 'Alerts within five seconds',
    articles: ['16(5)'],
    stimulus:
      'The venue rejects an order, a limit denies one, the connection breaks, and the server becomes unreachable.',
    expectation: 'Each event raises an alert within 5 s.',
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
      part('the server is unreachable', [
        mark('lost'),
        { server: 'lost' },
        wait(2 * MINUTE),
        expect(
          'an alert is raised within 5 s of the end of the claim',
          { of: 'alert', like: 'control_unreachable', since: 'lost' },
          { most: 45_000 },
        ),
        rest(),
        sent('no order is sent while the server is unreachable', 0, 'lost'),
        mark('back'),
        { server: 'back' },
        wait(5000),
        rest(),
        sent('an order is sent once the server is reachable again', 1, 'back'),
      ]),
    ],
  },
];

/** Expects the alert of an event at the end of a bar. */
function alertedInTime(like: string) {
  return expect(
    'the alert is raised within 5 s',
    { of: 'alert', like, since: 'begun', fromMinute: true },
    { most: 5000 },
  );
}
