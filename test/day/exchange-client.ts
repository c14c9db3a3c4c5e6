/** The client of ccxt, connected to the simulated exchange by a network with faults. */
import { createRequire } from 'node:module';
import type {
  Ccxt,
  CcxtExchange,
  ClientOrder,
  ClientTrade,
  Market,
  Row,
} from '../../src/trading/venues/ccxt-types.ts';
import {
  costOf,
  filledOf,
  Rejection,
  type ExchangeOrder,
  type ExchangeTrade,
  type OrderTerms,
  type SimulatedExchange,
  type SimulatedMarket,
} from './exchange.ts';
import type { Link, Machine } from './machine.ts';
import { currentProcess, type SimulatedProcess } from './process.ts';

const ccxt = createRequire(import.meta.url)('ccxt') as Ccxt;

/** Faults of the exchange, in addition to network faults. */
export interface VenueFaults {
  /** Share of orders that it rejects without a good reason. */
  rejected: number;
  /** Share of requests that it does not accept for now. */
  limited: number;
  /** Shares of stream messages that are lost, doubled, and late, so that a newer one comes first. */
  lostMessages: number;
  doubled: number;
  late: number;
}

export interface ExchangeAccess {
  readonly machine: Machine;
  readonly exchange: SimulatedExchange;
  readonly faults: VenueFaults;
  /** Connection of a process to the exchange. */
  readonly linkOf: (process: SimulatedProcess | undefined) => Link;
  /** Called when a process sends an order. */
  readonly onSent: (clientId: string, process: SimulatedProcess | undefined) => void;
}

type Config = { readonly apiKey?: string } | undefined;

/** Clients that are connected, of all processes. */
export class ExchangeClients {
  readonly #open = new Set<SimulatedClient>();
  readonly #access: ExchangeAccess;

  constructor(access: ExchangeAccess) {
    this.#access = access;
  }

  /** Replaces the Binance client of ccxt until the returned function is called. */
  install(): () => void {
    const pro = ccxt.pro as Record<string, unknown>;
    const before = pro['binance'];
    const add = (config: Config): SimulatedClient => {
      const client = new SimulatedClient(this.#access, config?.apiKey ?? '', () =>
        this.#open.delete(client),
      );
      this.#open.add(client);
      return client;
    };
    pro['binance'] = function connect(config: Config) {
      return add(config);
    };
    return () => void (pro['binance'] = before);
  }

