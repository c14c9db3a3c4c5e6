import { DAY } from '../base/durations.ts';
import { momentsOf, probabilisticSharpe } from './deflated-sharpe.ts';
import { normalQuantile } from './normal.ts';
import { drawdownsOf, percentile, returnsOf, ROUNDING, sampleEquity } from './returns.ts';
import type { RunFigures } from './statistics.ts';
import type { Conventions } from './summary.ts';

export const PROFILES = ['quantstats', 'lean', 'freqtrade', 'backtesting-py', 'empyrical'] as const;
export type Profile = (typeof PROFILES)[number];

/**
 * Computes the statistics of a run as another library does, for comparison with its output. Names,
 * formulas and signs match the library, including its errors. Percentages are shares (0.12 is
 * 12 %), and the risk-free rate is 0. A figure is `null` if the library divides by zero or returns a
 * placeholder (freqtrade −100, LEAN 0).
 *
 * Versions: quantstats 0.0.81; LEAN of August 2026; freqtrade of October 2024, but with drawdowns from
 * the starting balance as in later versions; backtesting.py 0.6.6 with the annualization fixed in
 * 2026; empyrical 0.5.5.
 */
export function profileStatistics(
  profile: Profile,
  run: RunFigures,
  conventions: Pick<Conventions, 'sampling' | 'periods_per_year'>,
): Readonly<Record<string, number | null>> {
  const figures = FORMULAS[profile](run, seriesOf(run, conventions));
  return Object.fromEntries(
    Object.entries(figures).map(([name, value]) => [name, Number.isFinite(value) ? value : null]),
  );
}

const FORMULAS: Record<Profile, (run: RunFigures, series: Series) => Record<string, number>> = {
  quantstats,
  lean,
  freqtrade,
  'backtesting-py': backtestingPy,
  empyrical,
};

type Series = ReturnType<typeof seriesOf>;

function seriesOf(
  run: RunFigures,
  { sampling, periods_per_year: perYear }: Pick<Conventions, 'sampling' | 'periods_per_year'>,
) {
  const samples = sampleEquity(run, sampling);
  const returns = returnsOf(samples);
  const moments = momentsOf(returns);
  const growth = samples.at(-1)! / samples[0]!;
  const weekdayYear = sampling === 'day' ? 252 : perYear;
  return {
    samples,
    returns,
    ...moments,
    deviation: moments.deviation > ROUNDING ? moments.deviation : NaN,
    /** Root of the mean squared loss over all returns. */
    downside: Math.sqrt(mean(returns.map((r) => Math.min(r, 0) ** 2))),
    growth,
    drawdowns: drawdownsOf(samples),
    days: (run.time.at(-1)! - run.time[0]!) / DAY,
    /** 252, 52 or 12 for daily, weekly or monthly returns, in every market. */
    weekdayYear,
    /** As `weekdayYear`, but 365 for daily returns of a market that never closes. */
    marketYear: perYear === 365 ? perYear : weekdayYear,
  };
}

/** The conditional value at risk is the mean of the lowest ⌊(n−1)/20⌋+1 returns. */
function empyrical(_: RunFigures, series: Series) {
  const { returns, count, growth, mean: average, deviation, downside, weekdayYear: year } = series;
  const annual = growth ** (year / count) - 1;
  const maxDrawdown = deepest(series.drawdowns);
  const sorted = returns.toSorted();
  const logs = cumulate(returns.map((r) => Math.log1p(r)));
  const steps = logs.map((_value, i) => i);
  return {
    cum_returns_final: growth - 1,
    annual_return: annual,
    annual_volatility: deviation * Math.sqrt(year),
    sharpe_ratio: (average / deviation) * Math.sqrt(year),
    sortino_ratio: (average / downside) * Math.sqrt(year),
    calmar_ratio: annual / -maxDrawdown,
    max_drawdown: maxDrawdown,
    omega_ratio: sum(returns.filter(isGain)) / -sum(returns.filter(isLoss)),
    tail_ratio: Math.abs(percentile(sorted, 0.95)) / Math.abs(percentile(sorted, 0.05)),
    value_at_risk: percentile(sorted, 0.05),
    conditional_value_at_risk: mean(sorted.subarray(0, Math.floor((count - 1) * 0.05) + 1)),
    stability_of_timeseries: correlation(steps, logs) ** 2,
  };
}

/**
 * Reproduces the code of 0.0.81: the recovery factor uses the plain sum of returns; CVaR is the mean of
 * the returns below the VaR of a normal distribution; the probabilistic Sharpe ratio subtracts 3 from
 * an excess kurtosis. Later versions fixed the last two.
 */
