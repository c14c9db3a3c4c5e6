import { expect, it } from 'vitest';
import type { OrderRequest } from '../../src/engine/orders/order.ts';
import { bars, flat, MARGIN, play, type Candle, type FillRow } from './market.ts';

const CANDLES: readonly Candle[] = [
  ...flat(1),
  [101, 105, 90, 102],
  [103, 108, 95, 104],
  [106, 120, 80, 107],
];

type Request = Omit<OrderRequest, 'instrument'>;

it.each<[string, Request, FillRow[]]>([
  ['a market order', { side: 'buy', quantity: 1 }, [[2, 1, 1, 103]]],
  ['a limit order', { side: 'buy', quantity: 1, type: 'limit', limit: 96 }, [[2, 1, 1, 96]]],
  ['a stop order', { side: 'sell', quantity: 1, type: 'stop', stop: 92 }, [[3, 1, -1, 92]]],
  [
    'an order that must fill at once',
    { side: 'buy', quantity: 1, timeInForce: 'ioc' },
    [[2, 1, 1, 103]],
  ],
  [
    'a bracket, whose exits are on time',
    { side: 'buy', quantity: 1, takeProfit: { percent: 0.04 } },
    [
      [2, 1, 1, 103],
      [2, 2, -1, 103 * 1.04],
    ],
  ],
])('%s that is late misses its first bar', (_, request, expected) => {
  const { fills } = play({
    bars: bars(CANDLES),
    config: { account: MARGIN, ordersAreLate: true },
    script: { 0: (scene) => scene.order(request) },
  });
  expect(fills).toEqual(expected);
});
