import { seededRandom } from '../../engine/random.ts';
import type { ExchangeDefinition } from '../../trading/venues/exchanges-file.ts';
import type { AccountSetup } from './exchange-account.ts';
import { BinanceApi, klineEvent, type ApiRequest, type ApiResponse } from './binance-api.ts';
import type { ExchangeCommand } from './exchange-command.ts';
import type { ExchangeLine } from './exchange-line.ts';
import { changedBy, Faults, textOf, type Fault } from './faults.ts';
import { Klines } from './klines.ts';
import { idOf, type InstrumentSetup, type Listing } from './listing.ts';
import { Matching, type Clock, type Trade } from './matching.ts';
import { isLive, type Order } from './book-order.ts';
import { Throttle } from './throttle.ts';

export interface ExchangeSetup {
  /** Decides when auctions end, and which messages faults with a share affect. */
  readonly seed: number;
  readonly instruments: readonly InstrumentSetup[];
  readonly accounts: readonly AccountSetup[];
  /** Whether bars are made of the trades, or given to `klines`; `trades` by default. */
  readonly bars?: 'trades' | 'given';
}

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** Additional delay, ms. */
  readonly delayMs: number;
  /** Whether the response never ends. */
  readonly isEndless: boolean;
}

/** One client's end of a request. */
export interface Requester {
  respond(reply: Reply): void;
  /** Breaks the connection. */
  hangUp(): void;
}

/** One client's end of a stream. */
export interface StreamReceiver {
  /** @param delayMs additional delay, after which newer messages may have arrived. */
  send(text: string, delayMs: number): void;
  close(): void;
}

export interface Stream {
  readonly receiver: StreamReceiver;
  /** Index of the account whose orders it reports. */
  account: number | undefined;
  readonly klines: Set<string>;
}

/**
 * A spot exchange with the API of Binance: order books with auctions, accounts, bars and streams, with
 * faults on request. It simulates the data flows that RTS 7 Article 9(3) names. `connectInProcess`
 * connects clients to it.
 *
 * A test against it does not discharge any duty: RTS 6 Article 6 requires tests against the system of
 * the venue, and RTS 7 Article 9(6) requires members to use the facility of the venue.
 */
export class SimulatedExchange {
  readonly api: BinanceApi;
  readonly matching: Matching;
  readonly klines = new Klines();
  readonly faults: Faults;
  readonly clock: Clock;
  /** Connections that are down: all of them, or only the private ones. */
  #down: 'all' | 'accounts' | undefined;
  readonly #streams = new Set<Stream>();
  readonly #listeners: ((line: ExchangeLine) => void)[] = [];
  #throttle: Throttle | undefined;

  constructor({ seed, instruments, accounts, bars }: ExchangeSetup, clock: Clock) {
    this.clock = clock;
    const random = seededRandom(seed);
    this.faults = new Faults(random);
    this.matching = new Matching(instruments, accounts, clock, random, {
      changed: (order, change, fill) => {
        if (this.matching.accounts[order.account]!.setup.isUnlimited === true) return;
        const event = this.api.executionReport(order, change, fill);
        this.#push(event, 'executionReport', ({ account }) => account === order.account, order);
      },
      traded: (trade) => this.#publish(trade, bars === 'given'),
    });
    this.api = new BinanceApi(this.matching, this.klines, () => clock.now);
  }

  /** Definition for `exchanges_file` with its symbols. */
  get definition(): ExchangeDefinition {
    const host = 'simulated.invalid';
    return {
      ccxt: 'binance',
      options: { fetchMarkets: { types: ['spot'] } },
      urls: {
        public: `http://${host}/api/v3`,
        private: `http://${host}/api/v3`,
        ws: { spot: `ws://${host}/stream`, 'ws-api': { spot: `ws://${host}/ws-api/v3` } },
      },
    };
  }

  get now(): number {
    return this.clock.now;
  }

  /** @param isPrivate whether it is a connection of an account. */
  isReachable(isPrivate: boolean): boolean {
    return this.#down === undefined || (this.#down === 'accounts' && !isPrivate);
  }

  /** Calls back with every line from now on. */
  listen(listener: (line: ExchangeLine) => void): void {
    this.#listeners.push(listener);
  }

  /** Whether a stream that a client opens now is accepted. */
  acceptsStream(isPrivate: boolean): boolean {
    return this.isReachable(isPrivate) && this.#findFault(['connect'], () => ({})) === undefined;
  }

