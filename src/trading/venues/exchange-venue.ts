import { ServiceError } from '../../base/errors.ts';
import { orderOfClientId } from '../venue.ts';
import type {
  Venue,
  VenueAccount,
  VenueOrder,
  VenueOrderId,
  VenueReport,
  VenueRules,
} from '../venue.ts';
import type { AskOptions } from './ccxt-client.ts';
import type { ClientOrder } from './ccxt-types.ts';
import { ExchangeOrders } from './exchange-orders.ts';
import { URGENT, VenueClient, WATCHING, type ExchangeVenueOptions } from './venue-client.ts';
import { invalidBot, VenueMarkets } from './venue-markets.ts';
import { watchReports, type ReportSource, type StreamedOrder } from './venue-reports.ts';

/**
 * Exchanges in ccxt that can find and cancel an order by client order id. Without that, a lost
 * response could lead to a second order. Others may support it; add only those that were tested.
 * (Binance.US is missing because ccxt sends its API keys to the stream of Binance.)
 */
const BY_CLIENT_ID: readonly string[] = ['binance'];

const RESYNC_MS = 15_000;

/**
 * Opens a spot account at an exchange, which owns what it sells, to execute orders through ccxt.
 *
 * @throws ServiceError `invalid_spec` with problems if the bot cannot trade there; `conflict` if
 *   the exchange cannot be a venue or rejects the credentials; `file_not_found` or `invalid_data`
 *   for the files of credentials; `exchange_unavailable` if the exchange does not answer.
 */
export async function openExchangeVenue(options: ExchangeVenueOptions): Promise<Venue> {
  const client = new VenueClient(options);
  const venue = new ExchangeVenue(client);
  try {
    checkSupport(client);
    await venue.load();
    return venue;
  } catch (error) {
    await venue.close();
    throw error;
  }
}

function checkSupport({ exchange, options: { name, definition, account } }: VenueClient): void {
  const needed = ['spot', 'createOrder', 'cancelOrder', 'fetchOrder', 'fetchOpenOrders'];
  const all = [...needed, 'fetchOrderTrades', 'fetchBalance', 'fetchOHLCV', 'watchOrders'];
  const lacks = all.filter((feature) => exchange.has[feature] !== true);
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
  throw invalidBot(name, [problem]);
}

class ExchangeVenue implements Venue {
  readonly name: string;
  readonly #client: VenueClient;
  readonly #markets: VenueMarkets;
  readonly #orders: ExchangeOrders;
  readonly #closed = new AbortController();

  constructor(client: VenueClient) {
    this.name = client.options.name;
    this.#client = client;
    this.#markets = new VenueMarkets(client);
    this.#orders = new ExchangeOrders(client, this.#markets);
  }

  async load(): Promise<void> {
    await this.#markets.load();
    // Checks the credentials now instead of with the first order.
    await this.account();
  }

  async rules(): Promise<VenueRules> {
    return this.#markets.rules();
  }

  place(order: VenueOrder): Promise<VenueReport> {
    return this.#client.translateErrors(() => this.#orders.place(order));
  }

  cancel(order: VenueOrderId): Promise<VenueReport> {
    return this.#client.translateErrors(() => this.#orders.cancel(order));
  }

  find(order: VenueOrderId): Promise<VenueReport | undefined> {
    return this.#client.translateErrors(() => this.#orders.find(order));
  }

  openOrders(): Promise<readonly VenueOrderId[]> {
    return this.#openOrders(URGENT);
  }

  async #openOrders(options?: AskOptions): Promise<readonly VenueOrderId[]> {
    const open: VenueOrderId[] = [];
    for (const symbol of this.#markets.symbols()) {
      const orders = await this.#client.translateErrors(() => this.#openOrdersOf(symbol, options));
      open.push(...orders.flatMap((order) => this.#idOf(order, symbol)));
    }
    return open;
  }

  async #openOrdersOf(symbol: string, options?: AskOptions): Promise<readonly ClientOrder[]> {
    const { exchange } = this.#client;
    const market = this.#client.exchangeSymbol(symbol);
    try {
      return await this.#client.ask(() => exchange.fetchOpenOrders(market), options);
    } catch (error) {
      if (this.#markets.isGone(symbol, error)) return [];
      throw error;
    }
  }

  /** Returns no id for an order of another deployment. */
  #idOf({ clientOrderId: id = '' }: ClientOrder, symbol: string): VenueOrderId[] {
    const order = orderOfClientId(this.#client.options.deploymentId, id);
    return order === undefined ? [] : [{ order, client_order_id: id, symbol }];
  }

  async account(): Promise<VenueAccount> {
    const { exchange } = this.#client;
    const { total } = await this.#client.translateErrors(() =>
      this.#client.ask(() => exchange.fetchBalance({ type: 'spot' })),
    );
    const symbols = this.#markets.symbols();
    const held = symbols.map((symbol) => [symbol, total[this.#markets.baseOf(symbol)] ?? 0]);
    return { balances: Object.fromEntries(held), cash: total[this.#client.options.currency] ?? 0 };
  }

  reports(signal: AbortSignal): AsyncIterable<VenueReport> {
    const { resyncMs = RESYNC_MS, onTrouble } = this.#client.options;
    const source: ReportSource = {
      nextOrders: () => this.#nextOrders(),
      drop: () => this.#client.drop(),
      working: () => this.#orders.working(),
      refresh: async () => {
        for (const order of await this.#openOrders()) this.#orders.add(order);
      },
      fetch: (order) => this.#client.translateErrors(() => this.#orders.query(order, WATCHING)),
      trouble: (what, error) => {
        // Messages of ServiceErrors contain no secrets.
        const why = error instanceof ServiceError ? error.message : this.#client.describe(error);
        onTrouble?.(error === undefined ? what : `${what}: ${why}`);
      },
    };
    return watchReports(source, resyncMs, this.#until(signal));
  }

  async #nextOrders(): Promise<readonly StreamedOrder[]> {
    const { exchange } = this.#client;
    const orders = exchange.watchOrders();
    // ccxt leaves promises without handlers, whose errors would end the process.
    for (const { futures } of Object.values(exchange.clients)) {
      for (const future of Object.values(futures)) future.catch(() => {});
    }
    return (await orders).flatMap((order) => {
      const symbol = this.#markets.symbolOf(order.symbol);
      const mark = [order.status, order.filled, order.lastUpdateTimestamp].join();
      return symbol === undefined ? [] : this.#idOf(order, symbol).map((id) => ({ ...id, mark }));
    });
  }

  terms(signal: AbortSignal): AsyncIterable<VenueRules> {
    return this.#markets.watch(this.#until(signal));
  }

  #until(signal: AbortSignal): AbortSignal {
    return AbortSignal.any([signal, this.#client.options.signal, this.#closed.signal]);
  }

  close(): Promise<void> {
    this.#closed.abort();
    return this.#client.close();
  }
}
