/** The exchange of a simulated day, its market maker, and the network between it and the pods. */
import { SimulatedExchange } from '../../src/compliance/venue/simulated-exchange.ts';
import { connectInProcess, type Connection } from '../../src/compliance/venue/in-process.ts';
import type { Order } from '../../src/compliance/venue/book-order.ts';
import type { CcxtExchange } from '../../src/trading/venues/ccxt-types.ts';
import { LATE_BY_MS, type Link, type Machine } from './machine.ts';
import { ACCOUNT_CASH, BOTS, MARKETS, PRICE_UNIT, type Market } from './setup.ts';

const MAKER = 'maker';
/** Interval of price changes, ms. */
const EVERY_MS = 5000;
/** Share of the quotes that fill most orders only in part. */
const SMALL_QUOTES = 0.4;
/** Least price × quantity of an order, in the quote asset. */
const LEAST_VALUE = 5;
/** More than the bots trade, in quantity units. */
const PLENTY = 1e9;

export class DayExchange extends SimulatedExchange {
  readonly #machine: Machine;
  readonly #prices = new Map<Market, number>();
  #quotes: readonly Order[] = [];
  #count = 0;

  constructor(machine: Machine) {
    const terms = {
      tick: 1,
      lot: 1,
      maxQuantity: PLENTY,
      band: 10,
      minValue: LEAST_VALUE,
      randomEndMs: 0,
    };
    const instruments = MARKETS.map(({ symbol, price, step }) => {
      const [base, quote] = symbol.split('/') as [string, string];
      const units = { priceUnit: PRICE_UNIT, quantityUnit: step };
      return { symbol, base, quote, ...units, referencePrice: price / PRICE_UNIT, ...terms };
    });
    const bots = BOTS.map(({ slug }) => {
      const balances = { USDT: ACCOUNT_CASH };
      return { name: slug, apiKey: slug, secret: slug, balances };
    });
    const maker = { name: MAKER, apiKey: '', secret: '', balances: {}, isUnlimited: true };
    const clock = {
      get now() {
        return machine.now;
      },
      wake: (time: number, task: () => void) => machine.after(time - machine.now, task),
    };
    const seed = machine.below(2 ** 31);
    super({ seed, instruments, accounts: [...bots, maker] }, clock);
    this.#machine = machine;
    this.matching.fee = { asset: 'quote', rate: 0.001 };
    for (const market of MARKETS) this.#prices.set(market, market.price / PRICE_UNIT);
  }

  /** Lets the prices change from now on. */
  open(): void {
    for (const order of this.#quotes) this.matching.end(order, 'canceled');
    this.#quotes = MARKETS.flatMap((market) => this.#quote(market));
    this.#machine.after(EVERY_MS, () => this.open());
  }

  /** Orders of the bots, oldest first. */
  get orders(): readonly Order[] {
    return this.matching.orders.filter(({ account }) => account < BOTS.length);
  }

  ownerOf({ account }: Order): string {
    return this.matching.accounts[account]!.setup.name;
  }

  /** @param onOrder observes each order as its client sends it, and as it arrives. */
  connect(
    client: CcxtExchange,
    link: Link,
    onOrder: (clientOrderId: string, moment: 'sent' | 'arrived') => void,
  ): Connection {
    const machine = this.#machine;
    const latency = (): number => {
      const lateMs = machine.happens(link.late) ? LATE_BY_MS : 0;
      return Math.round(machine.random() * (link.latencyMs + lateMs));
    };
    const shares = { request: () => link.lost, response: () => link.lostAnswers, pushed: () => 0 };
    return connectInProcess(client, this, latency, {
      loses: (message) => machine.happens(shares[message]()) || link.isCut,
      observe({ call, query }, moment) {
        if (call !== 'POST /order') return;
        onOrder(new URLSearchParams(query).get('newClientOrderId')!, moment);
      },
    });
  }

  /** Moves the price of an instrument at random, quotes it, and trades at it. */
  #quote(market: Market): readonly Order[] {
    const machine = this.#machine;
    const before = this.#prices.get(market)!;
    const middle = market.price / PRICE_UNIT;
    const drift = (middle - before) / middle / 50;
    const change = (machine.random() - 0.5) * 0.006 + drift;
    const price = Math.max(2, Math.floor(before * (1 + change)));
    this.#prices.set(market, price);
    const unitsOf = (value: number): number =>
      Math.ceil(value / (price * PRICE_UNIT * market.step));
    const size = (): number =>
      machine.happens(SMALL_QUOTES) ? unitsOf(LEAST_VALUE * (2 + machine.below(20))) : PLENTY;
    const quotes = [
      this.#place(market, 'buy', size(), price - 1, 'gtc'),
      this.#place(market, 'sell', size(), price, 'gtc'),
    ];
    this.#place(market, 'buy', unitsOf(LEAST_VALUE), price, 'ioc');
    return quotes.filter(({ leaves }) => leaves > 0);
  }

  #place(
    { symbol }: Market,
    side: 'buy' | 'sell',
    quantity: number,
    price: number,
    timeInForce: 'gtc' | 'ioc',
  ): Order {
    this.#count += 1;
    const clientOrderId = `quote-${this.#count}`;
    const listing = this.matching.listing(symbol.replace('/', ''))!;
    const terms = { clientOrderId, side, type: 'limit', timeInForce, quantity, price } as const;
    const order = this.matching.place(this.matching.account(MAKER), listing, terms);
    if (typeof order === 'string') throw new Error(`a quote was rejected: ${order}`);
    return order;
  }
}
