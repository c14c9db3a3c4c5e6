import { isoTime } from '../../base/iso-time.ts';
import type { OrderEvent } from '../../engine/journal.ts';
import type { OrderType } from '../../engine/orders/order.ts';
import type { Trade } from '../../engine/round-trip.ts';

/** What closed a trade: mostly the kind of its last order. */
export type ExitReason = keyof typeof EXIT_REASONS;

export const EXIT_REASONS = {
  market: 'Market order',
  limit: 'Limit order',
  stop: 'Stop order',
  stop_limit: 'Stop-limit order',
  trailing_stop: 'Trailing stop',
  take_profit: 'Take profit',
  stop_loss: 'Stop loss',
  reversal: 'Reversal',
  margin_call: 'Margin call',
  run_end: 'End of run',
  window_end: 'End of window',
} as const;

/** The times at which a run closes all positions, ms since the epoch; see `closesAtEnd`. */
export interface Closing {
  readonly reason: 'run_end' | 'window_end';
  readonly times: readonly number[];
}

/**
 * Returns the exit reason of each closed trade by its id. Take profit and stop loss are the exits of a
 * bracket. A reversal is an order that also opened the opposite position.
 *
 * @param events order events of the run
 * @param trades closed trades in order of exit
 * @returns empty if the events close another number of trades, as after a correction by a venue
 */
export function exitReasonsOf(
  events: Iterable<OrderEvent>,
  trades: readonly Trade[],
  closing?: Closing,
): ReadonlyMap<number, ExitReason> {
  const reasons: ExitReason[] = [];
  const reasonOf = new Map<number, ExitReason>();
  const positions = new Map<string, number>();
  const ends = new Set(closing?.times.map(isoTime));
  let calledAt: string | undefined;
  for (const event of events) {
    if (event.kind === 'account.margin_call') calledAt = event.time;
    if (event.kind === 'order.submitted') {
      // The account submits its own orders directly after a margin call, and then accepts no others.
      if (event.time === calledAt) reasonOf.set(event.order, 'margin_call');
      // Only market orders that close the run fill after they were submitted in the last step.
      else if (closing && event.type === 'market' && ends.has(event.time)) {
        reasonOf.set(event.order, closing.reason);
      } else reasonOf.set(event.order, reasonOfOrder(event));
    }
    if (!('position' in event)) continue;
    const before = positions.get(event.symbol) ?? 0;
    const after = event.position;
    positions.set(event.symbol, after);
    const isReversed = before * after < 0;
    if (before === 0 || (after !== 0 && !isReversed)) continue;
    reasons.push(isReversed ? 'reversal' : (reasonOf.get(event.order) ?? 'market'));
  }
  if (reasons.length !== trades.length) return new Map();
  return new Map(trades.map(({ id }, index) => [id, reasons[index]!]));
}

function reasonOfOrder({ type, parent }: { type: OrderType; parent?: number }): ExitReason {
  if (parent === undefined || type === 'trailing_stop' || type === 'market') return type;
  return type === 'limit' ? 'take_profit' : 'stop_loss';
}
