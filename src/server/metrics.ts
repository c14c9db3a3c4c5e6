import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { addRuntimeMetrics } from '../base/runtime-metrics.ts';
import type { PrometheusMetric } from '../base/telemetry-options.ts';
import { identityFigures, type IdentityFigures } from '../identity/figures.ts';
import type { IdentityStore } from '../identity/context.ts';
import { cachedFigures } from './cached-figures.ts';
import { createNotificationMetrics } from './notification-metrics.ts';
import { createProcessMetrics, type ProcessMetrics } from './process-metrics.ts';

export interface Metrics {
  readonly issued: Counter;
  readonly renewed: Counter;
  /** Repeated renewals that got the stored response. */
  readonly repeated: Counter;
  readonly clonesSuspected: Counter;
  /** 1 for the present `state` of this server's own license; other states are absent. */
  readonly license: Gauge<'state'>;
  /** Rejected requests for a lease, by `code` and `reason`. */
  readonly denied: Counter<'code' | 'reason'>;
  readonly requestSeconds: Histogram<'method' | 'route' | 'status'>;
  readonly process: ProcessMetrics;
  readonly text: () => Promise<string>;
  readonly values: () => Promise<readonly PrometheusMetric[]>;
  readonly contentType: string;
}

/** Minimum age before figures are read again, because reading them scans all leases. */
const FIGURES_FRESH_MS = 60_000;

export function createMetrics({ storage, clock }: IdentityStore): Metrics {
  const register = new Registry();
  addRuntimeMetrics(register);
  const counter = (name: string, help: string): Counter =>
    new Counter({ name: `service_local_${name}`, help, registers: [register] });
  const gauge = <L extends string>(name: string, help: string, labelNames: L[] = []): Gauge<L> =>
    new Gauge({ name: `service_local_${name}`, help, labelNames, registers: [register] });

  const leases = gauge('license_leases', 'Leases in the registry by their state', ['state']);
  const silent = gauge(
    'license_silent_deployments',
    'Installations with a device whose renewal is overdue',
  );
  const keyAge = gauge(
    'license_signing_key_age_seconds',
    'Seconds since the signing key became active',
  );

  const trustSeconds = gauge(
    'license_trust_expires_in_seconds',
    'Seconds until the trust root or its keyset expires; negative afterwards',
    ['document'],
  );

  const show = ({
    leases: byState,
    silent_installations,
    key_activated_at,
    trust,
  }: IdentityFigures): void => {
    for (const [state, count] of Object.entries(byState)) leases.set({ state }, count);
    silent.set(silent_installations);
    if (key_activated_at !== null) keyAge.set((clock() - key_activated_at) / 1000);
    trustSeconds.reset();
    for (const [document, end] of Object.entries(trust ?? {})) {
      trustSeconds.set({ document }, (end - clock()) / 1000);
    }
  };
  const figures = cachedFigures({
    freshMs: FIGURES_FRESH_MS,
    clock,
    read: () => identityFigures(storage.read, clock()),
    show,
    drop() {
      leases.reset();
      silent.remove();
      keyAge.remove();
      trustSeconds.reset();
    },
  });
  const notifications = createNotificationMetrics(register, storage, clock);
  const process = createProcessMetrics(register, storage, clock, [figures, notifications]);

  return {
    process,
    issued: counter('license_leases_issued_total', 'Leases issued for administrators'),
    renewed: counter('license_leases_renewed_total', 'Leases issued for devices'),
    repeated: counter(
      'license_leases_repeated_total',
      'Repeated renewals that got the stored response',
    ),
    clonesSuspected: counter(
      'license_clones_suspected_total',
      'Leases renewed twice, because a device was cloned or restored from a backup',
    ),
    license: gauge('license_state', "1 for the state of this server's own license", ['state']),
    denied: new Counter({
      name: 'service_local_license_leases_denied_total',
      help: 'Rejected requests for a lease',
      labelNames: ['code', 'reason'],
      registers: [register],
    }),
    requestSeconds: new Histogram({
      name: 'service_local_http_request_duration_seconds',
      help: 'Seconds from the request to its response',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
      registers: [register],
    }),
    async text() {
      await process.refresh();
      return register.metrics();
    },
    async values() {
      await process.refresh();
      return register.getMetricsAsJSON();
    },
    contentType: register.contentType,
  };
}
