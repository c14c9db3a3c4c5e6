import { describe, expect, it } from 'vitest';
import type { EngineConfig } from '../../src/engine/config.ts';
import type { Trade } from '../../src/engine/round-trip.ts';
import { barsFromRows } from '../../src/market/bars.ts';
import type { Bars } from '../../src/market/bars.ts';
import { bars, DAY, flat, MARGIN, play, START } from './market.ts';
import type { Candle, Scene } from './market.ts';

const [STILL] = flat(1) as [Candle];
const at = (price: number): Candle => [price, price, price, price];
const margin = { account: MARGIN };

describe('fees', () => {
  const roundTrip = (fees: EngineConfig['fees'], quantity = 10) =>
    play({
      bars: bars([STILL, at(100), at(110), at(110)]),
      config: { fees },
      script: { 0: ({ buy }) => buy(quantity), 1: ({ sell }) => sell(quantity) },
    }).result;

  it.each([
    ['a share of both sides', { model: 'percent', rate: 0.001, min: 0 }, 1 + 1.1],
    ['at least the minimum on each', { model: 'percent', rate: 0.001, min: 1.05 }, 1.05 + 1.1],
    ['per unit', { model: 'per_share', rate: 0.02, min: 0 }, 0.2 + 0.2],
    ['per unit, at least the minimum', { model: 'per_share', rate: 0.02, min: 0.5 }, 0.5 + 0.5],
    ['none', { model: 'none' }, 0],
  ] as const)('charges the fees of a round trip: %s', (_, fees, paid) => {
    const result = roundTrip(fees);
    expect(result.fees).toBeCloseTo(paid, 12);
    expect(result.cash).toBeCloseTo(100_000 + 100 - paid, 9);
    expect(result.trades).toMatchObject([
      { side: 'long', quantity: 10, entry_price: 100, exit_price: 110 },
    ]);
    expect(result.trades[0]!.fees).toBeCloseTo(paid, 12);
    expect(result.trades[0]!.pnl).toBeCloseTo(100 - paid, 9);
    expect(result.trades[0]!.return).toBeCloseTo((100 - paid) / 1000, 12);
  });

  it('deducts the fee of a sale from its proceeds, short or long', () => {
    const { result, fills } = play({
      bars: bars([STILL, at(100), at(90), at(90)]),
      config: { fees: { model: 'percent', rate: 0.01, min: 0 }, ...margin },
      script: { 0: ({ sell }) => sell(10), 1: ({ buy }) => buy(10) },
    });
    expect(fills.map(([, , units, price]) => [units, price])).toEqual([
      [-10, 100],
      [10, 90],
    ]);
    expect(result.cash).toBeCloseTo(100_000 + 1000 - 10 - 900 - 9, 9);
    expect(result.trades[0]).toMatchObject({ side: 'short', pnl: 81, fees: 19 });
  });

  it.each([
    [{ model: 'percent', rate: 0.001, min: 0 }, 1000 / 100.1],
    [{ model: 'percent', rate: 0.001, min: 5 }, 995 / 100],
    [{ model: 'per_share', rate: 0.5, min: 0 }, 1000 / 100.5],
    [{ model: 'per_share', rate: 0.5, min: 50 }, 950 / 100],
    [{ model: 'none' }, 10],
  ] as const)('leaves room in an all-in purchase for fees of %o', (fees, units) => {
    for (const kind of ['fractional', 'whole'] as const) {
      const { result, fills } = play({
        bars: bars(flat(3)),
        config: { cash: 1000, fees, units: kind },
        script: { 0: ({ broker, instruments }) => broker.target(instruments[0]!, 1) },
      });
      expect(fills[0]![2]).toBeCloseTo(kind === 'whole' ? Math.floor(units) : units, 12);
      if (kind === 'fractional') expect(result.cash).toBeCloseTo(0, 9);
      else expect(result.cash).toBeGreaterThanOrEqual(0);
    }
  });
});

