import { expect, it } from 'vitest';
import { alertEvent, alertsOf } from '../../src/trading/alerts.ts';
import type { SessionEvent } from '../../src/trading/session-events.ts';

const event = (kind: string, reason?: string | null): SessionEvent => ({
  kind,
  occurred_at: 0,
  payload: reason === undefined ? {} : { reason },
});

it('alertsOf returns one alert per control and severity, with the first event and the count', () => {
  const events = [
    event('data.bars'),
    event('order.denied', 'max_order_value'),
    event('order.denied', 'quantity_rounds_to_zero'),
    event('order.denied', 'price_collar_period'),
    event('order.denied', 'max_order_value'),
    event('order.filled'),
    event('order.rejected', 'insufficient_funds'),
    event('account.latched'),
    event('data.gap'),
    event('control.denying', 'license_invalid'),
    event('control.denying', null),
    event('control.denying', 'stopping'),
    event('control.halted'),
    event('venue.orphan'),
    event('venue.mismatch'),
  ];
  const alerts = alertsOf(events);
  expect(alerts.map((one) => [one.control, one.severity, one.first, one.count])).toEqual([
    ['max_order_value', 'warning', 1, 2],
    ['price_collar_period', 'warning', 3, 1],
    ['order_rejected', 'warning', 6, 1],
    ['repeated_execution', 'critical', 7, 1],
    ['data_gap', 'warning', 8, 1],
    ['license_invalid', 'critical', 9, 1],
    ['halt', 'critical', 12, 1],
    ['reconciliation', 'critical', 13, 2],
  ]);
});

it('the latency of an alert is null without a time of the event, and never negative', () => {
  const [halt] = alertsOf([event('control.halted')]);
  const latencyOf = (made_at: number | undefined) =>
    alertEvent(halt!, 7, made_at, 1000).payload['latency_ms'];
  expect([latencyOf(undefined), latencyOf(400), latencyOf(1001)]).toEqual([null, 600, 0]);
});
