import { describe, expect, it } from 'vitest';
import { NO_RISK_LIMITS, type EngineConfig } from '../../src/engine/config.ts';
import type { OrderRequest } from '../../src/engine/orders/order.ts';
import { bars, DAY, flat, MARGIN, play, START } from './market.ts';
import type { Candle, FillRow, Play, Played } from './market.ts';

type FillModel = EngineConfig['fill'];
const NEXT_OPEN: FillModel = { model: 'next_open' };
const OHLC_PATH: FillModel = { model: 'ohlc_path' };
/** A tenth of each bar's volume, which is 1,000 by default. */
const VOLUME_SHARE: FillModel = { model: 'volume_share', limit: 0.1 };
const QUARTER_DAY = DAY / 4;

const [STILL] = flat(1) as [Candle];

/** Places one order at the close of a bar at 100, before the given candles. */
function order(
  request: Omit<OrderRequest, 'instrument'>,
  candles: readonly Candle[],
  config: Partial<EngineConfig> = {},
  step = DAY,
): Played {
  return play({
    bars: bars([STILL, ...candles], START, step),
    config: { account: MARGIN, ...config },
    script: { 0: (scene) => scene.order(request) },
  });
}

/** `[step, signed units, price]`, without the order's number. */
const traded = ({ fills }: Played): readonly (readonly [number, number, number])[] =>
  fills.map(([step, , units, price]) => [step, units, price]);