describe('slippage', () => {
  const trade = (slippage: EngineConfig['slippage'], candle: Candle = STILL) =>
    play({
      bars: bars([STILL, candle, candle]),
      config: { slippage },
      script: { 0: ({ buy }) => buy(10), 1: ({ sell }) => sell(10) },
    });

  it('worsens the price of both sides by basis points', () => {
    const { fills, result } = trade({ model: 'basis_points', bps: 10 });
    expect(fills[0]![3]).toBeCloseTo(100.1, 12);
    expect(fills[1]![3]).toBeCloseTo(99.9, 12);
    expect(result.slippage).toBeCloseTo(2, 12);
    expect(result.cash).toBeCloseTo(99_998, 9);
  });

  it('grows with the square of the share of the volume', () => {
    const { fills } = trade({ model: 'volume_share', impact: 0.1 }, [100, 100, 100, 100, 50]);
    expect(fills[0]![3]).toBeCloseTo(100 * (1 + 0.1 * 0.04), 12);
    expect(fills[1]![3]).toBeCloseTo(100 * (1 - 0.1 * 0.04), 12);
  });

  it('counts an order above the volume as the whole volume', () => {
    for (const volume of [0, 5]) {
      const { fills } = trade({ model: 'volume_share', impact: 0.1 }, [100, 100, 100, 100, volume]);
      expect(fills[0]![3]).toBeCloseTo(110, 12);
    }
  });

  it('never makes a price negative', () => {
    const { fills, result } = trade({ model: 'volume_share', impact: 3 }, [100, 100, 100, 100, 0]);
    expect(fills[1]![3]).toBe(0);
    expect(result.cash).toBe(100_000 - 4000);
  });

  it('worsens stop orders, but not limit orders', () => {
    const { fills } = play({
      bars: bars([STILL, [100, 106, 94, 100], STILL]),
      config: { slippage: { model: 'basis_points', bps: 100 }, ...margin },
      script: {
        0: ({ buy }) => {
          buy(1, { type: 'stop', stop: 105 });
          buy(1, { type: 'limit', limit: 95 });
        },
      },
    });
    expect(fills.map(([, id, , price]) => [id, price])).toEqual([
      [1, 106.05],
      [2, 95],
    ]);
  });
});

