import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { conventionsFor, quickStatistics, statistics } from '../../src/backtest/statistics.ts';
import { percentile, returnsOf, sampleEquity } from '../../src/backtest/returns.ts';
import type { RunFigures, Statistics } from '../../src/backtest/statistics.ts';
import { daily, day, goldenRun, run, trade } from './golden.ts';
import { runs } from '../length.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const of = (figures: RunFigures): Statistics => statistics(figures, daily(figures.time));
const daysFrom = (start: number, count: number, step = 1): number[] =>
  Array.from({ length: count }, (_, i) => day(start + i * step));
/** Alternately grows by 1 % and falls by 0.5 %. */
const zigzag = (count: number): number[] => {
  const equity = [1000];
  while (equity.length < count) equity.push(equity.at(-1)! * (equity.length % 2 ? 1.01 : 0.995));
  return equity;
};

describe('statistics of the golden run', () => {
  const golden = goldenRun();
  const result = of(golden);

  it('have the returns and days of the reference data', () => {
    const returns = returnsOf(golden.equity);
    expect(returns).toHaveLength(504);
    expect(returns[0]).toBeCloseTo(-0.002404636986835224, 14);
    expect(returns[503]).toBeCloseTo(0.00825181884321003, 14);
    expect(golden.time[504]! - golden.time[0]!).toBe(704 * 24 * HOUR);
  });

  it.each([
    ['total', result.returns.total, 0.3965090185],
    ['annual', result.returns.annual, 0.181739827],
    ['cagr', result.returns.cagr, 0.189191357],
    ['volatility', result.risk.volatility, 0.142664423],
    ['sharpe', result.risk.sharpe, 1.242040479],
    ['sortino', result.risk.sortino, 1.872299997],
    ['calmar', result.risk.calmar, 1.485087702],
    ['max_drawdown', result.risk.max_drawdown, -0.1273940632],
    ['var_95', result.risk.var_95, -0.013169513],
    ['cvar_95', result.risk.cvar_95, -0.013847796],
    ['profit_factor', result.trades.profit_factor, 1.187021216],
    ['win_rate', result.trades.win_rate, 0.51984127],
  ])('have the %s of the reference data', (_name, value, expected) => {
    expect(value).toBeCloseTo(expected, 8);
  });

  it('are all defined, and equal the quick statistics', () => {
    expect(result.undefined).toEqual({});
    const { var_95: _var, cvar_95: _cvar, ...risk } = result.risk;
    const { turnover: _turnover, ...costs } = result.costs;
    expect(quickStatistics(golden, daily(golden.time))).toEqual({ ...result, risk, costs });
  });
});

