import { markSpan, startSpan, type Span } from '../base/tracing.ts';
import type { SessionBatch, SessionEvent } from './session-events.ts';

interface OrderPayload {
  readonly order: number;
  readonly symbol: string;
  readonly side?: string;
  readonly type?: string;
  readonly reason?: string;
}

const SUBMITTED = 'order.submitted';
/** Outcomes that an engine decides before an order could reach a venue. */
const DENIED = 'order.denied';

/** Spans of the orders of a session: one from the request of each order until it no longer works. */
export class OrderSpans {
  /** The session, to which the spans belong; null without a trace. */
  parent: string | null;
  readonly #open = new Map<number, Span>();

  constructor(parent: string | null) {
    this.parent = parent;
  }

  /** Marks the begin of the session in the trace of a parent. */
  begin(parent: string | undefined, deployment_id: string): void {
    const attributes = { 'deployment.id': deployment_id };
    this.parent = markSpan('session', { parent: parent ?? null, attributes })?.traceparent ?? null;
  }

  /** Takes the order events of a batch, and the state after it. */
  take({ events, state }: Pick<SessionBatch, 'events' | 'state'>): void {
    for (const event of events) if (event.kind.startsWith('order.')) this.#take(event);
    if (this.#open.size === 0) return;
    const working = new Set(state.working.map(({ order }) => order));
    for (const [order, span] of this.#open) {
      if (working.has(order)) continue;
      this.#open.delete(order);
      span.end();
    }
  }

  /** The span of an order, or else of the session. */
  traceparentOf(order: number): string | null {
    return this.#open.get(order)?.traceparent ?? this.parent;
  }

  /** Ends the spans of orders that still work, because the process no longer follows them. */
  close(): void {
    for (const span of this.#open.values()) span.end();
    this.#open.clear();
  }

  #take({ kind, payload }: SessionEvent): void {
    const { order, symbol, side, type, reason } = payload as unknown as OrderPayload;
    if (kind === SUBMITTED) {
      const span = startSpan('order', {
        parent: this.parent,
        attributes: { ...attributesOf(order, symbol), ...(side && { 'order.side': side }) },
      });
      if (span === undefined) return;
      if (type !== undefined) span.set({ 'order.type': type });
      this.#open.set(order, span);
      return;
    }
    const outcome = kind.replace('order.', '');
    const parent = this.traceparentOf(order);
    const isDenied = kind === DENIED;
    markSpan(isDenied ? 'order denied' : `venue ${outcome}`, {
      parent,
      attributes: { ...attributesOf(order, symbol), ...(reason && { 'order.reason': reason }) },
    });
    this.#open.get(order)?.set({ 'order.outcome': outcome });
  }
}

function attributesOf(order: number, symbol: string) {
  return { 'order.number': order, 'order.symbol': symbol };
}
