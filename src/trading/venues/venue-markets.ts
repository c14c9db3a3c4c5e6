import { setTimeout as delay } from 'node:timers/promises';
import { ServiceError, type Problem } from '../../base/errors.ts';
import type { MarketPhase, VenueOrder, VenueRules } from '../venue.ts';
import type { Ccxt, Market } from './ccxt-types.ts';
import { WATCHING, type VenueClient } from './venue-client.ts';

/**
 * Interval of queries of the rules. No stream reports halts, so the interval is shorter than the 5 s
 * within which a halt must be noticed.
 */
const TERMS_MS = 4000;

/** Markets of the universe at an exchange, and their trading rules. */
export class VenueMarkets {
  readonly #client: VenueClient;
  /** Keyed by symbol of the bot. */
  readonly #markets = new Map<string, Market>();
  /** Symbols that the exchange has delisted. It may still report their orders and holdings. */
  readonly #gone = new Set<string>();

  constructor(client: VenueClient) {
    this.#client = client;
  }

  /** @throws ServiceError `invalid_spec` if the bot cannot trade its symbols. */
  async load(): Promise<void> {
    const { name, symbols, onTrouble } = this.#client.options;
    await this.#client.load();
    const { markets = {} } = this.#client.exchange;
    const problems = symbols.flatMap((symbol, at): Problem[] => {
      const id = this.#client.exchangeSymbol(symbol);
      const market = Object.hasOwn(markets, id) ? markets[id] : undefined;
      const message = this.#problemOf(symbol, market);
      if (message !== undefined) {
        const pointer = `/spec/universe/symbols/${at}`;
        return [{ code: 'venue_not_supported', message, pointer }];
      }
      this.#markets.set(symbol, market!);
      // Accepted: it may have orders to cancel, and may trade again.
      if (market!.active === false) onTrouble?.(`${symbol} is currently not trading`);
      return [];
    });
    if (problems.length > 0) throw invalidBot(name, problems);
  }

  #problemOf(symbol: string, market: Market | undefined): string | undefined {
    const { name, currency } = this.#client.options;
    if (market === undefined) return `${name} has no symbol ${JSON.stringify(symbol)}`;
    if (market.spot !== true) return `${symbol} is not a spot market`;
    if (market.quote !== currency) {
      return `${symbol} is quoted in ${market.quote}, and the account is in ${currency}`;
    }
    const { amount, price } = this.#steps(market);
    if (amount > 0 && price > 0) return undefined;
    return `${name} does not report the quantity and price steps of ${symbol}`;
  }

  #steps({ precision }: Market): { amount: number; price: number } {
    const { ccxt, exchange } = this.#client;
    const step = (of: number | undefined): number => stepOf(of, exchange.precisionMode, ccxt);
    return { amount: step(precision.amount), price: step(precision.price) };
  }

  /** Symbols of the bot, including delisted ones. */
  symbols(): readonly string[] {
    return [...this.#markets.keys()];
  }

  /** Asset that the symbol trades. */
  baseOf(symbol: string): string {
    return this.#markets.get(symbol)!.base;
  }

  /** Returns the symbol of the bot; undefined if it does not belong to the universe. */
  symbolOf(exchangeSymbol: string): string | undefined {
    return this.symbols().find((symbol) => this.#markets.get(symbol)!.symbol === exchangeSymbol);
  }

  /**
   * Whether the error means that the exchange has delisted the symbol, so that it has no open
   * orders.
   */
  isGone(symbol: string, error: unknown): boolean {
    return this.#gone.has(symbol) && error instanceof this.#client.ccxt.BadSymbol;
  }

  rules(): VenueRules {
    const markets = [...this.#markets].filter(([symbol]) => !this.#gone.has(symbol));
    const instruments = markets.map(([symbol, market]) => {
      const { amount: step, price: tick } = this.#steps(market);
      const { amount, market: atMarket, cost } = market.limits;
      const min_quantity = Math.max(step, amount?.min ?? 0, atMarket?.min ?? 0);
      const min_value = cost?.min ?? 0;
      return [symbol, { step, min_quantity, min_value, tick, phase: phaseOf(market) }];
    });
    const types = (['market', 'limit', 'stop', 'stop_limit'] as const).filter((type) =>
      markets.every(([, { info }]) => takes(info.orderTypes, type)),
    );
    return { types, instruments: Object.fromEntries(instruments) };
  }

  /** Yields the rules, and then every change of them, until `over` is aborted. */
  async *watch(over: AbortSignal): AsyncGenerator<VenueRules, void> {
    const { termsMs = TERMS_MS, onTrouble } = this.#client.options;
    let last = '';
    while (!over.aborted) {
      try {
        await this.#client.translateErrors(() => this.#reload());
        const rules = this.rules();
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

  async #reload(): Promise<void> {
    const known = this.#client.exchange.markets!;
    const idOf = (symbol: string): string => this.#client.exchangeSymbol(symbol);
    const { symbols } = this.#client.options;
    const gone = symbols.filter((symbol) => this.#gone.has(symbol));
    const had = symbols.filter((symbol) => !this.#gone.has(symbol));
    // A request fails for all symbols if one is delisted.
    const questions = [had, ...gone.map((symbol) => [symbol])].map((some) =>
      this.#fetch(some.map((symbol) => known[idOf(symbol)]!.id)),
    );
    const markets = (await Promise.all(questions)).flat();
    for (const symbol of symbols) {
      const market = markets.find((one) => one.symbol === idOf(symbol));
      if (market === undefined) this.#gone.add(symbol);
      else {
        this.#gone.delete(symbol);
        // ccxt formats quantities and prices by its own copy.
        Object.assign(known[idOf(symbol)]!, market);
        this.#markets.set(symbol, market);
      }
    }
  }

  /** Fetches the markets of those ids that the exchange has. */
  async #fetch(ids: readonly string[]): Promise<readonly Market[]> {
    const { ccxt, exchange } = this.#client;
    if (ids.length === 0) return [];
    try {
      const params = { symbols: JSON.stringify(ids) };
      return await this.#client.ask(() => exchange.fetchMarkets(params), WATCHING);
    } catch (error) {
      if (!(error instanceof ccxt.BadSymbol)) throw error;
      if (ids.length === 1) return [];
      // The error does not name the unknown symbol.
      return (await Promise.all(ids.map((id) => this.#fetch([id])))).flat();
    }
  }
}

export function invalidBot(name: string, problems: readonly Problem[]): ServiceError {
  return new ServiceError('invalid_spec', `the bot cannot trade on ${name}`, {
    problems,
    remedy: 'Correct the bot, or use the simulated venue.',
  });
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

/** Maps the status of Binance; markets that stopped trading for other causes count as closed. */
export function phaseOf({ active, info }: Pick<Market, 'active' | 'info'>): MarketPhase {
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
