import { collectDefaultMetrics, Registry, type Metric } from 'prom-client';

let runtime: readonly Metric[] | undefined;

/**
 * Registers the metrics of the process, such as its memory and the delay of its event loop. All
 * registries share one set of collectors, because creating a set starts a timer and an observer that
 * never stop. The delay of the event loop covers the time since any of the registries was last read.
 */
export function addRuntimeMetrics(register: Registry): void {
  runtime ??= collect();
  for (const metric of runtime) register.registerMetric(metric);
}

function collect(): readonly Metric[] {
  const register = new Registry();
  collectDefaultMetrics({ register });
  // The types of the library hide that these are the metrics themselves.
  return register.getMetricsAsArray() as unknown as Metric[];
}