describe('a single order', () => {
  const buy = { side: 'buy', quantity: 10 } as const;
  const sell = { side: 'sell', quantity: 10 } as const;

  interface Row {
    readonly what: string;
    readonly request: Omit<OrderRequest, 'instrument'>;
    readonly candles: readonly Candle[];
    /** Step and price; none if the order is not filled. */
    readonly expected?: readonly [number, number];
    /** Differs if the path within the bar is known. */
    readonly onPath?: readonly [number, number];
  }

  const rows: readonly Row[] = [
    {
      what: 'a market order buys at the next open',
      request: buy,
      candles: [[101, 105, 95, 102]],
      expected: [1, 101],
    },
    {
      what: 'a market order sells at the next open',
      request: sell,
      candles: [[101, 105, 95, 102]],
      expected: [1, 101],
    },
    {
      what: 'a touch of a buy limit is no fill',
      request: { ...buy, type: 'limit', limit: 98 },
      candles: [[100, 101, 98, 99]],
    },
    {
      what: 'a price below a buy limit is a fill',
      request: { ...buy, type: 'limit', limit: 98 },
      candles: [[100, 101, 97.9, 99]],
      expected: [1, 98],
    },
    {
      what: 'an open below a buy limit fills at the open',
      request: { ...buy, type: 'limit', limit: 98 },
      candles: [[97, 99, 96, 98]],
      expected: [1, 97],
    },
    {
      what: 'an open at a buy limit fills',
      request: { ...buy, type: 'limit', limit: 98 },
      candles: [[98, 99, 98, 98]],
      expected: [1, 98],
    },
    {
      what: 'a buy limit above the market takes the open',
      request: { ...buy, type: 'limit', limit: 105 },
      candles: [[101, 106, 95, 102]],
      expected: [1, 101],
    },
    {
      what: 'a touch of a sell limit is no fill',
      request: { ...sell, type: 'limit', limit: 102 },
      candles: [[100, 102, 99, 101]],
    },
    {
      what: 'a price above a sell limit is a fill',
      request: { ...sell, type: 'limit', limit: 102 },
      candles: [[100, 102.1, 99, 101]],
      expected: [1, 102],
    },
    {
      what: 'an open above a sell limit fills at the open',
      request: { ...sell, type: 'limit', limit: 102 },
      candles: [[103, 104, 101, 102]],
      expected: [1, 103],
    },
    {
      what: 'a touch triggers a buy stop',
      request: { ...buy, type: 'stop', stop: 102 },
      candles: [[100, 102, 99, 101]],
      expected: [1, 102],
    },
    {
      what: 'a buy stop out of reach waits',
      request: { ...buy, type: 'stop', stop: 102 },
      candles: [[100, 101.9, 99, 101]],
    },
    {
      what: 'an open above a buy stop fills at the open',
      request: { ...buy, type: 'stop', stop: 102 },
      candles: [[103, 104, 101, 103]],
      expected: [1, 103],
    },
    {
      what: 'a touch triggers a sell stop',
      request: { ...sell, type: 'stop', stop: 98 },
      candles: [[100, 101, 98, 99]],
      expected: [1, 98],
    },
    {
      what: 'an open below a sell stop fills at the open',
      request: { ...sell, type: 'stop', stop: 98 },
      candles: [[95, 99, 94, 98]],
      expected: [1, 95],
    },
    {
      what: 'a sell stop above the market is a market order',
      request: { ...sell, type: 'stop', stop: 105 },
      candles: [[101, 106, 95, 102]],
      expected: [1, 101],
    },
    {
      what: 'a buy stop-limit is filled at its stop while that is better than its limit',
      request: { ...buy, type: 'stop_limit', stop: 102, limit: 103 },
      candles: [[100, 104, 99, 101]],
      expected: [1, 102],
    },
    {
      what: 'a buy stop-limit with both prices equal waits for a price below',
      request: { ...buy, type: 'stop_limit', stop: 102, limit: 102 },
      candles: [
        [100, 104, 99, 101],
        [101, 103, 100, 102],
      ],
      expected: [2, 101],
      // 100 → 99 → 104 → 101: the last leg passes 102 again.
      onPath: [1, 102],
    },
    {
      what: 'a buy stop-limit jumped over at the open waits for its limit',
      request: { ...buy, type: 'stop_limit', stop: 102, limit: 103 },
      candles: [
        [105, 106, 104, 105],
        [104, 105, 102.5, 103],
      ],
      expected: [2, 103],
    },
    {
      what: 'a buy stop-limit jumped over at the open finds its limit in the same bar',
      request: { ...buy, type: 'stop_limit', stop: 102, limit: 103 },
      candles: [[105, 106, 102, 104]],
      expected: [1, 103],
    },
    {
      what: 'a buy stop-limit is filled at an open between stop and limit',
      request: { ...buy, type: 'stop_limit', stop: 102, limit: 103 },
      candles: [[102.5, 106, 102, 104]],
      expected: [1, 102.5],
    },
    {
      what: 'a sell stop-limit is filled at its stop while that is better than its limit',
      request: { ...sell, type: 'stop_limit', stop: 98, limit: 97 },
      candles: [[100, 101, 96, 97]],
      expected: [1, 98],
    },
    {
      what: 'a sell stop-limit jumped over at the open waits for its limit',
      request: { ...sell, type: 'stop_limit', stop: 98, limit: 97 },
      candles: [
        [95, 96, 94, 95],
        [96, 97.5, 95, 96],
      ],
      expected: [2, 97],
    },
    {
      what: 'a sell trailing stop starts from the close and follows highs',
      request: { ...sell, type: 'trailing_stop', trail: 3 },
      candles: [
        [100, 104, 98, 103],
        [103, 103, 100.5, 102],
      ],
      expected: [2, 101],
    },
    {
      what: 'a sell trailing stop never moves down',
      request: { ...sell, type: 'trailing_stop', trail: 3 },
      candles: [
        [100, 104, 99.5, 103],
        [102, 102.5, 101.5, 102],
        [101.5, 101.5, 100, 100],
      ],
      expected: [3, 101],
    },
    {
      what: 'a sell trailing stop jumped over at the open fills at the open',
      request: { ...sell, type: 'trailing_stop', trail: 3 },
      candles: [
        [100, 104, 98, 103],
        [96, 97, 95, 96],
      ],
      expected: [2, 96],
    },
    {
      what: 'a sell trailing stop follows the open before the bar can fall',
      request: { ...sell, type: 'trailing_stop', trail: 3 },
      candles: [[110, 111, 105, 106]],
      expected: [1, 107],
      onPath: [1, 108],
    },
    {
      what: 'a sell trailing stop follows a high of its bar only if the path is known to reach it first',
      request: { ...sell, type: 'trailing_stop', trail: 3 },
      candles: [[100, 103, 95, 96]],
      expected: [1, 97],
      onPath: [1, 100],
    },
    {
      what: 'a trailing stop can trail by a share of the price',
      request: { ...sell, type: 'trailing_stop', trail: { percent: 0.1 } },
      candles: [
        [100, 120, 99, 110],
        [110, 112, 107, 109],
      ],
      expected: [2, 108],
    },
    {
      what: 'a buy trailing stop follows lows',
      request: { ...buy, type: 'trailing_stop', trail: 3 },
      candles: [
        [100, 102, 96, 97],
        [97, 99.5, 96.5, 98],
      ],
      expected: [2, 99],
    },
  ];

  const models = [NEXT_OPEN, OHLC_PATH, { model: 'volume_share', limit: 1 }] as const;
  for (const fill of models) {
    describe(`by ${fill.model}`, () => {
      it.each(rows)('fills by the rules: $what', ({ request, candles, expected, onPath }) => {
        const place = (fill.model === 'ohlc_path' ? onPath : undefined) ?? expected;
        const units = request.side === 'buy' ? 10 : -10;
        const run = order(request, candles, { fill });
        expect(traded(run)).toEqual(place === undefined ? [] : [[place[0], units, place[1]]]);
        expect(run.ends).toEqual([]);
      });
    });
  }

  it('is recorded as triggered if it is a stop-limit order whose stop is reached', () => {
    const { events } = order(
      { side: 'buy', quantity: 1, type: 'stop_limit', stop: 102, limit: 101 },
      [
        [100, 103, 99, 103],
        [103, 103, 100, 101],
      ],
    );
    expect(events.map(({ kind, time }) => [kind, time.slice(8, 10)])).toEqual([
      ['order.submitted', '01'],
      ['order.triggered', '02'],
      ['order.filled', '03'],
    ]);
  });
});

