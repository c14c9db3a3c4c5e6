import type { SessionEvent } from '../../trading/session-events.ts';

const ENDS: ReadonlySet<string> = new Set([
  'order.canceled',
  'order.expired',
  'order.rejected',
  'order.denied',
]);

/** Rebuilds open orders and positions from the order events alone. */
export function rebuildFromLog(events: readonly SessionEvent[]) {
  /** Unfilled quantity by order. */
  const open = new Map<unknown, number>();
  const positions: Record<string, number> = {};
  let seq = 0;
  let isWhole = true;
  for (const { kind, payload } of events) {
    const { seq: number, order, symbol, side, quantity } = payload;
    if (typeof number !== 'number') continue;
    isWhole &&= number === seq + 1;
    seq = number;
    if (kind === 'order.submitted') open.set(order, Number(quantity));
    else if (kind === 'order.filled') {
      const units = Math.abs(Number(quantity));
      const name = String(symbol);
      positions[name] = (positions[name] ?? 0) + (side === 'sell' ? -units : units);
      const left = (open.get(order) ?? 0) - units;
      if (left > 1e-9) open.set(order, left);
      else open.delete(order);
    } else if (ENDS.has(kind)) open.delete(order);
  }
  return { isWhole, open, positions };
}
