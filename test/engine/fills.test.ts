import { describe, expect, it } from 'vitest';
import { priceAtOpen, priceOnMove, priceWithinBar } from '../../src/engine/fills/order-prices.ts';
import { pathOf, nextOnPath } from '../../src/engine/fills/path.ts';
import { nextInRange } from '../../src/engine/fills/range.ts';
import type { ExitPrice, Order } from '../../src/engine/orders/order.ts';
import { ratchet } from '../../src/engine/orders/trailing-stop.ts';

type Part = Partial<Pick<Order, 'side' | 'limit' | 'stop' | 'ocoGroup' | 'triggered'>>;

/** By default a sell order: a limit, stop or stop-limit order, depending on the given prices. */
function orderOf(id: number, { limit = NaN, stop = NaN, ...part }: Part): Order {
  const type = Number.isNaN(stop) ? 'limit' : Number.isNaN(limit) ? 'stop' : 'stop_limit';
  return { id, type, side: 'sell', ocoGroup: 0, triggered: false, ...part, limit, stop } as Order;
}

const ordersOf = (parts: readonly Part[]): Order[] =>
  parts.map((part, index) => orderOf(index + 1, part));
const barOf = ([open, high, low, close]: readonly [number, number, number, number]) => ({
  open,
  high,
  low,
  close,
});

const TARGET = { limit: 110, ocoGroup: 1 };
const STOP = { stop: 90, ocoGroup: 1 };
/** Exits that cancel each other. */
const BRACKET = [
  { stop: 92, ocoGroup: 2 },
  { limit: 105, ocoGroup: 2 },
] as const;

interface Row {
  readonly what: string;
  readonly orders: readonly Part[];
  /** Orders that the first fill places, such as a bracket. */
  readonly exits?: readonly Part[];
  readonly bar: readonly [number, number, number, number];
  /** Number and price of each filled order, in sequence. */
  readonly met: readonly (readonly [number, number])[];
  readonly isAmbiguous?: true;
}

type PriceRow = readonly [what: string, order: Part, from: number, to: number, price: number];