describe('the time in force', () => {
  const LATE: readonly Candle[] = [
    [100, 101, 99, 100],
    [100, 101, 99, 100],
    [100, 101, 94, 100],
  ];

  it('gtc works until the order is filled', () => {
    const run = order({ side: 'buy', quantity: 1, type: 'limit', limit: 95 }, LATE);
    expect(traded(run)).toEqual([[3, 1, 95]]);
  });

  it('day works for one bar if bars are daily', () => {
    const request = {
      side: 'buy',
      quantity: 1,
      type: 'limit',
      limit: 95,
      timeInForce: 'day',
    } as const;
    const run = order(request, LATE);
    expect(run.fills).toEqual([]);
    expect(run.ends).toEqual([[2, 1, 'expired', 'day_ended']]);
    expect(run.result.orders.expired).toBe(1);
  });

  it('day works to the end of the UTC day of its first bar', () => {
    const request = {
      side: 'buy',
      quantity: 1,
      type: 'limit',
      limit: 95,
      timeInForce: 'day',
    } as const;
    expect(traded(order(request, LATE, {}, QUARTER_DAY))).toEqual([[3, 1, 95]]);
    const later = order(request, [...LATE.slice(0, 2), ...LATE], {}, QUARTER_DAY);
    expect(later.fills).toEqual([]);
    expect(later.ends).toEqual([[4, 1, 'expired', 'day_ended']]);
  });

  it('ioc fills at the first open, and not later in that bar', () => {
    const limit = (price: number) =>
      ({ side: 'buy', quantity: 1, type: 'limit', limit: price, timeInForce: 'ioc' }) as const;
    expect(traded(order(limit(100), LATE))).toEqual([[1, 1, 100]]);
    const missed = order(limit(99.5), LATE);
    expect(missed.fills).toEqual([]);
    expect(missed.ends).toEqual([[1, 1, 'canceled', 'not_filled_at_once']]);
  });

  it('ioc cancels the rest of a partial fill', () => {
    const run = order({ side: 'buy', quantity: 250, timeInForce: 'ioc' }, flat(3), {
      fill: VOLUME_SHARE,
    });
    expect(traded(run)).toEqual([[1, 100, 100]]);
    expect(run.ends).toEqual([[1, 1, 'canceled', 'not_filled_at_once']]);
  });

  it('fok fills completely or not at all', () => {
    const of = (quantity: number): Played =>
      order({ side: 'buy', quantity, timeInForce: 'fok' }, flat(3), { fill: VOLUME_SHARE });
    expect(traded(of(100))).toEqual([[1, 100, 100]]);
    const toomuch = of(100.5);
    expect(toomuch.fills).toEqual([]);
    expect(toomuch.ends).toEqual([[1, 1, 'canceled', 'not_filled_at_once']]);
  });

  it('fok fills nothing if only a part of it is within the limits at its fill', () => {
    const run = play({
      bars: bars(flat(4)),
      config: { account: MARGIN, cash: 1000, risk: { ...NO_RISK_LIMITS, max_position_pct: 0.3 } },
      script: {
        0: ({ buy }) => buy(3),
        1({ sell }) {
          sell(2, { reduceOnly: true });
          sell(5, { timeInForce: 'fok' });
        },
      },
    });
    expect(run.fills).toEqual([
      [1, 1, 3, 100],
      [2, 2, -2, 100],
    ]);
    expect(run.ends).toEqual([[2, 3, 'denied', 'max_position_pct']]);
  });
});

describe('post-only', () => {
  const limit = { side: 'buy', quantity: 1, type: 'limit', limit: 98, postOnly: true } as const;

  it.each([97, 98])('is rejected if its first bar opens at %d', (open) => {
    const run = order(limit, [[open, 100, 90, 95]]);
    expect(run.fills).toEqual([]);
    expect(run.ends).toEqual([[1, 1, 'rejected', 'post_only_would_cross']]);
  });

  it('works as a limit order afterwards, and profits from a gap', () => {
    expect(traded(order(limit, [[100, 100, 97, 98]]))).toEqual([[1, 1, 98]]);
    expect(
      traded(
        order(limit, [
          [100, 100, 99, 99],
          [95, 96, 95, 96],
        ]),
      ),
    ).toEqual([[2, 1, 95]]);
  });
});

