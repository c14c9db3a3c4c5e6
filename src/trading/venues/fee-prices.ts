import { MINUTE } from '../../base/durations.ts';
import type { AskOptions } from './ccxt-client.ts';
import type { VenueClient } from './venue-client.ts';

/** Minutes before a trade that are searched for a price of the fee currency. */
const PRICE_MINUTES = 900;
const MOST_PRICES = 1000;

/** Prices of currencies in which an exchange charges fees. */
export class FeePrices {
  readonly #client: VenueClient;
  readonly #prices = new Map<string, number>();
  readonly #worthless = new Set<string>();

  constructor(client: VenueClient) {
    this.#client = client;
  }

  /**
   * Price of another currency in that of the account, from the minute before a trade, so that
   * repeated queries agree. 0 if the exchange has none.
   *
   * @param time of the trade, ms since epoch.
   */
  async priceOf(currency: string, time: number, options?: AskOptions): Promise<number> {
    const minute = Math.floor(time / MINUTE) * MINUTE;
    const key = `${currency} ${minute}`;
    const price = this.#prices.get(key) ?? (await this.#fetch(currency, minute, options));
    if (price === undefined) {
      this.#warnOnce(currency);
      return 0;
    }
    this.#prices.set(key, price);
    const [oldest] = this.#prices.keys();
    if (this.#prices.size > MOST_PRICES) this.#prices.delete(oldest!);
    return price;
  }

  async #fetch(
    currency: string,
    minute: number,
    options?: AskOptions,
  ): Promise<number | undefined> {
    const { exchange, options: venue } = this.#client;
    const account = venue.currency;
    for (const [symbol, isInverse] of [
      [`${currency}/${account}`, false],
      [`${account}/${currency}`, true],
    ] as const) {
      if (!Object.hasOwn(exchange.markets!, symbol)) continue;
      const since = minute - PRICE_MINUTES * MINUTE;
      const request = () => exchange.fetchOHLCV(symbol, '1m', since, PRICE_MINUTES);
      const rows = await this.#client.ask(request, options);
      const close = rows.findLast(([opened]) => opened !== undefined && opened < minute)?.[4];
      if (close !== undefined && close > 0) return isInverse ? 1 / close : close;
    }
    return undefined;
  }

  #warnOnce(currency: string): void {
    if (this.#worthless.has(currency)) return;
    this.#worthless.add(currency);
    const { name, onTrouble } = this.#client.options;
    onTrouble?.(`${name} has no price of ${currency}: its fees are counted as 0`);
  }
}
