import { Book, type BookListener } from './book.ts';
import type { OrderTerms } from './book-order.ts';

/** Trading phase of an instrument. RTS 7 Article 9(3)(c) names suspended instruments, too. */
export type Phase =
  | 'continuous'
  | 'opening_auction'
  | 'volatility_auction'
  | 'closing_auction'
  | 'halt'
  | 'closed';

/** Orders in an auction wait for one price at its end. */
export const AUCTIONS: ReadonlySet<Phase> = new Set([
  'opening_auction',
  'volatility_auction',
  'closing_auction',
]);

/** Requirements on orders of an instrument, which may change during a session. */
export interface Terms {
  /** Prices are multiples of it, in price units. */
  readonly tick: number;
  /** Quantities are multiples of it, in quantity units. */
  readonly lot: number;
  /** In quantity units. */
  readonly maxQuantity: number;
  /** Maximum distance of a limit from the reference price, as a share of it. */
  readonly band: number;
  /** Minimum of price × quantity, in the quote asset. */
  readonly minValue: number;
}

export interface InstrumentSetup extends Terms {
  /** For example `BTC/USDT`. */
  readonly symbol: string;
  readonly base: string;
  readonly quote: string;
  /** Prices are whole numbers of it, in the quote asset. */
  readonly priceUnit: number;
  /** Quantities are whole numbers of it, in the base asset. */
  readonly quantityUnit: number;
  /** In price units; NaN if unknown. */
  readonly referencePrice: number;
  /** An auction ends up to this much later than scheduled, at random, ms. */
  readonly randomEndMs: number;
}

/** Reason for rejecting an order. */
export type Rejection =
  | 'unknown_instrument'
  | 'market_closed'
  | 'tick'
  | 'lot'
  | 'price_band'
  | 'min_value'
  | 'order_type'
  | 'duplicate'
  | 'post_only_would_cross'
  | 'insufficient_funds';

/** One instrument of the exchange: its terms, its phase and its book. */
export class Listing {
  readonly index: number;
  readonly setup: InstrumentSetup;
  readonly book: Book;
  terms: Terms;
  phase: Phase = 'continuous';
  isDeleted = false;
  /** Price of the last auction, or else of the setup; the center of the price band. */
  reference: number;
  /** Number of phase changes: a later change overrides one that is pending. */
  phaseChanges = 0;

  constructor(index: number, setup: InstrumentSetup, listener: BookListener) {
    this.index = index;
    this.setup = setup;
    this.terms = setup;
    this.book = new Book(listener);
    this.reference = setup.referencePrice;
  }

  /** Name of the instrument in requests, such as `BTCUSDT`. */
  get id(): string {
    return idOf(this.setup.symbol);
  }

  /** Why an order is rejected; undefined if it is valid. */
  rejectionOf(order: OrderTerms): Rejection | undefined {
    const { side, type, timeInForce, postOnly, quantity, price, stopPrice } = order;
    if (this.isDeleted) return 'unknown_instrument';
    if (this.phase === 'halt' || this.phase === 'closed') return 'market_closed';
    const canWait = timeInForce === 'gtc' && postOnly !== true;
    if (AUCTIONS.has(this.phase) && !canWait) return 'market_closed';
    const { lot, maxQuantity } = this.terms;
    if (!Number.isSafeInteger(quantity) || quantity <= 0 || quantity % lot !== 0) return 'lot';
    if (quantity > maxQuantity) return 'lot';
    const limits = [
      ...(type === 'limit' || type === 'stop_limit' ? [price] : []),
      ...(type === 'stop' || type === 'stop_limit' ? [stopPrice] : []),
    ];
    for (const limit of limits) {
      if (limit === undefined || !this.isOnTick(limit)) return 'tick';
      if (Math.abs(limit - this.reference) > this.terms.band * this.reference) return 'price_band';
    }
    if (this.#valueOf(order) < this.terms.minValue) return 'min_value';
    const crosses = postOnly === true && this.book.wouldCross({ side, price: price! });
    return crosses ? 'post_only_would_cross' : undefined;
  }

  isOnTick(price: number): boolean {
    return Number.isSafeInteger(price) && price > 0 && price % this.terms.tick === 0;
  }

  /** Price at which an order would trade, in price units; NaN if the book cannot say. */
  priceOf({ side, price }: OrderTerms): number {
    const best = (side === 'buy' ? this.book.asks : this.book.bids).best;
    return price ?? best?.price ?? this.book.last;
  }

  #valueOf(order: OrderTerms): number {
    const { priceUnit, quantityUnit } = this.setup;
    const price = this.priceOf(order);
    return Number.isNaN(price) ? Infinity : price * priceUnit * order.quantity * quantityUnit;
  }
}

export function idOf(symbol: string): string {
  return symbol.replace('/', '');
}