describe('a target', () => {
  it('is sized by equity at the open that fills it', () => {
    const { fills } = play({
      bars: bars([STILL, at(50), at(80), at(80)]),
      script: {
        0: ({ broker, instruments: [x] }) => broker.target(x!, 0.5),
        1: ({ broker, instruments: [x] }) => broker.target(x!, 0.25),
      },
    });
    // 50,000 at 50 are 1,000 units; at 80 equity is 130,000, a quarter of it 406.25 units.
    expect(fills).toEqual([
      [1, 1, 1000, 50],
      [2, 2, -593.75, 80],
    ]);
  });

  it('is rounded towards the current position if units are whole', () => {
    const { result } = play({
      bars: bars([STILL, at(30), at(70), at(70)]),
      config: { units: 'whole', cash: 1000 },
      script: {
        0: ({ broker, instruments: [x] }) => broker.target(x!, 1),
        1: ({ broker, instruments: [x] }) => broker.target(x!, 0.5),
      },
    });
    // 33 units at 30; equity 10 + 33 × 70 = 2,320, half of it 16.57 units: 16.43 sold, as 16.
    expect(result.positions).toEqual({ X: 17 });
    expect(result.cash).toBe(10 + 16 * 70);
  });

  it('reverses a position in one order, which closes one trade and opens another', () => {
    const { fills, result } = play({
      bars: bars([STILL, at(100), at(120), at(120)]),
      config: { cash: 10_000, fees: { model: 'percent', rate: 0.01, min: 0 }, ...margin },
      script: {
        0: ({ buy }) => buy(50),
        1: ({ sell }) => sell(80),
      },
    });
    expect(fills).toEqual([
      [1, 1, 50, 100],
      [2, 2, -80, 120],
    ]);
    expect(result.positions).toEqual({ X: -30 });
    // The fee of 96 belongs to both trades by their share of the 80 units.
    expect(result.trades).toEqual([
      {
        id: 1,
        symbol: 'X',
        side: 'long',
        entry_time: START + DAY,
        exit_time: START + 2 * DAY,
        bars: 1,
        quantity: 50,
        entry_price: 100,
        exit_price: 120,
        pnl: 1000 - 50 - 60,
        return: 890 / 5000,
        fees: 110,
      } satisfies Trade,
    ]);
    expect(result.openTrades).toMatchObject([
      { id: 2, side: 'short', quantity: 30, entry_price: 120, exit_price: 120, pnl: -36, fees: 36 },
    ]);
    expect(result.equity.at(-1)).toBe(10_000 + 890 - 36);
  });

  it('trades once if it is repeated on every bar', () => {
    const { fills, ends } = play({
      bars: bars([STILL, at(97), at(103), at(101), at(99)]),
      config: { fees: { model: 'percent', rate: 0.001, min: 1 } },
      everyBar: ({ broker, instruments: [x] }) => broker.target(x!, 1),
    });
    expect(fills.length).toBe(1);
    expect(ends.map(([, , , reason]) => reason)).toEqual([
      'quantity_rounds_to_zero',
      'quantity_rounds_to_zero',
      'quantity_rounds_to_zero',
    ]);
  });

  it('buys no tiny fractions if no cash is left', () => {
    const { fills } = play({
      bars: { A: bars([at(30), at(31), at(29)]), B: bars([at(7), at(7), at(7)]) },
      script: {
        0: ({ broker, instruments: [a] }) => broker.target(a!, 1),
        1: ({ broker, instruments: [, b] }) => broker.target(b!, 0.5),
      },
    });
    expect(fills.length).toBe(1);
  });

  it.each([
    ['of zero', ({ broker, instruments: [x] }: Scene) => broker.target(x!, 0)],
    // 0.1 + 0.2 is not 0.3.
    ['by hand', ({ sell }: Scene) => sell(0.3)],
  ])('%s sells everything, to the last fraction', (_, close) => {
    const { result } = play({
      bars: bars(flat(6)),
      script: {
        0: ({ buy }) => buy(0.1),
        1: ({ buy }) => buy(0.2),
        2: close,
      },
    });
    expect(result.positions).toEqual({});
    expect(result.trades.length).toBe(1);
    expect(result.stepsInMarket).toBe(2);
  });

  it('replaces an older target that is still working', () => {
    const { fills, ends, result } = play({
      bars: bars(flat(6)),
      config: { fill: { model: 'volume_share', limit: 0.1 } },
      script: {
        // 1,000 units, 100 a bar,
        0: ({ broker, instruments: [x] }) => broker.target(x!, 1),
        // until the target is reached.
        2: ({ broker, instruments: [x] }) => broker.target(x!, 0),
      },
    });
    expect(fills).toEqual([
      [1, 1, 100, 100],
      [2, 1, 100, 100],
      [3, 2, -100, 100],
      [4, 2, -100, 100],
    ]);
    expect(ends).toEqual([[2, 1, 'canceled', 'canceled_by_strategy']]);
    expect(result.positions).toEqual({});
  });

  it('counts once if it is placed twice in one step, without an effect on other instruments and orders', () => {
    const { fills } = play({
      bars: { A: bars(flat(3)), B: bars(flat(3)) },
      script: {
        0: ({ broker, buy, instruments: [a, b] }) => {
          broker.target(a!, 0.9);
          broker.target(b!, 0.1);
          buy(1);
          broker.target(a!, 0.2);
        },
      },
    });
    expect(fills).toEqual([
      [1, 2, 100, 100],
      [1, 3, 1, 100],
      [1, 4, 199, 100],
    ]);
  });

  it('leaves the older target working if it is denied', () => {
    const { fills } = play({
      bars: bars(flat(4)),
      script: {
        0: ({ broker, instruments: [x] }) => {
          broker.target(x!, 0.5);
          expect(broker.target(x!, -1)).toMatchObject({
            status: 'denied',
            reason: 'short_not_allowed',
          });
        },
      },
    });
    expect(fills).toEqual([[1, 1, 500, 100]]);
  });

  it('is limited to what the account can afford if it is above 1', () => {
    const all = (config: Partial<EngineConfig>) =>
      play({
        bars: bars(flat(3)),
        config,
        script: { 0: ({ broker, instruments: [x] }) => broker.target(x!, 3) },
      }).result.positions['X'];
    expect(all({})).toBe(1000);
    expect(all(margin)).toBe(2000);
  });

  it('does not reverse the position if a gap makes equity negative', () => {
    const { fills } = play({
      // 1,900 units at 100 with 90,000 borrowed; at 40 that is a debt of 14,000.
      bars: bars([STILL, STILL, [40, 101, 40, 100], STILL]),
      config: { account: { model: 'margin', initial: 0.5, maintenance: 0 } },
      script: {
        0: ({ broker, instruments: [x] }) => broker.target(x!, 1.9),
        1: ({ broker, instruments: [x] }) => broker.target(x!, 1),
      },
    });
    expect(fills).toEqual([
      [1, 1, 1900, 100],
      [2, 2, -1900, 40],
    ]);
    const short = play({
      // 1,000 units sold at 100; at 210 that is a debt of 10,000.
      bars: bars([STILL, STILL, [210, 210, 100, 100], STILL]),
      config: { account: { model: 'margin', initial: 0.5, maintenance: 0 } },
      script: {
        0: ({ broker, instruments: [x] }) => broker.target(x!, -1),
        1: ({ broker, instruments: [x] }) => broker.target(x!, 1),
      },
    });
    expect(short.fills).toEqual([
      [1, 1, -1000, 100],
      [2, 2, 1000, 210],
    ]);
  });
});

