/** Executes orders at an exchange through ccxt, in a spot account that owns what it sells. */
import { setTimeout as delay } from 'node:timers/promises';
import { ServiceError } from '../../base/errors.ts';
import type { Problem } from '../../base/errors.ts';
import { MINUTE } from '../../market/bar-time.ts';
import {
  openClient,
  describeCcxtError,
  type AskOptions,
  type Ccxt,
  type Client,
  type ClientConnection,
  type ClientOrder,
  type ClientTrade,
  type Market,
} from './ccxt-client.ts';
import { createRedactor, readCredentials } from './credentials.ts';
import type { ExchangeDefinition } from './exchanges-file.ts';
import { NOT_AT_VENUE, notAtVenue } from './reconcile.ts';
import { orderOfClientId } from '../venue.ts';
import type {
  MarketPhase,
  Venue,
  VenueAccount,
  VenueOrder,
  VenueOrderId,
  VenueReport,
  VenueRules,
} from '../venue.ts';
import { watchReports } from './venue-reports.ts';

export interface ExchangeVenueOptions {
  /** Name of the exchange in exchanges_file. */
  readonly name: string;
  readonly definition: ExchangeDefinition;
  /** See `readCredentials`. */
  readonly credentialsDir: string;
  readonly deploymentId: string;
  /** Symbols of the universe, as named in the bot. */
  readonly symbols: readonly string[];
  /** Currency of the account, in which every symbol must be quoted. */
  readonly currency: string;
  readonly account: 'cash' | 'margin';
  /** Aborts running requests and all waits. */
  readonly signal: AbortSignal;
  /** Replaces the network of the client, for example by an exchange in this process. */
  readonly connect?: (client: Client) => void;
  /** Receives problems that are retried, without secrets. */
  readonly onTrouble?: (message: string) => void;
  /**
   * Decides whether an order may still be sent. Called right before it is sent, however long it
   * waited.
   */
  readonly mayPlace?: (client_order_id: string) => boolean;
  /** Time after which an unanswered order can no longer reach the exchange, ms. */
  readonly settleMs?: number;
  /** Interval of queries of working orders, ms. */
  readonly resyncMs?: number;
  /** Interval of queries of the rules, ms. */
  readonly termsMs?: number;
  /** Timeout of a request, ms. */
  readonly timeoutMs?: number;
}

/**
 * Exchanges in ccxt that can find and cancel an order by client order id. Without that, a lost
 * response could lead to a second order. Others may support it; add only those that were tested.
 * (Binance.US is missing because ccxt sends its API keys to the stream of Binance.)
 */
const BY_CLIENT_ID: readonly string[] = ['binance'];

/** The exchange rejects requests that arrive later than this after they were signed. */
const RECEIVE_WINDOW_MS = 5000;
/** Adds two seconds for a clock that is ahead. */
const SETTLE_MS = RECEIVE_WINDOW_MS + 2000;
const TIMEOUT_MS = 5000;
const RESYNC_MS = 15_000;
/**
 * No stream reports halts, so the interval is shorter than the 5 s within which a halt must be
 * noticed.
 */
const TERMS_MS = 4000;
const MOST_SENDS = 3;
const NOT_SENT = 'not_sent';
const TRADES_PER_PAGE = 1000;
/** Trades may become visible later than the fills of their order. */
const TRADE_ATTEMPTS = 6;
/** Minutes before a trade that are searched for a price of the fee currency. */
const PRICE_MINUTES = 900;
const MOST_PRICES = 1000;
/** For cancels and the queries that confirm them. */
const URGENT: AskOptions = { isUrgent: true, attempts: 2 };
/** For periodic queries, which are repeated anyway. */
const WATCHING: AskOptions = { attempts: 2 };

/**
 * @throws ServiceError `invalid_spec` with problems if the bot cannot trade there; `conflict` if
 *   the exchange cannot be a venue or rejects the credentials; `file_not_found` or `invalid_data`
 *   for the files of credentials; `exchange_unavailable` if the exchange does not answer.
 */