describe('reduce-only', () => {
  it('is reduced to the position', () => {
    const { fills, result } = play({
      bars: bars(flat(4)),
      script: {
        0: ({ buy }) => buy(3),
        1: ({ sell }) => sell(10, { reduceOnly: true }),
      },
      config: { account: MARGIN },
    });
    expect(fills).toEqual([
      [1, 1, 3, 100],
      [2, 2, -3, 100],
    ]);
    expect(result.orders.filled).toBe(2);
  });

  it.each(['buy', 'sell'] as const)('has nothing to do for a %s without the other side', (side) => {
    const run = order({ side, quantity: 10, reduceOnly: true }, flat(2));
    expect(run.fills).toEqual([]);
    expect(run.ends).toEqual([[1, 1, 'canceled', 'nothing_to_reduce']]);
  });

  it('uses the position at its fill, not at an earlier attempt', () => {
    const { fills } = play({
      bars: bars([STILL, STILL, [100, 100, 100, 100, 0], STILL, STILL, STILL]),
      config: { account: MARGIN, fill: VOLUME_SHARE },
      script: {
        0: ({ buy }) => buy(5),
        // The bar of its first attempt has no volume; the position is larger at the next one.
        1: ({ buy, sell }) => {
          buy(5);
          sell(10, { reduceOnly: true });
        },
      },
    });
    expect(fills).toEqual([
      [1, 1, 5, 100],
      [3, 2, 5, 100],
      [3, 3, -10, 100],
    ]);
  });
});