describe('a cash account', () => {
  it('does not sell short', () => {
    const { fills, ends, result } = play({
      bars: bars(flat(5)),
      script: {
        0: ({ sell }) => sell(1),
        1: ({ buy }) => buy(10),
        2: ({ sell }) => {
          sell(10);
          sell(10);
          sell(0.001);
        },
      },
    });
    expect(fills).toEqual([
      [2, 2, 10, 100],
      [3, 3, -10, 100],
    ]);
    expect(ends).toEqual([
      [1, 1, 'rejected', 'short_not_allowed'],
      [3, 4, 'rejected', 'short_not_allowed'],
      [3, 5, 'rejected', 'short_not_allowed'],
    ]);
    expect(result.orders.rejected).toEqual({ short_not_allowed: 3 });
  });

  it('does not buy more than it can pay for, including the fee', () => {
    const { fills, ends } = play({
      bars: bars(flat(3)),
      config: { cash: 1000, fees: { model: 'percent', rate: 0.001, min: 0 } },
      script: {
        0: ({ buy }) => {
          buy(10);
          buy(9.99);
          buy(1);
        },
      },
    });
    expect(fills).toEqual([[1, 2, 9.99, 100]]);
    expect(ends.map(([, id, , reason]) => [id, reason])).toEqual([
      [1, 'insufficient_funds'],
      [3, 'insufficient_funds'],
    ]);
  });

  it('accepts an order that costs exactly the available cash', () => {
    const { fills, result } = play({
      bars: bars(flat(3)),
      config: { cash: 1000 },
      script: { 0: ({ buy }) => buy(10) },
    });
    expect(fills).toEqual([[1, 1, 10, 100]]);
    expect(result.cash).toBe(0);
  });

  it('rounds down to whole units, and denies an order that rounds to zero', () => {
    const { fills, result } = play({
      bars: bars(flat(3)),
      config: { units: 'whole' },
      script: {
        0: ({ buy }) => {
          buy(2.9);
          expect(buy(0.9)).toMatchObject({ status: 'denied', reason: 'quantity_rounds_to_zero' });
        },
      },
    });
    expect(fills).toEqual([[1, 1, 2, 100]]);
    expect(result.orders.denied).toEqual({ quantity_rounds_to_zero: 1 });
  });
});

