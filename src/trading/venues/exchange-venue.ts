/** A real exchange as a venue, through ccxt. Spot accounts that own what they sell. */
import { setTimeout as delay } from 'node:timers/promises';
import { ServiceError } from '../../base/errors.ts';
import type { Problem } from '../../base/errors.ts';
import { MINUTE } from '../../market/time.ts';
import {
  openClient,
  whyOf,
  type AskOptions,
  type Ccxt,
  type ClientConnection,
  type ClientOrder,
  type ClientTrade,
  type Market,
} from './ccxt-client.ts';
import { hiderOf, readCredentials } from './credentials.ts';
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
  /** As people call the exchange. */
  readonly name: string;
  readonly definition: ExchangeDefinition;
  /** See `readCredentials`. */
  readonly credentialsDir: string;
  readonly deploymentId: string;
  /** The universe, as the bot calls them. */
  readonly symbols: readonly string[];
  /** Of the account; what every symbol is quoted in. */
  readonly currency: string;
  readonly account: 'cash' | 'margin';
  /** Ends what is under way, and all waits. */
  readonly signal: AbortSignal;
  /** Told what goes wrong and is tried again; nothing secret. */
  readonly onTrouble?: (message: string) => void;
  /**
   * Called with the client order id right before an order is sent, however long the order waited.
   */
  readonly mayPlace?: (client_order_id: string) => boolean;
  /** For so long an order that got no answer may still reach the exchange, ms. */
  readonly settleMs?: number;
  /** Orders that work are asked for at least so often, ms. */
  readonly resyncMs?: number;
  /** How often its rules are asked for, ms. */
  readonly termsMs?: number;
  /** An answer is waited for so long, ms. */
  readonly timeoutMs?: number;
}

/**
 * Exchanges that find and cancel an order by the client's id for it, through ccxt, without which a
 * lost answer could make a second order. More of them may be able to: none without having tried.
 * (With the keys of Binance.US ccxt signs in to the stream of Binance.)
 */
const BY_CLIENT_ID: readonly string[] = ['binance'];

/** The exchange refuses what arrives later than this after it was signed. */
const RECEIVE_WINDOW_MS = 5000;
/** It may have been signed by a clock that is a second ahead. */
const SETTLE_MS = RECEIVE_WINDOW_MS + 2000;
const TIMEOUT_MS = 5000;
const RESYNC_MS = 15_000;
/** No stream tells of halts. Whoever is to know of one within 5 s has to ask more often. */
const TERMS_MS = 4000;
const MOST_SENDS = 3;
const NOT_SENT = 'not_sent';
const TRADES_PER_PAGE = 1000;
/** Trades may be told of later than the fills that they are. */
const TRADE_ATTEMPTS = 6;
/** What a fee was taken in is worth what it was last traded for in so many minutes. */
const PRICE_MINUTES = 900;
const MOST_PRICES = 1000;
/** A cancel goes before everything else, and so does what confirms it. */
const URGENT: AskOptions = { isUrgent: true, attempts: 2 };
/** Whoever watches tries again himself, and has others to ask for. */
const WATCHING: AskOptions = { attempts: 2 };

/**
 * @throws ServiceError `invalid_spec` with problems for a bot that cannot trade there, `conflict` for
 *   an exchange that cannot be a venue or refuses the credentials, `file_not_found` or `invalid_data`
 *   for the files of these, `exchange_unavailable` when it does not answer.
 */
