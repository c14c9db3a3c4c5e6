import type { RunResult } from '../engine/run-result.ts';
import type { TradeOutcomes } from '../engine/round-trip.ts';
import { tradingWeekdays } from '../market/data-gaps.ts';
import { DAY } from '../base/durations.ts';
import type { BacktestJob } from './job.ts';
import { percentile, returnsOf, ROUNDING, sampleEquity } from './returns.ts';
import type { Conventions, RiskStatistics, Summary, UndefinedReason } from './summary.ts';

/** The parts of a run from which its statistics are computed. `initialCash` is positive. */
export type RunFigures = Pick<
  RunResult,
  | 'steps'
  | 'time'
  | 'equity'
  | 'drawdown'
  | 'initialCash'
  | 'trades'
  | 'tradeOutcomes'
  | 'openTrades'
  | 'fees'
  | 'slippage'
  | 'tradedNotional'
  | 'stepsInMarket'
>;

export type Statistics = Pick<
  Summary,
  'equity' | 'returns' | 'risk' | 'trades' | 'costs' | 'exposure' | 'undefined'
>;

type TailRisk = Pick<RiskStatistics, 'var_95' | 'cvar_95'>;

/** `Statistics` without those that take longer to compute than everything else. */
export type QuickStatistics = Omit<Statistics, 'risk' | 'costs'> & {
  readonly risk: Omit<RiskStatistics, keyof TailRisk>;
  readonly costs: Omit<Statistics['costs'], 'turnover'>;
};

/** A statistic, or the reason why it is undefined. */
type Figure = number | UndefinedReason;

/** In shorter windows, calendar days, yearly rates are undefined: a good week would be 10^20 %. */
export const SHORTEST_ANNUAL_DAYS = 30;
/**
 * Chooses the conventions for the bars of a run. Samples per year: 12 months, 52 weeks, or the days on
 * which the market usually trades: 365 with seven trading weekdays, 313 with six, else 252.
 *
 * @param time bar times in ms since the epoch, ascending
 */
export function conventionsFor(
  time: Float64Array,
  { barMs }: Pick<BacktestJob, 'barMs'>,
): Conventions {
  const sampling = barMs <= DAY ? 'day' : barMs <= 7 * DAY ? 'week' : 'month';
  const periods = { day: daysPerYear(time), week: 52, month: 12 };
  return {
    periods_per_year: periods[sampling],
    year_days: 365.25,
    ddof: 1,
    risk_free: 0,
    sampling,
    return_kind: 'simple',
    downside: 'full_n',
    trades: 'flat_to_flat',
    numbers: 'float64',
  };
}

function daysPerYear(time: Float64Array): number {
  const weekdays = tradingWeekdays(time).filter(Boolean).length;
  return weekdays === 7 ? 365 : weekdays === 6 ? 313 : 252;
}

/**
 * Computes every statistic of a run by the formulas of `RUN_FIGURES`. With A samples per year, n returns
 * r, their mean μ and standard deviation s (ddof 1), and f = risk_free/A, Sharpe is (μ−f)/s·√A and
 * Sortino (μ−f)/√(Σmin(r−f,0)²/n)·√A.
 *
 * Calendar days are counted from the first to the last bar. Drawdowns include all bars, not only the
 * samples, and the starting cash as the first peak. They stop at −1; a debt beyond that is part of
 * `total` only.
 */
export function statistics(run: RunFigures, conventions: Conventions): Statistics {
  const quick = quickStatistics(run, conventions);
  const reasons: Record<string, UndefinedReason> = {};
  const mean = meanEquity(run);
  const years = daysOf(run) / conventions.year_days;
  const turnover = yearly(run, mean, run.tradedNotional / mean / years);
  const costs = { ...quick.costs, ...toNullable('costs', { turnover }, reasons) };
  // Tail risk and volatility are undefined for the same reasons: both need two returns.
  const lacking = quick.undefined['risk.volatility'];
  const tail: Record<keyof TailRisk, Figure> =
    lacking === undefined
      ? tailRisk(returnsOf(sampleEquity(run, conventions.sampling)))
      : { var_95: lacking, cvar_95: lacking };
  return {
    ...quick,
    costs,
    risk: { ...quick.risk, ...toNullable('risk', tail, reasons) },
    undefined: { ...quick.undefined, ...reasons },
  };
}