  /** Processes a request that arrives now, with the fault that affects it. */
  receive(request: ApiRequest, requester: Requester): void {
    if (!this.isReachable(request.apiKey !== undefined)) return requester.hangUp();
    const action = this.#findFault([request.call, 'requests'], () => paramsOf(request))?.action;
    const respond = ({ status, headers = {}, body }: ApiResponse): void =>
      requester.respond({
        status,
        headers,
        text: textOf(body, action),
        delayMs: action?.kind === 'slow' ? action.ms : 0,
        isEndless: action?.kind === 'half',
      });
    const lose = (isSilent: boolean | undefined): void => {
      if (isSilent !== true) requester.hangUp();
    };
    if (action?.kind === 'lost_before') lose(action.isSilent);
    else if (action?.kind === 'lost_after' && action.lateMs !== undefined) {
      lose(action.isSilent);
      this.clock.wake(this.now + action.lateMs, () => this.#process(request, () => {}));
    } else if (action?.kind === 'lost_after') this.#process(request, () => lose(action.isSilent));
    else if (action?.kind === 'status') {
      const fail = (): void => respond({ body: {}, ...action });
      if (action.done === true) this.#process(request, fail);
      else fail();
    } else {
      this.#process(request, (response) =>
        respond({ ...response, body: changedBy(action, response.body as object) }),
      );
    }
  }

  /** Calls back with the response, at once unless the throttle delays it. */
  #process(request: ApiRequest, respond: (response: ApiResponse) => void): void {
    const isCounted = request.call === 'POST /order' || request.call === 'DELETE /order';
    const wait = isCounted && this.#throttle !== undefined ? this.#throttle.waitOf(this.now) : 0;
    if (wait === undefined) {
      const body = { code: -1015, msg: 'Too many new orders.' };
      this.#log('request', { call: request.call, message: paramsOf(request) });
      respond({ status: 429, body, headers: { 'retry-after': '1' } });
    } else if (wait > 0) this.clock.wake(this.now + wait, () => respond(this.#answer(request)));
    else respond(this.#answer(request));
  }

  openStream(receiver: StreamReceiver): Stream {
    const stream = { receiver, account: undefined, klines: new Set<string>() };
    this.#streams.add(stream);
    return stream;
  }

  closeStream(stream: Stream): void {
    this.#streams.delete(stream);
  }

  /** Processes a message of a client on a stream: a subscription. */
  receiveOn(stream: Stream, text: string): void {
    const { id, method, params } = JSON.parse(text) as {
      readonly id: string | number;
      readonly method: string;
      readonly params: Readonly<Record<string, string>> | readonly string[];
    };
    this.#log('request', { call: method, message: {} });
    if (this.#findFault([method], () => ({})) !== undefined) {
      this.#close(stream);
      return;
    }
    if (method === 'SUBSCRIBE') {
      for (const name of params as readonly string[]) stream.klines.add(name);
      stream.receiver.send(JSON.stringify({ result: null, id }), 0);
      return;
    }
    stream.account = this.api.accountOfStream(params as Readonly<Record<string, string>>);
    const result =
      stream.account === undefined
        ? { status: 400, error: { code: -1022, msg: 'Signature for this request is not valid.' } }
        : { status: 200, result: { subscriptionId: 0 } };
    stream.receiver.send(JSON.stringify({ id, ...result }), 0);
  }

  /** Starts the present bar of an instrument without a trade. */
  startBar(symbol: string): void {
    const opened = this.klines.start(idOf(symbol), this.now);
    if (opened !== undefined) this.pushKline(symbol, opened);
  }

  /** Sends the bar to all subscribers. */
  pushKline(symbol: string, opened: number): void {
    const id = idOf(symbol);
    const kline = this.klines.of(id).find(([time]) => time === opened)?.[1];
    if (kline === undefined) return;
    const name = `${id.toLowerCase()}@kline_1m`;
    const event = klineEvent(id, opened, kline, this.now);
    this.#push(event, 'kline', ({ klines }) => klines.has(name));
  }

  /** Performs a command after all tasks that are due now. */
  do(command: ExchangeCommand): void {
    this.clock.wake(this.now, () => {
      this.#log('command', { message: command });
      this.#perform(command);
    });
  }

  /** Order of an account by client order id. */
  order(account: string, clientOrderId: string): Order | undefined {
    return this.matching.find(this.matching.account(account), clientOrderId);
  }

  /** Live orders of an account, oldest first. */
  openOrders(account: string): readonly Order[] {
    return this.matching.openOrders(this.matching.account(account));
  }

  /** Total holdings by asset. */
  balances(account: string): ReadonlyMap<string, number> {
    return this.matching.balancesOf(this.matching.account(account));
  }

  /** Newest trade of an account. */
  lastTradeOf(account: string): Trade | undefined {
    const index = this.matching.account(account);
    return this.matching.trades.findLast(
      ({ taker, maker }) => taker.account === index || maker.account === index,
    );
  }

  isStreaming(account: string): boolean {
    const index = this.matching.account(account);
    return [...this.#streams].some((stream) => stream.account === index);
  }

  /** Closes all streams. */
  cut(): void {
    for (const stream of this.#streams) this.#close(stream);
  }

  #close(stream: Stream): void {
    this.closeStream(stream);
    stream.receiver.close();
  }

  #answer(request: ApiRequest): ApiResponse {
    const { call } = request;
    // Market data would make up most of the log.
    const isPublic = call === 'GET /klines' || call === 'GET /time';
    if (!isPublic) this.#log('request', { call, message: paramsOf(request) });
    const response = this.api.answer(request);
    if (!isPublic && call !== 'GET /exchangeInfo') {
      this.#log('response', { call, message: response });
    }
    return response;
  }

  #publish(trade: Trade, hasGivenBars: boolean): void {
    const { id, listing, price, quantity } = trade;
    const { symbol } = listing.setup;
    this.#log('trade', { message: { trade_id: id, symbol, price, quantity } });
    if (!hasGivenBars) this.pushKline(symbol, this.klines.count(trade));
  }

  #push(event: object, type: string, isFor: (stream: Stream) => boolean, order?: Order): void {
    if (order !== undefined) {
      const { name } = this.matching.accounts[order.account]!.setup;
      this.#log('pushed', { account: name, message: event });
    }
    const streams = [...this.#streams].filter(isFor);
    if (streams.length === 0) return;
    const action = this.#findFault([type, 'pushed'], () => event)?.action;
    if (action?.kind === 'drop') return;
    const changed = changedBy(action, event);
    const text = textOf(
      order === undefined ? changed : { subscriptionId: 0, event: changed },
      action,
    );
    for (const { receiver } of streams) {
      receiver.send(text, action?.kind === 'delay' ? action.ms : 0);
      if (action?.kind === 'duplicate') receiver.send(text, 0);
    }
  }

  #findFault(names: readonly string[], fields: () => object): Fault | undefined {
    const fault = this.faults.find(names, fields, this.now);
    if (fault !== undefined) this.#log('fault', { message: { ...fault } });
    return fault;
  }

