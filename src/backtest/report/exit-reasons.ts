import type { OrderStep } from '../../engine/order-steps.ts';
import type { OrderType } from '../../engine/orders/order.ts';
import type { Trade } from '../../engine/round-trip.ts';

/** Reason for which a trade was closed, usually the kind of its last order. */
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
 * Finds the exit reasons of closed trades from the order events of a run. Take profit and stop loss are
 * the exits of a bracket. A reversal is an order that also opened the opposite position.
 */
export class ExitReasons {
  readonly #closing: Closing | undefined;
  readonly #ends: ReadonlySet<number>;
  /** Indexed by the id of the order. */
  readonly #reasonOf: ExitReason[] = [];
  readonly #positions = new Map<string, number>();
  readonly #reasons: ExitReason[] = [];
  #calledAt: number | undefined;

  constructor(closing?: Closing) {
    this.#closing = closing;
    this.#ends = new Set(closing?.times);
  }

  /** Adds the next event of the run. */
  add({ kind, time, order, symbol, type, parent, position: after }: Readonly<OrderStep>): void {
    if (kind === 'account.margin_call') this.#calledAt = time;
    if (type !== undefined) this.#reasonOf[order] = this.#reasonOfOrder(time, type, parent);
    if (after === undefined) return;
    const before = this.#positions.get(symbol) ?? 0;
    this.#positions.set(symbol, after);
    const isReversed = before * after < 0;
    if (before === 0 || (after !== 0 && !isReversed)) return;
    this.#reasons.push(isReversed ? 'reversal' : (this.#reasonOf[order] ?? 'market'));
  }

  /**
   * Returns the reasons by the id of the trade.
   *
   * @param trades closed trades of the run in order of exit
   * @returns empty if the events close another number of trades, as after a correction by a venue
   */
  of(trades: readonly Pick<Trade, 'id'>[]): ReadonlyMap<number, ExitReason> {
    if (this.#reasons.length !== trades.length) return new Map();
    return new Map(trades.map(({ id }, index) => [id, this.#reasons[index]!]));
  }

  #reasonOfOrder(time: number, type: OrderType, parent: number | undefined): ExitReason {
    // The account submits its own orders directly after a margin call, and then accepts no others.
    if (time === this.#calledAt) return 'margin_call';
    // Only market orders that close the run fill after they were submitted in the last step.
    if (this.#closing && type === 'market' && this.#ends.has(time)) return this.#closing.reason;
    if (parent === undefined || type === 'trailing_stop' || type === 'market') return type;
    return type === 'limit' ? 'take_profit' : 'stop_loss';
  }
}