/** Like `statistics`, but without `var_95`, `cvar_95` and `turnover`: one pass over samples and trades. */
export function quickStatistics(run: RunFigures, conventions: Conventions): QuickStatistics {
  const reasons: Record<string, UndefinedReason> = {};
  const { peak, deepest, longestMs } = run.drawdown;
  const end = run.equity.at(-1) ?? run.initialCash;
  const total = end / run.initialCash - 1;
  const days = daysOf(run);
  const years = days / conventions.year_days;
  const { count, annual, best_day, worst_day, ...ratios } = returnFigures(run, conventions, days);

  const cagr = yearly(run, end, (1 + total) ** (1 / years) - 1);
  const maxDrawdown = Math.max(-1, deepest);
  let calmar: Figure = typeof cagr === 'string' ? cagr : cagr / -maxDrawdown;
  if (maxDrawdown > -ROUNDING) calmar = 'no_drawdown';

  return {
    equity: { start: run.initialCash, end, peak },
    returns: {
      total,
      count,
      ...toNullable('returns', { cagr, annual, best_day, worst_day }, reasons),
    },
    risk: {
      ...toNullable('risk', { ...ratios, calmar }, reasons),
      max_drawdown: maxDrawdown,
      max_drawdown_days: longestMs / DAY,
    },
    trades: {
      count: run.tradeOutcomes.pnl.length,
      open: run.openTrades.length,
      ...toNullable('trades', tradeFigures(run.tradeOutcomes), reasons),
    },
    costs: { fees: run.fees, slippage: run.slippage },
    exposure: { time: run.steps === 0 ? 0 : run.stepsInMarket / run.steps },
    undefined: reasons,
  };
}

export function daysOf({ steps, time }: Pick<RunFigures, 'steps' | 'time'>): number {
  return steps < 2 ? 0 : (time.at(-1)! - time[0]!) / DAY;
}

/** Returns a yearly rate, or the reason why it is undefined for this run and final equity. */
function yearly(run: RunFigures, equity: number, figure: number): Figure {
  if (daysOf(run) < SHORTEST_ANNUAL_DAYS) return 'window_too_short';
  return equity > 0 ? figure : 'equity_not_positive';
}

/** Replaces reasons by `null`, and adds them to `reasons` under the figure's path. */
function toNullable<K extends string>(
  block: string,
  figures: Readonly<Record<K, Figure>>,
  reasons: Record<string, UndefinedReason>,
): Record<K, number | null> {
  const settled = {} as Record<K, number | null>;
  for (const name of Object.keys(figures) as K[]) {
    const figure: Figure = figures[name];
    if (typeof figure === 'number') {
      settled[name] = figure;
    } else {
      settled[name] = null;
      reasons[`${block}.${name}`] = figure;
    }
  }
  return settled;
}

function meanEquity({ equity, initialCash }: RunFigures): number {
  if (equity.length === 0) return initialCash;
  let sum = 0;
  for (let i = 0; i < equity.length; i++) sum += equity[i]!;
  return sum / equity.length;
}