describe('an order', () => {
  const LIMIT = { limit: 98 };
  const BUY_LIMIT = { side: 'buy', limit: 98 } as const;
  const SELL_STOP = { stop: 98 };
  const BUY_STOP = { side: 'buy', stop: 98 } as const;
  const STOP_LIMIT = { side: 'buy', stop: 98, limit: 99 } as const;

  it.each<readonly [string, Part, number, number]>([
    ['a buy limit at a better open', BUY_LIMIT, 97, 97],
    ['a buy limit at its price', BUY_LIMIT, 98, 98],
    ['no buy limit at a worse open', BUY_LIMIT, 98.5, NaN],
    ['a sell limit at a better open', LIMIT, 99, 99],
    ['a sell limit at its price', LIMIT, 98, 98],
    ['no sell limit at a worse open', LIMIT, 97.5, NaN],
    ['a buy stop beyond a gap, at the open', BUY_STOP, 101, 101],
    ['a buy stop at its price', BUY_STOP, 98, 98],
    ['no buy stop before its price', BUY_STOP, 97.5, NaN],
    ['a sell stop beyond a gap, at the open', SELL_STOP, 95, 95],
    ['no sell stop before its price', SELL_STOP, 98.5, NaN],
    ['a triggered stop at any open', { ...SELL_STOP, triggered: true }, 105, 105],
    ['no stop-limit before its trigger', STOP_LIMIT, 98.5, NaN],
    ['a triggered stop-limit within its limit', { ...STOP_LIMIT, triggered: true }, 98.5, 98.5],
    ['no triggered stop-limit beyond its limit', { ...STOP_LIMIT, triggered: true }, 99.5, NaN],
  ])('fills at the open: %s', (_, part, open, price) => {
    expect(priceAtOpen(orderOf(1, part), open)).toBe(price);
  });

  it('fills at any open if it is a market order', () => {
    const order = { ...orderOf(1, {}), type: 'market' } as Order;
    expect(priceAtOpen(order, 97)).toBe(97);
  });

  it.each<PriceRow>([
    ['a buy limit that the price falls below', BUY_LIMIT, 100, 97, 98],
    ['no buy limit that the price only touches', BUY_LIMIT, 100, 98, NaN],
    ['a buy limit at a start below it', BUY_LIMIT, 97, 99, 97],
    ['a sell limit that the price rises above', LIMIT, 97, 99, 98],
    ['no sell limit that the price only touches', LIMIT, 97, 98, NaN],
    ['a buy stop that the price touches', BUY_STOP, 97, 98, 98],
    ['a buy stop at a start beyond it', BUY_STOP, 99, 90, 99],
    ['no buy stop that the price moves away from', BUY_STOP, 97, 90, NaN],
    ['a sell stop that the price touches', SELL_STOP, 99, 98, 98],
    ['a stop-limit at its stop', STOP_LIMIT, 97, 100, 98],
    ['a triggered stop-limit as a limit', { ...STOP_LIMIT, triggered: true }, 100, 98, 99],
  ])('fills on a straight move: %s', (_, part, from, to, price) => {
    expect(priceOnMove(orderOf(1, part), from, to)).toBe(price);
  });

  it.each<readonly [string, Part, number, number]>([
    ['a buy limit above the low', BUY_LIMIT, 100, 98],
    ['a buy limit above its start', BUY_LIMIT, 97.5, 97.5],
    ['no buy limit at the low', { side: 'buy', limit: 97 }, 100, NaN],
    ['a sell limit below the high', { limit: 102 }, 100, 102],
    ['a buy stop at the high', { side: 'buy', stop: 103 }, 100, 103],
    ['a sell stop at the low', { stop: 97 }, 100, 97],
    ['no sell stop below the low', { stop: 96 }, 100, NaN],
  ])('fills in the range from 97 to 103: %s', (_, part, from, price) => {
    const bar = { open: 100, high: 103, low: 97, close: 101 };
    expect(priceWithinBar(orderOf(1, part), from, bar)).toBe(price);
  });
});

describe('a trailing stop', () => {
  it.each<readonly [string, Order['side'], ExitPrice, number, number, number]>([
    ['of a sell order follows a higher price', 'sell', 2, 95, 100, 98],
    ['of a sell order never recedes', 'sell', 2, 95, 96, 95],
    ['of a buy order follows a lower price', 'buy', 2, 105, 100, 102],
    ['of a buy order never recedes', 'buy', 2, 105, 104, 105],
    ['keeps a distance in percent', 'sell', { percent: 0.05 }, 94, 100, 95],
    ['starts from the first price', 'sell', 2, NaN, 100, 98],
  ])('%s', (_, side, trail, stop, price, expected) => {
    const order = { ...orderOf(1, { side, stop }), type: 'trailing_stop', trail } as Order;
    expect(ratchet(order, price)).toBe(expected);
  });
});

