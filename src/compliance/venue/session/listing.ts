import { Book, type BookListener } from './book.ts';
import type { FeedMessage, LevelView, ReferenceTerms, RejectReason } from './messages.ts';
import type { Level, Order, OrderTerms } from './order.ts';
import { PHASES, takesOrder, type Phase } from './phases.ts';

export interface InstrumentSetup extends ReferenceTerms {
  /** In price units: of the last session's close, or NaN. */
  readonly reference_price: number;
  /** How long a volatility auction calls, ms. */
  readonly call_ms: number;
  /** An auction ends up to so many ms later than it is due, by the seed. */
  readonly random_end_ms: number;
}

const TYPES: ReadonlySet<unknown> = new Set(['market', 'limit', 'stop', 'stop_limit']);
const TIMES_IN_FORCE: ReadonlySet<unknown> = new Set(['gtc', 'day', 'gtd', 'ioc', 'fok']);

/** One instrument at the venue: its terms, its phase and its book. */
export class Listing {
  readonly index: number;
  readonly setup: InstrumentSetup;
  readonly book: Book;
  terms: ReferenceTerms;
  phase: Phase = 'pre_open';
  isDeleted = false;
  /** Price of the last auction, else that of its setup; what the band is around. */
  reference: number;
  /** Counts the changes of phase that were asked for: a later one overrules one still to come. */
  changes = 0;

  constructor(index: number, setup: InstrumentSetup, listener: BookListener) {
    const { reference_price, call_ms: _, random_end_ms: __, ...terms } = setup;
    this.index = index;
    this.setup = setup;
    this.terms = terms;
    this.book = new Book(listener);
    this.reference = reference_price;
  }

  get isTrading(): boolean {
    return this.phase === 'continuous';
  }

  /** Why an order is not taken; undefined for one that is. */
  refusal(terms: OrderTerms, now: number): RejectReason | undefined {
    const { side, order_type: type, time_in_force: tif, post_only: postOnly } = terms;
    if (this.isDeleted) return 'unknown_instrument';
    if (!TYPES.has(type) || !TIMES_IN_FORCE.has(tif) || !isSide(side)) {
      return 'order_type';
    }
    if (postOnly === true && type !== 'limit') return 'order_type';
    if (tif === 'gtd' && !(terms.expire_at! > now)) return 'expired';
    if (!takesOrder(this.phase, terms)) return 'phase';
    const hasLimit = type === 'limit' || type === 'stop_limit';
    const hasStop = type === 'stop' || type === 'stop_limit';
    return (
      this.#quantityRefusal(terms.quantity) ??
      (hasLimit ? this.#priceRefusal(terms.price) : undefined) ??
      (hasStop ? this.#priceRefusal(terms.stop_price) : undefined) ??
      (postOnly === true && this.book.wouldCross({ side, price: terms.price! })
        ? 'post_only_would_cross'
        : undefined)
    );
  }

  /** Why a live order is not changed so. */
  amendRefusal(
    order: Order,
    { price, stopPrice, quantity }: Pick<Order, 'price' | 'stopPrice' | 'quantity'>,
  ): RejectReason | undefined {
    const { side } = order;
    if (!PHASES[this.phase].takesOrders || this.isDeleted) return 'phase';
    if (quantity <= order.filled) return 'quantity_below_filled';
    const crosses =
      order.postOnly && price !== order.price && this.book.wouldCross({ side, price });
    return (
      this.#quantityRefusal(quantity) ??
      (price === order.price ? undefined : this.#priceRefusal(price)) ??
      (stopPrice === order.stopPrice ? undefined : this.#priceRefusal(stopPrice)) ??
      (crosses ? 'post_only_would_cross' : undefined)
    );
  }

  /** Has trading stop for an auction before it strays too far from the last price. */
  setCorridor(): void {
    const { book, reference } = this;
    const { corridor } = this.terms;
    if (corridor === Infinity) {
      book.low = -Infinity;
      book.high = Infinity;
      return;
    }
    const around = Number.isNaN(book.last) ? reference : book.last;
    // Without any price there is nothing to stray from.
    book.low = Number.isNaN(around) ? -Infinity : around * (1 - corridor);
    book.high = Number.isNaN(around) ? Infinity : around * (1 + corridor);
  }

  isOnTick(price: number): boolean {
    return Number.isSafeInteger(price) && price > 0 && price % this.terms.tick === 0;
  }

  #priceRefusal(price: number | undefined): RejectReason | undefined {
    if (price === undefined || !this.isOnTick(price)) return 'tick';
    const strays = Math.abs(price - this.reference) > this.terms.band * this.reference;
    return strays ? 'price_band' : undefined;
  }

  #quantityRefusal(quantity: number): RejectReason | undefined {
    const { lot, max_quantity: most } = this.terms;
    if (!Number.isSafeInteger(quantity) || quantity <= 0 || quantity % lot !== 0) return 'lot';
    return quantity > most ? 'max_quantity' : undefined;
  }
}

/** What comes over a wire may be anything. */
function isSide(side: unknown): boolean {
  return side === 'buy' || side === 'sell';
}

/** Best first. */
export function viewOf(levels: readonly Level[]): LevelView[] {
  return levels.toReversed().map(({ price, quantity, count }) => [shown(price), quantity, count]);
}

/** A level as it has become. */
export function updateOf(instrument: string, level: Level, time: number): FeedMessage {
  const { side, price, quantity, count } = level;
  return {
    type: 'book',
    seq: 0,
    time,
    instrument,
    side,
    price: shown(price),
    quantity,
    orders: count,
  };
}

/** Undefined for any price. */
export function shown(price: number): number | undefined {
  return Number.isFinite(price) ? price : undefined;
}
