/** The exchange of a simulated day: prices, bars, accounts, and orders, as at a spot exchange. */
import { MINUTE } from '../../src/market/bar-time.ts';
import type { Machine } from './machine.ts';
import type { SimulatedProcess } from './process.ts';

export interface SimulatedMarket {
  readonly symbol: string;
  readonly base: string;
  readonly quote: string;
  readonly price: number;
  readonly step: number;
  readonly tick: number;
}

export interface ExchangeTrade {
  readonly id: number;
  readonly quantity: number;
  readonly price: number;
  /** In the quote currency. */
  readonly fee: number;
  readonly time: number;
}

export interface OrderTerms {
  readonly clientId: string;
  readonly symbol: string;
  readonly side: 'buy' | 'sell';
  readonly quantity: number;
  /** 0: a market order. */
  readonly limit: number;
  /** 0: none. */
  readonly stop: number;
  readonly timeInForce: 'GTC' | 'IOC' | 'FOK';
  readonly isPostOnly: boolean;
}

export interface ExchangeOrder extends OrderTerms {
  readonly id: number;
  readonly account: string;
  status: 'open' | 'closed' | 'canceled' | 'expired';
  isTriggered: boolean;
  readonly trades: ExchangeTrade[];
  readonly time: number;
  updated: number;
}

/** Why the exchange does not take an order or a cancel. */
export class Rejection extends Error {
  readonly kind: 'funds' | 'duplicate' | 'would_cross' | 'filter' | 'unknown_order';

  constructor(kind: Rejection['kind'], message: string = kind) {
    super(message);
    this.kind = kind;
  }
}

export type BarRow = [
  time: number,
  open: number,
  high: number,
  low: number,
  close: number,
  volume: number,
];

export interface ExchangeOptions {
  readonly markets: readonly SimulatedMarket[];
  /** Cash by account. */
  readonly accounts: Readonly<Record<string, number>>;
  /** Interval of price changes, ms. */
  readonly everyMs: number;
  /** Share of the value of a trade. */
  readonly feeRate: number;
  /** Share of the fills that are partial. */
  readonly partial: number;
  readonly onPlaced: (order: ExchangeOrder, by: SimulatedProcess | undefined) => void;
  readonly onChange: (order: ExchangeOrder) => void;
  readonly onBar: (symbol: string) => void;
}

export class SimulatedExchange {
  readonly orders: ExchangeOrder[] = [];
  readonly options: ExchangeOptions;
  /** Units and cash, by account and currency. */
  readonly #balances: Map<string, Map<string, number>>;
  readonly #prices: Map<string, number>;
  readonly #bars: Map<string, BarRow[]>;
  readonly #machine: Machine;
  #trades = 0;

  constructor(machine: Machine, options: ExchangeOptions) {
    this.#machine = machine;
    this.options = options;
    const { markets, accounts } = options;
    const cash = Object.entries(accounts).map(
      ([account, amount]) => [account, new Map([[markets[0]!.quote, amount]])] as const,
    );
    this.#balances = new Map(cash);
    this.#prices = new Map(markets.map(({ symbol, price }) => [symbol, price]));
    this.#bars = new Map(markets.map(({ symbol }) => [symbol, []]));
    for (const { symbol } of markets) this.#record(symbol);
  }

  /** Lets the prices change from now on. */
  open(): void {
    const move = (): void => {
      for (const market of this.options.markets) this.#move(market);
      this.#machine.after(this.options.everyMs, move);
    };
    this.#machine.after(this.options.everyMs, move);
  }

  bars(symbol: string): readonly BarRow[] {
    return this.#bars.get(symbol)!;
  }

  balance(account: string, currency: string): number {
    return this.#balances.get(account)!.get(currency) ?? 0;
  }

  find(account: string, clientId: string): ExchangeOrder | undefined {
    return this.orders.findLast((one) => one.account === account && one.clientId === clientId);
  }

  openOrders(account: string, symbol?: string): readonly ExchangeOrder[] {
    return this.orders.filter(
      (one) =>
        isOpen(one) && one.account === account && (symbol === undefined || one.symbol === symbol),
    );
  }

  /** Accepts the id of an order that has ended again, as exchanges do. @throws Rejection */
  place(account: string, terms: OrderTerms, by?: SimulatedProcess): ExchangeOrder {
    const { symbol, side, quantity, limit, clientId, isPostOnly, timeInForce } = terms;
    const price = this.#prices.get(symbol)!;
    const { base, quote } = this.#market(symbol);
    const worth = quantity * (limit || price);
    if (worth < 5) throw new Rejection('filter', 'Filter failure: NOTIONAL');
    if (this.openOrders(account).some((one) => one.clientId === clientId)) {
      throw new Rejection('duplicate', 'Duplicate order sent.');
    }
    const [currency, needed] = side === 'buy' ? [quote, worth] : [base, quantity];
    if (this.#free(account, currency) < needed) throw new Rejection('funds');
    if (isPostOnly && reaches(side, limit, price)) throw new Rejection('would_cross');
    const now = this.#machine.now;
    const order: ExchangeOrder = {
      ...terms,
      id: this.orders.length + 1,
      account,
      status: 'open',
      isTriggered: terms.stop === 0,
      trades: [],
      time: now,
      updated: now,
    };
    this.orders.push(order);
    this.options.onPlaced(order, by);
    this.options.onChange(order);
    this.#match(order);
    if (isOpen(order) && timeInForce !== 'GTC') this.#end(order, 'expired');
    return order;
  }

  /** @throws Rejection */
  cancel(account: string, clientId: string): ExchangeOrder {
    const order = this.find(account, clientId);
    if (order === undefined || !isOpen(order)) throw new Rejection('unknown_order');
    this.#end(order, 'canceled');
    return order;
  }

  #market(symbol: string): SimulatedMarket {
    return this.options.markets.find((one) => one.symbol === symbol)!;
  }

