/**
 * Private side of the local exchange: account, orders and stream of one customer, as in the Binance
 * API (https://developers.binance.com/docs/binance-spot-api-docs). Matches orders at the price that
 * the test sets, and fails on request.
 */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import type { ExchangeDefinition } from '../../src/trading/venues/exchanges-file.ts';
import { acceptStream, frameOf, onFrames, type TestExchange } from './exchange.ts';

export interface PlacedOrder {
  readonly id: number;
  readonly clientId: string;
  readonly symbol: string;
  readonly side: 'BUY' | 'SELL';
  readonly type: string;
  readonly timeInForce: string;
  readonly quantity: number;
  readonly price: number;
  readonly stopPrice: number;
  status: 'NEW' | 'PARTIALLY_FILLED' | 'FILLED' | 'CANCELED' | 'EXPIRED';
  isTriggered: boolean;
  readonly trades: Trade[];
  readonly time: number;
  updated: number;
}

interface Trade {
  readonly id: number;
  readonly quantity: number;
  readonly price: number;
  readonly fee: number;
  readonly feeAsset: string;
  readonly time: number;
}

/** Fault of a request. */
export type Fault =
  /** Closes the connection before the request is read. */
  | { readonly kind: 'lost_before' }
  /** Closes the connection after the request has taken effect, or `lateMs` before it does. */
  | { readonly kind: 'lost_after'; readonly lateMs?: number }
  /** The request takes effect; the response comes after `ms`. */
  | { readonly kind: 'slow'; readonly ms: number }
  /** The request takes effect; the response is truncated. */
  | { readonly kind: 'half' }
  /** Responds with this status; `done` says whether the request took effect. */
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly body?: object;
      readonly headers?: Record<string, string>;
      readonly done?: boolean;
    };

export interface PrivateExchange {
  /** Price of both sides. */
  readonly definition: ExchangeDefinition;
  readonly orders: readonly PlacedOrder[];
  /** Requests such as `POST /order`, including those over the stream. */
  readonly asked: string[];
  readonly holdings: Map<string, number>;
  /** Fee of each fill: `base`, `quote` or an asset, and the rate in units of it. */
  fee: { asset: string; rate: number };
  /** Whether messages of the stream are lost. */
  isMute: boolean;
  /** Number of queries that do not return the latest trades yet. */
  hiddenTrades: number;
  /** How far its clock is ahead, ms. */
  skewMs: number;
  readonly fail: (call: string, ...faults: readonly Fault[]) => void;
  /** Clears all pending faults. */
  readonly heal: () => void;
  readonly setPrice: (symbol: string, price: number) => void;
  readonly fill: (clientId: string, quantity: number, price?: number) => void;
  readonly open: (order: Partial<PlacedOrder>) => void;
  /** Resolves once the stream was opened this many times in total. */
  readonly subscribed: (count: number) => Promise<void>;
  /** Resolves once all requests have taken effect. */
  readonly done: () => Promise<unknown>;
  readonly cut: () => void;
  readonly close: () => Promise<void>;
}

