import type { Agenda } from './agenda.ts';
import { Account, type AccountSetup, type Fee } from './exchange-account.ts';
import { AUCTIONS, Listing, type InstrumentSetup, type Phase, type Rejection } from './listing.ts';
import { isLive, makeOrder, type Fill, type Order, type OrderTerms } from './book-order.ts';

/** Change of an order. */
export type Change = 'new' | 'trade' | 'canceled' | 'expired' | 'triggered' | 'revised';

/** A trade with both of its orders. */
export interface Trade {
  readonly id: number;
  readonly listing: Listing;
  readonly taker: Order;
  readonly maker: Order;
  readonly price: number;
  readonly quantity: number;
  readonly time: number;
}

export interface MatchingListener {
  /** @param fill of a `trade`. */
  changed(order: Order, change: Change, fill?: Fill): void;
  traded(trade: Trade): void;
}

/** Time of the exchange. */
export type Clock = Pick<Agenda, 'now' | 'wake'>;

/** Order books and accounts: accepts and matches orders, and tracks holdings. */
export class Matching {
  readonly listings: readonly Listing[];
  readonly accounts: readonly Account[];
  /** Every order, by id − 1. */
  readonly orders: Order[] = [];
  readonly trades: Trade[] = [];
  fee: Fee = { asset: 'quote', rate: 0 };
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #listener: MatchingListener;
  /** Orders of each account by client order id, newest last. */
  readonly #byClientId: readonly Map<string, Order>[];

  /** @param random decides when auctions end. */
  constructor(
    instruments: readonly InstrumentSetup[],
    accounts: readonly AccountSetup[],
    clock: Clock,
    random: () => number,
    listener: MatchingListener,
  ) {
    this.#clock = clock;
    this.#random = random;
    this.#listener = listener;
    const bookListener = {
      traded: this.#traded.bind(this),
      ended: (order: Order) => this.#change(order, 'expired'),
      triggered: (order: Order) => this.#change(order, 'triggered'),
    };
    this.listings = instruments.map((setup, at) => new Listing(at, setup, bookListener));
    this.accounts = accounts.map((setup) => new Account(setup, instruments.length));
    this.#byClientId = accounts.map(() => new Map());
  }

  /** @param id such as `BTCUSDT`. */
  listing(id: string): Listing | undefined {
    return this.listings.find((one) => one.id === id);
  }

  account(name: string): number {
    const at = this.accounts.findIndex(({ setup }) => setup.name === name);
    if (at < 0) throw new RangeError(`the exchange has no account ${name}`);
    return at;
  }

  /** Newest order of the account with this client order id. */
  find(account: number, clientOrderId: string): Order | undefined {
    return this.#byClientId[account]!.get(clientOrderId);
  }

  /** Live orders of an account, oldest first. */
  openOrders(account: number): readonly Order[] {
    const orders = this.listings.flatMap(({ book }) => book.orders());
    return orders.filter((order) => order.account === account).sort((a, b) => a.id - b.id);
  }

  place(account: number, listing: Listing, terms: OrderTerms): Order | Rejection {
    const { setup } = this.accounts[account]!;
    const same = this.find(account, terms.clientOrderId);
    const rejection =
      listing.rejectionOf(terms) ??
      (same !== undefined && isLive(same) ? 'duplicate' : undefined) ??
      (setup.isUnlimited === true || this.#isCovered(account, listing, terms)
        ? undefined
        : 'insufficient_funds');
    if (rejection !== undefined) return rejection;
    const { now: time } = this.#clock;
    const { selfTrade = 'none' } = setup;
    const id = this.orders.length + 1;
    const order = makeOrder({ id, account, instrument: listing.index, time, selfTrade }, terms);
    this.orders.push(order);
    this.#byClientId[account]!.set(order.clientOrderId, order);
    this.#change(order, 'new');
    if (listing.phase === 'continuous') listing.book.submit(order);
    else listing.book.enter(order);
    return order;
  }

  /** Ends a live order. */
  end(order: Order, status: 'canceled' | 'expired'): void {
    this.listings[order.instrument]!.book.remove(order);
    order.leaves = 0;
    order.status = status;
    this.#change(order, status);
  }