describe('ohlc_path', () => {
  const rows: readonly Row[] = [
    {
      what: 'nothing if nothing is in reach',
      orders: [TARGET, STOP],
      bar: [100, 109, 91, 100],
      met: [],
    },
    {
      what: 'the target if the high is nearer',
      orders: [STOP, TARGET],
      bar: [100, 111, 85, 100],
      met: [
        [2, 110],
        [1, 90],
      ],
    },
    {
      what: 'the stop if the low is nearer',
      orders: [STOP, TARGET],
      bar: [100, 115, 89, 100],
      met: [
        [1, 90],
        [2, 110],
      ],
    },
    {
      what: 'the stop of a short position if the high is nearer',
      orders: [
        { side: 'buy', limit: 90, ocoGroup: 1 },
        { side: 'buy', stop: 110, ocoGroup: 1 },
      ],
      bar: [100, 111, 85, 100],
      met: [
        [2, 110],
        [1, 90],
      ],
    },
    {
      what: 'the stop if both extremes are equally near',
      orders: [STOP, TARGET],
      bar: [100, 111, 89, 100],
      met: [
        [1, 90],
        [2, 110],
      ],
      isAmbiguous: true,
    },
    {
      what: 'the stop of a short position if both extremes are equally near',
      orders: [
        { side: 'buy', limit: 90, ocoGroup: 1 },
        { side: 'buy', stop: 110, ocoGroup: 1 },
      ],
      bar: [100, 111, 89, 100],
      met: [
        [2, 110],
        [1, 90],
      ],
      isAmbiguous: true,
    },
    {
      what: 'separate orders at the low first if both extremes are equally near',
      orders: [{ stop: 90 }, { limit: 110 }],
      bar: [100, 111, 89, 100],
      met: [
        [1, 90],
        [2, 110],
      ],
    },
    {
      what: 'orders on one leg by their distance from its start',
      orders: [{ limit: 108 }, { limit: 105 }],
      bar: [100, 109, 80, 100],
      met: [
        [2, 105],
        [1, 108],
      ],
    },
    {
      what: 'a stop before a limit at the same price, and the older limit first',
      orders: [{ side: 'buy', limit: 95 }, { side: 'buy', limit: 95 }, { stop: 95 }],
      bar: [100, 101, 94, 95],
      met: [
        [3, 95],
        [1, 95],
        [2, 95],
      ],
    },
    {
      what: 'no order at a price that the path does not reach',
      orders: [{ side: 'buy', stop: 103 }],
      bar: [100, 102, 90, 95],
      met: [],
    },
    {
      what: 'an order that only the leg to the close reaches, beyond its limit',
      orders: [{ side: 'buy', limit: 101 }],
      bar: [102, 110, 101, 103],
      met: [],
    },
    {
      what: 'the target of a bracket if the path reaches it after the entry',
      orders: [{ side: 'buy', limit: 95 }],
      exits: BRACKET,
      bar: [100, 111, 94, 100],
      met: [
        [1, 95],
        [3, 105],
      ],
    },
    {
      what: 'no target of a bracket that the path passed before the entry',
      orders: [{ side: 'buy', limit: 95 }],
      exits: BRACKET,
      bar: [100, 106, 93, 94],
      met: [[1, 95]],
    },
    {
      what: 'the stop of a bracket on the leg of its entry',
      orders: [{ side: 'buy', limit: 95 }],
      exits: BRACKET,
      bar: [100, 111, 91, 100],
      met: [
        [1, 95],
        [2, 92],
      ],
    },
    {
      what: 'the stop of a bracket after an entry by a stop',
      orders: [{ side: 'buy', stop: 103 }],
      exits: BRACKET,
      bar: [100, 104, 91, 100],
      met: [
        [1, 103],
        [2, 92],
      ],
    },
    {
      what: 'the stop of a bracket whose target is ahead, too, if both extremes are equally near',
      orders: [{ side: 'buy', stop: 100 }],
      exits: BRACKET,
      bar: [100, 110, 90, 100],
      met: [
        [1, 100],
        [2, 92],
      ],
      isAmbiguous: true,
    },
  ];

  it.each(rows)('fills $what', ({ orders, exits = [], bar, met, isAmbiguous }) => {
    const [entries, placed] = [orders.length, ordersOf([...orders, ...exits])];
    let left = placed.slice(0, entries);
    const path = pathOf(barOf(bar));
    const seen: (readonly [number, number])[] = [];
    let isInDoubt = false;
    let from = path.prices[0];
    for (let leg = 1; leg < 4; leg += 1) {
      for (;;) {
        const next = nextOnPath(left, path, leg, from);
        if (next === undefined) break;
        seen.push([next.order.id, next.price]);
        isInDoubt ||= next.isAmbiguous;
        if (seen.length === 1) left.push(...placed.slice(entries));
        left = left.filter(
          (order) => order !== next.order && (order.ocoGroup !== 2 || next.order.ocoGroup !== 2),
        );
        from = next.at;
      }
      from = path.prices[leg]!;
    }
    expect(seen).toEqual(met);
    expect(isInDoubt).toBe(isAmbiguous ?? false);
  });

  it.each([
    [[100, 111, 85, 95], [100, 111, 85, 95], false],
    [[100, 115, 89, 95], [100, 89, 115, 95], false],
    [[100, 110, 90, 95], [100, 90, 110, 95], true],
    [[0.3, 0.4, 0.2, 0.3], [0.3, 0.2, 0.4, 0.3], true],
    [[100, 100, 90, 90], [100, 100, 90, 90], false],
    [[100, 100, 100, 100], [100, 100, 100, 100], true],
  ] as const)('takes a bar of %j to have moved along %j', (bar, prices, isUndecided) => {
    const path = pathOf(barOf(bar));
    expect(path.isUndecided).toBe(isUndecided);
    // Rounding decides which of two equally near extremes comes first.
    if (!isUndecided || Number.isInteger(bar[0])) expect(path.prices).toEqual(prices);
  });
});