describe('conventions', () => {
  const weekdays = (count: number): number[] =>
    daysFrom(0, count * 2)
      .filter((time) => new Date(time).getUTCDay() % 6 !== 0)
      .slice(0, count);
  const annual = (time: number[], barMs = DAY) => {
    const { periods_per_year, sampling } = conventionsFor(Float64Array.from(time), { barMs });
    return [periods_per_year, sampling];
  };

  it('count the days of a year by the usual trading weekdays', () => {
    expect(annual(weekdays(100))).toEqual([252, 'day']);
    expect(annual(daysFrom(0, 100))).toEqual([365, 'day']);
    expect(annual([])).toEqual([252, 'day']);
  });

  it('do not count a rare Saturday session as a trading weekday', () => {
    const saturday = day(5);
    expect(annual([...weekdays(250), saturday].sort((a, b) => a - b))).toEqual([252, 'day']);
  });

  it('count five trading days in Tokyo, which begin on Sunday in UTC', () => {
    expect(annual(weekdays(250).map((time) => time - 9 * HOUR))).toEqual([252, 'day']);
  });

  it('count six trading days of currencies, from Sunday to Friday evening', () => {
    const isOpen = (time: number): boolean => {
      const hour = new Date(time).getUTCDay() * 24 + new Date(time).getUTCHours();
      return hour >= 22 && hour < 5 * 24 + 22;
    };
    const hours = Array.from({ length: 24 * 70 }, (_, i) => day(0) + i * HOUR).filter(isOpen);
    expect(annual(hours, HOUR)).toEqual([313, 'day']);
  });

  it('sample intraday bars once a day', () => {
    const hourly = Array.from({ length: 24 * 14 }, (_, i) => day(0) + i * HOUR);
    expect(annual(hourly, HOUR)).toEqual([365, 'day']);
    const session = weekdays(20).flatMap((time) => [time + 14 * HOUR, time + 15 * HOUR]);
    expect(annual(session, HOUR)).toEqual([252, 'day']);
  });

  it('sample longer bars once per week or month', () => {
    expect(annual(daysFrom(0, 50, 7), 7 * DAY)).toEqual([52, 'week']);
    const months = Array.from({ length: 30 }, (_, i) => Date.UTC(2020, i, 1));
    expect(annual(months, 30.436875 * DAY)).toEqual([12, 'month']);
  });

  it('subtract the risk-free rate from every return', () => {
    const figures = run({ equity: zigzag(60) });
    const conventions = daily(figures.time);
    const plain = statistics(figures, conventions);
    const excess = statistics(figures, { ...conventions, risk_free: 0.1 });
    const perYear = conventions.periods_per_year;
    expect(excess.risk.volatility).toBe(plain.risk.volatility);
    expect(excess.risk.sharpe! - plain.risk.sharpe!).toBeCloseTo(-0.1 / plain.risk.volatility!, 9);
    const losses = returnsOf(figures.equity).map((r) => Math.min(r - 0.1 / perYear, 0) ** 2);
    const downside = Math.sqrt(losses.reduce((sum, value) => sum + value, 0) / 59);
    const mean = returnsOf(figures.equity).reduce((sum, r) => sum + r, 0) / 59 - 0.1 / perYear;
    expect(excess.risk.sortino).toBeCloseTo((mean / downside) * Math.sqrt(perYear), 9);
  });
});

describe('the sampling of equity', () => {
  const sample = (equity: number[], hours: number[], kind: 'day' | 'week' = 'day'): number[] => {
    const time = hours.map((hour) => day(0) + hour * HOUR);
    return [...sampleEquity(run({ equity, time, initialCash: 100 }), kind)];
  };

  it('takes the starting cash and the last equity of each UTC day', () => {
    const hours = [0, 9, 23, 24, 47, 100];
    expect(sample([100, 101, 102, 103, 104, 105], hours)).toEqual([100, 102, 104, 105]);
    expect(sample([], [])).toEqual([100]);
  });

  it('omits the starting cash for daily bars, because nothing can be filled in the first', () => {
    expect(sample([100, 101, 102], [0, 24, 72])).toEqual([100, 101, 102]);
    expect(sample([100], [0])).toEqual([100]);
    expect(sample([99, 101], [0, 24])).toEqual([100, 99, 101]);
  });

  it('takes one sample of a day in which instruments have bars at different hours', () => {
    const hours = [0, 14.5, 24, 38.5, 48, 62.5];
    expect(sample([100, 99, 101, 102, 103, 104], hours)).toEqual([100, 99, 102, 104]);
  });

  it('takes one sample of a week in which instruments have bars on different days', () => {
    expect(sample([100, 101, 102, 103], [0, 24, 168, 192], 'week')).toEqual([100, 101, 103]);
  });

  it('includes the first day of an intraday run in every figure', () => {
    const time = Array.from({ length: 5 * 24 }, (_, i) => day(0) + i * HOUR);
    const equity = time.map((_, i) => 1000 - 2 * Math.min(i, 23) + (i >> 5));
    const { returns, risk, undefined: reasons } = of(run({ equity, time }));
    expect(returns.worst_day).toBeCloseTo(-0.046, 12);
    expect(risk.var_95).toBeLessThan(-0.03);
    expect(reasons['risk.sortino']).toBeUndefined();
  });

  it('does not affect drawdowns, which include all bars', () => {
    const time = Array.from({ length: 8 }, (_, i) => day(0) + i * 6 * HOUR);
    const figures = run({ equity: [100, 80, 100, 101, 102, 90, 103, 104], time });
    expect(of(figures).risk.max_drawdown).toBeCloseTo(-0.2, 12);
  });
});