function quantstats(_: RunFigures, series: Series) {
  const { returns, count, growth, mean: average, deviation, downside, weekdayYear: year } = series;
  const { drawdowns, skewness, kurtosis } = series;
  const cagr = growth ** (year / count) - 1;
  const maxDrawdown = deepest(drawdowns);
  const gains = returns.filter(isGain);
  const losses = returns.filter(isLoss);
  const payoff = mean(gains) / -mean(losses);
  const winRate = gains.length / (gains.length + losses.length);
  const valueAtRisk = average + deviation * normalQuantile(0.05);
  const beyond = returns.filter((r) => r < valueAtRisk);
  const sortino = (average / downside) * Math.sqrt(year);

  const carry = Math.abs(correlation(returns.subarray(0, -1), returns.subarray(1)));
  let autocorrelation = 0;
  for (let lag = 1; lag < count; lag++) autocorrelation += ((count - lag) / count) * carry ** lag;

  const sharpe = average / deviation;
  const excess = kurtosis - 3;
  return {
    comp: growth - 1,
    cagr,
    volatility: deviation * Math.sqrt(year),
    sharpe: sharpe * Math.sqrt(year),
    smart_sharpe: (sharpe * Math.sqrt(year)) / Math.sqrt(1 + 2 * autocorrelation),
    sortino,
    adjusted_sortino: sortino / Math.SQRT2,
    calmar: cagr / -maxDrawdown,
    max_drawdown: maxDrawdown,
    value_at_risk: valueAtRisk,
    conditional_value_at_risk: beyond.length > 0 ? mean(beyond) : valueAtRisk,
    ulcer_index: Math.sqrt(sum(drawdowns.map((d) => d * d)) / (count - 1)),
    recovery_factor: Math.abs(sum(returns)) / -maxDrawdown,
    payoff_ratio: payoff,
    win_rate: winRate,
    kelly_criterion: (payoff * winRate - (1 - winRate)) / payoff,
    skew: skewness,
    kurtosis: excess,
    // sharpe²/2 + sharpe² × (kurtosis − 3)/4 equals sharpe² × (kurtosis − 1)/4.
    probabilistic_sharpe_ratio: probabilisticSharpe(
      { count, sharpe, skewness, kurtosis: excess },
      0,
    ),
  };
}

/**
 * Reproduces LEAN's code: the numerator of Sharpe and Sortino is the compounded mean return; Sortino
 * divides by the deviation of the negative returns around their own mean; the probabilistic Sharpe
 * ratio uses the excess kurtosis as if it were raw, with a yearly Sharpe ratio of 1 as benchmark; the
 * drawdown is positive and rounded to three places. Trade returns are relative to the capital realized
 * before each trade. The value at risk covers the last year of samples and is not rounded (LEAN
 * rounds it to three places).
 */
function lean(run: RunFigures, series: Series) {
  const { returns, count, mean: average, deviation, skewness, kurtosis, marketYear: year } = series;
  const performance = (1 + average) ** year - 1;
  const lossDeviation = momentsOf(returns.filter(isLoss)).deviation;
  const recent = momentsOf(returns.subarray(-year));

  let capital = run.initialCash;
  const wins: number[] = [];
  const losses: number[] = [];
  for (const { pnl } of run.trades) {
    (pnl > 0 ? wins : losses).push(pnl / capital);
    capital += pnl;
  }
  const winRate = wins.length / run.trades.length;
  const profitLoss = mean(wins) / Math.abs(mean(losses));
  const end = series.samples.at(-1)!;
  return {
    net_profit: end / run.initialCash - 1,
    compounding_annual_return: (end / run.initialCash) ** (365 / series.days) - 1,
    annual_performance: performance,
    annual_variance: deviation ** 2 * year,
    annual_standard_deviation: deviation * Math.sqrt(year),
    sharpe_ratio: performance / (deviation * Math.sqrt(year)),
    sortino_ratio: performance / (lossDeviation * Math.sqrt(year)),
    probabilistic_sharpe_ratio: probabilisticSharpe(
      { count, sharpe: average / deviation, skewness, kurtosis: kurtosis - 3 },
      1 / Math.sqrt(year),
    ),
    value_at_risk_95: recent.mean + recent.deviation * normalQuantile(0.05),
    drawdown: Math.round(-deepest(series.drawdowns) * 1000) / 1000,
    win_rate: winRate,
    loss_rate: 1 - winRate,
    average_win: mean(wins),
    average_loss: mean(losses),
    profit_loss_ratio: profitLoss,
    expectancy: winRate * profitLoss - (1 - winRate),
  };
}

/**
 * Reproduces freqtrade's code: all figures are computed from the profits of trades; open trades count as
 * closed at the end. Sharpe and Sortino divide the mean profit per day by the deviation per trade;
 * Sortino's deviation is that of the losing trades around their own mean. Calmar divides the mean
 * profit per day in percent, times √365, by the relative depth of the drawdown with the largest loss
 * of money. Drawdowns are positive.
 */