  /** Sends the new state of an order to the streams of its account. */
  publish(order: ExchangeOrder): void {
    for (const client of this.#open) client.receiveOrder(order);
  }

  publishBar(symbol: string): void {
    for (const client of this.#open) client.receiveBar(symbol);
  }

  /** Breaks all streams. */
  cut(): void {
    for (const client of this.#open) client.disconnect();
  }
}

/** Requests that arrive later than this after they were signed are rejected. */
const RECEIVE_WINDOW_MS = 5000;

class SimulatedClient implements CcxtExchange {
  readonly has = new Proxy({}, { get: () => true }) as CcxtExchange['has'];
  readonly timeframes = { '1m': '1m' };
  readonly features = {};
  readonly precisionMode = ccxt.TICK_SIZE;
  markets: Record<string, Market> | undefined;
  urls: Record<string, unknown> = {};
  timeout = 10_000;
  readonly clients: CcxtExchange['clients'] = {
    stream: { connection: { terminate: () => this.disconnect() }, futures: {} },
  };
  readonly #access: ExchangeAccess;
  readonly #account: string;
  readonly #owner = currentProcess();
  readonly #link: Link;
  readonly #onClose: () => void;
  /** The newest message of each order, which ccxt returns as a list. */
  readonly #orders = new Map<string, ClientOrder>();
  #orderNews: PromiseWithResolvers<ClientOrder[]> | undefined;
  readonly #barNews = new Map<string, PromiseWithResolvers<Row[]>>();

  constructor(access: ExchangeAccess, account: string, onClose: () => void) {
    this.#access = access;
    this.#account = account;
    this.#link = access.linkOf(this.#owner);
    this.#onClose = onClose;
  }

  async handleRestResponse(): Promise<unknown> {
    return {};
  }

  getResponseHeaders(): Readonly<Record<string, string>> {
    return {};
  }

  /** Replaced by the adapter, which checks there whether an order may still be sent. */
  sign(..._request: readonly unknown[]): unknown {
    return {};
  }

  parseOrders(orders: unknown): ClientOrder[] {
    return orders as ClientOrder[];
  }

  async loadMarkets(): Promise<unknown> {
    this.markets ??= Object.fromEntries(
      (await this.fetchMarkets()).map((market) => [market.symbol, market]),
    );
    return this.markets;
  }

  fetchMarkets(): Promise<readonly Market[]> {
    return this.#ask(({ options }) => options.markets.map(marketOf));
  }

  async loadTimeDifference(): Promise<unknown> {
    return 0;
  }

  fetchTime(): Promise<number> {
    return this.#ask(() => this.#access.machine.now);
  }

  fetchOHLCV(symbol: string, _timeframe: string, since: number, limit: number): Promise<Row[]> {
    return this.#ask((exchange) =>
      exchange
        .bars(symbol)
        .filter(([time]) => time >= since)
        .slice(0, limit),
    );
  }

  watchOHLCV(symbol: string): Promise<Row[]> {
    const news = this.#barNews.get(symbol) ?? Promise.withResolvers<Row[]>();
    this.#barNews.set(symbol, news);
    return news.promise;
  }

  async createOrder(
    symbol: string,
    type: 'market' | 'limit',
    side: 'buy' | 'sell',
    amount: number,
    price: number | undefined,
    params: object,
  ): Promise<ClientOrder> {
    const {
      clientOrderId,
      triggerPrice = 0,
      postOnly = false,
      timeInForce = 'GTC',
    } = params as {
      readonly clientOrderId: string;
      readonly triggerPrice?: number;
      readonly postOnly?: boolean;
      readonly timeInForce?: OrderTerms['timeInForce'];
    };
    this.sign('order', 'private', 'POST', { newClientOrderId: clientOrderId });
    const { machine, faults, onSent } = this.#access;
    onSent(clientOrderId, this.#owner);
    const signed = machine.now;
    return this.#ask((exchange) => {
      if (machine.now - signed > RECEIVE_WINDOW_MS) throw new ccxt.InvalidNonce('recvWindow');
      if (machine.happens(faults.rejected)) throw new ccxt.InvalidOrder('not today');
      const terms: OrderTerms = {
        clientId: clientOrderId,
        symbol,
        side,
        quantity: amount,
        limit: type === 'limit' ? price! : 0,
        stop: triggerPrice,
        timeInForce,
        isPostOnly: postOnly,
      };
      const order = exchange.place(this.#account, terms, this.#owner);
      return machine.happens(0.5) ? { ...orderOf(order), trades: tradesOf(order) } : orderOf(order);
    });
  }

  cancelOrder(_id: string, _symbol: string, params: object): Promise<ClientOrder> {
    return this.#ask((exchange) => orderOf(exchange.cancel(this.#account, clientIdIn(params))));
  }

  fetchOrder(_id: string, _symbol: string, params: object): Promise<ClientOrder> {
    return this.#ask((exchange) => {
      const order = exchange.find(this.#account, clientIdIn(params));
      if (order === undefined) throw new ccxt.OrderNotFound('Order does not exist.');
      return orderOf(order);
    });
  }

  fetchOpenOrders(symbol: string): Promise<ClientOrder[]> {
    return this.#ask((exchange) => exchange.openOrders(this.#account, symbol).map(orderOf));
  }

  fetchOrderTrades(id: string): Promise<ClientTrade[]> {
    return this.#ask(({ orders }) => tradesOf(orders[Number(id) - 1]!));
  }

  fetchBalance(): Promise<{ readonly total: Readonly<Record<string, number>> }> {
    return this.#ask((exchange) => {
      const currencies = exchange.options.markets.flatMap(({ base, quote }) => [base, quote]);
      const total = currencies.map((one) => [one, exchange.balance(this.#account, one)]);
      return { total: Object.fromEntries(total) as Record<string, number> };
    });
  }

  watchOrders(): Promise<ClientOrder[]> {
    this.#orderNews ??= Promise.withResolvers();
    return this.#orderNews.promise;
  }

  async close(): Promise<void> {
    this.disconnect();
    this.#onClose();
  }

  disconnect(): void {
    const error = new ccxt.OperationFailed('the stream was disconnected');
    this.#orderNews?.reject(error);
    this.#orderNews = undefined;
    for (const news of this.#barNews.values()) news.reject(error);
    this.#barNews.clear();
  }

  receiveOrder(order: ExchangeOrder): void {
    if (order.account !== this.#account || this.#owner?.isOver === true) return;
    const { machine, faults } = this.#access;
    if (machine.happens(faults.lostMessages)) return;
    const message = orderOf(order);
    const copies = machine.happens(faults.doubled) ? 2 : 1;
    for (let i = 0; i < copies; i += 1) {
      const isLate = machine.happens(faults.late);
      this.#receive(isLate ? 20_000 : this.#link.latencyMs, () => {
        this.#orders.delete(order.clientId);
        this.#orders.set(order.clientId, message);
        this.#orderNews?.resolve([...this.#orders.values()]);
        this.#orderNews = undefined;
      });
    }
  }

  receiveBar(symbol: string): void {
    if (this.#owner?.isOver === true) return;
    this.#receive(this.#link.latencyMs, () => {
      this.#barNews.get(symbol)?.resolve(this.#access.exchange.bars(symbol).slice(-60));
      this.#barNews.delete(symbol);
    });
  }

  #receive(withinMs: number, take: () => void): void {
    const { machine } = this.#access;
    machine.after(machine.random() * withinMs, () => {
      if (this.#owner?.isOver !== true && !this.#link.isCut) take();
    });
  }

  #ask<T>(work: (exchange: SimulatedExchange) => T): Promise<T> {
    const { machine, exchange, faults } = this.#access;
    const link = { ...this.#link, timeoutMs: this.timeout };
    return machine.send(link, () => {
      if (machine.happens(faults.limited)) throw new ccxt.RateLimitExceeded('slow down');
      try {
        return work(exchange);
      } catch (error) {
        throw error instanceof Rejection ? errorOf(error) : error;
      }
    });
  }
}

/** Failure of a request whose answer does not come. */
export function noAnswer(): Error {
  return new ccxt.RequestTimeout('no answer');
}

function errorOf({ kind, message }: Rejection): Error {
  const classes = {
    funds: ccxt.InsufficientFunds,
    duplicate: ccxt.DuplicateOrderId,
    would_cross: ccxt.OrderImmediatelyFillable,
    filter: ccxt.InvalidOrder,
    unknown_order: ccxt.OrderNotFound,
  } as const;
  return new classes[kind](message);
}

function clientIdIn(params: object): string {
  return (params as { readonly clientOrderId: string }).clientOrderId;
}

function marketOf({ symbol, base, quote, step, tick }: SimulatedMarket): Market {
  return {
    id: symbol.replace('/', ''),
    symbol,
    base,
    quote,
    spot: true,
    active: true,
    precision: { amount: step, price: tick },
    limits: { amount: { min: step }, cost: { min: 5 } },
    info: { orderTypes: ['MARKET', 'LIMIT', 'STOP_LOSS', 'STOP_LOSS_LIMIT'], status: 'TRADING' },
  };
}

function orderOf(order: ExchangeOrder): ClientOrder {
  const filled = filledOf(order);
  return {
    id: String(order.id),
    clientOrderId: order.clientId,
    symbol: order.symbol,
    status: order.status,
    filled,
    remaining: Number((order.quantity - filled).toFixed(8)),
    cost: costOf(order),
    timestamp: order.time,
    lastUpdateTimestamp: order.updated,
  };
}

function tradesOf(order: ExchangeOrder): ClientTrade[] {
  const currency = order.symbol.split('/')[1]!;
  return order.trades.map(({ id, quantity, price, fee, time }: ExchangeTrade) => ({
    id: String(id),
    amount: quantity,
    cost: Number((quantity * price).toFixed(8)),
    timestamp: time,
    fee: { cost: fee, currency },
  }));
}