describe('next_open and volume_share', () => {
  const rows: readonly (Row & { readonly entered?: Readonly<Record<number, number>> })[] = [
    { what: 'nothing', orders: [TARGET, STOP], bar: [100, 109, 91, 100], met: [] },
    { what: 'the target', orders: [STOP, TARGET], bar: [100, 111, 91, 100], met: [[2, 110]] },
    {
      what: 'the stop if both are in reach',
      orders: [TARGET, STOP],
      bar: [100, 111, 85, 100],
      met: [[2, 90]],
      isAmbiguous: true,
    },
    {
      what: 'the oldest of several limits',
      orders: [{ limit: 108 }, { limit: 105 }],
      bar: [100, 109, 99, 100],
      met: [[1, 108]],
      isAmbiguous: true,
    },
    {
      what: 'a stop-limit at its stop before an older limit',
      orders: [{ limit: 108 }, { stop: 95, limit: 94 }],
      bar: [100, 109, 94, 100],
      met: [[2, 95]],
      isAmbiguous: true,
    },
    {
      what: 'a triggered stop-limit as a limit, after an older one',
      orders: [{ limit: 108 }, { stop: 95, limit: 104, triggered: true }],
      bar: [100, 109, 94, 100],
      met: [[1, 108]],
      isAmbiguous: true,
    },
    {
      what: 'no target of an entry in the bar unless the close proves it',
      orders: [{ limit: 110 }],
      entered: { 1: 98 },
      bar: [100, 111, 97, 109],
      met: [],
      isAmbiguous: true,
    },
    {
      what: 'the target of an entry in the bar if the close proves it',
      orders: [{ limit: 110 }],
      entered: { 1: 98 },
      bar: [100, 112, 97, 111],
      met: [[1, 110]],
    },
    {
      what: 'the stop of an entry in the bar, which is ambiguous',
      orders: [{ stop: 96 }],
      entered: { 1: 98 },
      bar: [100, 112, 95, 111],
      met: [[1, 96]],
      isAmbiguous: true,
    },
    {
      what: 'a stop above the entry price at the entry price',
      orders: [{ stop: 107 }],
      entered: { 1: 105 },
      bar: [100, 106, 99, 104],
      met: [[1, 105]],
      isAmbiguous: true,
    },
  ];

  it.each(rows)('fill $what', ({ orders, bar, met, isAmbiguous, entered = {} }) => {
    const all = ordersOf(orders);
    const prices = new Map(
      all.flatMap((order) => (order.id in entered ? [[order, entered[order.id]!]] : [])),
    );
    const next = nextInRange(all, barOf(bar), prices);
    expect(next.order === undefined ? [] : [[next.order.id, next.price]]).toEqual(met);
    expect(next.isAmbiguous).toBe(isAmbiguous ?? false);
  });
});
