import type { OptionalLimits } from '../config.ts';
import type { Order, OrderReason } from '../orders/order.ts';
import type { RecentExecutions } from './risk-state.ts';

type Side = Order['side'];

/** Prices and executions of one instrument and side. */
interface Trigger {
  readonly lowest: Extreme;
  readonly highest: Extreme;
  /** Times of executed orders, ms, oldest first. */
  readonly executions: number[];
}

/** Limits on recent prices and executions of a bot, and on the instruments that it may trade. */
export class OptionalLimitChecks {
  readonly #limits: OptionalLimits;
  readonly #isPermitted: readonly boolean[];
  /** By instrument, buys before sells. */
  readonly #triggers: readonly Trigger[];
  #isLatched = false;
  #latches = 0;
  /** Newest known time, ms. Venues report in any order, but time must not run backward. */
  #now = -Infinity;

  /** @param carried executions of the account that this one continues. */
  constructor(
    limits: OptionalLimits,
    symbols: readonly string[],
    carried: readonly RecentExecutions[] = [],
  ) {
    const { permitted } = limits;
    this.#limits = limits;
    this.#isPermitted = symbols.map((symbol) => permitted?.includes(symbol) ?? true);
    this.#triggers = symbols.flatMap(() => [newTrigger(), newTrigger()]);
    for (const { symbol, side, times } of carried) {
      const index = symbols.indexOf(symbol);
      if (index !== -1) this.#trigger(index, side).executions.push(...times);
    }
  }

  /** The reason for which orders for the instrument are denied, whatever they ask for. */
  blocks(index: number): OrderReason | undefined {
    if (!this.#isPermitted[index]) return 'instrument_not_permitted';
    return this.#isLatched ? 'repeated_execution' : undefined;
  }

  /** Whether `price` is too far from prices of the side in the window that ends at `time`, ms. */
  drifts(index: number, side: Side, price: number, time: number): boolean {
    const { price_collar_period: collar } = this.#limits;
    if (collar === undefined) return false;
    const { lowest, highest } = this.#trigger(index, side);
    const since = this.#follow(time) - collar.seconds * 1000;
    const most = collar.bps * (1 + 1e-9);
    // NaN, for an unknown price or an empty window, is no drift.
    return (
      (price / lowest.since(since) - 1) * 10_000 > most ||
      (1 - price / highest.since(since)) * 10_000 > most
    );
  }

  /** The worst price for the side that does not drift too far; infinite if any price is allowed. */
  worst(index: number, side: Side, time: number): number {
    const none = side === 'buy' ? Infinity : -Infinity;
    const { price_collar_period: collar } = this.#limits;
    if (collar === undefined) return none;
    const { lowest, highest } = this.#trigger(index, side);
    const since = this.#follow(time) - collar.seconds * 1000;
    const share = collar.bps / 10_000;
    const worst =
      side === 'buy' ? lowest.since(since) * (1 + share) : highest.since(since) * (1 - share);
    return Number.isNaN(worst) ? none : worst;
  }

  /** Records the price of an order or of its fill. */
  priced(index: number, side: Side, price: number, time: number): void {
    if (this.#limits.price_collar_period === undefined) return;
    const { lowest, highest } = this.#trigger(index, side);
    const now = this.#follow(time);
    lowest.add(now, price);
    highest.add(now, price);
  }

  /**
   * Records the first fill of an order.
   *
   * @returns the number of executions in the window if they latch the bot, until `reEnable`.
   */
  executed(index: number, side: Side, time: number): number | undefined {
    const { repeated_execution: repeated } = this.#limits;
    if (repeated === undefined || this.#isLatched) return undefined;
    const { executions } = this.#trigger(index, side);
    const now = this.#follow(time);
    executions.push(now);
    while (executions[0]! < now - repeated.seconds * 1000) executions.shift();
    this.#isLatched = executions.length >= repeated.count;
    if (!this.#isLatched) return undefined;
    this.#latches += 1;
    return executions.length;
  }

  /** Executions that still count at the newest known time. */
  recent(symbols: readonly string[]): readonly RecentExecutions[] {
    const { repeated_execution: repeated } = this.#limits;
    if (repeated === undefined) return [];
    const since = this.#now - repeated.seconds * 1000;
    return symbols.flatMap((symbol, index) =>
      (['buy', 'sell'] as const).flatMap((side) => {
        const times = this.#trigger(index, side).executions.filter((time) => time >= since);
        return times.length === 0 ? [] : [{ symbol, side, times }];
      }),
    );
  }

  /** Number of latches so far. */
  get latches(): number {
    return this.#latches;
  }

  /** Lifts the latch and restarts the count of executions. */
  reEnable(): void {
    this.#isLatched = false;
    for (const { executions } of this.#triggers) executions.length = 0;
  }

  #trigger(index: number, side: Side): Trigger {
    return this.#triggers[2 * index + (side === 'buy' ? 0 : 1)]!;
  }

  #follow(time: number): number {
    this.#now = Math.max(this.#now, time);
    return this.#now;
  }
}

function newTrigger(): Trigger {
  return { lowest: new Extreme(1), highest: new Extreme(-1), executions: [] };
}

/** The lowest price of a sliding window; with the sign −1, the highest. */
class Extreme {
  readonly #sign: 1 | -1;
  readonly #times: number[] = [];
  /** Prices that may become the extreme: each is beyond the one before. */
  readonly #prices: number[] = [];

  constructor(sign: 1 | -1) {
    this.#sign = sign;
  }

  add(time: number, price: number): void {
    while (this.#prices.length > 0 && this.#prices.at(-1)! * this.#sign >= price * this.#sign) {
      this.#prices.pop();
      this.#times.pop();
    }
    this.#prices.push(price);
    this.#times.push(time);
  }

  /** NaN for an empty window. */
  since(time: number): number {
    while (this.#times.length > 0 && this.#times[0]! < time) {
      this.#prices.shift();
      this.#times.shift();
    }
    return this.#prices[0] ?? Number.NaN;
  }
}