class Refusal extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** @param market public side of the exchange. */
export async function startPrivateExchange(
  market: TestExchange,
  credentials: { readonly apiKey: string; readonly secret: string },
): Promise<PrivateExchange> {
  const orders: PlacedOrder[] = [];
  const asked: string[] = [];
  const faults = new Map<string, Fault[]>();
  const prices = new Map<string, number>();
  const streams = new Set<Duplex>();
  let subscriptions = 0;
  let waiting: (() => void)[] = [];
  let trades = 0;

  const now = (): number => Date.now() + exchange.skewMs;
  Object.defineProperty(market, 'now', { get: now });
  const isSigned = (query: string, signature: string | null): boolean =>
    createHmac('sha256', credentials.secret).update(query).digest('hex') === signature;
  const checkTime = (timestamp: number, window: number): void => {
    if (timestamp > now() + 1000 || now() - timestamp > window) {
      throw new Refusal(-1021, 'Timestamp for this request is outside of the recvWindow.');
    }
  };
  const filledOf = ({ trades: all }: PlacedOrder): number =>
    Number(all.reduce((sum, { quantity }) => sum + quantity, 0).toFixed(8));
  const costOf = ({ trades: all }: PlacedOrder): number =>
    Number(all.reduce((sum, { quantity, price }) => sum + quantity * price, 0).toFixed(8));
  const isOpen = ({ status }: PlacedOrder): boolean =>
    status === 'NEW' || status === 'PARTIALLY_FILLED';
  const split = (symbol: string): [string, string] => [symbol.slice(0, -4), symbol.slice(-4)];
  const add = (asset: string, amount: number): void => {
    exchange.holdings.set(asset, (exchange.holdings.get(asset) ?? 0) + amount);
  };
  const lockedOf = (asset: string): number =>
    orders.filter(isOpen).reduce((sum, order) => {
      const [base, quote] = split(order.symbol);
      const left = order.quantity - filledOf(order);
      if (order.side === 'SELL') return base === asset ? sum + left : sum;
      return quote === asset ? sum + left * order.price : sum;
    }, 0);

  const publish = (
    order: PlacedOrder,
    execution: string,
    trade?: Trade,
    cancelId?: string,
  ): void => {
    if (exchange.isMute) return;
    const event = {
      e: 'executionReport',
      E: now(),
      s: order.symbol,
      c: cancelId ?? order.clientId,
      S: order.side,
      o: order.type,
      f: order.timeInForce,
      q: String(order.quantity),
      p: String(order.price),
      P: String(order.stopPrice),
      C: cancelId === undefined ? '' : order.clientId,
      x: execution,
      X: order.status,
      i: order.id,
      l: String(trade?.quantity ?? 0),
      z: String(filledOf(order)),
      L: String(trade?.price ?? 0),
      n: String(trade?.fee ?? 0),
      N: trade?.feeAsset ?? null,
      T: order.updated,
      t: trade?.id ?? -1,
      m: false,
      O: order.time,
      Z: String(costOf(order)),
    };
    const frame = frameOf(JSON.stringify({ subscriptionId: 0, event }));
    for (const stream of streams) stream.write(frame);
  };
  const execute = (order: PlacedOrder, quantity: number, price: number): void => {
    const [base, quote] = split(order.symbol);
    const { asset, rate } = exchange.fee;
    const feeAsset = { base, quote }[asset] ?? asset;
    const fee = Number((rate * (asset === 'base' ? quantity : quantity * price)).toFixed(8));
    trades += 1;
    const trade = { id: trades, quantity, price, fee, feeAsset, time: now() };
    order.trades.push(trade);
    order.status = filledOf(order) < order.quantity ? 'PARTIALLY_FILLED' : 'FILLED';
    order.updated = now();
    const sign = order.side === 'BUY' ? 1 : -1;
    add(base, sign * quantity);
    add(quote, -sign * quantity * price);
    add(feeAsset, -fee);
    publish(order, 'TRADE', trade);
  };
  const match = (order: PlacedOrder): void => {
    const price = prices.get(order.symbol)!;
    const isBuy = order.side === 'BUY';
    const isStop = order.stopPrice > 0 && !order.isTriggered;
    if (isStop && (isBuy ? price < order.stopPrice : price > order.stopPrice)) return;
    order.isTriggered = true;
    const isAtOnce = order.price === 0;
    if (isAtOnce || (isBuy ? price <= order.price : price >= order.price)) {
      execute(order, Number((order.quantity - filledOf(order)).toFixed(8)), price);
    }
  };
  const end = (order: PlacedOrder, status: 'CANCELED' | 'EXPIRED', cancelId?: string): void => {
    order.status = status;
    order.updated = now();
    publish(order, status, undefined, cancelId);
  };

  const place = (params: URLSearchParams): PlacedOrder => {
    const number = (name: string): number => Number(params.get(name) ?? 0);
    const order: PlacedOrder = {
      id: orders.length + 1,
      clientId: params.get('newClientOrderId')!,
      symbol: params.get('symbol')!,
      side: params.get('side') as 'BUY' | 'SELL',
      type: params.get('type')!,
      timeInForce: params.get('timeInForce') ?? 'GTC',
      quantity: number('quantity'),
      price: number('price'),
      stopPrice: number('stopPrice'),
      status: 'NEW',
      isTriggered: false,
      trades: [],
      time: now(),
      updated: now(),
    };
    const price = prices.get(order.symbol)!;
    const isBuy = order.side === 'BUY';
    const [base, quote] = split(order.symbol);
    const free = (asset: string): number => (exchange.holdings.get(asset) ?? 0) - lockedOf(asset);
    const worth = order.quantity * (order.price || price);
    if (worth < 5) throw new Refusal(-1013, 'Filter failure: NOTIONAL');
    if (orders.some((other) => other.clientId === order.clientId && isOpen(other))) {
      throw new Refusal(-2010, 'Duplicate order sent.');
    }
    if (isBuy ? free(quote) < worth : free(base) < order.quantity) {
      throw new Refusal(-2010, 'Account has insufficient balance for requested action.');
    }
    const crosses = isBuy ? price <= order.price : price >= order.price;
    if (order.type === 'LIMIT_MAKER' && crosses) {
      throw new Refusal(-2010, 'Order would immediately match and take.');
    }
    orders.push(order);
    publish(order, 'NEW');
    match(order);
    if (isOpen(order) && order.timeInForce !== 'GTC') end(order, 'EXPIRED');
    return order;
  };
  const find = (params: URLSearchParams, code: number, message: string): PlacedOrder => {
    const id = params.get('origClientOrderId');
    const order = orders.findLast(({ clientId }) => clientId === id);
    if (order === undefined) throw new Refusal(code, message);
    return order;
  };
  const done: Readonly<Record<string, (params: URLSearchParams) => unknown>> = {
    'POST /order': (params) => {
      const order = place(params);
      const fills = order.trades.map(({ id, quantity, price, fee, feeAsset }) => ({
        price: String(price),
        qty: String(quantity),
        commission: String(fee),
        commissionAsset: feeAsset,
        tradeId: id,
      }));
      return { ...shown(order), transactTime: order.updated, fills };
    },
    'GET /order': (params) => shown(find(params, -2013, 'Order does not exist.')),
    'DELETE /order': (params) => {
      const order = find(params, -2011, 'Unknown order sent.');
      if (!isOpen(order)) throw new Refusal(-2011, 'Unknown order sent.');
      end(order, 'CANCELED', 'a-cancel-of-its-own');
      return { ...shown(order), origClientOrderId: order.clientId, clientOrderId: 'a-cancel' };
    },
    'GET /openOrders': (params) =>
      orders.filter((one) => isOpen(one) && one.symbol === params.get('symbol')).map(shown),
    'GET /myTrades': (params) => {
      const order = orders.find(({ id }) => id === Number(params.get('orderId')))!;
      const hidden = exchange.hiddenTrades > 0 ? 1 : 0;
      exchange.hiddenTrades -= hidden;
      const visible = order.trades.slice(0, order.trades.length - hidden);
      const page = visible.filter(({ id }) => id >= Number(params.get('fromId') ?? 0));
      return page
        .slice(0, Number(params.get('limit')))
        .map(({ id, quantity, price, fee, feeAsset, time }) => ({
          symbol: order.symbol,
          id,
          orderId: order.id,
          price: String(price),
          qty: String(quantity),
          quoteQty: String(quantity * price),
          commission: String(fee),
          commissionAsset: feeAsset,
          time,
          isBuyer: order.side === 'BUY',
          isMaker: false,
          isBestMatch: true,
        }));
    },
    'GET /account': () => ({
      accountType: 'SPOT',
      canTrade: true,
      balances: [...exchange.holdings].map(([asset, total]) => {
        const locked = lockedOf(asset);
        return { asset, free: String(total - locked), locked: String(locked) };
      }),
    }),
  };
  const shown = (order: PlacedOrder): object => ({
    symbol: order.symbol,
    orderId: order.id,
    orderListId: -1,
    clientOrderId: order.clientId,
    price: String(order.price),
    origQty: String(order.quantity),
    executedQty: String(filledOf(order)),
    cummulativeQuoteQty: String(costOf(order)),
    status: order.status,
    timeInForce: order.timeInForce,
    type: order.type,
    side: order.side,
    stopPrice: String(order.stopPrice),
    time: order.time,
    updateTime: order.updated,
    isWorking: true,
  });

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const [path, inUrl = ''] = request.url!.split('?');
    const call = `${request.method} ${path!.replace('/api/v3', '')}`;
    asked.push(call);
    const query = request.method === 'POST' ? await text(request) : inUrl;
    const fault = faults.get(call)?.shift();
    const cutOff = (): void => void request.socket.destroy();
    const send = (status: number, body: unknown, headers: Record<string, string> = {}): void => {
      const type = { 'content-type': 'application/json' };
      response.writeHead(status, { ...type, ...headers }).end(JSON.stringify(body));
    };
    if (fault?.kind === 'lost_before') return cutOff();
    if (fault?.kind === 'lost_after' && fault.lateMs !== undefined) {
      cutOff();
      await delay(fault.lateMs);
    }
    const isDone = fault?.kind !== 'status' || fault.done === true;
    const [status, body] = isDone ? carryOut(call, query, request) : [0, undefined];
    if (fault?.kind === 'lost_after') return cutOff();
    if (fault?.kind === 'status') return send(fault.status, fault.body ?? {}, fault.headers);
    if (fault?.kind === 'slow') await delay(fault.ms);
    if (fault?.kind === 'half') return void response.writeHead(status).write('{');
    send(status, body);
  };
  const carryOut = (call: string, query: string, request: IncomingMessage): [number, unknown] => {
    try {
      const params = new URLSearchParams(query);
      const unsigned = query.slice(0, query.lastIndexOf('&signature='));
      if (request.headers['x-mbx-apikey'] !== credentials.apiKey) {
        throw new Refusal(-2015, 'Invalid API-key, IP, or permissions for action.');
      }
      if (!isSigned(unsigned, params.get('signature'))) {
        throw new Refusal(-1022, 'Signature for this request is not valid.');
      }
      checkTime(Number(params.get('timestamp')), Number(params.get('recvWindow')));
      return [200, done[call]!(params)];
    } catch (error) {
      assert(error instanceof Refusal, error as Error);
      return [400, { code: error.code, msg: error.message }];
    }
  };

  const subscribe = (socket: Duplex, message: string): void => {
    const { id, method, params } = JSON.parse(message) as {
      id: string;
      method: string;
      params: Record<string, string | number>;
    };
    asked.push(method);
    if (faults.get(method)?.shift() !== undefined) return void socket.destroy();
    const { signature, ...rest } = params;
    const query = Object.keys(rest)
      .sort()
      .map((name) => `${name}=${rest[name]}`)
      .join('&');
    const isAllowed =
      method === 'userDataStream.subscribe.signature' &&
      rest['apiKey'] === credentials.apiKey &&
      isSigned(query, String(signature));
    const result = isAllowed
      ? { status: 200, result: { subscriptionId: 0 } }
      : { status: 400, error: { code: -1022, msg: 'Signature for this request is not valid.' } };
    socket.write(frameOf(JSON.stringify({ id, ...result })));
    if (!isAllowed) return;
    streams.add(socket);
    subscriptions += 1;
    for (const check of waiting) check();
  };

  const underWay = new Set<Promise<void>>();
  const server = createServer((request, response) => {
    const answered = answer(request, response).finally(() => underWay.delete(answered));
    underWay.add(answered);
  });
  server.on('upgrade', (request: IncomingMessage, socket: Duplex) => {
    socket.on('error', () => {});
    socket.on('end', () => socket.destroy());
    socket.on('close', () => streams.delete(socket));
    acceptStream(request, socket);
    onFrames(socket, (opcode, message) => {
      if (opcode === 1) subscribe(socket, message);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const urls = market.definition.urls as { ws: object };
  const idOf = (symbol: string): string => symbol.replace('/', '');
  const exchange: PrivateExchange = {
    definition: {
      ...market.definition,
      urls: {
        ...urls,
        private: `http://127.0.0.1:${port}/api/v3`,
        ws: { ...urls.ws, 'ws-api': { spot: `ws://127.0.0.1:${port}/ws-api/v3` } },
      },
    },
    orders,
    asked,
    holdings: new Map(),
    fee: { asset: 'quote', rate: 0.001 },
    isMute: false,
    hiddenTrades: 0,
    skewMs: 0,
    heal: () => faults.clear(),
    fail: (call, ...more) => void faults.set(call, [...(faults.get(call) ?? []), ...more]),
    setPrice(symbol, price) {
      prices.set(idOf(symbol), price);
      for (const order of orders) if (isOpen(order) && order.symbol === idOf(symbol)) match(order);
    },
    fill(clientId, quantity, price) {
      const order = orders.find((one) => one.clientId === clientId)!;
      execute(order, quantity, price ?? order.price);
    },
    open(order) {
      const rest = { timeInForce: 'GTC', stopPrice: 0, isTriggered: false, trades: [] };
      const times = { time: now(), updated: now() };
      const whole = { id: orders.length + 1, status: 'NEW', ...rest, ...times, ...order };
      orders.push(whole as PlacedOrder);
    },
    subscribed: (count) =>
      new Promise((resolve) => {
        const check = (): void => {
          if (subscriptions < count) return;
          waiting = waiting.filter((other) => other !== check);
          resolve();
        };
        waiting.push(check);
        check();
      }),
    done: () => Promise.all(underWay),
    cut() {
      for (const socket of streams) socket.destroy();
    },
    async close() {
      exchange.cut();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return exchange;
}
