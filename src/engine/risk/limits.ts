import { DAY } from '../../market/bar-time.ts';
import type { RiskLimits } from '../config.ts';
import type { OrderReason } from '../orders/order.ts';
import type { RiskState } from '../execution/venue-protocol.ts';

/**
 * What a risk check looks at: the account as the order would find and leave it. The engine keeps one
 * and writes each order into it.
 */
export interface OrderIntent {
  /** Units, and account currency at the last close (or the fill's price, where it is known). */
  quantity: number;
  value: number;
  /** The order can only bring the position nearer to flat, whatever works beside it; see `Exposure`. */
  reduces: boolean;
  /** The position, in signed units, once the order and all that work on its side are filled. */
  farthest: number;
  /** The worth of that position, account currency. */
  positionValue: number;
  /** Distance of its limit or stop price from the reference, basis points; 0 without one. */
  collarBps: number;
  /** Instruments held or being bought, this one included. */
  instruments: number;
  equity: number;
  /** Highest close of equity so far, and equity at the last close of the day before. */
  peakEquity: number;
  dayStartEquity: number;
}

/**
 * The first limit that the order breaks, or `undefined`. An order that only reduces a position
 * passes all limits but those on its own price and size: leaving must stay possible.
 */
export function riskDenial(
  limits: RiskLimits,
  intent: Readonly<OrderIntent>,
): OrderReason | undefined {
  const { equity, dayStartEquity, peakEquity } = intent;
  if (exceeds(intent.collarBps, limits.price_collar_bps)) return 'price_collar_bps';
  if (exceeds(intent.quantity, limits.max_order_qty)) return 'max_order_qty';
  if (exceeds(intent.value, limits.max_order_value)) return 'max_order_value';
  if (intent.reduces) return undefined;
  if (exceeds(intent.positionValue, limits.max_position_pct * equity)) return 'max_position_pct';
  if (intent.instruments > limits.max_instruments) return 'max_instruments';
  if (exceeds(dayStartEquity - equity, limits.max_daily_loss_pct * dayStartEquity)) {
    return 'max_daily_loss_pct';
  }
  if (exceeds(peakEquity - equity, limits.max_drawdown_pct * peakEquity)) {
    return 'max_drawdown_pct';
  }
  return undefined;
}

/** An order cut to fit a limit exactly may come out above it by a rounding error. */
function exceeds(value: number, limit: number): boolean {
  return value > limit * (1 + 1e-9);
}

/**
 * The price of an instrument that those of orders are held against: its last close, unless that is
 * farther from the one before than the collar allows. Such a close counts once the next one lies on
 * the same side, so that no single bad print moves the collar.
 */
export class Reference {
  readonly #most: number;
  #price = Number.NaN;
  #doubtful = Number.NaN;
  #followed = 0;

  /** @param bps how wide the collar is. */
  constructor(bps: number) {
    this.#most = bps / 10_000;
  }

  /** After so many closes; NaN before the first. It follows them only when an order asks. */
  after(count: number, closes: Float64Array): number {
    for (; this.#followed < count; this.#followed += 1) this.#take(closes[this.#followed]!);
    return this.#price;
  }

  #take(close: number): void {
    if (!(close > 0 && close < Infinity)) return;
    const before = this.#price;
    const isNear = !exceeds(Math.abs(close / before - 1), this.#most);
    const isConfirmed = !Number.isNaN(this.#doubtful) && close > before === this.#doubtful > before;
    if (isNear || isConfirmed) {
      this.#price = close;
      this.#doubtful = Number.NaN;
    } else this.#doubtful = close;
  }
}

/**
 * The equity that losses are measured from. It follows the curve only when an order asks: between
 * two orders nobody looks.
 */
export class Losses {
  /** Highest close of equity, and the last one of the UTC day before. */
  peak: number;
  dayStart: number;
  readonly #initial: number;
  #dayEnd = -Infinity;
  #followed = 0;

  /** @param carried from the account that this one continues. */
  constructor(equity: number, carried?: RiskState) {
    this.#initial = equity;
    this.peak = Math.max(equity, carried?.peak_equity ?? equity);
    this.dayStart = carried?.day_start_equity ?? equity;
    if (typeof carried?.day === 'string') this.#dayEnd = Date.parse(carried.day) + DAY;
  }

  get state(): RiskState {
    const day = Number.isFinite(this.#dayEnd) ? dateOf(this.#dayEnd - DAY) : null;
    return { peak_equity: this.peak, day_start_equity: this.dayStart, day };
  }

  /** `recorded` steps of equity are known; the order is placed or filled in `step`. */
  follow(times: Float64Array, equity: Float64Array, recorded: number, step: number): void {
    for (; this.#followed < recorded; this.#followed += 1) {
      const at = this.#followed;
      if (times[at]! >= this.#dayEnd) this.#startDay(times, equity, at);
      if (equity[at]! > this.peak) this.peak = equity[at]!;
    }
    if (times[step]! >= this.#dayEnd) this.#startDay(times, equity, step);
  }

  #startDay(times: Float64Array, equity: Float64Array, step: number): void {
    this.dayStart = step > 0 ? equity[step - 1]! : this.#initial;
    this.#dayEnd = (Math.floor(times[step]! / DAY) + 1) * DAY;
  }
}

function dateOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

/** Counts order messages per second of bar time against `max_messages_per_second`. */
export class MessageRate {
  readonly #limit: number;
  readonly #kept: number;
  #second = Number.NaN;
  #count = 0;

  /** `kept` of the limit are for cancels alone. */
  constructor(limit: number, kept = 0) {
    this.#limit = limit;
    this.#kept = kept;
  }

  /** Why no order may go out at `time` (ms), if none may. Cancels are counted and never refused. */
  denial(time: number): OrderReason | undefined {
    this.#roll(time);
    if (this.#count < this.#limit - this.#kept) return undefined;
    return this.#count < this.#limit ? 'messages_kept_for_cancels' : 'max_messages_per_second';
  }

  count(time: number): void {
    this.#roll(time);
    this.#count += 1;
  }

  #roll(time: number): void {
    const second = Math.floor(time / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#count = 0;
    }
  }
}