export async function openExchangeVenue(options: ExchangeVenueOptions): Promise<Venue> {
  const { name, definition, symbols, signal, timeoutMs } = options;
  const credentials = readCredentials(options.credentialsDir);
  const connection = openClient(name, definition, signal, {
    ...credentials,
    ...(timeoutMs === undefined ? {} : { timeout: timeoutMs }),
    onClosed: (seconds) =>
      options.onTrouble?.(`${name} asks for nothing to be sent for ${seconds} s`),
    defaults: { adjustForTimeDifference: true },
    options: {
      recvWindow: RECEIVE_WINDOW_MS,
      defaultType: 'spot',
      fetchMarkets: { types: ['spot'] },
      // The key need not be allowed to see more than it trades with.
      fetchCurrencies: false,
      fetchMargins: false,
    },
  });
  const { ccxt, client } = connection;
  const parseOrders = client.parseOrders.bind(client);
  client.parseOrders = (orders, ...rest) => {
    // Of whatever else comes it would make an empty list: no orders are open.
    if (Array.isArray(orders)) return parseOrders(orders, ...rest);
    throw new ccxt.BadResponse('what should be a list of orders is none');
  };
  const sign = client.sign.bind(client);
  // After all waits, those of ccxt included: what is signed comes in time or is refused.
  client.sign = (path, api, method, params, ...rest) => {
    const isOrder = method === 'POST' && path === 'order';
    if (isOrder && options.mayPlace?.(String(params['newClientOrderId'])) === false) {
      throw new ServiceError('exchange_unavailable', 'the order may not be sent any more', {
        reason: NOT_SENT,
      });
    }
    return sign(path, api, method, params, ...rest);
  };
  const venue = new ExchangeVenue(options, connection, hiderOf(credentials));
  try {
    refuseUnfit(options, connection);
    await venue.load(symbols);
    // Of the answers only the list of markets is long.
    client.timeout = timeoutMs ?? TIMEOUT_MS;
    return venue;
  } catch (error) {
    await venue.close();
    throw error;
  }
}