function freqtrade(run: RunFigures, series: Series) {
  const trades = [...run.trades, ...run.openTrades];
  const profits = Float64Array.from(trades, ({ pnl }) => pnl / run.initialCash);
  const days = Math.max(1, Math.floor(series.days));
  const total = sum(profits);
  const gains = profits.filter(isGain);
  const losses = profits.filter(isLoss);
  const winRate = gains.length / trades.length;

  let balance = 1;
  let peak = 1;
  let largest = 0;
  let relativeAtLargest = 0;
  let largestRelative = 0;
  for (const profit of profits) {
    balance += profit;
    peak = Math.max(peak, balance);
    const relative = (peak - balance) / peak;
    largestRelative = Math.max(largestRelative, relative);
    if (peak - balance > largest) {
      largest = peak - balance;
      relativeAtLargest = relative;
    }
  }
  return {
    profit_total: total,
    cagr: (1 + total) ** (365 / Math.floor(series.days)) - 1,
    sharpe: (total / days / populationDeviation(profits)) * Math.sqrt(365),
    sortino: (total / days / populationDeviation(losses)) * Math.sqrt(365),
    calmar: ((total / days) * 100 * Math.sqrt(365)) / relativeAtLargest,
    profit_factor: sum(gains) / -sum(losses),
    max_drawdown_account: relativeAtLargest,
    max_relative_drawdown: largestRelative,
    winrate: winRate,
    expectancy: (total * run.initialCash) / trades.length,
    expectancy_ratio: (1 + mean(gains) / -mean(losses)) * winRate - 1,
  };
}

/**
 * Reproduces the code of backtesting.py: the volatility is that of the compounded return (SSRN 3054517);
 * Sharpe divides the geometric annual return by it. Profit factor and expectancy use the returns of
 * trades, SQN and Kelly their profits. Open trades do not count.
 */
function backtestingPy(run: RunFigures, series: Series) {
  const { returns, deviation, downside, marketYear: year } = series;
  const growth = 1 + geometricMean(returns);
  const annual = growth ** year - 1;
  const variance = (deviation ** 2 + growth ** 2) ** year - growth ** (2 * year);
  const maxDrawdown = deepest(drawdownsOf(run.equity));

  const profits = Float64Array.from(run.trades, ({ pnl }) => pnl);
  const rates = Float64Array.from(run.trades, ({ return: rate }) => rate);
  const winRate = profits.filter(isGain).length / profits.length;
  const payoff = mean(profits.filter(isGain)) / -mean(profits.filter(isLoss));
  const total = run.equity.at(-1)! / run.equity[0]!;
  return {
    return: total - 1,
    return_ann: annual,
    volatility_ann: Math.sqrt(variance),
    cagr: total ** (365.25 / series.days) - 1,
    sharpe_ratio: annual / Math.sqrt(variance),
    sortino_ratio: annual / (downside * Math.sqrt(year)),
    calmar_ratio: annual / -maxDrawdown,
    max_drawdown: maxDrawdown,
    trades: profits.length,
    win_rate: winRate,
    best_trade: rates.reduce((best, rate) => Math.max(best, rate), -Infinity),
    worst_trade: rates.reduce((worst, rate) => Math.min(worst, rate), Infinity),
    avg_trade: geometricMean(rates),
    profit_factor: sum(rates.filter(isGain)) / -sum(rates.filter(isLoss)),
    expectancy: mean(rates),
    sqn: (Math.sqrt(profits.length) * mean(profits)) / momentsOf(profits).deviation,
    kelly_criterion: winRate - (1 - winRate) / payoff,
  };
}

const isGain = (value: number): boolean => value > 0;
const isLoss = (value: number): boolean => value < 0;

type Values = ArrayLike<number> & Iterable<number>;

function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}

const mean = (values: Values): number => sum(values) / values.length;

function populationDeviation(values: Float64Array): number {
  const center = mean(values);
  const deviation = Math.sqrt(mean(values.map((value) => (value - center) ** 2)));
  return deviation > ROUNDING ? deviation : NaN;
}

/** Zero if any return is −100 % or less, because the root is undefined. */
function geometricMean(returns: Float64Array): number {
  if (returns.some((r) => r <= -1)) return 0;
  return Math.expm1(mean(returns.map((r) => Math.log1p(r))));
}

const deepest = (drawdowns: Float64Array): number =>
  drawdowns.reduce((least, drawdown) => Math.min(least, drawdown), 0);

function cumulate(values: Float64Array): Float64Array {
  let total = 0;
  return values.map((value) => (total += value));
}

function correlation(x: Float64Array, y: Float64Array): number {
  const [meanX, meanY] = [mean(x), mean(y)];
  const dx = x.map((value) => value - meanX);
  const dy = y.map((value) => value - meanY);
  const squares = (d: Float64Array): number => sum(d.map((value) => value * value));
  return sum(dx.map((value, i) => value * dy[i]!)) / Math.sqrt(squares(dx) * squares(dy));
}