function returnFigures(run: RunFigures, conventions: Conventions, days: number) {
  const { periods_per_year: perYear, ddof } = conventions;
  const samples = sampleEquity(run, conventions.sampling);
  const count = samples.length - 1;
  if (count < 1) return { count: 0, ...allUndefined(RETURN_FIGURES, 'too_few_returns') };

  const growth = samples[count]! / samples[0]!;
  // Deviations from this value, which is close to the mean, avoid cancellation in the variance.
  const center = growth > 0 ? growth ** (1 / count) - 1 : 0;
  const riskFree = conventions.risk_free / perYear;
  let deviations = 0;
  let squares = 0;
  let downside = 0;
  let best = -Infinity;
  let worst = Infinity;
  let lowest = samples[0]!;
  for (let i = 1; i <= count; i++) {
    const before = samples[i - 1]!;
    const after = samples[i]!;
    if (after < lowest) lowest = after;
    const change = (after - before) / before;
    if (change > best) best = change;
    if (change < worst) worst = change;
    const deviation = change - center;
    deviations += deviation;
    squares += deviation * deviation;
    // Twice the shortfall, or zero, without a branch, which would often be mispredicted.
    const shortfall = Math.abs(change - riskFree) - (change - riskFree);
    downside += shortfall * shortfall;
  }
  if (lowest <= 0) return { count, ...allUndefined(RETURN_FIGURES, 'equity_not_positive') };

  const annual: Figure =
    days < SHORTEST_ANNUAL_DAYS ? 'window_too_short' : growth ** (perYear / count) - 1;
  if (count <= ddof) {
    const ratios = allUndefined(RETURN_FIGURES, 'too_few_returns');
    return { ...ratios, count, annual, best_day: best, worst_day: worst };
  }
  const excessMean = center + deviations / count - riskFree;
  const variance = (squares - (deviations * deviations) / count) / (count - ddof);
  const deviation = Math.sqrt(Math.max(0, variance));
  const downsideDeviation = Math.sqrt(downside / 4 / count);
  const scale = Math.sqrt(perYear);
  const volatility: Figure = deviation <= ROUNDING ? 0 : deviation * scale;
  const sharpe: Figure = volatility === 0 ? 'zero_variance' : (excessMean / deviation) * scale;
  const sortino: Figure =
    downsideDeviation <= ROUNDING
      ? 'no_negative_returns'
      : (excessMean / downsideDeviation) * scale;
  return { count, annual, best_day: best, worst_day: worst, volatility, sharpe, sortino };
}

const RETURN_FIGURES = [
  'annual',
  'best_day',
  'worst_day',
  'volatility',
  'sharpe',
  'sortino',
] as const;
const TRADE_FIGURES = [
  'win_rate',
  'profit_factor',
  'expectancy',
  'average',
  'best',
  'worst',
  'sqn',
  'kelly',
] as const;

function allUndefined<K extends string>(
  names: readonly K[],
  reason: UndefinedReason,
): Record<K, Figure> {
  return Object.fromEntries(names.map((name) => [name, reason])) as Record<K, Figure>;
}

function tailRisk(returns: Float64Array): Record<keyof TailRisk, number> {
  const var95 = percentile(returns, 0.05);
  let sum = 0;
  let count = 0;
  for (const value of returns) {
    if (value > var95) continue;
    sum += value;
    count++;
  }
  return { var_95: var95, cvar_95: sum / count };
}

function tradeFigures({ pnl: pnls, return: rates }: TradeOutcomes) {
  const count = pnls.length;
  if (count === 0) return allUndefined(TRADE_FIGURES, 'no_closed_trades');
  let wins = 0;
  let losses = 0;
  let gained = 0;
  let lost = 0;
  let returns = 0;
  let best = -Infinity;
  let worst = Infinity;
  for (let i = 0; i < count; i++) {
    const pnl = pnls[i]!;
    if (pnl > 0) {
      wins++;
      gained += pnl;
    } else if (pnl < 0) {
      losses++;
      lost -= pnl;
    }
    const rate = rates[i]!;
    returns += rate;
    if (rate > best) best = rate;
    if (rate < worst) worst = rate;
  }
  const mean = (gained - lost) / count;
  let squares = 0;
  for (const pnl of pnls) squares += (pnl - mean) ** 2;
  const deviation = count < 2 ? 0 : Math.sqrt(squares / (count - 1));

  const winRate = wins / count;
  const profitFactor: Figure = losses === 0 ? 'no_losing_trades' : gained / lost;
  const sqn: Figure =
    deviation <= ROUNDING * Math.abs(mean)
      ? 'zero_variance'
      : (Math.sqrt(count) * mean) / deviation;
  let kelly: Figure = winRate - (1 - winRate) / (gained / wins / (lost / losses));
  if (losses === 0) kelly = 'no_losing_trades';
  else if (wins === 0) kelly = 'no_winning_trades';
  return {
    win_rate: winRate,
    profit_factor: profitFactor,
    expectancy: mean,
    average: returns / count,
    best,
    worst,
    sqn,
    kelly,
  };
}