describe('a bracket', () => {
  const bracket = { takeProfit: { percent: 0.125 }, stopLoss: { percent: 0.05 } };
  const margin = { account: MARGIN };

  it.each([
    ['takes the profit', [105, 113, 104, 110], 112.5],
    ['stops the loss', [99, 100, 94, 96], 95],
    ['takes a better open', [115, 116, 114, 115], 115],
    ['stops at a worse open', [90, 91, 89, 90], 90],
  ] as const)('of a long entry %s', (_, candle, price) => {
    const run = order({ side: 'buy', quantity: 10, ...bracket }, [STILL, candle], margin);
    expect(traded(run)).toEqual([
      [1, 10, 100],
      [2, -10, price],
    ]);
    expect(run.ends.map(([step, , , reason]) => [step, reason])).toEqual([
      [2, 'other_side_of_oco_filled'],
    ]);
    expect(run.result.ambiguousBars).toBe(0);
  });

  it.each([
    ['takes the profit', [95, 96, 87, 90], 87.5],
    ['stops the loss', [101, 106, 100, 104], 105],
  ] as const)('of a short entry %s', (_, candle, price) => {
    const run = order({ side: 'sell', quantity: 10, ...bracket }, [STILL, candle], margin);
    expect(traded(run)).toEqual([
      [1, -10, 100],
      [2, 10, price],
    ]);
  });

  it('can have absolute prices, and its exits are separate orders', () => {
    const run = order(
      { side: 'buy', quantity: 10, takeProfit: 108, stopLoss: 93 },
      [STILL, [100, 109, 99, 105]],
      margin,
    );
    expect(traded(run)).toEqual([
      [1, 10, 100],
      [2, -10, 108],
    ]);
    const exits = run.events.filter((event) => event.kind === 'order.submitted').slice(1);
    expect(exits).toMatchObject([
      {
        order: 2,
        side: 'sell',
        type: 'stop',
        stop: 93,
        quantity: 10,
        reduce_only: true,
        parent: 1,
      },
      {
        order: 3,
        side: 'sell',
        type: 'limit',
        limit: 108,
        quantity: 10,
        reduce_only: true,
        parent: 1,
      },
    ]);
  });

  it('has exits relative to the paid price, including slippage', () => {
    const { events } = order({ side: 'buy', quantity: 10, ...bracket }, [STILL], {
      slippage: { model: 'basis_points', bps: 100 },
      ...margin,
    });
    const [, stop, limit] = events.filter((event) => event.kind === 'order.submitted');
    expect(stop!.stop).toBeCloseTo(101 * 0.95, 12);
    expect(limit!.limit).toBeCloseTo(101 * 1.125, 12);
  });

  it.each([
    [NEXT_OPEN, [100, 113, 90, 100], 95, 1],
    [NEXT_OPEN, [100, 113, 80, 100], 95, 1],
    [VOLUME_SHARE, [100, 120, 94, 119], 95, 1],
    // The path falls to the stop first,
    [OHLC_PATH, [100, 113, 90, 100], 95, 0],
    [OHLC_PATH, [100, 120, 94, 119], 95, 0],
    // rises to the target first,
    [OHLC_PATH, [100, 113, 80, 100], 112.5, 0],
    // or its path is unknown.
    [OHLC_PATH, [100, 113, 87, 100], 95, 1],
  ] as const)(
    'by %o leaves in a bar of %j that holds both at %d',
    (fill, candle, price, doubts) => {
      const entry = { side: 'buy', quantity: 10, ...bracket } as const;
      const run = order(entry, [STILL, candle], { fill, ...margin });
      expect(traded(run)).toEqual([
        [1, 10, 100],
        [2, -10, price],
      ]);
      expect(run.result.ambiguousBars).toBe(doubts);
    },
  );

  it.each([
    // 100 → 104 → 85 → 95, with an entry at 102: the target is never reached.
    [{ stop: 102, takeProfit: 106, stopLoss: 90 }, [100, 104, 85, 95], 90],
    // 100 → 107 → 85 → 95: the target comes right after the entry.
    [{ stop: 102, takeProfit: 106, stopLoss: 90 }, [100, 107, 85, 95], 106],
    // 100 → 95 → 110 → 104: the stop was passed before the entry.
    [{ stop: 102, takeProfit: 120, stopLoss: 96 }, [100, 110, 95, 104], undefined],
    // 100 → 95 → 110 → 90: the stop is reached after the entry.
    [{ stop: 102, takeProfit: 120, stopLoss: 96 }, [100, 110, 94, 95], 96],
  ] as const)(
    'of an entry within a bar follows the rest of the path: %o in %j',
    (parts, candle, price) => {
      const entry = { side: 'buy', quantity: 10, type: 'stop', ...parts } as const;
      const run = order(entry, [candle], { fill: OHLC_PATH, ...margin });
      const exit = price === undefined ? [] : [[1, -10, price]];
      expect(traded(run)).toEqual([[1, 10, 102], ...exit]);
      expect(run.result.ambiguousBars).toBe(0);
    },
  );

  describe.each([NEXT_OPEN, OHLC_PATH, VOLUME_SHARE])('by $model', (fill) => {
    it('is active in the whole bar at whose open its entry was filled', () => {
      const run = order({ side: 'buy', quantity: 10, ...bracket }, [[100, 100, 94, 96]], {
        fill,
        ...margin,
      });
      expect(traded(run)).toEqual([
        [1, 10, 100],
        [1, -10, 95],
      ]);
      const good = order({ side: 'buy', quantity: 10, ...bracket }, [[100, 113, 99, 106]], {
        fill,
        ...margin,
      });
      expect(traded(good)).toEqual([
        [1, 10, 100],
        [1, -10, 112.5],
      ]);
    });
  });

  describe('whose entry is filled within a bar', () => {
    const entry = { side: 'buy', quantity: 10, type: 'limit', limit: 98 } as const;

    it('can lose in that bar, and wins in it only if the close proves it', () => {
      const lost = order({ ...entry, stopLoss: 96 }, [[100, 101, 95, 100]], margin);
      expect(traded(lost)).toEqual([
        [1, 10, 98],
        [1, -10, 96],
      ]);
      expect(lost.result.ambiguousBars).toBe(1);
      const unproven = order({ ...entry, takeProfit: 99.5 }, [[100, 101, 97, 99], STILL], margin);
      expect(traded(unproven)).toEqual([
        [1, 10, 98],
        [2, -10, 100],
      ]);
      expect(unproven.result.ambiguousBars).toBe(1);
      // The close is beyond the target, so the price passed the target after the entry.
      const proven = order({ ...entry, takeProfit: 99 }, [[100, 101, 97, 100], STILL], margin);
      expect(traded(proven)).toEqual([
        [1, 10, 98],
        [1, -10, 99],
      ]);
      expect(proven.result.ambiguousBars).toBe(0);
    });

    it('sells at its stop, not at an open before the entry', () => {
      const run = order(
        { side: 'buy', quantity: 10, type: 'stop', stop: 105, stopLoss: 103 },
        [[100, 106, 99, 104]],
        margin,
      );
      expect(traded(run)).toEqual([
        [1, 10, 105],
        [1, -10, 103],
      ]);
      const short = order(
        { side: 'sell', quantity: 10, type: 'stop', stop: 95, stopLoss: 97 },
        [[100, 101, 94, 96]],
        margin,
      );
      expect(traded(short)).toEqual([
        [1, -10, 95],
        [1, 10, 97],
      ]);
    });

    it('sells at the entry price if its stop is above it', () => {
      const run = order(
        { side: 'buy', quantity: 10, type: 'stop', stop: 105, stopLoss: 107 },
        [[100, 106, 99, 104]],
        margin,
      );
      expect(traded(run)).toEqual([
        [1, 10, 105],
        [1, -10, 105],
      ]);
    });

    it('wins in that bar if the path reaches its target after the entry', () => {
      const run = order(
        { ...entry, takeProfit: 101, stopLoss: 90 },
        // 100 → 97 → 105 → 103
        [[100, 105, 97, 103]],
        { ...margin, fill: OHLC_PATH },
      );
      expect(traded(run)).toEqual([
        [1, 10, 98],
        [1, -10, 101],
      ]);
      expect(run.result.ambiguousBars).toBe(0);
    });

    it('does not win by a price that the path passed before the entry', () => {
      const run = order(
        { ...entry, takeProfit: 103, stopLoss: 90 },
        // 100 → 104 → 95 → 97
        [[100, 104, 95, 97], STILL],
        { ...margin, fill: OHLC_PATH },
      );
      expect(traded(run)).toEqual([[1, 10, 98]]);
    });
  });

  it('is canceled if another order closes its position', () => {
    const { fills, ends } = play({
      bars: bars([STILL, STILL, STILL, [100, 120, 80, 100]]),
      script: {
        0: ({ buy }) => buy(10, bracket),
        1: ({ sell }) => sell(10),
      },
    });
    expect(fills).toEqual([
      [1, 1, 10, 100],
      [2, 4, -10, 100],
    ]);
    expect(ends).toEqual([
      [2, 2, 'canceled', 'position_closed'],
      [2, 3, 'canceled', 'position_closed'],
    ]);
  });

  it('is replaced by the bracket of an order that reverses the position', () => {
    const { fills, ends, events } = play({
      bars: bars([STILL, STILL, STILL, [100, 106, 99, 100]]),
      config: margin,
      script: {
        0: ({ buy }) => buy(10, bracket),
        1: ({ sell }) => sell(25, bracket),
      },
    });
    expect(fills).toEqual([
      [1, 1, 10, 100],
      [2, 4, -25, 100],
      [3, 5, 15, 105],
    ]);
    expect(ends).toEqual([
      [2, 2, 'canceled', 'position_closed'],
      [2, 3, 'canceled', 'position_closed'],
      [3, 6, 'canceled', 'other_side_of_oco_filled'],
    ]);
    expect(events.filter((event) => event.kind === 'order.submitted').slice(-2)).toMatchObject([
      { order: 5, side: 'buy', quantity: 15, stop: 105 },
      { order: 6, side: 'buy', quantity: 15, limit: 87.5 },
    ]);
  });

  it('is unaffected by a closed position of another instrument', () => {
    const { fills } = play({
      bars: { A: bars(flat(4)), B: bars([...flat(3), [100, 100, 94, 95]]) },
      config: margin,
      script: {
        0: ({ buy, instruments: [, b] }) => [buy(1), buy(2, { instrument: b!, ...bracket })],
        1: ({ sell }) => sell(1),
      },
    });
    expect(fills.at(-1)).toEqual([3, 3, -2, 95]);
  });

  it('is not added for an order that only reduces a position', () => {
    const { events } = play({
      bars: bars(flat(4)),
      script: { 0: ({ buy }) => buy(10), 1: ({ sell }) => sell(4, bracket) },
    });
    expect(events.filter((event) => event.kind === 'order.submitted').length).toBe(2);
  });

  describe('filled in parts', () => {
    it('grows with its entry', () => {
      const run = order(
        { side: 'buy', quantity: 250, stopLoss: 95 },
        [STILL, STILL, STILL, [100, 100, 90, 95, 10_000]],
        { ...margin, fill: VOLUME_SHARE },
      );
      expect(traded(run)).toEqual([
        [1, 100, 100],
        [2, 100, 100],
        [3, 50, 100],
        [4, -250, 95],
      ]);
    });

    it('reduces its stop by fills of its target, and vice versa', () => {
      const run = order(
        { side: 'buy', quantity: 150, takeProfit: 110, stopLoss: 90 },
        [
          [100, 100, 100, 100, 2000],
          [100, 111, 100, 100, 1000],
          [100, 100, 85, 100, 5000],
        ],
        { ...margin, fill: VOLUME_SHARE },
      );
      expect(traded(run)).toEqual([
        [1, 150, 100],
        [2, -100, 110],
        [3, -50, 90],
      ]);
      expect(run.result.positions).toEqual({});
    });

    it('covers later fills of its entry after its first exits were filled', () => {
      const run = order(
        { side: 'buy', quantity: 150, stopLoss: { percent: 0.05 } },
        [
          // 100 units are bought and sold,
          [100, 100, 100, 100, 1000],
          [94, 94, 94, 94, 1000],
          // then the rest is bought, with its own stop.
          [100, 100, 100, 100, 1000],
          [100, 100, 80, 80, 1000],
        ],
        { ...margin, fill: VOLUME_SHARE },
      );
      expect(traded(run)).toEqual([
        [1, 100, 100],
        [2, 50, 94],
        [2, -50, 94],
        [3, -100, 100],
      ]);
    });
  });
});