describe('drawdowns', () => {
  it('begin at the starting cash', () => {
    const { risk } = of(run({ equity: [90, 95, 99], initialCash: 100 }));
    expect(risk.max_drawdown).toBeCloseTo(-0.1, 12);
    expect(risk.max_drawdown_days).toBe(2);
  });

  it('last from the peak to the recovery, or to the end without one', () => {
    const recovered = of(run({ equity: [100, 120, 110, 115, 120, 121, 119, 125] }));
    expect(recovered.risk.max_drawdown_days).toBe(3);
    const never = of(run({ equity: [100, 120, 110, 115, 119, 118] }));
    expect(never.risk.max_drawdown_days).toBe(4);
    expect(of(run({ equity: [100, 100, 101] })).risk.max_drawdown_days).toBe(0);
  });

  it('are at most 100 %, and a debt only shows in the total return', () => {
    const result = of(run({ equity: [100, 50, -20] }));
    expect(result.risk.max_drawdown).toBe(-1);
    expect(result.returns.total).toBeCloseTo(-1.2, 12);
  });
});

describe('an undefined figure is null with a reason', () => {
  const reasons = (figures: RunFigures): Record<string, string> => of(figures).undefined;

  it('for no bar and one bar', () => {
    for (const equity of [[], [1000]]) {
      const result = of(run({ equity }));
      expect(result.returns.total).toBe(0);
      expect(result.risk.max_drawdown).toBe(0);
      expect(result.exposure.time).toBe(0);
      expect(result.undefined).toMatchObject({
        'risk.sharpe': 'too_few_returns',
        'risk.var_95': 'too_few_returns',
        'returns.best_day': 'too_few_returns',
        'returns.cagr': 'window_too_short',
        'costs.turnover': 'window_too_short',
      });
    }
  });

  it('for two bars, which have a best day but no deviation', () => {
    const result = of(run({ equity: [100, 110] }));
    expect(result.returns.best_day).toBeCloseTo(0.1, 12);
    expect(result.undefined).toMatchObject({ 'risk.volatility': 'too_few_returns' });
  });

  it('for an equity that never changes', () => {
    const result = of(run({ equity: Array.from({ length: 100 }, () => 1000) }));
    expect(result.risk.volatility).toBe(0);
    expect(result.undefined).toMatchObject({
      'risk.sharpe': 'zero_variance',
      'risk.sortino': 'no_negative_returns',
      'risk.calmar': 'no_drawdown',
    });
    expect(result.returns.cagr).toBe(0);
  });

  it('for an equity that changes only by rounding errors', () => {
    const steady = Array.from({ length: 400 }, (_, i) => 1000 * 1.001 ** i);
    expect(reasons(run({ equity: steady }))['risk.sharpe']).toBe('zero_variance');
    const noise = Array.from({ length: 400 }, (_, i) => 0.1 + 0.2 + (i % 3) * 5e-17);
    expect(new Set(noise).size).toBeGreaterThan(1);
    expect(reasons(run({ equity: noise }))).toMatchObject({
      'risk.sharpe': 'zero_variance',
      'risk.sortino': 'no_negative_returns',
      'risk.calmar': 'no_drawdown',
    });
  });

  it('for yearly rates of a window of 19 days, which would be 5·10²⁸ %', () => {
    const result = of(run({ equity: Array.from({ length: 20 }, (_, i) => 1000 * 1.17 ** i + i) }));
    expect(result.undefined).toMatchObject({
      'returns.cagr': 'window_too_short',
      'returns.annual': 'window_too_short',
      'costs.turnover': 'window_too_short',
    });
    expect(result.risk.sharpe).not.toBeNull();
    expect(reasons(run({ equity: zigzag(31) }))['returns.cagr']).toBeUndefined();
  });

  it('for an equity at or below zero', () => {
    const result = of(run({ equity: [...zigzag(60), 0] }));
    expect(result.returns.total).toBe(-1);
    for (const name of ['returns.cagr', 'returns.annual', 'risk.sharpe', 'risk.var_95']) {
      expect(result.undefined[name]).toBe('equity_not_positive');
    }
  });

  it('for no trades, and for trades that all won, all lost or all made the same', () => {
    const equity = zigzag(60);
    expect(reasons(run({ equity, openTrades: [trade(5)] }))).toMatchObject({
      'trades.win_rate': 'no_closed_trades',
      'trades.profit_factor': 'no_closed_trades',
      'trades.best': 'no_closed_trades',
    });
    expect(reasons(run({ equity, trades: [trade(5), trade(7), trade(0)] }))).toMatchObject({
      'trades.profit_factor': 'no_losing_trades',
      'trades.kelly': 'no_losing_trades',
    });
    const lost = of(run({ equity, trades: [trade(-5), trade(-7)] }));
    expect(lost.trades.profit_factor).toBe(0);
    expect(lost.undefined['trades.kelly']).toBe('no_winning_trades');
    expect(reasons(run({ equity, trades: [trade(5)] }))['trades.sqn']).toBe('zero_variance');
    const same = [0.1 + 0.2, 0.3].map((pnl) => trade(pnl));
    expect(reasons(run({ equity, trades: same }))['trades.sqn']).toBe('zero_variance');
  });
});

