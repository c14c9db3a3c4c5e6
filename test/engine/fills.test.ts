/** Tables of the fill models: which order a bar fills next, its price, and whether this is ambiguous. */
import { describe, expect, it } from 'vitest';
import { pathOf, nextOnPath } from '../../src/engine/fills/path.ts';
import { nextInRange } from '../../src/engine/fills/range.ts';
import type { Order } from '../../src/engine/orders/order.ts';

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

interface Row {
  readonly what: string;
  readonly orders: readonly Part[];
  readonly bar: readonly [number, number, number, number];
  /** Number and price of each filled order, in sequence. */
  readonly met: readonly (readonly [number, number])[];
  readonly isAmbiguous?: true;
}

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
      what: 'an order at a price that only the leg to the close reaches',
      orders: [{ side: 'buy', stop: 103 }],
      bar: [100, 102, 90, 95],
      met: [],
    },
  ];

  it.each(rows)('fills $what', ({ orders, bar, met, isAmbiguous }) => {
    let left = ordersOf(orders);
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
        left = left.filter((order) => order !== next.order);
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