describe('one-cancels-other', () => {
  const pair: Play['script'] = {
    0: ({ buy }) => {
      buy(10, { type: 'limit', limit: 95, ocoGroup: 1 });
      buy(10, { type: 'stop', stop: 105, ocoGroup: 1 });
    },
  };

  it.each([
    ['the limit', [100, 101, 94, 96], [1, 1, 10, 95], 2],
    ['the stop', [100, 106, 99, 104], [1, 2, 10, 105], 1],
  ] as const)('%s first', (_, candle, fill, other) => {
    const { fills, ends } = play({
      bars: bars([STILL, candle, [100, 110, 90, 100]]),
      script: pair,
    });
    expect(fills).toEqual([fill]);
    expect(ends).toEqual([[1, other, 'canceled', 'other_side_of_oco_filled']]);
  });

  it.each([NEXT_OPEN, OHLC_PATH])('assumes the worse of two fills in one bar by $model', (fill) => {
    const { fills, result } = play({
      bars: bars([STILL, [100, 110, 90, 100]]),
      script: pair,
      config: { fill },
    });
    expect(fills).toEqual([[1, 2, 10, 105]]);
    expect(result.ambiguousBars).toBe(1);
  });

  it('is reduced by fills of the other order', () => {
    const { fills, ends } = play({
      bars: bars([STILL, [100, 100, 94, 96, 40], [100, 106, 100, 104, 1000]]),
      script: pair,
      config: { fill: VOLUME_SHARE },
    });
    expect(fills).toEqual([
      [1, 1, 4, 95],
      [2, 2, 6, 105],
    ]);
    expect(ends).toEqual([[2, 1, 'canceled', 'other_side_of_oco_filled']]);
  });

  it('leaves no tiny fractions', () => {
    const parts: Candle[] = Array.from({ length: 7 }, () => [100, 100, 94, 96, 1]);
    const { fills, ends } = play({
      bars: bars([STILL, ...parts, [110, 110, 110, 110]]),
      config: { fill: VOLUME_SHARE },
      script: {
        0: ({ buy }) => {
          buy(1, { type: 'limit', limit: 95, ocoGroup: 1 });
          buy(0.7, { type: 'stop', stop: 105, ocoGroup: 1 });
        },
      },
    });
    expect(fills.map(([, id]) => id)).toEqual([1, 1, 1, 1, 1, 1, 1]);
    expect(ends).toEqual([[7, 2, 'canceled', 'other_side_of_oco_filled']]);
  });

  it.each([
    [[100, 106, 90, 100], [1, 1, -10, 105], 0],
    [[100, 120, 90, 100], [1, 2, -10, 96], 1],
  ] as const)('keeps a stop-limit to its limit on the path of %j', (candle, fill, triggers) => {
    const { fills, events } = play({
      bars: bars([STILL, candle]),
      config: { account: MARGIN, fill: OHLC_PATH },
      script: {
        0: ({ sell }) => {
          sell(10, { type: 'limit', limit: 105, ocoGroup: 1 });
          // Triggered at 95 with a limit of 96: sells only if the price returns.
          sell(10, { type: 'stop_limit', stop: 95, limit: 96, ocoGroup: 1 });
        },
      },
    });
    expect(fills).toEqual([fill]);
    expect(events.filter((event) => event.kind === 'order.triggered').length).toBe(triggers);
  });

  it('fills a stop before limits at the same price of a path, and the older limit first', () => {
    const { fills } = play({
      bars: bars([STILL, STILL, [100, 101, 94, 95]]),
      config: { fill: OHLC_PATH },
      script: {
        0: ({ buy }) => buy(1),
        1: ({ buy, sell }) => {
          buy(1, { type: 'limit', limit: 95 });
          buy(1, { type: 'limit', limit: 95 });
          sell(1, { type: 'stop', stop: 95 });
        },
      },
    });
    expect(fills.map(([, id]) => id)).toEqual([1, 4, 2, 3]);
  });

  it('follows the path past a stop of another group', () => {
    const { fills } = play({
      // 100 → 105 → 94
      bars: bars([STILL, [100, 105, 94, 95]]),
      config: { account: MARGIN, fill: OHLC_PATH },
      script: {
        0: ({ sell }) => {
          sell(1, { type: 'limit', limit: 104, ocoGroup: 1 });
          sell(1, { type: 'stop', stop: 95, ocoGroup: 2 });
        },
      },
    });
    expect(fills).toEqual([
      [1, 1, -1, 104],
      [1, 2, -1, 95],
    ]);
  });

  it('is unaffected by orders of other groups', () => {
    const { fills } = play({
      bars: bars([STILL, [100, 106, 94, 100]]),
      script: {
        0: ({ buy }) => {
          buy(1, { type: 'limit', limit: 95, ocoGroup: 1 });
          buy(1, { type: 'stop', stop: 105, ocoGroup: 2 });
        },
      },
    });
    expect(fills.length).toBe(2);
  });
});

