import { setTimeout as delay } from 'node:timers/promises';
import { notAtVenue, NOT_AT_VENUE } from './reconcile.ts';
import type { VenueOrder, VenueOrderId, VenueReport } from '../venue.ts';
import type { AskOptions } from './ccxt-client.ts';
import type { Ccxt, ClientOrder } from './ccxt-types.ts';
import { OrderReader } from './order-reader.ts';
import { decide, evolve, initialState, isRelevant } from './order-state.ts';
import type { OrderEvent, OrderState, SendFailure, Step } from './order-state.ts';
import { OrderNotSent, SETTLE_MS, URGENT, type VenueClient } from './venue-client.ts';
import type { VenueMarkets } from './venue-markets.ts';

const QUERY_AGAIN = { shortestMs: 250, longestMs: 2000 };

/**
 * Places, cancels and queries orders. Uses the clock `performance.now()`, which stops while the
 * machine sleeps: a sent order may still arrive, so waiting too long is safe and waiting too little
 * is not.
 */
export class ExchangeOrders {
  readonly #client: VenueClient;
  readonly #markets: VenueMarkets;
  readonly #reader: OrderReader;
  readonly #settleMs: number;
  readonly #openedAt = performance.now();
  readonly #states = new Map<string, OrderState>();
  /** Last queued operation of each order. */
  readonly #turns = new Map<string, Promise<unknown>>();
  /** Aborted when an order is canceled while it is being placed. */
  readonly #placing = new Map<string, AbortController>();

  constructor(client: VenueClient, markets: VenueMarkets) {
    this.#client = client;
    this.#markets = markets;
    this.#reader = new OrderReader(client, markets);
    this.#settleMs = client.options.settleMs ?? SETTLE_MS;
  }