describe('a margin account', () => {
  it.each(['buy', 'sell'] as const)('opens no more than its equity bears by a %s', (side) => {
    const { fills, ends } = play({
      bars: bars(flat(3)),
      config: { cash: 1000, account: { model: 'margin', initial: 0.5, maintenance: 0.1 } },
      script: {
        0: ({ order }) => {
          order({ side, quantity: 20.001 });
          order({ side, quantity: 15 });
          order({ side, quantity: 5.001 });
          order({ side, quantity: 5 });
        },
      },
    });
    expect(fills.map(([, id]) => id)).toEqual([2, 4]);
    expect(ends.map(([, id, status, reason]) => [id, status, reason])).toEqual([
      [1, 'rejected', 'insufficient_funds'],
      [3, 'rejected', 'insufficient_funds'],
    ]);
  });

  it('counts the margin of other instruments, and releases that of closed positions', () => {
    const { fills, ends } = play({
      bars: { A: bars(flat(4)), B: bars(flat(4)) },
      config: { cash: 1000, account: { model: 'margin', initial: 0.5, maintenance: 0.1 } },
      script: {
        0: ({ order, instruments: [, b] }) => {
          order({ side: 'buy', quantity: 12 });
          order({ side: 'sell', quantity: 8.001, instrument: b! });
          order({ side: 'sell', quantity: 8, instrument: b! });
        },
        // From 12 long to 12 short: 12 to close, and 12 to open on what that frees.
        1: ({ order }) => {
          order({ side: 'sell', quantity: 24.001 });
          order({ side: 'sell', quantity: 24 });
        },
      },
    });
    expect(fills.map(([, id]) => id)).toEqual([1, 3, 5]);
    expect(ends.length).toBe(2);
  });

  it('deducts the fee from the available margin', () => {
    const { result } = play({
      bars: bars(flat(3)),
      config: {
        cash: 1000,
        fees: { model: 'percent', rate: 0.01, min: 0 },
        account: { model: 'margin', initial: 0.5, maintenance: 0.1 },
      },
      script: { 0: ({ broker, instruments: [x] }) => broker.target(x!, 5) },
    });
    // 1,000 − 0.01 × value = 0.5 × value.
    expect(result.positions['X']).toBeCloseTo(1000 / 0.51 / 100, 12);
    expect(result.equity.at(-1)! / (result.positions['X']! * 100)).toBeCloseTo(0.5, 12);
  });

  it.each([
    ['cash', { model: 'cash' }, [0.5, 1.5, 0, 2], 2, 3],
    ['margin', { model: 'margin', initial: 0.5, maintenance: 0.1 }, [2, 0, -2.5, 3], 2, 5],
  ] as const)(
    'counts targets above the leverage of a %s account that were cut',
    (_, account, weights, count, step) => {
      const script = Object.fromEntries(
        weights.map((weight, turn) => [
          2 * turn,
          ({ broker, instruments: [x] }: Scene) => broker.target(x!, weight),
        ]),
      );
      const { result } = play({
        bars: bars([...flat(2), ...flat(6, 98)]),
        config: { fees: { model: 'percent', rate: 0.001, min: 0 }, account },
        script,
      });
      expect(result.cappedTargets).toEqual({ count, since: START + step * DAY });
    },
  );

  it('pays the fees of both sides before it reverses a position', () => {
    const { result } = play({
      bars: bars(flat(4)),
      config: {
        cash: 1000,
        fees: { model: 'percent', rate: 0.01, min: 0 },
        account: { model: 'margin', initial: 0.5, maintenance: 0.1 },
      },
      script: {
        0: ({ buy }) => buy(10),
        1: ({ broker, instruments: [x] }) => broker.target(x!, -5),
      },
    });
    // 1,000 − 10 − 10 − 0.01 × value = 0.5 × value.
    expect(result.positions['X']).toBeCloseTo(-980 / 0.51 / 100, 12);
    expect(result.equity.at(-1)! / (result.positions['X']! * -100)).toBeCloseTo(0.5, 12);
  });

  it('values positions at the price of the fill', () => {
    const { fills, ends } = play({
      bars: bars([STILL, STILL, [100, 100, 89, 90]]),
      config: { cash: 1000, account: { model: 'margin', initial: 0.5, maintenance: 0.1 } },
      script: {
        0: ({ buy }) => buy(15),
        // At 90: equity 850 bears 1,700, and 15 × 90 = 1,350 is held.
        1: ({ buy }) => {
          buy(351 / 90, { type: 'limit', limit: 90 });
          buy(349 / 90, { type: 'limit', limit: 90 });
        },
      },
    });
    expect(fills.map(([, id]) => id)).toEqual([1, 3]);
    expect(ends).toEqual([[2, 2, 'rejected', 'insufficient_funds']]);
  });

  describe('after a margin call', () => {
    const account = { model: 'margin', initial: 0.5, maintenance: 0.3 } as const;
    // 200 units bought with 10,000 of equity and 10,000 borrowed: equity is 30 % at 71.4.
    const fall = [STILL, STILL, at(72), at(71), at(70), at(70), at(70)];

    it('closes everything at the next open, and then continues', () => {
      const { fills, ends, events, result } = play({
        bars: bars(fall),
        config: { cash: 10_000, account },
        script: {
          0: ({ buy }) => buy(200, { stopLoss: 1, takeProfit: 1000 }),
          3: ({ buy, broker }) => {
            // The exits were canceled, and the strategy cannot cancel the closing order.
            expect(broker.working().map(({ id }) => id)).toEqual([4]);
            for (const order of broker.working()) broker.cancel(order);
            expect(broker.working().map(({ id }) => id)).toEqual([4]);
            expect(buy(1)).toMatchObject({ status: 'denied', reason: 'margin_call' });
          },
          4: ({ buy }) => buy(1),
        },
      });
      expect(result.marginCalls).toBe(1);
      expect(fills).toEqual([
        [1, 1, 200, 100],
        [4, 4, -200, 70],
        [5, 6, 1, 70],
      ]);
      expect(ends).toEqual([
        [3, 2, 'canceled', 'margin_call'],
        [3, 3, 'canceled', 'margin_call'],
        [3, 5, 'denied', 'margin_call'],
      ]);
      expect(events.find((event) => event.kind === 'account.margin_call')).toEqual({
        seq: 5,
        kind: 'account.margin_call',
        time: new Date(START + 3 * DAY).toISOString(),
        order: 0,
        symbol: '',
        equity: 10_000 - 200 * 29,
        required: 0.3 * 200 * 71,
      });
      expect(result.cash).toBe(10_000 - 200 * 30 - 70);
    });

    it('closes shorts, too, over several bars if volume is limited, in one margin call', () => {
      const { fills, result } = play({
        bars: bars([...flat(3), ...flat(4, 130)]),
        config: { cash: 10_000, account, fill: { model: 'volume_share', limit: 0.1 } },
        script: { 0: ({ sell }) => sell(100), 1: ({ sell }) => sell(60) },
      });
      // At 130: equity 10,000 − 160 × 30 = 5,200, and 0.3 × 160 × 130 = 6,240 is needed.
      expect(result.marginCalls).toBe(1);
      expect(fills).toEqual([
        [1, 1, -100, 100],
        [2, 2, -60, 100],
        [4, 3, 100, 130],
        [5, 3, 60, 130],
      ]);
      expect(result.cash).toBe(5200);
    });

    it('waits for a bar of each instrument, and denies orders until enough is closed', () => {
      const late = bars([STILL, STILL, at(71), at(71)], START, 2 * DAY);
      const { fills, result, ends } = play({
        bars: { A: bars([...flat(3), ...flat(6, 71)]), B: late },
        config: { cash: 10_000, account },
        script: {
          0: ({ order, instruments: [, b] }) => {
            order({ side: 'buy', quantity: 100 });
            order({ side: 'buy', quantity: 100, instrument: b! });
          },
          5: ({ buy }) => buy(1),
          6: ({ buy }) => buy(1),
        },
      });
      // With A at 71, equity of 7,100 for 17,100 is sufficient. With B at 71 on the fifth day, it is not.
      expect(result.marginCalls).toBe(1);
      expect(fills).toEqual([
        [1, 1, 100, 100],
        [2, 2, 100, 100],
        [5, 3, -100, 71],
        [6, 4, -100, 71],
        // Without A, the equity is sufficient for B.
        [6, 5, 1, 71],
        [7, 6, 1, 71],
      ]);
      expect(ends).toEqual([]);
    });

    describe('with an instrument that has no more bars', () => {
      const days = (...prices: number[]): Bars => bars(prices.map(at));
      // This instrument has bars on the first three days and on the eleventh.
      const back = barsFromRows(
        [0, 1, 2, 10].map((day) => [START + day * DAY, 100, 100, 100, 100, 1000] as const),
      );

      it('ends once the account can hold the remaining position, which cannot be canceled or increased', () => {
        const statuses: unknown[] = [];
        const { fills, ends, result } = play({
          bars: { A: days(100, 100, 100, 60, 60, 60, 60, 60, 60, 60, 60, 60), B: back },
          config: { cash: 10_000, account },
          script: {
            0: ({ buy, instruments: [, b] }) => [buy(150), buy(50, { instrument: b! })],
            4: ({ buy, broker, instruments: [, b] }) => {
              statuses.push(buy(1).status, buy(1, { instrument: b! }).reason);
              for (const order of broker.working()) broker.cancel(order);
            },
            5: ({ buy }) => buy(1),
          },
        });
        expect(result.marginCalls).toBe(1);
        expect(statuses).toEqual(['working', 'margin_call']);
        expect(fills.slice(2)).toEqual([
          [4, 3, -150, 60],
          [6, 7, 1, 60],
          [10, 4, -50, 100],
        ]);
        expect(ends.map(([step, , , reason]) => [step, reason])).toEqual([
          [4, 'margin_call'],
          [4, 'canceled_by_strategy'],
        ]);
      });

      it('ends, and does not repeat each day, if the remaining position is too large', () => {
        const { ends, result } = play({
          bars: { A: days(100, 100, 200, 200, 200, 200, 200, 200), B: bars(flat(2)) },
          config: { cash: 10_000, account },
          script: {
            0: ({ buy, sell, instruments: [, b] }) => [sell(60), buy(140, { instrument: b! })],
            3: ({ buy }) => buy(1),
            5: ({ buy }) => buy(1),
            6: ({ buy }) => buy(1),
          },
        });
        expect(result.marginCalls).toBe(1);
        expect(result.positions).toEqual({ B: 140 });
        // No further margin call, but too little equity to open a position.
        expect(ends.map(([step, , , reason]) => [step, reason])).toEqual([
          [3, 'margin_call'],
          [6, 'insufficient_funds'],
          [7, 'insufficient_funds'],
        ]);
      });
    });
  });

  it('ends the run if no equity is left', () => {
    const { result, ends } = play({
      bars: bars([...flat(2), at(50), at(40), at(100)]),
      config: { cash: 10_000, account: { model: 'margin', initial: 0.5, maintenance: 0 } },
      script: { 0: ({ buy }) => buy(200) },
    });
    expect(result.ruinedAt).toBe(2);
    expect(result.steps).toBe(3);
    expect([...result.equity]).toEqual([10_000, 10_000, 0]);
    expect(result.time.length).toBe(3);
    expect(result.openTrades).toMatchObject([{ quantity: 200, exit_price: 50, pnl: -10_000 }]);
    expect(ends).toEqual([]);
  });
});
