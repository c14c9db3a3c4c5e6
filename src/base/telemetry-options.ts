import type { Log } from './log.ts';

export interface TelemetryOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly role: 'server' | 'worker' | 'runner';
  readonly log: Log;
  /** Current values of the metrics of the process. */
  readonly metrics: () => Promise<readonly PrometheusMetric[]>;
}

/** Sends what is left, and ends the exports. */
export type EndTelemetry = () => Promise<void>;

export type MetricLabels = Readonly<Partial<Record<string, string | number>>>;

/** A metric as `Registry.getMetricsAsJSON` of prom-client returns it. */
export interface PrometheusMetric {
  readonly name: string;
  readonly help: string;
  /** `counter`, `gauge`, `histogram` or `summary`. */
  readonly type: unknown;
  readonly values: readonly {
    readonly value: number;
    readonly labels: MetricLabels;
    /** Differs from the name of the metric for parts of a histogram or summary. */
    readonly metricName?: string;
  }[];
}
