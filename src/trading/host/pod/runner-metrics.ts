import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client';
import { msSince, type Moment } from '../../../base/elapsed.ts';
import type { OrderEvent } from '../../../engine/journal.ts';
import type { Alert } from '../../alerts.ts';
import type { SessionState } from '../../../events/session-state.ts';

export interface RunnerMetrics {
  /** Counts what became of orders. */
  readonly count: (events: readonly OrderEvent[]) => void;
  readonly denying: (reason: string | null) => void;
  readonly alerted: (alert: Alert) => void;
  readonly show: (state: SessionState) => void;
  readonly text: () => Promise<string>;
  readonly contentType: string;
}

/** When each of these happened last; undefined before the first time. */
export type Times = Readonly<Record<'bar' | 'report' | 'venue', Moment | undefined>>;

export function createRunnerMetrics(times: () => Times): RunnerMetrics {
  const register = new Registry();
  collectDefaultMetrics({ register });
  const registers = [register];
  const orders = new Counter({
    name: 'service_local_run_orders_total',
    help: 'Order events by what they tell',
    labelNames: ['outcome'],
    registers,
  });
  const denials = new Counter({
    name: 'service_local_run_denials_total',
    help: 'How often new orders began to be denied, by reason',
    labelNames: ['reason'],
    registers,
  });
  const alerts = new Counter({
    name: 'service_local_run_alerts_total',
    help: 'Events that people are to know of, by control and severity',
    labelNames: ['control', 'severity'],
    registers,
  });
  const denying = new Gauge({
    name: 'service_local_run_denying',
    help: '1 for the reason for which new orders are denied now',
    labelNames: ['reason'],
    registers,
  });
  const age = new Gauge({
    name: 'service_local_run_seconds_since',
    help: 'Since the last bar, answered report to the server, and answer of the venue',
    labelNames: ['what'],
    registers,
  });
  const equity = new Gauge({
    name: 'service_local_run_equity',
    help: 'Of the account, in its currency',
    registers,
  });
  const positions = new Gauge({
    name: 'service_local_run_position',
    help: 'Units held',
    labelNames: ['symbol'],
    registers,
  });
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
    async text() {
      for (const [what, at] of Object.entries(times())) {
        if (at !== undefined) age.set({ what }, msSince(at) / 1000);
      }
      return register.metrics();
    },
    contentType: register.contentType,
  };
}
