import type { Order, OrderReason } from '../orders/order.ts';
import type { WorkingOrder } from '../orders/working-order.ts';
import type { InstrumentRules, VenueRules } from './venue-protocol.ts';

/** Current terms of the venue: order types, market phases, and grids of quantities and prices. */
export class VenueTerms {
  #types: readonly string[] = [];
  readonly #symbols: readonly string[];
  /** Rules of each instrument; undefined for one that the venue does not trade. */
  #rules: readonly (InstrumentRules | undefined)[] = [];
  /** Instruments that trade again after a halt but have had no new price since. */
  readonly resuming = new Set<number>();

  constructor(rules: VenueRules, symbols: readonly string[]) {
    this.#symbols = symbols;
    this.revise(rules);
  }

  /** Replaces the rules. */
  revise({ types, instruments }: VenueRules): void {
    for (const [index, symbol] of this.#symbols.entries()) {
      const isKnown = this.#rules.length > 0;
      if (isKnown && isShut(this.#rules[index]) && !isShut(instruments[symbol])) {
        this.resuming.add(index);
      }
    }
    this.#types = types;
    this.#rules = this.#symbols.map((symbol) => instruments[symbol]);
  }

  /** Whether nothing may be sent for an instrument. */
  isShut(index: number): boolean {
    return isShut(this.#rules[index]) || this.resuming.has(index);
  }

  /** Whether the venue trades the instrument at all. */
  trades(index: number): boolean {
    return this.#rules[index] !== undefined;
  }

  /** The reason for which the venue does not accept such an order now, whatever its size. */
  denial(order: Readonly<Order>): OrderReason | undefined {
    const { index } = order.instrument;
    const rules = this.#rules[index];
    if (rules === undefined) return 'unknown_symbol';
    if (!this.#supports(order)) return 'not_supported_by_venue';
    const { phase = 'open' } = rules;
    if (phase === 'closed') return 'market_closed';
    if (phase === 'halted' || this.resuming.has(index)) return 'market_halted';
    // An auction fills orders only at its end, so an order can neither demand nor rule out an immediate fill.
    const canWait = order.timeInForce === 'gtc' && order.type !== 'market' && !order.postOnly;
    return phase === 'auction' && !canWait ? 'not_taken_in_auction' : undefined;
  }

  #supports(order: Readonly<Order>): boolean {
    return (
      this.#types.includes(order.type) &&
      order.type !== 'trailing_stop' &&
      isDurationSupported(order) &&
      order.takeProfit === undefined &&
      order.stopLoss === undefined &&
      order.ocoGroup === 0
    );
  }

  /** Whether the venue accepts the variant of this order with a limit. */
  takesLimitsFor({ type }: Readonly<Order>): boolean {
    return this.#types.includes(type === 'market' ? 'limit' : 'stop_limit');
  }

  /** The most units, up to `quantity`, that are a multiple of the step. */
  wholeSteps(index: number, quantity: number): number {
    return roundToGrid(quantity, this.#rules[index]!.step, 'down');
  }

  /** The most units, up to `quantity`, of an order at `price`; 0 if that is less than the minimum. */
  tradable(index: number, quantity: number, price: number): number {
    const { min_quantity, min_value } = this.#rules[index]!;
    const units = this.wholeSteps(index, quantity);
    const isEnough = units >= min_quantity && units * price >= min_value * (1 - 1e-9);
    return isEnough ? units : 0;
  }

  /** The lowest price at which an order of `units` has the minimum value. */
  leastPrice(index: number, units: number): number {
    return this.#rules[index]!.min_value / units;
  }

  /** Rounds the order's prices to the tick: a limit never gets worse, a stop never nearer. */
  roundPrices(order: WorkingOrder): void {
    const { tick } = this.#rules[order.instrument.index]!;
    const isBuy = order.side === 'buy';
    order.limit = roundToGrid(order.limit, tick, isBuy ? 'down' : 'up');
    order.stop = roundToGrid(order.stop, tick, isBuy ? 'up' : 'down');
  }

  /** Rounds the worst price of an order to the tick, never to a worse one. */
  roundCollar({ instrument, side }: Order, collar: number): number {
    const { tick } = this.#rules[instrument.index]!;
    return roundToGrid(collar, tick, side === 'buy' ? 'down' : 'up');
  }
}

function isShut(rules: InstrumentRules | undefined): boolean {
  return rules === undefined || rules.phase === 'halted' || rules.phase === 'closed';
}

/** Whether venues support the time in force for the order type; resting orders are good until canceled. */
function isDurationSupported({ type, timeInForce, postOnly }: Readonly<Order>): boolean {
  if (timeInForce === 'gtc') return true;
  if (timeInForce === 'day') return false;
  return type === 'limit' ? !postOnly : type === 'market' && timeInForce === 'ioc';
}

/** The nearest multiple of `step` in this direction, with as many decimals as `step`; NaN for NaN. */
function roundToGrid(value: number, step: number, direction: 'down' | 'up'): number {
  if (step === 0 || Number.isNaN(value)) return value;
  const count = value / step;
  // The tolerance corrects binary rounding: 0.3 / 0.1 is less than 3. It stays far below one step.
  const tolerance = Math.min(1e-12 * count, 1e-4);
  const whole = direction === 'down' ? Math.floor(count + tolerance) : Math.ceil(count - tolerance);
  return Number((whole * step).toFixed(decimalsOf(step)));
}

function decimalsOf(step: number): number {
  let decimals = 0;
  while (decimals < 20 && Number(step.toFixed(decimals)) !== step) decimals += 1;
  return decimals;
}