  /** Orders that have not ended, as far as is known. */
  working(): readonly VenueOrderId[] {
    return [...this.#states.values()]
      .filter(({ isWorking }) => isWorking)
      .map(({ order }) => order);
  }

  /** Adds an open order of the exchange to the result of `working`. */
  add(order: VenueOrderId): void {
    this.#record(order, { kind: 'listed' });
  }

  place(order: VenueOrder): Promise<VenueReport> {
    const { client_order_id: id } = order;
    return this.#enqueue(order, async () => {
      const quit = new AbortController();
      this.#placing.set(id, quit);
      this.#record(order, { kind: 'placement_begun' });
      try {
        return await this.#place(order, quit.signal);
      } finally {
        this.#record(order, { kind: 'placement_ended' });
        this.#placing.delete(id);
      }
    });
  }

  async #place(order: VenueOrder, quit: AbortSignal): Promise<VenueReport> {
    for (;;) {
      // Also before the first attempt: an earlier process may have sent the order, and the exchange
      // accepts the id of a filled order again.
      const found = await this.#resolve(order);
      switch (found.kind) {
        case 'found':
          return found.report;
        case 'missing':
          return notAtVenue(order, Date.now());
        case 'rejected':
          return { ...notAtVenue(order, Date.now()), status: 'rejected', reason: found.reason };
        case 'fail':
          throw found.error;
        case 'send': {
          const report = await this.#send(order, quit);
          if (report !== undefined) return report;
        }
      }
    }
  }

  /** Returns undefined if the order may or may not have reached the exchange. */
  async #send(order: VenueOrder, quit: AbortSignal): Promise<VenueReport | undefined> {
    const { exchange } = this.#client;
    const { symbol, side, quantity, limit } = order;
    const type = limit === undefined ? 'market' : 'limit';
    const market = this.#client.exchangeSymbol(symbol);
    const request = () => {
      // The order may have been canceled while it waited in the queue.
      quit.throwIfAborted();
      return exchange.createOrder(market, type, side, quantity, limit, paramsOf(order));
    };
    this.#record(order, { kind: 'sending' });
    try {
      const only = (error: unknown) => this.#client.isRateLimit(error);
      return await this.#read(order, await this.#client.ask(request, { only, quit }));
    } catch (error) {
      if (error instanceof OrderNotSent) {
        this.#record(order, { kind: 'not_sent' });
        throw error;
      }
      const failure = failureOf(this.#client, error, order);
      this.#record(order, { kind: 'send_failed', failure });
      return undefined;
    }
  }

  async cancel(order: VenueOrderId): Promise<VenueReport> {
    this.#record(order, { kind: 'withdrawn' });
    this.#placing.get(order.client_order_id)?.abort();
    // Does not wait for the queue: the order may exist although its response is pending.
    const canceled = await this.#cancel(order);
    const report =
      canceled instanceof Error
        ? await this.#enqueue(order, () => this.#cancelKnown(order))
        : canceled;
    if (report.reason !== NOT_AT_VENUE) this.#record(order, { kind: 'cancel_confirmed' });
    return report;
  }

  /** Only the exchange knows whether the order has ended or is still on its way. */
  async #cancelKnown(order: VenueOrderId): Promise<VenueReport> {
    const found = await this.#resolve(order, URGENT);
    if (found.kind !== 'found') return notAtVenue(order, Date.now());
    if (found.report.status !== 'open') return found.report;
    const canceled = await this.#cancel(order);
    if (canceled instanceof Error) throw canceled;
    return canceled;
  }

  /** Returns the final report of the order, or the reason why it was not canceled. */
  async #cancel(order: VenueOrderId): Promise<VenueReport | Error> {
    const { ccxt, exchange } = this.#client;
    const params = { clientOrderId: order.client_order_id };
    const market = this.#client.exchangeSymbol(order.symbol);
    let answer;
    try {
      answer = await this.#client.ask(() => exchange.cancelOrder('', market, params), URGENT);
    } catch (error) {
      if (error instanceof ccxt.ExchangeError) return error;
      throw error;
    }
    const report = await this.#read(order, answer, URGENT);
    return report.status === 'open' ? new Error('the order is still open') : report;
  }

  /** Returns undefined if the exchange never had the order; it is then never placed. */
  find(order: VenueOrderId): Promise<VenueReport | undefined> {
    return this.#enqueue(order, async () => {
      const found = await this.#resolve(order);
      if (found.kind === 'found') return found.report;
      this.#record(order, { kind: 'withdrawn' });
      return undefined;
    });
  }

  /** Returns undefined if the exchange does not have the order now. */
  async query(order: VenueOrderId, options?: AskOptions): Promise<VenueReport | undefined> {
    const { ccxt, exchange } = this.#client;
    const params = { clientOrderId: order.client_order_id };
    const market = this.#client.exchangeSymbol(order.symbol);
    let answer;
    try {
      answer = await this.#client.ask(() => exchange.fetchOrder('', market, params), options);
    } catch (error) {
      const isMissing = error instanceof ccxt.OrderNotFound;
      if (isMissing || this.#markets.isGone(order.symbol, error)) return undefined;
      throw error;
    }
    return this.#read(order, answer, options);
  }

  /** Queries an order until it is found or can no longer appear. */
  async #resolve(order: VenueOrderId, options?: AskOptions): Promise<Found | NotFound> {
    const { shortestMs, longestMs } = QUERY_AGAIN;
    for (let wait = shortestMs; ; wait = Math.min(2 * wait, longestMs)) {
      const askedAt = performance.now();
      const report = await this.query(order, options);
      if (report !== undefined) return { kind: 'found', report };
      const step = decide(this.#stateOf(order), askedAt);
      if (step.kind !== 'query') {
        this.#record(order, { kind: 'missing' });
        return step;
      }
      await delay(Math.min(wait, step.afterMs), undefined, { signal: this.#client.options.signal });
    }
  }

  async #read(
    { order, client_order_id, symbol }: VenueOrderId,
    answer: ClientOrder,
    options?: AskOptions,
  ): Promise<VenueReport> {
    const id = { order, client_order_id, symbol };
    const report = await this.#reader.read(id, answer, options);
    this.#record(id, { kind: 'reported', isOpen: report.status === 'open' });
    return report;
  }

  #stateOf({ order, client_order_id, symbol }: VenueOrderId): OrderState {
    const known = this.#states.get(client_order_id);
    const id = { order, client_order_id, symbol };
    // An earlier process may have sent the order.
    return known ?? initialState(id, this.#openedAt + this.#settleMs);
  }

  #record(order: VenueOrderId, event: OrderEvent): void {
    const { client_order_id: id } = order;
    const now = performance.now();
    if (!this.#states.has(id)) {
      for (const [other, state] of this.#states) {
        if (!isRelevant(state, now)) this.#states.delete(other);
      }
    }
    this.#states.set(id, evolve(this.#stateOf(order), event, now + this.#settleMs));
  }

  /**
   * Runs operations on the same order one at a time, so that no order is sent after another
   * operation has reported it as missing.
   */
  async #enqueue<T>(
    { client_order_id: id }: VenueOrderId,
    operation: () => Promise<T>,
  ): Promise<T> {
    const before = this.#turns.get(id) ?? Promise.resolve();
    const turn = before.then(operation, operation);
    this.#turns.set(id, turn);
    try {
      return await turn;
    } finally {
      if (this.#turns.get(id) === turn) this.#turns.delete(id);
    }
  }
}