describe('trades and costs', () => {
  it('match the textbook formulas', () => {
    const figures = run({
      equity: zigzag(60),
      trades: [trade(300), trade(-100), trade(100), trade(-100)],
      openTrades: [trade(50)],
      fees: 12,
      stepsInMarket: 45,
    });
    const { trades, costs, exposure } = of(figures);
    expect(trades).toEqual({
      count: 4,
      open: 1,
      win_rate: 0.5,
      profit_factor: 2,
      expectancy: 50,
      average: expect.closeTo(0.005, 15),
      best: 0.03,
      worst: -0.01,
      sqn: expect.closeTo((2 * 50) / Math.sqrt(110_000 / 3), 12),
      kelly: 0.25,
    });
    expect(costs.fees).toBe(12);
    expect(exposure.time).toBe(0.75);
  });

  it('give a turnover per year, relative to the mean equity', () => {
    const figures = run({
      equity: [900, 1100],
      time: [day(0), day(731)],
      initialCash: 900,
      tradedNotional: 4000,
    });
    expect(of(figures).costs.turnover).toBeCloseTo(4 / (731 / 365.25), 12);
  });
});

describe('a percentile', () => {
  it('is linear between ranks', () => {
    expect(percentile(Float64Array.of(4, 1, 3, 2), 0.5)).toBe(2.5);
    expect(percentile(Float64Array.of(5, 1, 4, 2, 3), 0.25)).toBe(2);
    expect(percentile(Float64Array.of(7), 0.05)).toBe(7);
    expect(percentile(Float64Array.of(1, 2), 1)).toBe(2);
  });

  it('agrees with sorting', () => {
    const values = fc.array(fc.integer({ min: -5, max: 5 }), { minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(values, fc.double({ min: 0, max: 1, noNaN: true }), (list, q) => {
        const sorted = list.toSorted((a, b) => a - b);
        const rank = (list.length - 1) * q;
        const low = sorted[Math.floor(rank)]!;
        const high = sorted[Math.ceil(rank)]!;
        const expected = low + (high - low) * (rank - Math.floor(rank));
        expect(percentile(Float64Array.from(list), q)).toBeCloseTo(expected, 12);
      }),
    );
  });
});

describe('for any equity', () => {
  const returns = fc.array(fc.double({ min: -0.5, max: 0.5, noNaN: true }), {
    minLength: 1,
    maxLength: 120,
  });
  const curve = (changes: readonly number[], cash = 1000): number[] => {
    const equity = [cash];
    for (const change of changes) equity.push(equity.at(-1)! * (1 + change));
    return equity;
  };
  const numbersOf = (result: Statistics): [string, number | null][] =>
    (['returns', 'risk', 'trades', 'costs'] as const).flatMap((block) =>
      Object.entries(result[block]).map(([name, value]): [string, number | null] => [
        `${block}.${name}`,
        value,
      ]),
    );

  it('every figure is either finite or null with a reason', () => {
    fc.assert(
      fc.property(returns, fc.array(fc.integer({ min: -9, max: 9 })), (r, pnls) => {
        const result = of(run({ equity: curve(r), trades: pnls.map((pnl) => trade(pnl)) }));
        for (const [name, value] of numbersOf(result)) {
          if (value === null) expect(result.undefined).toHaveProperty([name]);
          else expect(Number.isFinite(value), name).toBe(true);
        }
        const nulls = numbersOf(result).filter(([, value]) => value === null);
        expect(Object.keys(result.undefined)).toHaveLength(nulls.length);
      }),
    );
  });

  it('ratios do not depend on the size of the account', () => {
    fc.assert(
      fc.property(returns, fc.integer({ min: -20, max: 20 }), (changes, exponent) => {
        // Scaling by a power of two is exact, so the ratios must be equal to the last bit.
        const scale = 2 ** exponent;
        const small = of(run({ equity: curve(changes) }));
        const large = of(run({ equity: curve(changes).map((value) => value * scale) }));
        expect({ ...large.returns, ...large.risk }).toEqual({ ...small.returns, ...small.risk });
      }),
    );
  });

  it('the drawdown is in [-1, 0] and only deepens with more history', () => {
    fc.assert(
      fc.property(returns, (changes) => {
        const equity = curve(changes);
        let before = 0;
        for (let length = 1; length <= equity.length; length++) {
          const { max_drawdown: now } = of(run({ equity: equity.slice(0, length) })).risk;
          expect(now).toBeGreaterThanOrEqual(-1);
          expect(now).toBeLessThanOrEqual(before);
          before = now;
        }
      }),
      { numRuns: runs(30) },
    );
  });

  it('the statistics equal a direct implementation of the formulas', () => {
    fc.assert(
      fc.property(returns, (changes) => {
        const equity = curve(changes);
        const { risk, returns: figures } = of(run({ equity }));
        const r = equity.slice(1).map((value, i) => value / equity[i]! - 1);
        const mean = r.reduce((sum, value) => sum + value, 0) / r.length;
        const squares = r.reduce((sum, value) => sum + (value - mean) ** 2, 0);
        const deviation = Math.sqrt(squares / (r.length - 1));
        const losses = r.reduce((sum, value) => sum + Math.min(value, 0) ** 2, 0);
        const year = daily(run({ equity }).time).periods_per_year;
        expect(figures.best_day).toBeCloseTo(Math.max(...r), 12);
        expect(figures.worst_day).toBeCloseTo(Math.min(...r), 12);
        if (risk.sharpe !== null && deviation > 1e-9) {
          const sharpe = (mean / deviation) * Math.sqrt(year);
          expect(risk.sharpe).toBeCloseTo(sharpe, 6 - Math.log10(1 + Math.abs(sharpe)));
        }
        if (risk.sortino !== null && losses > 1e-9) {
          const sortino = (mean / Math.sqrt(losses / r.length)) * Math.sqrt(year);
          expect(risk.sortino).toBeCloseTo(sortino, 6 - Math.log10(1 + Math.abs(sortino)));
        }
        if (risk.var_95 !== null && risk.cvar_95 !== null) {
          expect(risk.cvar_95).toBeLessThanOrEqual(risk.var_95);
          expect(risk.cvar_95).toBeGreaterThanOrEqual(Math.min(...r) - 1e-12);
        }
      }),
    );
  });
});
