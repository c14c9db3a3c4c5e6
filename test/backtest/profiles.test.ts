import { describe, expect, it } from 'vitest';
import { describeProfileFigure } from '../../src/backtest/profile-figures.ts';
import { PROFILES, profileStatistics, type Profile } from '../../src/backtest/profiles.ts';
import type { RunFigures } from '../../src/backtest/statistics.ts';
import { daily, day, goldenRun, run, trade } from './golden.ts';

const of = (profile: Profile, figures: RunFigures) =>
  profileStatistics(profile, figures, daily(figures.time));

const GOLDEN = {
  empyrical: {
    cum_returns_final: 0.3965090185,
    annual_return: 0.181739827,
    annual_volatility: 0.142664423,
    sharpe_ratio: 1.242040479,
    sortino_ratio: 1.872299997,
    calmar_ratio: 1.426595733,
    max_drawdown: -0.1273940632,
    omega_ratio: 1.197410704,
    tail_ratio: 1.078244626,
    value_at_risk: -0.013169513,
    conditional_value_at_risk: -0.013847796,
    stability_of_timeseries: 0.825006429,
  },
  quantstats: {
    cagr: 0.181739827,
    volatility: 0.142664423,
    sharpe: 1.242040479,
    sortino: 1.872299997,
    calmar: 1.426595733,
    adjusted_sortino: 1.323916024,
    value_at_risk: -0.014079168,
    conditional_value_at_risk: -0.014291966,
    ulcer_index: 0.051841525,
    recovery_factor: 2.781840585,
    payoff_ratio: 1.106005306,
    win_rate: 0.51984127,
    kelly_criterion: 0.085703452,
    smart_sharpe: 1.235487762,
    skew: -0.034989792,
    kurtosis: -1.258682559,
    probabilistic_sharpe_ratio: 0.9604044,
  },
  'backtesting-py': {
    return_ann: 0.181739827,
    cagr: 0.189191357,
    volatility_ann: 0.169336878,
    sharpe_ratio: 1.073244228,
    sortino_ratio: 1.92032225,
    calmar_ratio: 1.426595733,
  },
  lean: {
    compounding_annual_return: 0.189050328,
    annual_performance: 0.193789521,
    annual_standard_deviation: 0.142664423,
    sharpe_ratio: 1.358359133,
    sortino_ratio: 2.795255242,
    value_at_risk_95: -0.014164278,
    drawdown: 0.127,
    probabilistic_sharpe_ratio: 0.633854729,
  },
  freqtrade: {
    cagr: 0.189050328,
    sharpe: 1.002639297,
    sortino: 1.928566877,
    calmar: 9.551698053,
    max_drawdown_account: 0.112653907,
    max_relative_drawdown: 0.127394063,
    profit_factor: 1.187021216,
  },
} as const;

describe.each(PROFILES)('%s', (profile) => {
  const figures = of(profile, goldenRun());

  it.each(Object.entries(GOLDEN[profile]))('%s of the golden run is %d', (name, expected) => {
    expect(figures[name]).toBeCloseTo(expected, 8);
  });

  it('is null, not a placeholder, if the library divides by zero', () => {
    const flat = Array.from({ length: 60 }, () => 1000);
    const figuresOf = (equity: number[]) => Object.entries(of(profile, run({ equity })));
    const all = [[], [1000], [1000, 1010], flat].flatMap(figuresOf);
    expect(all.filter(([, value]) => value !== null && !Number.isFinite(value))).toEqual([]);
    const ratios = figuresOf(flat).filter(([name]) => /sharpe|sortino|calmar/.test(name));
    expect(ratios.filter(([, value]) => value !== null)).toEqual([]);
  });
});

describe('profiles of trades', () => {
  const equity = Array.from({ length: 60 }, (_, i) => 1000 + (i % 7));
  const figures = run({
    equity,
    initialCash: 1000,
    trades: [
      trade(100, { return: 0.1 }),
      trade(-110, { return: -0.1 }),
      trade(99, { return: 0.1 }),
    ],
    openTrades: [trade(-50, { return: -0.05 })],
  });

  it('use the capital before each trade for LEAN', () => {
    expect(of('lean', figures)).toMatchObject({
      average_win: expect.closeTo(0.1, 12),
      average_loss: expect.closeTo(-0.1, 12),
      profit_loss_ratio: expect.closeTo(1, 12),
      win_rate: 2 / 3,
      expectancy: expect.closeTo(1 / 3, 12),
    });
  });

  it('count an open trade as closed for freqtrade, and ignore it for backtesting.py', () => {
    const freqtrade = of('freqtrade', figures);
    expect(freqtrade['profit_total']).toBeCloseTo(0.039, 12);
    expect(freqtrade['winrate']).toBe(0.5);
    expect(freqtrade['expectancy']).toBeCloseTo(9.75, 12);
    const backtesting = of('backtesting-py', figures);
    expect(backtesting).toMatchObject({
      trades: 3,
      best_trade: 0.1,
      worst_trade: -0.1,
      win_rate: 2 / 3,
      profit_factor: expect.closeTo(2, 12),
      avg_trade: expect.closeTo((1.1 * 0.9 * 1.1) ** (1 / 3) - 1, 12),
    });
  });

  it('annualize with 365 days if the library does so for markets without weekends', () => {
    // These days include weekends.
    const lean = of('lean', figures);
    const empyrical = of('empyrical', figures);
    const ratio = lean['annual_standard_deviation']! / empyrical['annual_volatility']!;
    expect(ratio).toBeCloseTo(Math.sqrt(365 / 252), 12);
  });

  it('use the samples and the year of the conventions of the run', () => {
    const hours = Array.from({ length: 48 }, (_, i) => day(Math.floor(i / 4)) + i * 3_600_000);
    const intraday = run({ equity: hours.map((_, i) => 1000 + i), time: hours, initialCash: 500 });
    const conventions = { sampling: 'day', periods_per_year: 313 } as const;
    const { comp } = profileStatistics('quantstats', intraday, conventions);
    expect(comp).toBeCloseTo(1047 / 500 - 1, 12);
    const weekly = { sampling: 'week', periods_per_year: 52 } as const;
    const { annual_volatility: days } = of('empyrical', goldenRun());
    const { annual_volatility: weeks } = profileStatistics('empyrical', goldenRun(), weekly);
    expect(weeks! / days!).not.toBeCloseTo(1, 3);
  });
});

it.each(PROFILES)('every figure of the profile %s has a name and a formula', (profile) => {
  const golden = goldenRun();
  const names = Object.keys(profileStatistics(profile, golden, daily(golden.time)));
  const undescribed = names.filter((name) => describeProfileFigure(profile, name)[1] === '');
  expect(undescribed).toEqual([]);
  expect(describeProfileFigure(profile, 'constructor')).toEqual(['constructor', '']);
});