describe('volume_share', () => {
  it('fills the rest in the next bars', () => {
    const run = order(
      { side: 'buy', quantity: 250 },
      [
        [100, 100, 100, 100, 1000],
        [101, 101, 101, 101, 0],
        [102, 102, 102, 102, 300],
        [103, 103, 103, 103, 9000],
      ],
      { account: MARGIN, fill: VOLUME_SHARE },
    );
    expect(traded(run)).toEqual([
      [1, 100, 100],
      [3, 30, 102],
      [4, 120, 103],
    ]);
    expect(run.result.orders).toMatchObject({ submitted: 1, filled: 1, fills: 3 });
  });

  it('shares one bar among orders, in order of submission', () => {
    const { fills } = play({
      bars: bars(flat(3)),
      config: { fill: VOLUME_SHARE },
      script: {
        0: ({ buy }) => {
          buy(70);
          buy(70);
        },
      },
    });
    expect(fills).toEqual([
      [1, 1, 70, 100],
      [1, 2, 30, 100],
      [2, 2, 40, 100],
    ]);
  });

  it('rounds each part down to whole units', () => {
    const run = order(
      { side: 'buy', quantity: 5 },
      [
        [100, 100, 100, 100, 39],
        [100, 100, 100, 100, 9],
        [100, 100, 100, 100, 100],
      ],
      { fill: VOLUME_SHARE, units: 'whole' },
    );
    expect(traded(run)).toEqual([
      [1, 3, 100],
      [3, 2, 100],
    ]);
  });

  it.each(['stop', 'trailing_stop'] as const)(
    'sells the rest of a reached %s wherever the market is',
    (type) => {
      const { fills } = play({
        bars: bars([STILL, STILL, [100, 100, 94, 99, 400], [110, 111, 109, 110, 1000]]),
        config: { fill: VOLUME_SHARE },
        script: {
          0: ({ buy }) => buy(60),
          1: ({ sell }) => sell(60, type === 'stop' ? { type, stop: 95 } : { type, trail: 5 }),
        },
      });
      expect(fills).toEqual([
        [1, 1, 60, 100],
        [2, 2, -40, 95],
        [3, 2, -20, 110],
      ]);
    },
  );
});