  /** Amount that no open order reserves. */
  #free(account: string, currency: string): number {
    let free = this.balance(account, currency);
    for (const order of this.openOrders(account)) {
      const { base, quote } = this.#market(order.symbol);
      const left = order.quantity - filledOf(order);
      if (order.side === 'sell' && base === currency) free -= left;
      if (order.side === 'buy' && quote === currency) free -= left * order.limit;
    }
    return free;
  }

  #move(market: SimulatedMarket): void {
    const { symbol, tick, price: middle } = market;
    const before = this.#prices.get(symbol)!;
    const drift = (middle - before) / middle / 50;
    const change = (this.#machine.random() - 0.5) * 0.006 + drift;
    this.#prices.set(symbol, Math.max(tick, rounded(before * (1 + change), tick)));
    this.#record(symbol);
    for (const order of this.orders)
      if (isOpen(order) && order.symbol === symbol) this.#match(order);
    this.options.onBar(symbol);
  }

  #record(symbol: string): void {
    const bars = this.#bars.get(symbol)!;
    const price = this.#prices.get(symbol)!;
    const time = Math.floor(this.#machine.now / MINUTE) * MINUTE;
    const last = bars.at(-1);
    if (last?.[0] !== time) bars.push([time, price, price, price, price, 1]);
    else {
      const [, open, high, low, , volume] = last;
      const row: BarRow = [
        time,
        open,
        Math.max(high, price),
        Math.min(low, price),
        price,
        volume + 1,
      ];
      bars[bars.length - 1] = row;
    }
  }

  #match(order: ExchangeOrder): void {
    const price = this.#prices.get(order.symbol)!;
    const { side, stop, limit } = order;
    if (!order.isTriggered && !reaches(side === 'buy' ? 'sell' : 'buy', stop, price)) return;
    order.isTriggered = true;
    if (limit > 0 && !reaches(side, limit, price)) return;
    const { step } = this.#market(order.symbol);
    const left = rounded(order.quantity - filledOf(order), step);
    const isPartial =
      limit > 0 && order.timeInForce === 'GTC' && this.#machine.happens(this.options.partial);
    const part = rounded(left * this.#machine.random(), step);
    const quantity = isPartial && part > 0 ? part : left;
    this.#execute(order, quantity, price);
  }

  #execute(order: ExchangeOrder, quantity: number, price: number): void {
    const { base, quote } = this.#market(order.symbol);
    const fee = Number((quantity * price * this.options.feeRate).toFixed(8));
    this.#trades += 1;
    const time = this.#machine.now;
    order.trades.push({ id: this.#trades, quantity, price, fee, time });
    order.updated = time;
    const sign = order.side === 'buy' ? 1 : -1;
    this.#add(order.account, base, sign * quantity);
    this.#add(order.account, quote, -sign * quantity * price - fee);
    if (filledOf(order) >= order.quantity) order.status = 'closed';
    this.options.onChange(order);
  }

  #end(order: ExchangeOrder, status: 'canceled' | 'expired'): void {
    order.status = status;
    order.updated = this.#machine.now;
    this.options.onChange(order);
  }

  #add(account: string, currency: string, amount: number): void {
    const balances = this.#balances.get(account)!;
    balances.set(currency, Number(((balances.get(currency) ?? 0) + amount).toFixed(10)));
  }
}

function isOpen({ status }: ExchangeOrder): boolean {
  return status === 'open';
}

/** Units. */
export function filledOf({ trades }: ExchangeOrder): number {
  return Number(trades.reduce((sum, { quantity }) => sum + quantity, 0).toFixed(8));
}

/** Without fees, in the quote currency. */
export function costOf({ trades }: ExchangeOrder): number {
  return Number(trades.reduce((sum, { quantity, price }) => sum + quantity * price, 0).toFixed(8));
}

/** Whether a buyer pays the price with this limit, or a seller takes it. */
function reaches(side: 'buy' | 'sell', limit: number, price: number): boolean {
  return side === 'buy' ? price <= limit : price >= limit;
}

function rounded(value: number, step: number): number {
  return Number((Math.floor(value / step + 1e-9) * step).toFixed(8));
}
