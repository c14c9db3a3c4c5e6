import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import {
  inVirtualTime,
  type VirtualTime,
} from '../../../src/compliance/conformance/virtual-time.ts';
import { Agenda } from '../../../src/compliance/venue/agenda.ts';
import { connectInProcess } from '../../../src/compliance/venue/in-process.ts';
import { SimulatedExchange } from '../../../src/compliance/venue/simulated-exchange.ts';
import { clientOrderId, type Venue, type VenueReport } from '../../../src/trading/venue.ts';
import type { CcxtExchange } from '../../../src/trading/venues/ccxt-types.ts';
import { openExchangeVenue } from '../../../src/trading/venues/exchange-venue.ts';
import { openExchange } from '../../../src/trading/venues/market-data.ts';

// ccxt keeps the clock and the timers that it finds when it is loaded: they must not be virtual, because
// other tests of this process use it, too.
createRequire(import.meta.url)('ccxt');

const START = Date.UTC(2026, 0, 5, 9);
const SYMBOL = 'SPX/USD';

const instrument = {
  symbol: SYMBOL,
  base: 'SPX',
  quote: 'USD',
  priceUnit: 0.01,
  quantityUnit: 0.001,
  referencePrice: 10_000,
  randomEndMs: 0,
  tick: 1,
  lot: 1,
  maxQuantity: 1e9,
  band: 0.5,
  minValue: 0,
};

const accounts = [
  { name: 'bot', apiKey: 'key', secret: 'secret', balances: { USD: 100_000 } },
  { name: 'other', apiKey: '', secret: '', balances: {}, isUnlimited: true },
];

interface Traded {
  readonly time: VirtualTime;
  readonly exchange: SimulatedExchange;
  readonly venue: Venue;
  readonly reports: VenueReport[];
  /** Resolves a promise in virtual time. */
  readonly wait: <T>(promise: Promise<T>) => Promise<T>;
}

/** Opens the adapter of real exchanges at a simulated exchange. */
async function trade(play: (traded: Traded) => Promise<void>): Promise<void> {
  const credentialsDir = mkdtempSync(join(tmpdir(), 'service-local-credentials-'));
  onTestFinished(() => rmSync(credentialsDir, { recursive: true }));
  writeFileSync(join(credentialsDir, 'apiKey'), 'key');
  writeFileSync(join(credentialsDir, 'secret'), 'secret');
  const agenda = new Agenda(START);
  const exchange = new SimulatedExchange({ seed: 1, instruments: [instrument], accounts }, agenda);
  await inVirtualTime(agenda, Math.random, async (time) => {
    const wait: Traded['wait'] = async (promise) => {
      let isDone = false;
      const done = promise.finally(() => (isDone = true));
      done.catch(() => {});
      expect(await time.until(() => isDone, 60_000)).toBe(true);
      return done;
    };
    const ended = new AbortController();
    const venue = await wait(
      openExchangeVenue({
        name: 'simulated',
        definition: exchange.definition,
        credentialsDir,
        deploymentId: 'd',
        symbols: [SYMBOL],
        currency: 'USD',
        account: 'cash',
        signal: ended.signal,
        connect: (client) => connectInProcess(client, exchange, () => 5),
      }),
    );
    const reports: VenueReport[] = [];
    void (async () => {
      for await (const report of venue.reports(ended.signal)) reports.push(report);
    })();
    await time.pass(1000);
    await play({ time, exchange, venue, reports, wait });
    ended.abort();
    await time.pass(100);
  });
}

const limit = {
  order: 1,
  client_order_id: clientOrderId('d', 1),
  symbol: SYMBOL,
  side: 'buy',
  type: 'limit',
  time_in_force: 'gtc',
  quantity: 1,
  limit: 99,
} as const;

const sale = {
  do: 'place',
  as: 'other',
  client_order_id: 's',
  symbol: SYMBOL,
  side: 'sell',
  time_in_force: 'ioc',
  quantity: 250,
  price: 9900,
} as const;

test('the adapter of real exchanges trades at the simulated exchange by ccxt', () =>
  trade(async ({ time, exchange, venue, reports, wait }) => {
    expect(await wait(venue.place(limit))).toMatchObject({ status: 'open', filled: 0 });
    exchange.do(sale);
    await time.pass(1000);
    expect(reports.at(-1)).toMatchObject({ status: 'open', filled: 0.25, cost: 24.75 });
    exchange.do({ do: 'cut' });
    exchange.do(sale);
    await time.pass(5000);
    expect(reports.at(-1)).toMatchObject({ filled: 0.5, cost: 49.5 });
    expect(await wait(venue.cancel(limit))).toMatchObject({ status: 'canceled', filled: 0.5 });
    expect(await wait(venue.account())).toEqual({ balances: { [SYMBOL]: 0.5 }, cash: 99_950.5 });
  }));

test('an order is placed once although its answer is lost', () =>
  trade(async ({ exchange, venue, wait }) => {
    const action = { kind: 'lost_after', isSilent: true } as const;
    exchange.do({ do: 'fault', fault: { on: 'POST /order', count: 1, action } });
    expect(await wait(venue.place(limit))).toMatchObject({ status: 'open' });
    expect(exchange.openOrders('bot')).toHaveLength(1);
  }));

test('bars of the trades are streamed and can be queried', () =>
  trade(async ({ time, exchange, wait }) => {
    const connect = (client: CcxtExchange): void => {
      connectInProcess(client, exchange, () => 5);
    };
    const signal = new AbortController().signal;
    const feed = openExchange('simulated', exchange.definition, signal, connect);
    const watched = feed.watch(SYMBOL, '1m');
    await time.pass(100);
    exchange.do({ ...sale, client_order_id: 'b', side: 'buy', time_in_force: 'gtc' });
    exchange.do(sale);
    const bar = { open: 99, high: 99, low: 99, close: 99, volume: 0.25 };
    expect(await wait(watched)).toMatchObject([bar]);
    expect(await wait(feed.history(SYMBOL, '1m', START))).toEqual([{ time: START, ...bar }]);
    expect(await wait(feed.time())).toBe(exchange.now - 5);
  }));