describe('orders for several instruments', () => {
  const A = bars(flat(4));
  /** Bars on the 2nd and the 4th day only. */
  const B = bars(
    [
      [50, 51, 49, 50],
      [60, 61, 59, 60],
    ],
    START + DAY,
    2 * DAY,
  );

  it('wait for a bar of their own instrument', () => {
    const { fills, result } = play({
      bars: { A, B },
      script: {
        1: ({ order: place, instruments }) => {
          place({ side: 'buy', quantity: 2, instrument: instruments[1]! });
          place({ side: 'buy', quantity: 1 });
        },
      },
    });
    expect(fills).toEqual([
      [2, 2, 1, 100],
      [3, 1, 2, 60],
    ]);
    expect([...result.equity]).toEqual([100_000, 100_000, 100_000, 100_000]);
  });

  it('expire with the day of their own instrument if they are day orders', () => {
    const { fills, ends } = play({
      bars: { A, B },
      script: {
        1: ({ order: place, instruments }) =>
          place({ side: 'buy', quantity: 2, timeInForce: 'day', instrument: instruments[1]! }),
      },
    });
    expect(fills).toEqual([[3, 1, 2, 60]]);
    expect(ends).toEqual([]);
  });

  it('take effect from the first bar of their instrument', () => {
    const { fills, ends } = play({
      bars: { A, B },
      config: { account: MARGIN },
      script: {
        0: ({ order: place, instruments, broker }) => {
          place({ side: 'buy', quantity: 1, instrument: instruments[1]! });
          place({
            side: 'sell',
            type: 'trailing_stop',
            trail: 2,
            quantity: 1,
            instrument: instruments[1]!,
          });
          broker.target(instruments[1]!, 0.5);
        },
      },
    });
    // All are filled at the open of 50; the stop follows to 48 and 59, and is never reached.
    expect(fills).toEqual([
      [1, 1, 1, 50],
      [1, 3, 999, 50],
    ]);
    expect(ends).toEqual([]);
  });

  it('follow the first bar if they are trailing stops placed before it', () => {
    const rising = bars(
      [
        [50, 55, 49, 54],
        [54, 54, 52, 53],
      ],
      START + DAY,
    );
    const { fills } = play({
      bars: { A, rising },
      config: { account: MARGIN },
      script: {
        0: ({ order: place, instruments }) =>
          place({
            side: 'sell',
            type: 'trailing_stop',
            trail: 2,
            quantity: 1,
            instrument: instruments[1]!,
          }),
      },
    });
    expect(fills).toEqual([[2, 1, -1, 53]]);
  });

  it('are filled at the opens by submission, then within bars by position in the universe', () => {
    const moving = bars([STILL, [100, 106, 94, 100]]);
    const { fills } = play({
      bars: { A: moving, B: moving },
      script: {
        0: ({ order: place, instruments: [first, second] }) => {
          place({ side: 'buy', quantity: 1, type: 'limit', limit: 95, instrument: second! });
          place({ side: 'buy', quantity: 1, instrument: second! });
          place({ side: 'buy', quantity: 1, type: 'limit', limit: 95, instrument: first! });
          place({ side: 'buy', quantity: 1, instrument: first! });
        },
      },
    });
    expect(fills.map(([, id]) => id)).toEqual([2, 4, 3, 1] satisfies FillRow[1][]);
  });
});