export async function openExchangeVenue(options: ExchangeVenueOptions): Promise<Venue> {
  const { name, definition, symbols, signal, timeoutMs } = options;
  const credentials = readCredentials(options.credentialsDir);
  const connection = openClient(name, definition, signal, {
    ...credentials,
    connect: options.connect,
    ...(timeoutMs === undefined ? {} : { timeout: timeoutMs }),
    onBlocked: (seconds) => options.onTrouble?.(`${name} accepts no requests for ${seconds} s`),
    defaults: { adjustForTimeDifference: true },
    options: {
      recvWindow: RECEIVE_WINDOW_MS,
      defaultType: 'spot',
      fetchMarkets: { types: ['spot'] },
      // Avoids endpoints that need more permissions than trading.
      fetchCurrencies: false,
      fetchMargins: false,
    },
  });
  const { ccxt, client } = connection;
  const parseOrders = client.parseOrders.bind(client);
  client.parseOrders = (orders, ...rest) => {
    // ccxt would turn another response into an empty list, as if no orders were open.
    if (Array.isArray(orders)) return parseOrders(orders, ...rest);
    throw new ccxt.BadResponse('expected a list of orders in the response');
  };
  const sign = client.sign.bind(client);
  // Checked after all waits, including waits of ccxt. From here on, the receive window limits the
  // delay.
  client.sign = (path, api, method, params, ...rest) => {
    const isOrder = method === 'POST' && path === 'order';
    if (isOrder && options.mayPlace?.(String(params['newClientOrderId'])) === false) {
      throw new ServiceError('exchange_unavailable', 'the order may no longer be sent', {
        reason: NOT_SENT,
      });
    }
    return sign(path, api, method, params, ...rest);
  };
  const venue = new ExchangeVenue(options, connection, createRedactor(credentials));
  try {
    checkSupport(options, connection);
    await venue.load(symbols);
    // Only the list of markets is large and needs a longer timeout.
    client.timeout = timeoutMs ?? TIMEOUT_MS;
    return venue;
  } catch (error) {
    await venue.close();
    throw error;
  }
}

function checkSupport(
  { name, definition, account }: ExchangeVenueOptions,
  { client }: ClientConnection,
): void {
  const needed = ['spot', 'createOrder', 'cancelOrder', 'fetchOrder', 'fetchOpenOrders'];
  const all = [...needed, 'fetchOrderTrades', 'fetchBalance', 'fetchOHLCV', 'watchOrders'];
  const lacks = all.filter((feature) => client.has[feature] !== true);
  if (!BY_CLIENT_ID.includes(definition.ccxt) || lacks.length > 0) {
    const what =
      lacks.length > 0 ? `lacks ${lacks.join(', ')}` : 'cannot find orders by client order id';
    throw new ServiceError('conflict', `${name} cannot be a venue: it ${what}`, {
      reason: 'venue_not_supported',
      remedy: `Use one of ${BY_CLIENT_ID.join(', ')}, or use the simulated venue.`,
    });
  }
  if (account === 'cash') return;
  const problem = {
    code: 'venue_not_supported',
    message:
      'the bot needs a margin account, but orders go to a spot account, which cannot borrow or sell short',
    pointer: '/spec/engine/account',
  };
  throw cannotTrade(name, [problem]);
}

function cannotTrade(name: string, problems: readonly Problem[]): ServiceError {
  return new ServiceError('invalid_spec', `the bot cannot trade on ${name}`, {
    problems,
    remedy: 'Correct the bot, or use the simulated venue.',
  });
}

class ExchangeVenue implements Venue {
  readonly name: string;
  readonly #options: ExchangeVenueOptions;
  readonly #connection: ClientConnection;
  readonly #redact: (text: string) => string;
  /**
   * This and `#unsettled` use a clock that stops while the machine sleeps. A sent order may still
   * arrive, so waiting too long is safe and waiting too little is not.
   */
  readonly #openedAt = performance.now();
  readonly #closed = new AbortController();
  /** Time until which a missing order may still appear, by client order id. */
  readonly #unsettled = new Map<string, number>();
  /** Last queued operation of each order. */
  readonly #turns = new Map<string, Promise<unknown>>();
  /** Orders to cancel, or reported as missing: they are no longer sent. */
  readonly #withdrawn = new Set<string>();
  /** Aborted when an order is canceled while it is being placed. */
  readonly #placing = new Map<string, AbortController>();
  readonly #working = new Map<string, VenueOrderId>();
  readonly #markets = new Map<string, Market>();
  /** Symbols that the exchange has delisted. It may still report their orders and holdings. */
  readonly #gone = new Set<string>();
  readonly #prices = new Map<string, number>();
  readonly #worthless = new Set<string>();

