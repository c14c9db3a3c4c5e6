/** Exports spans and metrics as OTLP over HTTP in JSON. Loaded only by `startTelemetry`. */
import {
  diag,
  DiagLogLevel,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Context,
  type SpanContext,
  type Span as OpenSpan,
} from '@opentelemetry/api';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { defaultResource, resourceFromAttributes, type Resource } from '@opentelemetry/resources';
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
  type Sampler,
} from '@opentelemetry/sdk-trace';
import { ServiceError } from './errors.ts';
import type { Log } from './log.ts';
import { collectMetrics } from './open-telemetry-metrics.ts';
import { packageVersion } from './package-version.ts';
import type { EndTelemetry, TelemetryOptions } from './telemetry-options.ts';
import { useTracer, type Span, type SpanOptions, type Tracer } from './tracing.ts';

/** Defaults of the specification of OpenTelemetry, ms. */
const METRICS_EVERY_MS = 60_000;
const SPANS_EVERY_MS = 5_000;

/** Time for the last export when the process ends, ms. */
const FLUSH_WITHIN_MS = 5_000;

const ATTRIBUTE_LENGTH = 256;

export function exportTelemetry(
  endpoint: string,
  { env, role, log, metrics }: TelemetryOptions,
): EndTelemetry {
  const sampler = samplerOf(env);
  const base = endpoint.replace(/\/+$/, '');
  logFaults(log, env);
  const resource = resourceOf(env, role);
  const provider = new TracerProvider({
    resource,
    sampler,
    spanLimits: { attributeValueLengthLimit: ATTRIBUTE_LENGTH },
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: new OTLPTraceExporter({ url: `${base}/v1/traces` }),
        scheduledDelayMillis: millisecondsIn(env, 'OTEL_BSP_SCHEDULE_DELAY', SPANS_EVERY_MS),
      }),
    ],
  });
  const interval = millisecondsIn(env, 'OTEL_METRIC_EXPORT_INTERVAL', METRICS_EVERY_MS);
  const meters = new MeterProvider({
    resource,
    readers: [
      new PeriodicExportingMetricReader({
        exporter: new OTLPMetricExporter({ url: `${base}/v1/metrics` }),
        exportIntervalMillis: interval,
        exportTimeoutMillis: Math.min(interval, METRICS_EVERY_MS / 2),
        metricProducers: [{ collect: () => collectMetrics(metrics, resource) }],
      }),
    ],
  });
  const endUse = useTracer(tracerOf(provider));
  return async () => {
    endUse();
    const timeout = { timeoutMillis: FLUSH_WITHIN_MS };
    // A collector that does not answer must not fail the end of the process; `diag` logs it.
    await Promise.allSettled([
      provider.forceFlush(timeout).finally(() => provider.shutdown()),
      meters.shutdown(timeout),
    ]);
  };
}

/** `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME` take precedence. */
function resourceOf(env: NodeJS.ProcessEnv, role: TelemetryOptions['role']): Resource {
  const own = resourceFromAttributes({
    'service.name': env['OTEL_SERVICE_NAME'] || `service-local-${role}`,
    'service.version': packageVersion(),
    'process.pid': process.pid,
  });
  const pairs = (env['OTEL_RESOURCE_ATTRIBUTES'] ?? '').split(',').map((pair) => pair.split('='));
  const given = pairs.flatMap(([name, value]) => (name && value ? [[name.trim(), value]] : []));
  return defaultResource()
    .merge(own)
    .merge(resourceFromAttributes(Object.fromEntries(given) as Record<string, string>));
}

const SAMPLERS: Readonly<Record<string, (ratio: number) => Sampler>> = {
  always_on: () => new AlwaysOnSampler(),
  always_off: () => new AlwaysOffSampler(),
  traceidratio: (ratio) => new TraceIdRatioBasedSampler(ratio),
};
const PARENT_BASED = 'parentbased_';

