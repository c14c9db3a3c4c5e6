import { createRequire } from 'node:module';
import { expect, test } from 'vitest';
import { inVirtualTime } from '../../../src/compliance/conformance/virtual-time.ts';
import { Agenda } from '../../../src/compliance/venue/agenda.ts';
import { connectInProcess } from '../../../src/compliance/venue/in-process.ts';
import { SimulatedExchange } from '../../../src/compliance/venue/simulated-exchange.ts';
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

const other = { name: 'other', apiKey: '', secret: '', balances: {}, isUnlimited: true };

const offer = {
  do: 'place',
  as: 'other',
  client_order_id: 'offer',
  symbol: SYMBOL,
  side: 'sell',
  time_in_force: 'gtc',
  quantity: 250,
  price: 9900,
} as const;

test('bars of the trades are streamed and can be queried', async () => {
  const agenda = new Agenda(START);
  const setup = { seed: 1, instruments: [instrument], accounts: [other] };
  const exchange = new SimulatedExchange(setup, agenda);
  await inVirtualTime(agenda, Math.random, async (time) => {
    const { signal } = new AbortController();
    const feed = openExchange('simulated', exchange.definition, signal, (client) => {
      connectInProcess(client, exchange, () => 5);
    });
    const read = async () => {
      const watched = await feed.watch(SYMBOL, '1m');
      const queried = await feed.history(SYMBOL, '1m', START);
      const sent = await feed.time();
      return [watched, queried, exchange.now - sent!];
    };
    let results: readonly unknown[] = [];
    void read().then((all) => (results = all));
    await time.pass(100);
    exchange.do(offer);
    exchange.do({ ...offer, client_order_id: 'buyer', side: 'buy', time_in_force: 'ioc' });
    expect(await time.until(() => results.length > 0, 60_000)).toBe(true);
    const bar = { time: START, open: 99, high: 99, low: 99, close: 99, volume: 0.25 };
    expect(results).toMatchObject([[bar], [bar], 5]);
  });
});