  constructor(
    options: ExchangeVenueOptions,
    connection: ClientConnection,
    redact: (text: string) => string,
  ) {
    this.name = options.name;
    this.#options = options;
    this.#connection = connection;
    this.#redact = redact;
  }

  async load(symbols: readonly string[]): Promise<void> {
    const { client, exchangeSymbol, ask } = this.#connection;
    await this.#translateErrors(() => ask(() => client.loadMarkets()));
    const problems = symbols.flatMap((symbol, at): Problem[] => {
      const market = Object.hasOwn(client.markets!, exchangeSymbol(symbol))
        ? client.markets![exchangeSymbol(symbol)]
        : undefined;
      const message = this.#problemOf(symbol, market);
      if (message === undefined) {
        this.#markets.set(symbol, market!);
        // Accepted: it may have orders to cancel, and may trade again.
        if (market!.active === false) {
          this.#options.onTrouble?.(`${symbol} is currently not trading`);
        }
        return [];
      }
      const pointer = `/spec/universe/symbols/${at}`;
      return [{ code: 'venue_not_supported', message, pointer }];
    });
    if (problems.length > 0) throw cannotTrade(this.name, problems);
    // Checks the credentials now instead of with the first order.
    await this.account();
  }

  #problemOf(symbol: string, market: Market | undefined): string | undefined {
    const { currency } = this.#options;
    if (market === undefined) return `${this.name} has no symbol ${JSON.stringify(symbol)}`;
    if (market.spot !== true) return `${symbol} is not a spot market`;
    if (market.quote !== currency) {
      return `${symbol} is quoted in ${market.quote}, and the account is in ${currency}`;
    }
    const { amount, price } = this.#steps(market);
    if (amount > 0 && price > 0) return undefined;
    return `${this.name} does not report the quantity and price steps of ${symbol}`;
  }

  #steps({ precision }: Market): { amount: number; price: number } {
    const { ccxt, client } = this.#connection;
    const step = (of: number | undefined): number => stepOf(of, client.precisionMode, ccxt);
    return { amount: step(precision.amount), price: step(precision.price) };
  }

  async rules(): Promise<VenueRules> {
    const markets = [...this.#markets].filter(([symbol]) => !this.#gone.has(symbol));
    const instruments = markets.map(([symbol, market]) => {
      const phase = phaseOf(market);
      const { amount: step, price: tick } = this.#steps(market);
      const { amount, market: atMarket, cost } = market.limits;
      const min_quantity = Math.max(step, amount?.min ?? 0, atMarket?.min ?? 0);
      return [symbol, { step, min_quantity, min_value: cost?.min ?? 0, tick, phase }];
    });
    const types = (['market', 'limit', 'stop', 'stop_limit'] as const).filter((type) =>
      markets.every(([, { info }]) => takes(info.orderTypes, type)),
    );
    return { types, instruments: Object.fromEntries(instruments) };
  }

  place(order: VenueOrder): Promise<VenueReport> {
    const { client_order_id: id } = order;
    const place = async (): Promise<VenueReport> => {
      const quit = new AbortController();
      this.#placing.set(id, quit);
      try {
        return await this.#place(order, quit.signal);
      } finally {
        this.#placing.delete(id);
      }
    };
    return this.#translateErrors(() => this.#enqueue(order, place));
  }

  async #place(order: VenueOrder, quit: AbortSignal): Promise<VenueReport> {
    const { client_order_id: id } = order;
    let trouble: unknown;
    for (let sends = 0; ; sends += 1) {
      // Also before the first attempt: an earlier process may have sent the order, and the exchange
      // accepts the id of a filled order again.
      const found = await this.#find(order);
      if (found !== undefined) return found;
      if (quit.aborted || this.#withdrawn.has(id)) return notAtVenue(order, Date.now());
      if (sends === MOST_SENDS) throw trouble;
      this.#working.set(id, order);
      try {
        return await this.#send(order, quit);
      } catch (error) {
        trouble = error;
        if (error instanceof ServiceError && error.reason === NOT_SENT) {
          this.#working.delete(id);
          throw error;
        }
        if (!this.#connection.isRateLimit(error)) this.#unsettle(order);
      }
    }
  }

  /**
   * Sends an order once.
   *
   * @throws if the order may or may not have reached the exchange.
   */
  async #send(order: VenueOrder, quit: AbortSignal): Promise<VenueReport> {
    const { ccxt, client, exchangeSymbol, ask, isRateLimit } = this.#connection;
    const { symbol, side, quantity, limit } = order;
    const type = order.limit === undefined ? 'market' : 'limit';
    const request = () => {
      // The order may have been canceled while it waited in the queue.
      quit.throwIfAborted();
      return client.createOrder(
        exchangeSymbol(symbol),
        type,
        side,
        quantity,
        limit,
        paramsOf(order),
      );
    };
    let answer;
    try {
      answer = await ask(request, { only: isRateLimit, quit });
    } catch (error) {
      if (!(error instanceof ccxt.ExchangeError) || isDuplicate(ccxt, error)) throw error;
      const reason = reasonOf(ccxt, error, order);
      // After an unknown error, the order may exist all the same.
      if (reason === 'refused_by_venue') this.#unsettle(order);
      // A duplicate is rejected because the order exists.
      const report = await (reason === 'refused_by_venue' ? this.#find(order) : this.#fetch(order));
      if (report !== undefined) return report;
      this.#working.delete(order.client_order_id);
      return { ...notAtVenue(order, Date.now()), status: 'rejected', reason };
    }
    return this.#reportOf(order, answer);
  }

  cancel(order: VenueOrderId): Promise<VenueReport> {
    const { client_order_id: id } = order;
    this.#withdrawn.add(id);
    this.#placing.get(id)?.abort();
    return this.#translateErrors(async () => {
      // Does not wait for the queue: the order may exist although its response is pending.
      const canceled = await this.#cancel(order);
      const report =
        canceled instanceof Error
          ? await this.#enqueue(order, () => this.#cancelKnown(order))
          : canceled;
      // The exchange knows the order, so placing it again finds it.
      if (report.reason !== NOT_AT_VENUE) this.#withdrawn.delete(id);
      return report;
    });
  }

  /** Only the exchange knows whether the order has ended or is still on its way. */
  async #cancelKnown(order: VenueOrderId): Promise<VenueReport> {
    const report = (await this.#find(order, URGENT)) ?? notAtVenue(order, Date.now());
    if (report.status !== 'open') return report;
    const canceled = await this.#cancel(order);
    if (canceled instanceof Error) throw canceled;
    return canceled;
  }

  /** Returns the final report of the order, or the reason why it was not canceled. */
  async #cancel(order: VenueOrderId): Promise<VenueReport | Error> {
    const { ccxt, client, exchangeSymbol, ask } = this.#connection;
    const params = { clientOrderId: order.client_order_id };
    let answer;
    try {
      answer = await ask(
        () => client.cancelOrder('', exchangeSymbol(order.symbol), params),
        URGENT,
      );
    } catch (error) {
      if (error instanceof ccxt.ExchangeError) return error;
      throw error;
    }
    const report = await this.#reportOf(order, answer, URGENT);
    return report.status === 'open' ? new Error('the order is still open') : report;
  }

  find(order: VenueOrderId): Promise<VenueReport | undefined> {
    return this.#translateErrors(() =>
      this.#enqueue(order, async () => {
        const report = await this.#find(order);
        if (report === undefined) this.#withdrawn.add(order.client_order_id);
        return report;
      }),
    );
  }

  openOrders(): Promise<readonly VenueOrderId[]> {
    return this.#openOrders(URGENT);
  }

  async #openOrders(options: AskOptions): Promise<readonly VenueOrderId[]> {
    const { client, exchangeSymbol, ask } = this.#connection;
    const read = async (symbol: string): Promise<ClientOrder[]> => {
      try {
        return await ask(() => client.fetchOpenOrders(exchangeSymbol(symbol)), options);
      } catch (error) {
        if (this.#isGone(symbol, error)) return [];
        throw error;
      }
    };
    const open: VenueOrderId[] = [];
    for (const symbol of this.#markets.keys()) {
      const orders = await this.#translateErrors(() => read(symbol));
      open.push(...orders.flatMap((order) => this.#idOf(order, symbol)));
    }
    return open;
  }

  /**
   * Whether the error means that the exchange has delisted the symbol, so that it has no open
   * orders.
   */
  #isGone(symbol: string, error: unknown): boolean {
    return this.#gone.has(symbol) && error instanceof this.#connection.ccxt.BadSymbol;
  }

  async account(): Promise<VenueAccount> {
    const { client, ask } = this.#connection;
    const { total } = await this.#translateErrors(() =>
      ask(() => client.fetchBalance({ type: 'spot' })),
    );
    const held = [...this.#markets].map(([symbol, { base }]) => [symbol, total[base] ?? 0]);
    return { balances: Object.fromEntries(held), cash: total[this.#options.currency] ?? 0 };
  }

  reports(signal: AbortSignal): AsyncIterable<VenueReport> {
    const { client, drop } = this.#connection;
    const symbols = new Map([...this.#markets].map(([symbol, market]) => [market.symbol, symbol]));
    const { resyncMs = RESYNC_MS, onTrouble } = this.#options;
    const source = {
      nextOrders: async () => {
        const orders = client.watchOrders();
        // ccxt leaves promises without handlers, whose errors would end the process.
        for (const { futures } of Object.values(client.clients)) {
          for (const future of Object.values(futures)) future.catch(() => {});
        }
        return (await orders).flatMap((order) => {
          const symbol = symbols.get(order.symbol);
          const mark = [order.status, order.filled, order.lastUpdateTimestamp].join();
          return symbol === undefined
            ? []
            : this.#idOf(order, symbol).map((id) => ({ ...id, mark }));
        });
      },
      drop,
      working: () => [...this.#working.values()],
      refresh: async () => {
        for (const order of await this.#openOrders({})) {
          this.#working.set(order.client_order_id, order);
        }
      },
      fetch: (order: VenueOrderId) => this.#translateErrors(() => this.#fetch(order, WATCHING)),
      trouble: (what: string, error: unknown) => {
        // Messages of ServiceErrors contain no secrets.
        const why = error instanceof ServiceError ? error.message : this.#describe(error);
        onTrouble?.(error === undefined ? what : `${what}: ${why}`);
      },
    };
    const ends = [signal, this.#options.signal, this.#closed.signal];
    return watchReports(source, resyncMs, AbortSignal.any(ends));
  }

  async *terms(signal: AbortSignal): AsyncGenerator<VenueRules, void> {
    const { termsMs = TERMS_MS, onTrouble } = this.#options;
    const over = AbortSignal.any([signal, this.#options.signal, this.#closed.signal]);
    let last = '';
    while (!over.aborted) {
      try {
        await this.#translateErrors(() => this.#reload());
        const rules = await this.rules();
        const text = JSON.stringify(rules);
        if (text !== last) yield rules;
        last = text;
      } catch (error) {
        if (over.aborted) return;
        if (!(error instanceof ServiceError)) throw error;
        onTrouble?.(`cannot fetch the market rules: ${error.message}`);
      }
      await delay(termsMs, undefined, { signal: over }).catch(() => {});
    }
  }

  /** Reloads the markets. */
  async #reload(): Promise<void> {
    const { client, exchangeSymbol } = this.#connection;
    const { symbols } = this.#options;
    const gone = symbols.filter((symbol) => this.#gone.has(symbol));
    const had = symbols.filter((symbol) => !this.#gone.has(symbol));
    // A request fails for all symbols if one is delisted.
    const questions = [had, ...gone.map((symbol) => [symbol])].map((some) =>
      this.#marketsOf(some.map((symbol) => client.markets![exchangeSymbol(symbol)]!.id)),
    );
    const markets = (await Promise.all(questions)).flat();
    for (const symbol of symbols) {
      const market = markets.find((one) => one.symbol === exchangeSymbol(symbol));
      if (market === undefined) this.#gone.add(symbol);
      else {
        this.#gone.delete(symbol);
        // ccxt formats quantities and prices by its own copy.
        Object.assign(client.markets![exchangeSymbol(symbol)]!, market);
        this.#markets.set(symbol, market);
      }
    }
  }

  /** Fetches the markets of those ids that the exchange has. */
  async #marketsOf(ids: readonly string[]): Promise<readonly Market[]> {
    const { ccxt, client, ask } = this.#connection;
    if (ids.length === 0) return [];
    try {
      return await ask(() => client.fetchMarkets({ symbols: JSON.stringify(ids) }), WATCHING);
    } catch (error) {
      if (!(error instanceof ccxt.BadSymbol)) throw error;
      if (ids.length === 1) return [];
      // The error does not name the unknown symbol.
      return (await Promise.all(ids.map((id) => this.#marketsOf([id])))).flat();
    }
  }

  close(): Promise<void> {
    this.#closed.abort();
    return this.#connection.close();
  }

  get #settleMs(): number {
    return this.#options.settleMs ?? SETTLE_MS;
  }

  #idOf({ clientOrderId: id = '' }: ClientOrder, symbol: string): VenueOrderId[] {
    const order = orderOfClientId(this.#options.deploymentId, id);
    return order === undefined ? [] : [{ order, client_order_id: id, symbol }];
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

  #unsettle({ client_order_id: id }: VenueOrderId): void {
    const now = performance.now();
    this.#unsettled.delete(id);
    this.#unsettled.set(id, now + this.#settleMs);
    // Oldest first.
    for (const [other, until] of this.#unsettled) {
      if (until > now) break;
      this.#unsettled.delete(other);
    }
  }

  /**
   * Returns undefined once the order can no longer appear: whatever this process or an earlier one
   * has sent has either arrived or expired.
   */
  async #find(order: VenueOrderId, options?: AskOptions): Promise<VenueReport | undefined> {
    const { client_order_id: id } = order;
    for (let wait = 250; ; wait = Math.min(2 * wait, 2000)) {
      const until = Math.max(this.#openedAt + this.#settleMs, this.#unsettled.get(id) ?? -Infinity);
      const left = until - performance.now();
      const report = await this.#fetch(order, options);
      if (report !== undefined) return report;
      if (left <= 0) {
        this.#working.delete(id);
        return undefined;
      }
      await delay(Math.min(wait, left), undefined, { signal: this.#options.signal });
    }
  }

  /** Returns undefined if the exchange does not have the order now. */
  async #fetch(order: VenueOrderId, options?: AskOptions): Promise<VenueReport | undefined> {
    const { ccxt, client, exchangeSymbol, ask } = this.#connection;
    const params = { clientOrderId: order.client_order_id };
    let answer;
    try {
      answer = await ask(
        () => client.fetchOrder('', exchangeSymbol(order.symbol), params),
        options,
      );
    } catch (error) {
      if (error instanceof ccxt.OrderNotFound || this.#isGone(order.symbol, error))
        return undefined;
      throw error;
    }
    return this.#reportOf(order, answer, options);
  }

  async #reportOf(
    order: VenueOrderId,
    answer: ClientOrder,
    options?: AskOptions,
  ): Promise<VenueReport> {
    const { client_order_id: id, symbol } = order;
    const { status, filled, cost = 0, remaining = 0 } = answer;
    // ccxt substitutes 0 if the exchange does not report the filled quantity.
    if (status === undefined || filled === undefined || (status === 'closed' && remaining > 0)) {
      throw this.#unclear('the state of an order');
    }
    const times = [answer.lastUpdateTimestamp, answer.lastTradeTimestamp, answer.timestamp];
    const traded = filled > 0 ? await this.#allTrades(symbol, answer, filled, options) : [];
    const fees = await this.#feesOf(symbol, traded, options);
    // More may have been filled since the query.
    const more = sumOf(traded, ({ amount }) => amount);
    const isMore = more > filled && !isSame(more, filled);
    const isCostKnown = !isMore && (cost > 0 || filled === 0);
    const report: VenueReport = {
      order: order.order,
      client_order_id: id,
      status: statusOf(status),
      filled: isMore ? more : filled,
      cost: isCostKnown ? cost : sumOf(traded, (trade) => trade.cost),
      ...fees,
      time: times.find((time) => time !== undefined) ?? Date.now(),
    };
    const numbers = [report.filled, report.cost, report.fee, report.fee_units];
    if (!numbers.every(Number.isFinite)) throw this.#unclear('valid amounts of an order');
    if (report.status === 'open') {
      this.#working.set(id, { order: order.order, client_order_id: id, symbol });
    } else {
      this.#working.delete(id);
    }
    // An order that was visible may be missing in the next response.
    this.#unsettle(order);
    return report;
  }

  #unclear(what: string): ServiceError {
    return new ServiceError('exchange_unavailable', `${this.name} did not report ${what}`, {
      remedy: 'Try again later.',
    });
  }

  /**
   * Fetches trades until they add up to the filled quantity: the fee of a missing trade would never
   * be recorded.
   */
  async #allTrades(
    symbol: string,
    answer: ClientOrder,
    filled: number,
    options?: AskOptions,
  ): Promise<readonly ClientTrade[]> {
    const isAll = (trades: readonly ClientTrade[]): boolean => {
      const sum = sumOf(trades, ({ amount }) => amount);
      return sum > filled || isSame(sum, filled);
    };
    const { trades = [] } = answer;
    if (isAll(trades)) return trades;
    for (let attempt = 1; attempt <= TRADE_ATTEMPTS; attempt += 1) {
      const fetched = await this.#fetchTrades(symbol, answer, options);
      if (isAll(fetched)) return fetched;
      await delay(50 * 2 ** attempt, undefined, { signal: this.#options.signal });
    }
    throw this.#unclear('all trades of an order');
  }

  async #fetchTrades(
    symbol: string,
    { id }: ClientOrder,
    options?: AskOptions,
  ): Promise<readonly ClientTrade[]> {
    const { client, exchangeSymbol, ask } = this.#connection;
    const all: ClientTrade[] = [];
    for (let params = {}; ;) {
      const request = () =>
        client.fetchOrderTrades(id, exchangeSymbol(symbol), undefined, TRADES_PER_PAGE, params);
      const page = await ask(request, options);
      all.push(...page);
      if (page.length < TRADES_PER_PAGE) return all;
      params = { fromId: Math.max(...page.map((trade) => Number(trade.id))) + 1 };
    }
  }

  async #feesOf(
    symbol: string,
    trades: readonly ClientTrade[],
    options?: AskOptions,
  ): Promise<Pick<VenueReport, 'fee' | 'fee_units'>> {
    const { base } = this.#markets.get(symbol)!;
    const { currency: account } = this.#options;
    let fee = 0;
    let fee_units = 0;
    for (const { fee: taken, timestamp = Date.now() } of trades) {
      const { cost = 0, currency = account } = taken ?? {};
      if (cost === 0) continue;
      if (currency === base) fee_units += cost;
      else if (currency === account) fee += cost;
      else fee += cost * (await this.#priceOf(currency, timestamp, options));
    }
    return { fee, fee_units };
  }

  /**
   * Price of another currency in that of the account, from the minute before a trade, so that
   * repeated queries agree. 0 if the exchange has none.
   */
  async #priceOf(currency: string, time: number, options?: AskOptions): Promise<number> {
    const { client, ask } = this.#connection;
    const { currency: account, onTrouble } = this.#options;
    const minute = Math.floor(time / MINUTE) * MINUTE;
    const key = `${currency} ${minute}`;
    const known = this.#prices.get(key);
    if (known !== undefined) return known;
    for (const [symbol, isInverse] of [
      [`${currency}/${account}`, false],
      [`${account}/${currency}`, true],
    ] as const) {
      if (!Object.hasOwn(client.markets!, symbol)) continue;
      const since = minute - PRICE_MINUTES * MINUTE;
      const rows = await ask(() => client.fetchOHLCV(symbol, '1m', since, PRICE_MINUTES), options);
      const close = rows.findLast(([opened]) => opened !== undefined && opened < minute)?.[4];
      if (close === undefined || close <= 0) continue;
      const price = isInverse ? 1 / close : close;
      this.#prices.set(key, price);
      const [oldest] = this.#prices.keys();
      if (this.#prices.size > MOST_PRICES) this.#prices.delete(oldest!);
      return price;
    }
    if (!this.#worthless.has(currency)) {
      this.#worthless.add(currency);
      onTrouble?.(`${this.name} has no price of ${currency}: its fees are counted as 0`);
    }
    return 0;
  }

  #describe(error: unknown): string {
    return describeCcxtError(error, this.#redact);
  }

  /** Converts errors to ServiceErrors without secrets: errors of ccxt contain the signed URL. */
  async #translateErrors<T>(operation: () => Promise<T>): Promise<T> {
    try {
      return await operation();
    } catch (error) {
      this.#options.signal.throwIfAborted();
      if (error instanceof ServiceError) throw error;
      if (error instanceof this.#connection.ccxt.AuthenticationError) {
        throw new ServiceError(
          'conflict',
          `${this.name} rejects the credentials: ${this.#describe(error)}`,
          {
            reason: 'credentials_refused',
            remedy:
              'Check that the key is active, may trade spot, and is allowed from this IP address.',
          },
        );
      }
      throw new ServiceError(
        'exchange_unavailable',
        `${this.name} does not answer: ${this.#describe(error)}`,
        { remedy: 'Try again later, or check that this machine can reach the exchange.' },
      );
    }
  }
}

/** Converts a precision of ccxt to a step; 0 if the exchange has no fixed step. */
export function stepOf(
  precision: number | undefined,
  mode: number,
  modes: Pick<Ccxt, 'TICK_SIZE' | 'DECIMAL_PLACES'>,
): number {
  if (precision === undefined) return 0;
  if (mode === modes.TICK_SIZE) return precision;
  return mode === modes.DECIMAL_PLACES ? Number(`1e${-precision}`) : 0;
}

const HAIR = 1e-9;

function isSame(a: number, b: number): boolean {
  return Math.abs(a - b) <= HAIR * Math.max(Math.abs(a), Math.abs(b));
}

function sumOf<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((sum, item) => sum + of(item), 0);
}

/** Maps the status of Binance; markets that stopped trading for other causes count as closed. */
function phaseOf({ active, info }: Market): MarketPhase {
  if (active !== false) return 'open';
  if (info.status === 'AUCTION_MATCH') return 'auction';
  return info.status === 'HALT' || info.status === 'BREAK' ? 'halted' : 'closed';
}

const EXCHANGE_TYPES = {
  market: 'MARKET',
  limit: 'LIMIT',
  stop: 'STOP_LOSS',
  stop_limit: 'STOP_LOSS_LIMIT',
} as const;

/** @param orderTypes list of a Binance market. */
function takes(orderTypes: unknown, type: VenueOrder['type']): boolean {
  return Array.isArray(orderTypes) && orderTypes.includes(EXCHANGE_TYPES[type]);
}

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

function statusOf(status: string): VenueReport['status'] {
  if (status === 'closed') return 'filled';
  if (status === 'canceled' || status === 'expired' || status === 'rejected') return status;
  return 'open';
}

function isDuplicate(ccxt: Ccxt, error: Error): boolean {
  const { message } = error;
  return error instanceof ccxt.DuplicateOrderId || /duplicate/i.test(message);
}

/** Maps errors to a fixed set of reasons, whatever the text of the exchange. */
function reasonOf(ccxt: Ccxt, error: Error, { post_only }: VenueOrder): string {
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
  const { message } = error;
  return known ?? (/filter failure/i.test(message) ? 'invalid_order' : 'refused_by_venue');
}
