/** Alerts about events of a trading session. */
import { LIMIT_REASONS } from '../engine/orders/order.ts';
import { CLOCK_SET_BACK } from '../events/clock-steps.ts';
import { notifyAlert } from '../events/raised-alerts.ts';
import type { SessionEvent } from './session-events.ts';

export interface Alert {
  /** Name of the limit in `risk`, or of the other cause. */
  readonly control: string;
  readonly severity: 'warning' | 'critical';
  /** Index of the first of these events among those passed to `alertsOf`, and their count. */
  readonly first: number;
  readonly count: number;
}

const LIMITS: ReadonlySet<string> = new Set(LIMIT_REASONS);

type Cause = Pick<Alert, 'control' | 'severity'>;

type CauseOf = (reason: string | null, control: unknown) => Cause | undefined;

const CAUSES: Readonly<Record<string, CauseOf>> = {
  'order.denied': (reason) =>
    reason !== null && LIMITS.has(reason) ? { control: reason, severity: 'warning' } : undefined,
  'order.canceled': (reason) =>
    reason === 'price_collar_bps' ? { control: reason, severity: 'warning' } : undefined,
  'order.rejected': () => ({ control: 'order_rejected', severity: 'warning' }),
  'account.latched': (_, control) => ({
    control: control === 'reconciliation' ? control : 'repeated_execution',
    severity: 'critical',
  }),
  'risk.override_used': () => ({ control: 'override', severity: 'warning' }),
  'account.margin_call': () => ({ control: 'margin_call', severity: 'critical' }),
  'control.halted': () => ({ control: 'halt', severity: 'critical' }),
  'control.denying': (reason) =>
    reason === null || reason === 'stopping'
      ? undefined
      : { control: reason, severity: 'critical' },
  [CLOCK_SET_BACK]: () => ({ control: 'clock_skew', severity: 'critical' }),
  'data.gap': () => ({ control: 'data_gap', severity: 'warning' }),
  'data.refused': () => ({ control: 'data_refused', severity: 'warning' }),
  'order.corrected': () => ({ control: 'trade_corrected', severity: 'critical' }),
  'venue.halted': () => ({ control: 'market_halt', severity: 'warning' }),
  'venue.foreign': () => ({ control: 'foreign_order', severity: 'critical' }),
  'venue.mismatch': () => ({ control: 'reconciliation', severity: 'critical' }),
  'venue.orphan': () => ({ control: 'reconciliation', severity: 'critical' }),
};

/** Returns one alert per control and severity, in the order of their first events. */
export function alertsOf(events: readonly SessionEvent[]): Alert[] {
  const alerts = new Map<string, Alert>();
  for (const [place, { kind, payload }] of events.entries()) {
    const { reason, control } = payload as {
      readonly reason?: unknown;
      readonly control?: unknown;
    };
    const cause = CAUSES[kind]?.(typeof reason === 'string' ? reason : null, control);
    if (cause === undefined) continue;
    const key = `${cause.control} ${cause.severity}`;
    const { first, count } = alerts.get(key) ?? { first: place, count: 0 };
    alerts.set(key, { ...cause, first, count: count + 1 });
  }
  return [...alerts.values()];
}

/**
 * Creates the event that records an alert in the log of the bot.
 *
 * @param event_seq sequence number of the first event that caused the alert.
 * @param made_at time of that event by the clock of its producer, ms; undefined if unknown.
 */
export function alertEvent(
  { control, severity, count }: Omit<Alert, 'first'>,
  event_seq: number,
  made_at: number | undefined,
  now: number,
): SessionEvent {
  const latency_ms = made_at === undefined ? null : Math.max(0, now - made_at);
  const payload = { control, severity, event_seq, count, latency_ms };
  notifyAlert({ control, severity, latency_ms });
  return { kind: 'alert.raised', occurred_at: now, payload };
}
