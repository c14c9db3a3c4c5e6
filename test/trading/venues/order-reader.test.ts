import { expect, it } from 'vitest';
import { MINUTE } from '../../../src/base/durations.ts';
import type { ClientOrder } from '../../../src/trading/venues/ccxt-types.ts';
import { OrderReader } from '../../../src/trading/venues/order-reader.ts';
import type { VenueClient } from '../../../src/trading/venues/venue-client.ts';
import type { VenueMarkets } from '../../../src/trading/venues/venue-markets.ts';

const PLACED = Date.UTC(2026, 0, 1, 12);
const ORDER = { order: 1, client_order_id: 'c', symbol: 'BTC/USDT' };
const FILLED = {
  id: '1',
  status: 'closed',
  filled: 1,
  cost: 100,
  trades: [{ amount: 1, cost: 100, fee: { cost: 2, currency: 'BNB' } }],
} as unknown as ClientOrder;

/** Reads an order at an exchange where BNB costs 200 before the order was placed, and 999 later. */
function read(answer: ClientOrder) {
  const client = {
    exchange: {
      markets: { 'BNB/USDT': {} },
      fetchOHLCV: async () => [
        [PLACED - MINUTE, 1, 1, 1, 200],
        [PLACED, 1, 1, 1, 999],
      ],
    },
    options: { name: 'local', currency: 'USDT' },
    ask: (request: () => Promise<unknown>) => request(),
  } as unknown as VenueClient;
  const markets = { baseOf: () => 'BTC' } as unknown as VenueMarkets;
  return new OrderReader(client, markets).read(ORDER, answer);
}

it('prices the fee of a trade without a time at the time of its order', async () => {
  expect(await read({ ...FILLED, timestamp: PLACED })).toMatchObject({ fee: 400 });
});

it('does not price a fee at an unknown time', async () => {
  await expect(read(FILLED)).rejects.toMatchObject({
    code: 'exchange_unavailable',
    message: 'local did not report the time of a trade',
  });
});
