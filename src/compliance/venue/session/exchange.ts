import type { Agenda } from './agenda.ts';
import type { BookEnd } from './book.ts';
import { Holdings, type AccountSetup } from './holdings.ts';
import { Listing, shown, updateOf, type InstrumentSetup } from './listing.ts';
import type {
  AmendOrder,
  CancelReject,
  ExecType,
  Execution,
  FeedMessage,
  MassCancel,
  Positions,
  ReferenceTerms,
  RejectReason,
} from './messages.ts';
import { isLive, makeOrder, type Order, type OrderTerms } from './order.ts';
import { PHASES, type Phase } from './phases.ts';

/** Who asks: an account, through a session or, with -1, without one. */
export interface Member {
  readonly account: number;
  readonly session: number;
}

/** Told what happens, as messages whose `seq` is still 0. */
export interface ExchangeOutput {
  /** Of orders of sessions only. */
  execution(order: Order, execution: Execution): void;
  cancelReject(member: Member, reject: CancelReject): void;
  market(message: FeedMessage): void;
}

/** Why an order ends that its owner has not canceled. */
export type Ending =
  | BookEnd
  | 'requested'
  | 'mass_cancel'
  | 'cancel_on_disconnect'
  | 'venue_operator'
  | 'reference_data'
  | 'day_ended'
  | 'good_till_date';

/** Both sides of it, with the numbers of what they were told. */
interface Trade {
  readonly id: number;
  readonly listing: Listing;
  readonly taker: Order;
  readonly maker: Order;
  readonly takerExecution: number;
  readonly makerExecution: number;
  price: number;
  quantity: number;
  isBusted: boolean;
}

/**
 * The trading side of the venue: which orders are taken, what becomes of them, and who holds what.
 * Members are numbers; how they are connected is nobody's business here.
 */
export class Exchange {
  readonly listings: readonly Listing[];
  readonly accounts: readonly Holdings[];
  /** Counts the changes of reference data. */
  version = 1;
  readonly #agenda: Agenda;
  readonly #random: () => number;
  readonly #output: ExchangeOutput;
  readonly #bySymbol: ReadonlyMap<string, Listing>;
  /** By account: every order by every name it had, refused ones and requests of cancels included. */
  readonly #names: readonly Map<string, Order | undefined>[];
  readonly #trades: Trade[] = [];
  /** What the order was called that is being amended. */
  #original = '';
  #orders = 0;
  #executions = 0;

  constructor(
    instruments: readonly InstrumentSetup[],
    accounts: readonly AccountSetup[],
    agenda: Agenda,
    random: () => number,
    output: ExchangeOutput,
  ) {
    this.#agenda = agenda;
    this.#random = random;
    this.#output = output;
    const listener = {
      traded: this.#traded.bind(this),
      ended: this.#ended.bind(this),
      triggered: (order: Order) => this.#report(order, 'triggered'),
      amended: (order: Order) => this.#report(order, 'replaced', { original: this.#original }),
    };
    this.listings = instruments.map((setup, index) => new Listing(index, setup, listener));
    this.#bySymbol = new Map(this.listings.map((one) => [one.terms.instrument, one]));
    const symbols = instruments.map(({ instrument }) => instrument);
    this.accounts = accounts.map((setup) => new Holdings(setup, symbols));
    this.#names = accounts.map(() => new Map());
  }

  listing(symbol: string): Listing | undefined {
    return this.#bySymbol.get(symbol);
  }

  /** The order that the account calls, or once called, so. */
  find(account: number, clientOrderId: string): Order | undefined {
    return this.#names[account]!.get(clientOrderId);
  }

