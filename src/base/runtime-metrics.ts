import { collectDefaultMetrics, Registry, type Metric } from 'prom-client';

let runtime: readonly Metric[] | undefined;

/**
 * Adds the metrics of the process, such as its memory and the delay of its event loop. They are collected
 * once for all registries, because collecting them starts a timer and an observer that never end. The
 * delay of the event loop is that since a registry was last read, whichever it was.
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