interface Found {
  readonly kind: 'found';
  readonly report: VenueReport;
}

type NotFound = Exclude<Step, { readonly kind: 'query' }>;

function paramsOf(order: VenueOrder): object {
  const { client_order_id, stop, limit, post_only, time_in_force } = order;
  return {
    clientOrderId: client_order_id,
    ...(stop === undefined ? {} : { triggerPrice: stop }),
    ...(post_only ? { postOnly: true } : {}),
    // Post-only orders have no time in force.
    ...(limit === undefined || post_only ? {} : { timeInForce: time_in_force.toUpperCase() }),
  };
}

/** Classifies the error of a request that placed an order. */
function failureOf(client: VenueClient, error: unknown, order: VenueOrder): SendFailure {
  const { ccxt } = client;
  if (client.isRateLimit(error)) return { kind: 'limited', error };
  // A duplicate is rejected because the order exists.
  if (!(error instanceof ccxt.ExchangeError) || isDuplicate(ccxt, error)) {
    return { kind: 'in_doubt', error };
  }
  const reason = knownReason(ccxt, error, order);
  return {
    kind: 'rejected',
    reason: reason ?? 'refused_by_venue',
    isCertain: reason !== undefined,
  };
}

function isDuplicate(ccxt: Ccxt, error: Error): boolean {
  const { message } = error;
  return error instanceof ccxt.DuplicateOrderId || /duplicate/i.test(message);
}

/** Maps errors to a fixed set of reasons, whatever the text of the exchange. */
function knownReason(ccxt: Ccxt, error: Error, { post_only }: VenueOrder): string | undefined {
  const { message } = error;
  const causes = [
    [ccxt.InsufficientFunds, 'insufficient_funds'],
    [ccxt.OrderImmediatelyFillable, post_only ? 'post_only_would_cross' : 'would_trigger'],
    [ccxt.OrderNotFillable, 'not_fillable'],
    [ccxt.InvalidOrder, 'invalid_order'],
    [ccxt.MarketClosed, 'market_closed'],
    [ccxt.BadSymbol, 'unknown_symbol'],
    [ccxt.AuthenticationError, 'not_permitted'],
  ] as const;
  const known = causes.find(([cause]) => error instanceof cause)?.[1];
  // ccxt has no class for violated limits of quantity, price and value.
  return known ?? (/filter failure/i.test(message) ? 'invalid_order' : undefined);
}
