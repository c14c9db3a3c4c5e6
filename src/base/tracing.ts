/**
 * Spans of distributed traces. Without a tracer, which `startTelemetry` sets, nothing is recorded and
 * no package of OpenTelemetry is loaded.
 */
import { AsyncLocalStorage } from 'node:async_hooks';

/** Never contains secrets, parameters of requests, or texts that users wrote. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

export interface SpanOptions {
  /** Default: `internal`. */
  readonly kind?: 'internal' | 'server' | 'client' | 'consumer';
  /** W3C `traceparent`; null starts a new trace. Default: the current span. */
  readonly parent?: string | null | undefined;
  readonly attributes?: SpanAttributes;
}

export interface Span {
  readonly trace_id: string;
  readonly span_id: string;
  /** Value of the header of W3C Trace Context that makes this span a parent. */
  readonly traceparent: string;
  rename(name: string): void;
  set(attributes: SpanAttributes): void;
  /** Marks the span as failed. @param code an error code, never a message. */
  fail(code: string): void;
  end(): void;
}

export interface Tracer {
  startSpan(name: string, options: SpanOptions & { readonly parent: string | null }): Span;
}

const current = new AsyncLocalStorage<Span>();
let tracer: Tracer | undefined;

/** @returns a function that ends the use of this tracer. */
export function useTracer(used: Tracer): () => void {
  tracer = used;
  return () => {
    if (tracer === used) tracer = undefined;
  };
}

/** Starts a span that the caller must end; undefined without a tracer. */
export function startSpan(name: string, options: SpanOptions = {}): Span | undefined {
  const { parent = current.getStore()?.traceparent ?? null } = options;
  return tracer?.startSpan(name, { ...options, parent });
}

/** Runs `work` within a span that ends with it, and fails if it throws. */
export async function inSpan<T>(
  name: string,
  options: SpanOptions,
  work: (span: Span | undefined) => Promise<T>,
): Promise<T> {
  const span = startSpan(name, options);
  if (span === undefined) return work(undefined);
  try {
    return await current.run(span, () => work(span));
  } catch (error) {
    span.fail(codeOf(error));
    throw error;
  } finally {
    span.end();
  }
}

/**
 * Records a span without a duration. Later spans can be its children, so that a trace is complete
 * while work of days continues.
 */
export function markSpan(name: string, options: SpanOptions = {}): Span | undefined {
  const span = startSpan(name, options);
  span?.end();
  return span;
}

export function withinSpan<T>(span: Span | undefined, work: () => T): T {
  return span === undefined ? work() : current.run(span, work);
}

/** Returns `work` bound to the current span, for a caller that runs it within another one. */
export function bindSpan<Args extends readonly unknown[], T>(
  work: (...args: Args) => T,
): (...args: Args) => T {
  const span = current.getStore();
  return span === undefined ? work : (...args) => current.run(span, () => work(...args));
}

export function currentTraceparent(): string | null {
  return current.getStore()?.traceparent ?? null;
}

/** Fields of a log line that is written within a span. */
export function traceFields(): object {
  const span = current.getStore();
  return span === undefined ? {} : { trace_id: span.trace_id, span_id: span.span_id };
}

function codeOf(error: unknown): string {
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' ? code : 'failure';
}
