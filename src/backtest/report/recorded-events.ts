import type { OrderEvent } from '../../engine/journal.ts';
import { ExitReasons, type Closing } from './exit-reasons.ts';

/** Reads the events of `events.ndjson`. */
export function parseEvents(text: string): OrderEvent[] {
  const lines = text.split('\n').filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line) as OrderEvent);
}

/** Finds the exit reasons of the trades that the events of a whole run closed. */
export function exitReasonsFrom(events: readonly OrderEvent[], closing: Closing): ExitReasons {
  const reasons = new ExitReasons(closing);
  for (const event of events) {
    const submitted = event.kind === 'order.submitted' ? event : undefined;
    reasons.add({
      kind: event.kind,
      time: Date.parse(event.time),
      order: event.order,
      symbol: event.symbol,
      type: submitted?.type,
      parent: submitted?.parent,
      position: 'position' in event ? event.position : undefined,
    });
  }
  return reasons;
}