function refuseUnfit(
  { name, definition, account }: ExchangeVenueOptions,
  { client }: ClientConnection,
): void {
  const needed = ['spot', 'createOrder', 'cancelOrder', 'fetchOrder', 'fetchOpenOrders'];
  const all = [...needed, 'fetchOrderTrades', 'fetchBalance', 'fetchOHLCV', 'watchOrders'];
  const lacks = all.filter((feature) => client.has[feature] !== true);
  if (!BY_CLIENT_ID.includes(definition.ccxt) || lacks.length > 0) {
    const what = lacks.length > 0 ? `lacks ${lacks.join(', ')}` : 'finds no orders by ids of ours';
    throw new ServiceError('conflict', `${name} cannot be a venue: it ${what}`, {
      reason: 'venue_not_supported',
      remedy: `Trade on one of ${BY_CLIENT_ID.join(', ')}, or use the simulated venue.`,
    });
  }
  if (account === 'cash') return;
  const problem = {
    code: 'venue_not_supported',
    message: 'orders go to a spot account, which neither borrows nor sells short',
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
  readonly #hide: (text: string) => string;
  /**
   * This and `#unsettled` use a clock that stops while the machine sleeps: a sent order may still
   * arrive, so waiting too long is safe, and waiting too little is not.
   */
  readonly #openedAt = performance.now();
  readonly #closed = new AbortController();
  /** Until when the exchange may not show orders that it has got, or is yet to get. */
  readonly #unsettled = new Map<string, number>();
  /** The last that is being asked about each order. */
  readonly #turns = new Map<string, Promise<unknown>>();
  /** Orders that are to be canceled, or were told to be not there: they are not sent any more. */
  readonly #withdrawn = new Set<string>();
  /** To be aborted when what is being placed is to be canceled. */
  readonly #placing = new Map<string, AbortController>();
  readonly #working = new Map<string, VenueOrderId>();
  readonly #markets = new Map<string, Market>();
  /** Symbols of these that the exchange has no more; of orders and holdings in them it may still tell. */
  readonly #gone = new Set<string>();
  readonly #prices = new Map<string, number>();
  readonly #worthless = new Set<string>();

  constructor(
    options: ExchangeVenueOptions,
    connection: ClientConnection,
    hide: (text: string) => string,
  ) {
    this.name = options.name;
    this.#options = options;
    this.#connection = connection;
    this.#hide = hide;
  }

  async load(symbols: readonly string[]): Promise<void> {
    const { client, called, ask } = this.#connection;
    await this.#known(() => ask(() => client.loadMarkets()));
    const problems = symbols.flatMap((symbol, at): Problem[] => {
      const market = Object.hasOwn(client.markets!, called(symbol))
        ? client.markets![called(symbol)]
        : undefined;
      const message = this.#whyNot(symbol, market);
      if (message === undefined) {
        this.#markets.set(symbol, market!);
        // No reason to refuse it: there may be orders to be canceled, and it may trade again.
        if (market!.active === false) {
          this.#options.onTrouble?.(`${symbol} is not traded at the moment`);
        }
        return [];
      }
      const pointer = `/spec/universe/symbols/${at}`;
      return [{ code: 'venue_not_supported', message, pointer }];
    });
    if (problems.length > 0) throw cannotTrade(this.name, problems);
    // Whether it takes the credentials is better known now than with the first order.
    await this.account();
  }

  #whyNot(symbol: string, market: Market | undefined): string | undefined {
    const { currency } = this.#options;
    if (market === undefined) return `${this.name} has no symbol ${JSON.stringify(symbol)}`;
    if (market.spot !== true) return `${symbol} is no spot market`;
    if (market.quote !== currency) {
      return `${symbol} is quoted in ${market.quote}, and the account is in ${currency}`;
    }
    const { amount, price } = this.#steps(market);
    if (amount > 0 && price > 0) return undefined;
    return `${this.name} does not say of what ${symbol}'s quantities and prices are multiples`;
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
    return this.#known(() => this.#inTurn(order, place));
  }

  async #place(order: VenueOrder, quit: AbortSignal): Promise<VenueReport> {
    const { client_order_id: id } = order;
    let trouble: unknown;
    for (let sends = 0; ; sends += 1) {
      // Also the first time: an earlier process may have sent it. The exchange would take one that
      // has been filled for a new one.
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
        if (!this.#connection.isLimit(error)) this.#unsettle(order);
      }
    }
  }

  /** What the exchange says of it; throws when it may have it or not. */
  async #send(order: VenueOrder, quit: AbortSignal): Promise<VenueReport> {
    const { ccxt, client, called, ask, isLimit } = this.#connection;
    const { symbol, side, quantity, limit } = order;
    const type = order.limit === undefined ? 'market' : 'limit';
    const request = () => {
      // It may have waited for its turn.
      quit.throwIfAborted();
      return client.createOrder(called(symbol), type, side, quantity, limit, paramsOf(order));
    };
    let answer;
    try {
      answer = await ask(request, { only: isLimit, quit });
    } catch (error) {
      if (!(error instanceof ccxt.ExchangeError) || isDuplicate(ccxt, error)) throw error;
      const reason = reasonOf(ccxt, error, order);
      // Of an error that nobody knows it may have been made all the same.
      if (reason === 'refused_by_venue') this.#unsettle(order);
      // It may be refused because it is there.
      const report = await (reason === 'refused_by_venue' ? this.#find(order) : this.#look(order));
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
    return this.#known(async () => {
      // Not in its turn: it may be there though the answer is still to come.
      const canceled = await this.#cancel(order);
      const report =
        canceled instanceof Error
          ? await this.#inTurn(order, () => this.#cancelKnown(order))
          : canceled;
      // The exchange knows it, and so does whoever would place it.
      if (report.reason !== NOT_AT_VENUE) this.#withdrawn.delete(id);
      return report;
    });
  }

  /** It may have ended before, or be on its way: what it came to, only the exchange knows. */
  async #cancelKnown(order: VenueOrderId): Promise<VenueReport> {
    const report = (await this.#find(order, URGENT)) ?? notAtVenue(order, Date.now());
    if (report.status !== 'open') return report;
    const canceled = await this.#cancel(order);
    if (canceled instanceof Error) throw canceled;
    return canceled;
  }

  /** How the order has ended by it; why it has not. */
  async #cancel(order: VenueOrderId): Promise<VenueReport | Error> {
    const { ccxt, client, called, ask } = this.#connection;
    const params = { clientOrderId: order.client_order_id };
    let answer;
    try {
      answer = await ask(() => client.cancelOrder('', called(order.symbol), params), URGENT);
    } catch (error) {
      if (error instanceof ccxt.ExchangeError) return error;
      throw error;
    }
    const report = await this.#reportOf(order, answer, URGENT);
    return report.status === 'open' ? new Error('the order is still open') : report;
  }

  find(order: VenueOrderId): Promise<VenueReport | undefined> {
    return this.#known(() =>
      this.#inTurn(order, async () => {
        const report = await this.#find(order);
        if (report === undefined) this.#withdrawn.add(order.client_order_id);
        return report;
      }),
    );
  }

  openOrders(): Promise<readonly VenueOrderId[]> {
    return this.#openOrders(URGENT);
  }

  async #openOrders(how: AskOptions): Promise<readonly VenueOrderId[]> {
    const { client, called, ask } = this.#connection;
    const read = async (symbol: string): Promise<ClientOrder[]> => {
      try {
        return await ask(() => client.fetchOpenOrders(called(symbol)), how);
      } catch (error) {
        if (this.#isGone(symbol, error)) return [];
        throw error;
      }
    };
    const open: VenueOrderId[] = [];
    for (const symbol of this.#markets.keys()) {
      const orders = await this.#known(() => read(symbol));
      open.push(...orders.flatMap((order) => this.#idOf(order, symbol)));
    }
    return open;
  }

  /** Whether it answers so as it has no such instrument any more, of which nothing can be open then. */
  #isGone(symbol: string, error: unknown): boolean {
    return this.#gone.has(symbol) && error instanceof this.#connection.ccxt.BadSymbol;
  }

  async account(): Promise<VenueAccount> {
    const { client, ask } = this.#connection;
    const { total } = await this.#known(() => ask(() => client.fetchBalance({ type: 'spot' })));
    const held = [...this.#markets].map(([symbol, { base }]) => [symbol, total[base] ?? 0]);
    return { balances: Object.fromEntries(held), cash: total[this.#options.currency] ?? 0 };
  }

  reports(signal: AbortSignal): AsyncIterable<VenueReport> {
    const { client, drop } = this.#connection;
    const symbols = new Map([...this.#markets].map(([symbol, market]) => [market.symbol, symbol]));
    const { resyncMs = RESYNC_MS, onTrouble } = this.#options;
    const source = {
      news: async () => {
        const orders = client.watchOrders();
        // Promises that nobody waits for: their errors would end the process, and be shown.
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
      ask: (order: VenueOrderId) => this.#known(() => this.#look(order, WATCHING)),
      trouble: (what: string, error: unknown) => {
        // Those of the venue itself have been made fit to be shown.
        const why = error instanceof ServiceError ? error.message : this.#why(error);
        onTrouble?.(error === undefined ? what : `${what}: ${why}`);
      },
    };
    const ends = [signal, this.#options.signal, this.#closed.signal];
    return watchReports(source, resyncMs, AbortSignal.any(ends));
  }

  async *terms(signal: AbortSignal): AsyncGenerator<VenueRules, void> {
    const { termsMs = TERMS_MS, onTrouble } = this.#options;
    const over = AbortSignal.any([signal, this.#options.signal, this.#closed.signal]);
    let told = '';
    while (!over.aborted) {
      try {
        await this.#known(() => this.#reload());
        const rules = await this.rules();
        const text = JSON.stringify(rules);
        if (text !== told) yield rules;
        told = text;
      } catch (error) {
        if (over.aborted) return;
        if (!(error instanceof ServiceError)) throw error;
        onTrouble?.(`what it takes is not to be had: ${error.message}`);
      }
      await delay(termsMs, undefined, { signal: over }).catch(() => {});
    }
  }

  /** What its markets are now, in place of what they were. */
  async #reload(): Promise<void> {
    const { client, called } = this.#connection;
    const { symbols } = this.#options;
    const gone = symbols.filter((symbol) => this.#gone.has(symbol));
    const had = symbols.filter((symbol) => !this.#gone.has(symbol));
    // Beside one that is gone it would answer for none.
    const questions = [had, ...gone.map((symbol) => [symbol])].map((some) =>
      this.#marketsOf(some.map((symbol) => client.markets![called(symbol)]!.id)),
    );
    const markets = (await Promise.all(questions)).flat();
    for (const symbol of symbols) {
      const market = markets.find((one) => one.symbol === called(symbol));
      if (market === undefined) this.#gone.add(symbol);
      else {
        this.#gone.delete(symbol);
        // By which ccxt writes quantities and prices.
        Object.assign(client.markets![called(symbol)]!, market);
        this.#markets.set(symbol, market);
      }
    }
  }

  /** Of those of the ids that it has. */
  async #marketsOf(ids: readonly string[]): Promise<readonly Market[]> {
    const { ccxt, client, ask } = this.#connection;
    if (ids.length === 0) return [];
    try {
      return await ask(() => client.fetchMarkets({ symbols: JSON.stringify(ids) }), WATCHING);
    } catch (error) {
      if (!(error instanceof ccxt.BadSymbol)) throw error;
      if (ids.length === 1) return [];
      // It does not say which of them it does not know.
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

  /** One after another, so that none is sent that another finds not to be there. */
  async #inTurn<T>({ client_order_id: id }: VenueOrderId, doing: () => Promise<T>): Promise<T> {
    const before = this.#turns.get(id) ?? Promise.resolve();
    const turn = before.then(doing, doing);
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
    // The oldest come first.
    for (const [other, until] of this.#unsettled) {
      if (until > now) break;
      this.#unsettled.delete(other);
    }
  }

  /**
   * Undefined: it is not there and will not be, for all that was sent by us or by a process before
   * us has been refused by now if it has not arrived.
   */
  async #find(order: VenueOrderId, how?: AskOptions): Promise<VenueReport | undefined> {
    const { client_order_id: id } = order;
    for (let wait = 250; ; wait = Math.min(2 * wait, 2000)) {
      const until = Math.max(this.#openedAt + this.#settleMs, this.#unsettled.get(id) ?? -Infinity);
      const left = until - performance.now();
      const report = await this.#look(order, how);
      if (report !== undefined) return report;
      if (left <= 0) {
        this.#working.delete(id);
        return undefined;
      }
      await delay(Math.min(wait, left), undefined, { signal: this.#options.signal });
    }
  }

  /** Undefined: it is not there now. */
  async #look(order: VenueOrderId, how?: AskOptions): Promise<VenueReport | undefined> {
    const { ccxt, client, called, ask } = this.#connection;
    const params = { clientOrderId: order.client_order_id };
    let answer;
    try {
      answer = await ask(() => client.fetchOrder('', called(order.symbol), params), how);
    } catch (error) {
      if (error instanceof ccxt.OrderNotFound || this.#isGone(order.symbol, error))
        return undefined;
      throw error;
    }
    return this.#reportOf(order, answer, how);
  }

  async #reportOf(
    order: VenueOrderId,
    answer: ClientOrder,
    how?: AskOptions,
  ): Promise<VenueReport> {
    const { client_order_id: id, symbol } = order;
    const { status, filled, cost = 0, remaining = 0 } = answer;
    // ccxt makes up a 0 where the exchange does not say what was filled.
    if (status === undefined || filled === undefined || (status === 'closed' && remaining > 0)) {
      throw this.#unclear('what became of an order');
    }
    const times = [answer.lastUpdateTimestamp, answer.lastTradeTimestamp, answer.timestamp];
    const traded = filled > 0 ? await this.#tradesOf(symbol, answer, filled, how) : [];
    const fees = await this.#feesOf(symbol, traded, how);
    // More may have been filled since the order was asked for.
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
    if (!numbers.every(Number.isFinite)) throw this.#unclear('what an order came to');
    if (report.status === 'open') {
      this.#working.set(id, { order: order.order, client_order_id: id, symbol });
    } else {
      this.#working.delete(id);
    }
    // What it has shown is not gone because it does not show it the next moment.
    this.#unsettle(order);
    return report;
  }

  #unclear(what: string): ServiceError {
    return new ServiceError('exchange_unavailable', `${this.name} does not say ${what}`, {
      remedy: 'Try again later.',
    });
  }

  /** All of what is filled: a fee that is not told of yet would be missing for ever. */
  async #tradesOf(
    symbol: string,
    answer: ClientOrder,
    filled: number,
    how?: AskOptions,
  ): Promise<readonly ClientTrade[]> {
    const isAll = (trades: readonly ClientTrade[]): boolean => {
      const sum = sumOf(trades, ({ amount }) => amount);
      return sum > filled || isSame(sum, filled);
    };
    const { trades = [] } = answer;
    if (isAll(trades)) return trades;
    for (let attempt = 1; attempt <= TRADE_ATTEMPTS; attempt += 1) {
      const told = await this.#toldTrades(symbol, answer, how);
      if (isAll(told)) return told;
      await delay(50 * 2 ** attempt, undefined, { signal: this.#options.signal });
    }
    throw this.#unclear('all trades of an order yet');
  }

  async #toldTrades(
    symbol: string,
    { id }: ClientOrder,
    how?: AskOptions,
  ): Promise<readonly ClientTrade[]> {
    const { client, called, ask } = this.#connection;
    const all: ClientTrade[] = [];
    for (let params = {}; ;) {
      const request = () =>
        client.fetchOrderTrades(id, called(symbol), undefined, TRADES_PER_PAGE, params);
      const page = await ask(request, how);
      all.push(...page);
      if (page.length < TRADES_PER_PAGE) return all;
      params = { fromId: Math.max(...page.map((trade) => Number(trade.id))) + 1 };
    }
  }

  async #feesOf(
    symbol: string,
    trades: readonly ClientTrade[],
    how?: AskOptions,
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
      else fee += cost * (await this.#priceOf(currency, timestamp, how));
    }
    return { fee, fee_units };
  }

  /**
   * What another currency was worth before the minute of a trade, in that of the account: the same
   * whenever it is asked. 0 if the exchange does not say.
   */
  async #priceOf(currency: string, time: number, how?: AskOptions): Promise<number> {
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
      const rows = await ask(() => client.fetchOHLCV(symbol, '1m', since, PRICE_MINUTES), how);
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
      onTrouble?.(`${this.name} does not say what ${currency} is worth: its fees count as nothing`);
    }
    return 0;
  }

  #why(error: unknown): string {
    return whyOf(error, this.#hide);
  }

  /** What goes wrong, without secrets: an error of ccxt has the address of the signed request. */
  async #known<T>(doing: () => Promise<T>): Promise<T> {
    try {
      return await doing();
    } catch (error) {
      this.#options.signal.throwIfAborted();
      if (error instanceof ServiceError) throw error;
      if (error instanceof this.#connection.ccxt.AuthenticationError) {
        throw new ServiceError(
          'conflict',
          `${this.name} refuses the credentials: ${this.#why(error)}`,
          {
            reason: 'credentials_refused',
            remedy: 'See whether the key is active, may trade on spot, and from this address.',
          },
        );
      }
      throw new ServiceError(
        'exchange_unavailable',
        `${this.name} does not answer: ${this.#why(error)}`,
        { remedy: 'Try again later, or see whether the exchange can be reached.' },
      );
    }
  }
}

/**
 * What quantities or prices are multiples of, by how ccxt says it of an exchange; 0 when that is
 * nothing fixed.
 */
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

/** As Binance says it; what is not traded for another cause counts as closed. */
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

/** @param orderTypes of a market, as Binance says them. */
function takes(orderTypes: unknown, type: VenueOrder['type']): boolean {
  return Array.isArray(orderTypes) && orderTypes.includes(EXCHANGE_TYPES[type]);
}

function paramsOf(order: VenueOrder): object {
  const { client_order_id, stop, limit, post_only, time_in_force } = order;
  return {
    clientOrderId: client_order_id,
    ...(stop === undefined ? {} : { triggerPrice: stop }),
    ...(post_only ? { postOnly: true } : {}),
    // What goes to the market at once has none.
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

/** Why the exchange refused an order: the same word for the same cause, whatever it says. */
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
  // Limits of quantity, price and value, for which ccxt has no class of their own.
  const { message } = error;
  return known ?? (/filter failure/i.test(message) ? 'invalid_order' : 'refused_by_venue');
}
