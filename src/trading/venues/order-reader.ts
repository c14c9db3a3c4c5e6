import { setTimeout as delay } from 'node:timers/promises';
import { ServiceError } from '../../base/errors.ts';
import type { VenueOrderId, VenueReport } from '../venue.ts';
import type { AskOptions } from './ccxt-client.ts';
import type { ClientOrder, ClientTrade } from './ccxt-types.ts';
import { FeePrices } from './fee-prices.ts';
import type { VenueClient } from './venue-client.ts';
import type { VenueMarkets } from './venue-markets.ts';

const TRADES_PER_PAGE = 1000;
/** Trades may become visible later than the fills of their order. */
const TRADE_ATTEMPTS = 6;

/** Completes the state of an order at an exchange with its trades and fees. */
export class OrderReader {
  readonly #client: VenueClient;
  readonly #markets: VenueMarkets;
  readonly #prices: FeePrices;

  constructor(client: VenueClient, markets: VenueMarkets) {
    this.#client = client;
    this.#markets = markets;
    this.#prices = new FeePrices(client);
  }

  /** @throws ServiceError `exchange_unavailable` if the exchange does not report all values. */
  async read(
    { order, client_order_id, symbol }: VenueOrderId,
    answer: ClientOrder,
    options?: AskOptions,
  ): Promise<VenueReport> {
    const { status, filled, cost = 0, remaining = 0 } = answer;
    // ccxt substitutes 0 if the exchange does not report the filled quantity.
    if (status === undefined || filled === undefined || (status === 'closed' && remaining > 0)) {
      throw this.#unclear('the state of an order');
    }
    const times = [answer.lastUpdateTimestamp, answer.lastTradeTimestamp, answer.timestamp];
    const trades = filled > 0 ? await this.#allTrades(symbol, answer, filled, options) : [];
    const fees = await this.#feesOf(symbol, trades, answer.timestamp, options);
    // More may have been filled since the query.
    const traded = sumOf(trades, ({ amount }) => amount);
    const isMore = traded > filled && !isSame(traded, filled);
    const isCostKnown = !isMore && (cost > 0 || filled === 0);
    const report: VenueReport = {
      order,
      client_order_id,
      status: statusOf(status),
      filled: isMore ? traded : filled,
      cost: isCostKnown ? cost : sumOf(trades, (trade) => trade.cost),
      ...fees,
      time: times.find((time) => time !== undefined) ?? Date.now(),
    };
    const numbers = [report.filled, report.cost, report.fee, report.fee_units];
    if (!numbers.every(Number.isFinite)) throw this.#unclear('valid amounts of an order');
    return report;
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
      await delay(50 * 2 ** attempt, undefined, { signal: this.#client.options.signal });
    }
    throw this.#unclear('all trades of an order');
  }

  async #fetchTrades(
    symbol: string,
    { id }: ClientOrder,
    options?: AskOptions,
  ): Promise<readonly ClientTrade[]> {
    const { exchange } = this.#client;
    const market = this.#client.exchangeSymbol(symbol);
    const all: ClientTrade[] = [];
    for (let params = {}; ;) {
      const request = () =>
        exchange.fetchOrderTrades(id, market, undefined, TRADES_PER_PAGE, params);
      const page = await this.#client.ask(request, options);
      all.push(...page);
      if (page.length < TRADES_PER_PAGE) return all;
      params = { fromId: Math.max(...page.map((trade) => Number(trade.id))) + 1 };
    }
  }

  /** @param placed time of the order, by which trades without a time are priced, ms since epoch. */
  async #feesOf(
    symbol: string,
    trades: readonly ClientTrade[],
    placed: number | undefined,
    options?: AskOptions,
  ): Promise<Pick<VenueReport, 'fee' | 'fee_units'>> {
    const base = this.#markets.baseOf(symbol);
    const { currency: account } = this.#client.options;
    let fee = 0;
    let fee_units = 0;
    for (const { fee: taken, timestamp = placed } of trades) {
      const { cost = 0, currency = account } = taken ?? {};
      if (cost === 0) continue;
      if (currency === base) fee_units += cost;
      else if (currency === account) fee += cost;
      else if (timestamp === undefined) throw this.#unclear('the time of a trade');
      else fee += cost * (await this.#prices.priceOf(currency, timestamp, options));
    }
    return { fee, fee_units };
  }

  #unclear(what: string): ServiceError {
    const { name } = this.#client.options;
    return new ServiceError('exchange_unavailable', `${name} did not report ${what}`, {
      remedy: 'Try again later.',
    });
  }
}

function statusOf(status: string): VenueReport['status'] {
  if (status === 'closed') return 'filled';
  if (status === 'canceled' || status === 'expired' || status === 'rejected') return status;
  return 'open';
}

const HAIR = 1e-9;

function isSame(a: number, b: number): boolean {
  return Math.abs(a - b) <= HAIR * Math.max(Math.abs(a), Math.abs(b));
}

function sumOf<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((sum, item) => sum + of(item), 0);
}
