import { Counter, Gauge, Registry } from 'prom-client';
import { msSince, type Moment } from '../../../base/elapsed.ts';
import { addRuntimeMetrics } from '../../../base/runtime-metrics.ts';
import type { PrometheusMetric } from '../../../base/telemetry-options.ts';
import type { OrderEvent } from '../../../engine/journal.ts';
import type { Alert } from '../../alerts.ts';
import type { SessionState } from '../../../events/session-state.ts';

export interface RunnerMetrics {
  /** Counts order events. */
  readonly count: (events: readonly OrderEvent[]) => void;
  readonly denying: (reason: string | null) => void;
  readonly alerted: (alert: Alert) => void;
  readonly show: (state: SessionState) => void;
  readonly text: () => Promise<string>;
  readonly values: () => Promise<readonly PrometheusMetric[]>;
  readonly contentType: string;
}

/** When each of these happened last; undefined before the first time. */
export type Times = Readonly<Record<'bar' | 'report' | 'venue', Moment | undefined>>;

export function createRunnerMetrics(times: () => Times): RunnerMetrics {
  const register = new Registry();
  addRuntimeMetrics(register);
  const describe = (name: string, help: string, labelNames: readonly string[] = []) => ({
    name: `service_local_run_${name}`,
    help,
    labelNames,
    registers: [register],
  });
  const orders = new Counter(describe('orders_total', 'Order events by outcome', ['outcome']));
  const denials = new Counter(
    describe('denials_total', 'How often new orders began to be denied, by reason', ['reason']),
  );
  const alerts = new Counter(
    describe('alerts_total', 'Alerts by control and severity', ['control', 'severity']),
  );
  const denying = new Gauge(
    describe('denying', '1 for the reason for which new orders are denied', ['reason']),
  );
  const age = new Gauge(
    describe(
      'seconds_since',
      'Seconds since the last bar, answered report to the server, and answer of the venue',
      ['what'],
    ),
  );
  const equity = new Gauge(describe('equity', 'Equity of the account, in its currency'));
  const positions = new Gauge(describe('position', 'Units held', ['symbol']));
  const showTimes = (): void => {
    for (const [what, at] of Object.entries(times())) {
      if (at !== undefined) age.set({ what }, msSince(at) / 1000);
    }
  };
  return {
    count(events) {
      for (const { kind } of events) orders.inc({ outcome: kind.replace('order.', '') });
    },
    denying(reason) {
      denying.reset();
      if (reason === null) return;
      denials.inc({ reason });
      denying.set({ reason }, 1);
    },
    alerted({ control, severity, count }) {
      alerts.inc({ control, severity }, count);
    },
    show(state) {
      equity.set(state.equity);
      positions.reset();
      for (const [symbol, units] of Object.entries(state.positions))
        positions.set({ symbol }, units);
    },
    text() {
      showTimes();
      return register.metrics();
    },
    values() {
      showTimes();
      return register.getMetricsAsJSON();
    },
    contentType: register.contentType,
  };
}