  /** Changes the phase; an auction that this ends continues for a random time. */
  schedulePhase(listing: Listing, phase: Phase): void {
    listing.phaseChanges += 1;
    const { phaseChanges, setup } = listing;
    const endsAuction = AUCTIONS.has(listing.phase) && !AUCTIONS.has(phase) && phase !== 'halt';
    const wait = endsAuction ? Math.floor(this.#random() * setup.randomEndMs) : 0;
    if (wait === 0) return this.#enterPhase(listing, phase);
    this.#clock.wake(this.#clock.now + wait, () => {
      if (listing.phaseChanges === phaseChanges) this.#enterPhase(listing, phase);
    });
  }

  /** Delists the instrument and cancels its orders. */
  delist(listing: Listing): void {
    for (const order of listing.book.orders()) this.end(order, 'canceled');
    listing.isDeleted = true;
  }

  /** Changes price and quantity of a trade; a quantity of 0 undoes it. */
  revise(trade: Trade, price: number, quantity: number): void {
    const { id, taker, maker } = trade;
    for (const order of [taker, maker]) {
      this.#book(order, trade.price, -trade.quantity);
      this.#book(order, price, quantity);
      order.fills = order.fills.flatMap((fill) => {
        if (fill.tradeId !== id) return [fill];
        return quantity > 0 ? [{ ...fill, price, quantity }] : [];
      });
      order.filled += quantity - trade.quantity;
      order.value += price * quantity - trade.price * trade.quantity;
      if (order.status === 'filled' && order.filled < order.quantity) order.status = 'canceled';
      this.#change(order, 'revised');
    }
    this.trades[id - 1] = { ...trade, price, quantity };
  }

  /** Total holdings of an account by asset. */
  balancesOf(account: number): ReadonlyMap<string, number> {
    const { deposits, units, paid } = this.accounts[account]!;
    const balances = new Map(deposits);
    const add = (asset: string, amount: number): void => {
      balances.set(asset, decimal((balances.get(asset) ?? 0) + amount));
    };
    for (const { index, setup } of this.listings) {
      add(setup.base, units[index]! * setup.quantityUnit);
      add(setup.quote, -paid[index]! * setup.priceUnit * setup.quantityUnit);
    }
    return balances;
  }

  /** Amount of an asset that open orders of the account reserve. */
  lockedOf(account: number, asset: string): number {
    const { selling, spending } = this.accounts[account]!;
    const amounts = this.listings.map(({ index, setup }) => {
      const units = setup.base === asset ? selling[index]! : 0;
      const paid = setup.quote === asset ? spending[index]! * setup.priceUnit : 0;
      return (units + paid) * setup.quantityUnit;
    });
    return decimal(amounts.reduce((sum, amount) => sum + amount, 0));
  }

  #isCovered(account: number, listing: Listing, order: OrderTerms): boolean {
    const { base, quote, priceUnit, quantityUnit } = listing.setup;
    const asset = order.side === 'buy' ? quote : base;
    const units = order.quantity * quantityUnit;
    const needed = order.side === 'buy' ? units * listing.priceOf(order) * priceUnit : units;
    const held = this.balancesOf(account).get(asset) ?? 0;
    const free = held - this.lockedOf(account, asset);
    return !(needed > free + 1e-9 * Math.abs(held));
  }

  #enterPhase(listing: Listing, phase: Phase): void {
    const { book } = listing;
    if (AUCTIONS.has(listing.phase) && (phase === 'continuous' || phase === 'closed')) {
      const auction = book.uncross(listing.reference);
      if (auction !== undefined) listing.reference = auction.price;
    }
    listing.phase = phase;
    if (phase === 'continuous') book.releaseStops();
  }

  #traded(taker: Order, maker: Order, price: number, quantity: number): void {
    const trade = this.#record(taker, maker, price, quantity);
    this.#settle(taker, trade, false);
    this.#settle(maker, trade, true);
    this.#listener.traded(trade);
  }

  #record(taker: Order, maker: Order, price: number, quantity: number): Trade {
    const listing = this.listings[taker.instrument]!;
    const { now: time } = this.#clock;
    const trade = { id: this.trades.length + 1, listing, taker, maker, price, quantity, time };
    this.trades.push(trade);
    return trade;
  }

  #settle(order: Order, trade: Trade, isMaker: boolean): void {
    const { id: tradeId, price, quantity, time } = trade;
    const { base, quote, priceUnit, quantityUnit } = trade.listing.setup;
    const { asset, rate } = this.fee;
    const feeAsset = asset === 'base' ? base : asset === 'quote' ? quote : asset;
    const units = quantity * quantityUnit;
    const fee = Number((rate * (asset === 'base' ? units : units * price * priceUnit)).toFixed(8));
    const fill = { tradeId, price, quantity, isMaker, time, fee, feeAsset };
    order.fills.push(fill);
    this.#book(order, price, quantity);
    if (fee !== 0) this.accounts[order.account]!.add(feeAsset, -fee);
    this.#change(order, 'trade', fill);
  }

  #book({ account, instrument, side }: Order, price: number, quantity: number): void {
    this.accounts[account]!.book(instrument, price, side === 'buy' ? quantity : -quantity);
  }

  #change(order: Order, change: Change, fill?: Fill): void {
    order.updated = this.#clock.now;
    this.accounts[order.account]!.reserve(order);
    this.#listener.changed(order, change, fill);
  }
}

/** Removes the rounding error of binary arithmetic. */
function decimal(value: number): number {
  return Number(value.toFixed(9));
}