/** @throws ServiceError `invalid_setting` */
function samplerOf({
  OTEL_TRACES_SAMPLER: name = `${PARENT_BASED}always_on`,
  OTEL_TRACES_SAMPLER_ARG: argument = '1',
}: NodeJS.ProcessEnv): Sampler {
  const make = SAMPLERS[name.replace(PARENT_BASED, '')];
  const ratio = Number(argument);
  if (make === undefined || !(ratio >= 0 && ratio <= 1)) {
    const known = Object.keys(SAMPLERS).flatMap((one) => [one, `${PARENT_BASED}${one}`]);
    throw new ServiceError(
      'invalid_setting',
      'OTEL_TRACES_SAMPLER or OTEL_TRACES_SAMPLER_ARG is invalid',
      { remedy: `Use ${known.join(', ')}, and a share from 0 to 1.` },
    );
  }
  const root = make(ratio);
  return name.startsWith(PARENT_BASED) ? new ParentBasedSampler({ root }) : root;
}

/** @throws ServiceError `invalid_setting` */
function millisecondsIn(env: NodeJS.ProcessEnv, name: string, usual: number): number {
  const text = env[name];
  if (!text) return usual;
  const ms = Number(text);
  if (Number.isInteger(ms) && ms > 0) return ms;
  throw new ServiceError('invalid_setting', `${name} is not a time in milliseconds`, {
    remedy: `Set it to a whole number such as ${usual}.`,
  });
}

/** The messages of failed exports may contain answers of the collector, which the log redacts. */
function logFaults(log: Log, { OTEL_EXPORTER_OTLP_PROTOCOL: protocol }: NodeJS.ProcessEnv): void {
  const ignore = (): void => {};
  diag.setLogger(
    {
      error: (text) => log.warn(`OpenTelemetry: ${text}`),
      warn: (text) => log.warn(`OpenTelemetry: ${text}`),
      info: ignore,
      debug: ignore,
      verbose: ignore,
    },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  if (protocol && protocol !== 'http/json') {
    log.warn(`OTEL_EXPORTER_OTLP_PROTOCOL is ignored: OTLP is sent as http/json`);
  }
}

const KINDS = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  consumer: SpanKind.CONSUMER,
} as const satisfies Readonly<Record<NonNullable<SpanOptions['kind']>, SpanKind>>;

function tracerOf(provider: TracerProvider): Tracer {
  const tracer = provider.getTracer('service-local', packageVersion());
  return {
    startSpan(name, { kind = 'internal', parent, attributes = {} }) {
      const context = parent === null ? ROOT_CONTEXT : contextOf(parent);
      const options = { kind: KINDS[kind], attributes: { ...attributes } };
      return spanOf(tracer.startSpan(name, options, context));
    },
  };
}

function spanOf(span: OpenSpan): Span {
  const { traceId: trace_id, spanId: span_id, traceFlags } = span.spanContext();
  const flags = traceFlags.toString(16).padStart(2, '0');
  return {
    trace_id,
    span_id,
    traceparent: `00-${trace_id}-${span_id}-${flags}`,
    rename: (name) => void span.updateName(name),
    set: (attributes) => void span.setAttributes({ ...attributes }),
    fail(code) {
      span.setAttribute('error.type', code);
      span.setStatus({ code: SpanStatusCode.ERROR });
    },
    end: () => span.end(),
  };
}

const TRACEPARENT =
  /^[\da-f]{2}-(?<traceId>[\da-f]{32})-(?<spanId>[\da-f]{16})-(?<flags>[\da-f]{2})/;

/** An invalid `traceparent` starts a new trace, as W3C Trace Context demands. */
function contextOf(traceparent: string): Context {
  const { groups } = TRACEPARENT.exec(traceparent) ?? {};
  if (groups === undefined) return ROOT_CONTEXT;
  const context: SpanContext = {
    traceId: groups['traceId']!,
    spanId: groups['spanId']!,
    traceFlags: Number.parseInt(groups['flags']!, 16) & TraceFlags.SAMPLED,
    isRemote: true,
  };
  return trace.setSpanContext(ROOT_CONTEXT, context);
}
