/** Converts metrics of prom-client to those of OpenTelemetry, so that each metric is defined once. */
import { ValueType, type HrTime } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import {
  AggregationTemporality,
  DataPointType,
  type CollectionResult,
  type DataPoint,
  type Histogram,
  type MetricData,
} from '@opentelemetry/sdk-metrics';
import type { MetricLabels as Labels, PrometheusMetric } from './telemetry-options.ts';

const START = hrTime(Date.now());

export async function collectMetrics(
  read: () => Promise<readonly PrometheusMetric[]>,
  resource: Resource,
): Promise<CollectionResult> {
  const metrics = await read();
  const end = hrTime(Date.now());
  const converted = metrics.flatMap((metric) => convert(metric, end));
  const scopeMetrics = [{ scope: { name: 'service-local' }, metrics: converted }];
  return { resourceMetrics: { resource, scopeMetrics }, errors: [] };
}

function convert(metric: PrometheusMetric, endTime: HrTime): MetricData[] {
  const { name, help: description, type, values } = metric;
  const base = {
    descriptor: { name, description, unit: '', valueType: ValueType.DOUBLE },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
  const pointOf = <T>(labels: Labels, value: T): DataPoint<T> => ({
    startTime: START,
    endTime,
    attributes: { ...labels },
    value,
  });
  if (type === 'histogram') {
    const dataPoints = histogramsOf(metric).map(([labels, value]) => pointOf(labels, value));
    return [{ ...base, dataPointType: DataPointType.HISTOGRAM, dataPoints }];
  }
  const dataPoints = values.map(({ labels, value }) => pointOf(labels, value));
  if (type === 'counter') {
    return [{ ...base, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints }];
  }
  return [{ ...base, dataPointType: DataPointType.GAUGE, dataPoints }];
}

/** The parts of each histogram of a metric, which prom-client lists one by one, with cumulative counts. */
function histogramsOf({ name, values }: PrometheusMetric): [Labels, Histogram][] {
  const groups = Map.groupBy(values, ({ labels: { le: _le, ...labels } }) =>
    JSON.stringify(labels),
  );
  return [...groups].map(([labels, parts]) => {
    const buckets = parts.filter(({ metricName }) => metricName === `${name}_bucket`);
    const valueOf = (part: string): number =>
      parts.find(({ metricName }) => metricName === `${name}_${part}`)?.value ?? 0;
    const counts = buckets.map(({ value }, index) => value - (buckets[index - 1]?.value ?? 0));
    const boundaries = buckets.map(({ labels: { le } }) => Number(le)).filter(Number.isFinite);
    const value = { buckets: { boundaries, counts }, sum: valueOf('sum'), count: valueOf('count') };
    return [JSON.parse(labels) as Labels, value];
  });
}

function hrTime(ms: number): HrTime {
  return [Math.floor(ms / 1000), (ms % 1000) * 1_000_000];
}
