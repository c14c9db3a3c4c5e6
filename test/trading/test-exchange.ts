/** The simulated exchange with an account, a market maker, and what tests do to them. */
import type { ApiRequest } from '../../src/compliance/venue/binance-api.ts';
import type { Order, OrderTerms } from '../../src/compliance/venue/book-order.ts';
import type { FaultAction } from '../../src/compliance/venue/faults.ts';
import { idOf, type Listing, type Phase } from '../../src/compliance/venue/listing.ts';
import type { Clock } from '../../src/compliance/venue/matching.ts';
import {
  SimulatedExchange,
  type Requester,
  type Stream,
} from '../../src/compliance/venue/simulated-exchange.ts';

export interface TestExchangeOptions {
  readonly symbols: readonly string[];
  readonly clock: Clock;
  readonly credentials?: { readonly apiKey: string; readonly secret: string };
}

const PRICE_UNIT = 0.01;
const QUANTITY_UNIT = 0.0001;
/** More than any test trades, in quantity units. */
const PLENTY = 1e9;

const BOT = 'bot';
const OTHERS = 'others';

export class TestExchange extends SimulatedExchange {
  /** Requests and calls on streams that have arrived, including those that were lost after that. */
  readonly requests: Pick<ApiRequest, 'call' | 'query'>[] = [];
  readonly #waiting = new Set<() => void>();
  /** Quotes of the market maker by symbol. */
  readonly #quotes = new Map<string, { readonly price: number; readonly orders: Order[] }>();
  #placed = 0;

  constructor({ symbols, clock, credentials = { apiKey: '', secret: '' } }: TestExchangeOptions) {
    const instruments = symbols.map((symbol) => {
      const [base, quote] = symbol.split('/') as [string, string];
      const units = { priceUnit: PRICE_UNIT, quantityUnit: QUANTITY_UNIT, referencePrice: 10_000 };
      const terms = { tick: 1, lot: 1, maxQuantity: PLENTY, band: 10, minValue: 5 };
      return { symbol, base, quote, ...units, ...terms, randomEndMs: 0 };
    });
    const accounts = [
      { name: BOT, ...credentials, balances: {} },
      { name: OTHERS, apiKey: 'others', secret: '', balances: {}, isUnlimited: true },
    ];
    super({ seed: 1, instruments, accounts, bars: 'given' }, clock);
    this.matching.fee = { asset: 'quote', rate: 0.001 };
  }

  /** Calls such as `POST /order`, and methods of streams. */
  get asked(): readonly string[] {
    return this.requests.map(({ call }) => call);
  }

  /** Orders of the account, oldest first. */
  get orders(): readonly Order[] {
    return this.matching.orders.filter(({ account }) => account === 0);
  }

  override receive(request: ApiRequest, requester: Requester): void {
    this.requests.push(request);
    super.receive(request, requester);
    this.#wake();
  }

  override receiveOn(stream: Stream, text: string): void {
    const { method, params } = JSON.parse(text) as { method: string; params: object };
    super.receiveOn(stream, text);
    this.requests.push({ call: method, query: JSON.stringify(params) });
    this.#wake();
  }

  /** Resolves once a condition holds after a request. */
  async until(isSo: () => boolean): Promise<void> {
    while (!isSo()) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  /** Resolves once a call has arrived, of those after the first `skip` requests. */
  receives(call: string, skip = 0): Promise<void> {
    return this.until(() => this.asked.slice(skip).includes(call));
  }

  /** Resolves once the bars of a symbol were subscribed this many times in total. */
  subscribed(symbol: string, count: number): Promise<void> {
    const name = `"${idOf(symbol).toLowerCase()}@kline_1m"`;
    return this.until(
      () => this.requests.filter(({ query }) => query.includes(name)).length >= count,
    );
  }

  /** Each action affects one message of this kind, in sequence. */
  fail(on: string, ...actions: readonly FaultAction[]): void {
    for (const action of actions) this.faults.add({ on, action, count: 1 });
  }

  setBalance(asset: string, amount: number): void {
    const held = this.balances(BOT).get(asset) ?? 0;
    this.matching.accounts[0]!.add(asset, amount - held);
  }

  setPhase(symbol: string, phase: Phase): void {
    this.matching.schedulePhase(this.#listed(symbol), phase);
  }

  setListed(symbol: string, isListed: boolean): void {
    this.#listed(symbol).isDeleted = !isListed;
  }

  /** Trades at this price, and quotes it to buyers and the next lower one to sellers. */
  setPrice(symbol: string, price: number): void {
    this.#withdraw(symbol);
    this.#quote(symbol, price);
    this.#place(symbol, 'buy', 1, price, 'ioc');
  }

  /** Fills an order of the account at its price; no other order may have a better one. */
  fill(clientOrderId: string, quantity: number): void {
    const { instrument, side, price } = this.order(BOT, clientOrderId)!;
    const { symbol } = this.matching.listings[instrument]!.setup;
    const quoted = this.#withdraw(symbol);
    this.#place(symbol, side === 'buy' ? 'sell' : 'buy', quantity, price * PRICE_UNIT, 'ioc');
    if (quoted !== undefined) this.#quote(symbol, quoted);
  }

  /** Places an order in the account as another client of it would. */
  open(terms: Pick<OrderTerms, 'clientOrderId' | 'side'>, symbol: string, price: number): void {
    this.#place(symbol, terms.side, 1, price, 'gtc', terms.clientOrderId);
  }

  #quote(symbol: string, price: number): void {
    const units = PLENTY * QUANTITY_UNIT;
    const bid = this.#place(symbol, 'buy', units, price - PRICE_UNIT, 'gtc');
    const ask = this.#place(symbol, 'sell', units, price, 'gtc');
    this.#quotes.set(symbol, { price, orders: [bid, ask] });
  }

  /** @returns price of the quotes. */
  #withdraw(symbol: string): number | undefined {
    const quoted = this.#quotes.get(symbol);
    for (const order of quoted?.orders ?? []) this.matching.end(order, 'canceled');
    this.#quotes.delete(symbol);
    return quoted?.price;
  }

  #place(
    symbol: string,
    side: 'buy' | 'sell',
    quantity: number,
    price: number,
    timeInForce: 'gtc' | 'ioc',
    clientOrderId?: string,
  ): Order {
    this.#placed += 1;
    const account = clientOrderId === undefined ? 1 : 0;
    const order = this.matching.place(account, this.#listed(symbol), {
      clientOrderId: clientOrderId ?? `other-${this.#placed}`,
      side,
      type: 'limit',
      timeInForce,
      quantity: Math.round(quantity / QUANTITY_UNIT),
      price: Math.round(price / PRICE_UNIT),
    });
    if (typeof order === 'string') throw new Error(`the exchange rejects an order: ${order}`);
    return order;
  }

  #listed(symbol: string): Listing {
    return this.matching.listing(idOf(symbol))!;
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}