  place(member: Member, clientOrderId: string, symbol: string, terms: OrderTerms): void {
    const { account, session } = member;
    const names = this.#names[account]!;
    const listing = this.#bySymbol.get(symbol);
    this.#orders += 1;
    const instrument = listing?.index ?? -1;
    const order = makeOrder(
      { id: this.#orders, account, session, instrument, clientOrderId },
      terms,
    );
    const refusal = names.has(clientOrderId)
      ? 'duplicate_client_order_id'
      : listing === undefined
        ? 'unknown_instrument'
        : listing.refusal(terms, this.#agenda.now);
    if (refusal !== 'duplicate_client_order_id') names.set(clientOrderId, order);
    if (refusal !== undefined) {
      this.#refuse(order, symbol, refusal);
      return;
    }
    this.#report(order, 'new');
    if (order.timeInForce === 'gtd') {
      this.#agenda.at(order.expireAt, () => {
        if (isLive(order)) this.end(order, 'good_till_date');
      });
    }
    this.#admit(listing!, order);
  }

  /** An order that is refused before it comes to anything; it may be tried again under its name. */
  turnAway(
    { account, session }: Member,
    clientOrderId: string,
    symbol: string,
    terms: OrderTerms,
    reason: RejectReason,
  ): void {
    this.#orders += 1;
    const instrument = this.#bySymbol.get(symbol)?.index ?? -1;
    const origin = { id: this.#orders, account, session, instrument, clientOrderId };
    this.#refuse(makeOrder(origin, terms), symbol, reason);
  }

  amend(member: Member, request: Omit<AmendOrder, 'type' | 'seq'>): void {
    const { client_order_id: name, orig_client_order_id: original } = request;
    const order = this.#named(member, name, original, 'amend');
    if (order === undefined) return;
    const listing = this.listings[order.instrument]!;
    const { price, stopPrice, quantity } = order;
    const asked = {
      price: request.price ?? price,
      stopPrice: request.stop_price ?? stopPrice,
      quantity: request.quantity ?? quantity,
    };
    const refusal = listing.amendRefusal(order, asked);
    if (refusal !== undefined) {
      this.rejectRequest(member, request, 'amend', refusal, order.status);
      return;
    }
    this.#original = original;
    order.clientOrderId = name;
    this.#names[member.account]!.set(name, order);
    listing.setCorridor();
    this.#settle(listing, listing.book.amend(order, asked, listing.isTrading));
  }

  cancel(member: Member, name: string, original: string): void {
    const order = this.#named(member, name, original, 'cancel');
    if (order !== undefined) this.end(order, 'requested', name);
  }

  /** How many were canceled, and what the cancel did not reach. */
  massCancel(
    session: number,
    { instrument, side }: Pick<MassCancel, 'instrument' | 'side'>,
    reason: Ending,
  ): { readonly canceled: number; readonly survivors: readonly string[] } {
    const orders = this.openOrders(session).filter(
      (order) =>
        (instrument === undefined || this.symbolOf(order) === instrument) &&
        (side === undefined || order.side === side),
    );
    const reached = orders.filter(({ isPinned }) => !isPinned);
    for (const order of reached) this.end(order, reason);
    const survivors = orders.filter(isLive).map(({ clientOrderId }) => clientOrderId);
    return { canceled: reached.length, survivors };
  }

  /** Of a session, oldest first. */
  openOrders(session: number): readonly Order[] {
    return this.listings
      .flatMap(({ book }) => book.orders())
      .filter((order) => order.session === session)
      .sort((a, b) => a.id - b.id);
  }

  symbolOf({ instrument }: Order): string {
    return this.listings[instrument]?.terms.instrument ?? '';
  }

  /** What the account has by its trades: currency, and quantity units by instrument. */
  holdingsOf(account: number): Pick<Positions, 'cash' | 'positions'> {
    const { setup, positions, paid } = this.accounts[account]!;
    let { cash } = setup;
    for (const { index, terms } of this.listings) {
      cash -= paid[index]! * terms.price_unit * terms.quantity_unit;
    }
    const held = this.listings.map(
      ({ index, terms }) => [terms.instrument, positions[index]!] as const,
    );
    return { cash, positions: Object.fromEntries(held) };
  }

  /** Takes a live order out of its book. @param name of the request, where there is one. */
  end(order: Order, reason: Ending, name?: string): void {
    const listing = this.listings[order.instrument]!;
    listing.book.remove(order);
    order.leaves = 0;
    const original = name === undefined ? undefined : order.clientOrderId;
    const isExpiry = reason === 'day_ended' || reason === 'good_till_date';
    order.status = isExpiry ? 'expired' : 'canceled';
    this.#report(order, isExpiry ? 'expired' : 'canceled', {
      reason,
      ...(original !== undefined && { name, original }),
    });
    this.#publish(listing);
  }

  /** As the schedule says: an auction that it ends does so a little later, by the seed. */
  schedulePhase(listing: Listing, phase: Phase): void {
    listing.changes += 1;
    const { changes, setup } = listing;
    const endsCall = PHASES[listing.phase].isCall && (phase === 'continuous' || phase === 'closed');
    const wait = endsCall ? Math.floor(this.#random() * setup.random_end_ms) : 0;
    if (wait === 0) this.#enterPhase(listing, phase);
    else {
      this.#agenda.at(this.#agenda.now + wait, () => {
        if (listing.changes === changes) this.#enterPhase(listing, phase);
      });
    }
  }

  /** New terms; orders that do not keep to the new tick or lot are canceled. */
  setTerms(
    listing: Listing,
    change: Partial<Pick<ReferenceTerms, 'tick' | 'lot' | 'max_quantity' | 'band' | 'corridor'>>,
  ): void {
    listing.terms = { ...listing.terms, ...change };
    this.version += 1;
    this.#tellTerms(listing);
    const { lot } = listing.terms;
    const isOff = ({ price, stopPrice, leaves }: Order): boolean =>
      leaves % lot !== 0 ||
      [price, stopPrice].some((one) => one !== 0 && Number.isFinite(one) && !listing.isOnTick(one));
    for (const order of listing.book.orders()) {
      if (isOff(order)) this.end(order, 'reference_data');
    }
  }

  /** Takes the instrument off the venue, and its orders with it. */
  delete(listing: Listing): void {
    this.version += 1;
    for (const order of listing.book.orders()) this.end(order, 'reference_data');
    listing.isDeleted = true;
    this.#tellTerms(listing);
  }

  /** Undoes a trade: what was filled is not any more, and nothing comes back into the book. */
  bust(id: number): void {
    const trade = this.#trades[id - 1];
    if (trade === undefined || trade.isBusted) return;
    trade.isBusted = true;
    this.#revise(trade, 'trade_bust', 0, 0);
    this.#output.market({
      type: 'trade_bust',
      seq: 0,
      time: this.#agenda.now,
      instrument: trade.listing.terms.instrument,
      trade_id: id,
    });
  }

  /** Changes price and quantity of a trade. */
  correct(id: number, price: number, quantity: number): void {
    const trade = this.#trades[id - 1];
    if (trade === undefined || trade.isBusted) return;
    this.#revise(trade, 'trade_correct', price, quantity);
    const { now: time } = this.#agenda;
    const { instrument } = trade.listing.terms;
    this.#output.market({ type: 'trade_bust', seq: 0, time, instrument, trade_id: id });
    this.#output.market({ type: 'trade', seq: 0, time, instrument, trade_id: id, price, quantity });
  }

  /** What an order is, told without anything having happened. */
  statusOf(member: Member, name: string): Execution {
    const order = this.find(member.account, name);
    if (order !== undefined) return this.#executionOf(order, 'status', { name });
    const origin = { id: 0, ...member, instrument: -1, clientOrderId: name };
    const nothing = makeOrder(origin, {
      side: 'buy',
      order_type: 'limit',
      time_in_force: 'gtc',
      quantity: 0,
    });
    return { ...this.#executionOf(nothing, 'status', {}), status: 'unknown' };
  }

  rejectRequest(
    member: Member,
    ids: Pick<CancelReject, 'client_order_id' | 'orig_client_order_id'>,
    request: CancelReject['request'],
    reason: RejectReason,
    status: CancelReject['status'],
  ): void {
    const { client_order_id, orig_client_order_id } = ids;
    this.#output.cancelReject(member, {
      type: 'cancel_reject',
      seq: 0,
      client_order_id,
      orig_client_order_id,
      request,
      status,
      reason,
      time: this.#agenda.now,
    });
  }

  /** The live order that a request is about; where there is none, the request is rejected. */
  #named(
    member: Member,
    name: string,
    original: string,
    request: CancelReject['request'],
  ): Order | undefined {
    const names = this.#names[member.account]!;
    const order = names.get(original);
    const isKnown = order !== undefined && order.clientOrderId === original;
    const reason = names.has(name)
      ? 'duplicate_client_order_id'
      : !isKnown
        ? 'unknown_order'
        : isLive(order)
          ? undefined
          : 'too_late';
    if (reason === undefined) {
      if (request === 'cancel') names.set(name, order);
      return order;
    }
    const ids = { client_order_id: name, orig_client_order_id: original };
    this.rejectRequest(member, ids, request, reason, isKnown ? order.status : 'unknown');
    return undefined;
  }

  #refuse(order: Order, symbol: string, reason: RejectReason): void {
    order.leaves = 0;
    order.status = 'rejected';
    this.#report(order, 'rejected', { reason, symbol });
  }

  #admit(listing: Listing, order: Order): void {
    const { book } = listing;
    if (listing.isTrading) {
      listing.setCorridor();
      this.#settle(listing, book.submit(order));
    } else {
      book.enter(order);
      this.#publish(listing);
    }
  }

  /** @param isStopped whether the book says that it takes an auction to go on. */
  #settle(listing: Listing, isStopped: boolean): void {
    if (!isStopped) {
      this.#publish(listing);
      return;
    }
    this.#setPhase(listing, 'volatility_auction');
    listing.changes += 1;
    const { changes, setup } = listing;
    this.#agenda.at(this.#agenda.now + setup.call_ms, () => {
      if (listing.changes === changes) this.schedulePhase(listing, 'continuous');
    });
  }

  #enterPhase(listing: Listing, phase: Phase): void {
    const { book } = listing;
    const isTrading = phase === 'continuous';
    if (isTrading || (phase === 'closed' && PHASES[listing.phase].isCall)) {
      const auction = book.uncross(listing.reference);
      if (auction !== undefined) listing.reference = auction.price;
    }
    if (phase === 'closed') {
      const over = book.orders().filter(({ timeInForce }) => timeInForce === 'day');
      for (const order of over) this.end(order, 'day_ended');
    }
    this.#setPhase(listing, phase);
    if (!isTrading) return;
    listing.setCorridor();
    this.#settle(listing, book.releaseStops());
  }

  #setPhase(listing: Listing, phase: Phase): void {
    listing.phase = phase;
    const { instrument } = listing.terms;
    this.#output.market({ type: 'status', seq: 0, time: this.#agenda.now, instrument, phase });
    this.#publish(listing);
  }

  #traded(taker: Order, maker: Order, price: number, quantity: number): void {
    const listing = this.listings[taker.instrument]!;
    const id = this.#trades.length + 1;
    const trade: Trade = {
      id,
      listing,
      taker,
      maker,
      takerExecution: this.#executions + 1,
      makerExecution: this.#executions + 2,
      price,
      quantity,
      isBusted: false,
    };
    this.#trades.push(trade);
    this.#book(taker, price, quantity);
    this.#book(maker, price, quantity);
    this.#report(taker, 'trade', { trade, price, quantity, isMaker: false });
    this.#report(maker, 'trade', { trade, price, quantity, isMaker: true });
    const { now: time } = this.#agenda;
    const { instrument } = listing.terms;
    this.#output.market({ type: 'trade', seq: 0, time, instrument, trade_id: id, price, quantity });
  }

  #book({ account, instrument, side }: Order, price: number, quantity: number): void {
    this.accounts[account]!.book(instrument, price, side === 'buy' ? quantity : -quantity);
  }

  #revise(
    trade: Trade,
    type: 'trade_bust' | 'trade_correct',
    price: number,
    quantity: number,
  ): void {
    for (const order of [trade.taker, trade.maker]) {
      this.#book(order, trade.price, -trade.quantity);
      this.#book(order, price, quantity);
      order.filled += quantity - trade.quantity;
      order.value += price * quantity - trade.price * trade.quantity;
      if (order.status === 'filled' && order.filled < order.quantity) order.status = 'canceled';
      if (isLive(order)) order.status = order.filled === 0 ? 'new' : 'partially_filled';
      const isMaker = order === trade.maker;
      const revised = type === 'trade_bust' ? trade : { price, quantity };
      const reference = isMaker ? trade.makerExecution : trade.takerExecution;
      const about = { trade, isMaker, price: revised.price, quantity: revised.quantity, reference };
      this.#report(order, type, about);
    }
    trade.price = price;
    trade.quantity = quantity;
  }

  #ended(order: Order, reason: BookEnd): void {
    this.#report(order, 'canceled', { reason });
  }

  #tellTerms({ terms, isDeleted }: Listing): void {
    const { version } = this;
    const { now: time } = this.#agenda;
    this.#output.market({
      type: 'reference',
      seq: 0,
      time,
      version,
      is_deleted: isDeleted,
      ...terms,
    });
  }

  /** Tells of every level that has changed, as it is now. */
  #publish({ book: { bids, asks }, phase, reference, terms, book }: Listing): void {
    if (bids.changed.length + asks.changed.length === 0) return;
    const { now: time } = this.#agenda;
    const { instrument } = terms;
    for (const level of bids.changed) this.#output.market(updateOf(instrument, level, time));
    for (const level of asks.changed) this.#output.market(updateOf(instrument, level, time));
    bids.settle();
    asks.settle();
    if (!PHASES[phase].isCall) return;
    const { price, quantity = 0, surplus = 0 } = book.indicative(reference) ?? {};
    this.#output.market({
      type: 'indicative',
      seq: 0,
      time,
      instrument,
      price,
      quantity,
      surplus,
    });
  }

  #report(order: Order, type: ExecType, details: Details = NO_DETAILS): void {
    this.#executions += 1;
    if (order.session < 0) return;
    this.#output.execution(order, this.#executionOf(order, type, details));
  }

  #executionOf(order: Order, type: ExecType, details: Details): Execution {
    const { name, trade, reason } = details;
    return {
      type: 'execution',
      seq: 0,
      exec_type: type,
      exec_id: type === 'status' ? 0 : this.#executions,
      ref_exec_id: details.reference,
      order_id: order.id,
      client_order_id: name ?? order.clientOrderId,
      orig_client_order_id: details.original,
      instrument: details.symbol ?? this.symbolOf(order),
      side: order.side,
      status: order.status,
      quantity: order.quantity,
      price: shown(order.price),
      stop_price: order.stopPrice === 0 ? undefined : order.stopPrice,
      filled: order.filled,
      leaves: order.leaves,
      value: order.value,
      trade_id: trade?.id,
      last_price: details.price,
      last_quantity: details.quantity,
      is_maker: details.isMaker,
      reason,
      time: this.#agenda.now,
    };
  }
}

interface Details {
  readonly reason?: string;
  /** Of the request that it answers, where that is not what the order is called. */
  readonly name?: string | undefined;
  /** What the order was called before. */
  readonly original?: string;
  readonly symbol?: string;
  readonly trade?: { readonly id: number };
  readonly price?: number;
  readonly quantity?: number;
  readonly isMaker?: boolean;
  readonly reference?: number;
}

const NO_DETAILS: Details = {};
