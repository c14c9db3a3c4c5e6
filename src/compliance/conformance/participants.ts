import type { SimulatedExchange } from '../venue/simulated-exchange.ts';
import { PRICE_UNIT } from './sizes.ts';

export interface Quote {
  readonly price: number;
  /** Quantity units of the exchange. */
  readonly units: number;
}

/** Names of the accounts of the other participants. */
export const PARTICIPANTS = ['maker', 'taker'] as const;

/** Other participants of the exchange, who quote, and trade with each other and with the bot. */
export class Participants {
  readonly #exchange: SimulatedExchange;
  /** Open quotes of the maker by symbol. */
  readonly #quoted = new Map<string, readonly string[]>();
  readonly #listed: (symbol: string) => string;
  #count = 0;

  /** @param listed returns the symbol at the exchange of a symbol of the bot. */
  constructor(exchange: SimulatedExchange, listed: (symbol: string) => string) {
    this.#exchange = exchange;
    this.#listed = listed;
  }

  /** Replaces the quotes of an instrument; without a bid or ask, that side is empty. */
  quote(symbol: string, bid: Quote | undefined, ask: Quote | undefined): void {
    for (const id of this.#quoted.get(symbol) ?? []) this.#cancel('maker', id);
    this.#quoted.set(symbol, []);
    if (bid !== undefined) this.rest(symbol, 'buy', bid);
    if (ask !== undefined) this.rest(symbol, 'sell', ask);
  }

  /** Adds a resting order to the quotes. */
  rest(symbol: string, side: 'buy' | 'sell', quote: Quote): void {
    const id = this.#place('maker', symbol, side, quote, false);
    this.#quoted.set(symbol, [...(this.#quoted.get(symbol) ?? []), id]);
  }

  /** Trades one unit between participants at this price, or at a better price in the book. */
  print(symbol: string, price: number): void {
    const one = { price, units: 1 };
    const id = this.#place('taker', symbol, 'sell', one, false);
    this.#place('maker', symbol, 'buy', one, true);
    this.#cancel('taker', id);
  }

  /** Trades up to this quantity with orders in the book, at this price or a better one. */
  take(symbol: string, side: 'buy' | 'sell', quote: Quote): void {
    this.#place('taker', symbol, side, quote, true);
  }

  #place(
    as: (typeof PARTICIPANTS)[number],
    symbol: string,
    side: 'buy' | 'sell',
    { price, units }: Quote,
    isAtOnce: boolean,
  ): string {
    this.#count += 1;
    const client_order_id = `${as}-${this.#count}`;
    this.#exchange.do({
      do: 'place',
      as,
      client_order_id,
      symbol: this.#listed(symbol),
      side,
      time_in_force: isAtOnce ? 'ioc' : 'gtc',
      quantity: units,
      price: Math.round(price / PRICE_UNIT),
    });
    return client_order_id;
  }

  #cancel(as: (typeof PARTICIPANTS)[number], client_order_id: string): void {
    this.#exchange.do({ do: 'cancel', as, client_order_id });
  }
}