  #perform(command: ExchangeCommand): void {
    switch (command.do) {
      case 'place':
        this.matching.place(this.matching.account(command.as), this.#listing(command.symbol), {
          clientOrderId: command.client_order_id,
          side: command.side,
          type: 'limit',
          timeInForce: command.time_in_force,
          quantity: command.quantity,
          price: command.price,
        });
        return;
      case 'cancel':
      case 'end_order': {
        const order = this.order(command.as, command.client_order_id);
        if (order === undefined || !isLive(order)) return;
        this.matching.end(order, command.do === 'cancel' ? 'canceled' : command.status);
        return;
      }
      case 'revise_trade':
        this.matching.revise(
          this.matching.trades[command.trade_id - 1]!,
          command.price,
          command.quantity,
        );
        return;
      case 'phase': {
        const { symbol } = command;
        const all = symbol === undefined ? this.matching.listings : [this.#listing(symbol)];
        for (const listing of all) this.matching.schedulePhase(listing, command.phase);
        return;
      }
      case 'set_terms': {
        const listing = this.#listing(command.symbol);
        listing.terms = { ...listing.terms, ...command.terms };
        return;
      }
      case 'delist':
        this.matching.delist(this.#listing(command.symbol));
        return;
      case 'withdraw':
        this.matching.accounts[this.matching.account(command.as)]!.add(
          command.asset,
          -command.amount,
        );
        return;
      case 'cut':
        this.cut();
        return;
      case 'network':
        this.#down = command.is_up ? undefined : (command.of ?? 'all');
        for (const stream of this.#streams) {
          if (!this.isReachable(stream.account !== undefined)) this.#close(stream);
        }
        return;
      case 'throttle':
        this.#throttle = command.throttle && new Throttle(command.throttle);
        return;
      case 'fault':
        this.faults.add(command.fault);
        return;
      case 'clear_faults':
        this.faults.clear();
    }
  }

  #listing(symbol: string): Listing {
    const listing = this.matching.listing(idOf(symbol));
    if (listing === undefined) throw new RangeError(`the exchange has no instrument ${symbol}`);
    return listing;
  }

  #log(kind: ExchangeLine['kind'], line: Omit<ExchangeLine, 'time' | 'kind'>): void {
    for (const listener of this.#listeners) listener({ time: this.now, kind, ...line });
  }
}

/** Parameters of a request without its signature and time. */
function paramsOf({ query }: ApiRequest): object {
  const {
    timestamp: _,
    recvWindow: __,
    signature: ___,
    ...params
  } = Object.fromEntries(new URLSearchParams(query));
  return params;
}
