import type { RunResult, Trade } from '../engine/result.ts';
import { tradingWeekdays } from '../market/gaps.ts';
import { bucketOf } from '../market/resample.ts';
import { DAY } from '../market/time.ts';
import { parseTimeframe, type Timeframe } from '../market/timeframe.ts';
import type { BacktestJob } from './job.ts';
import type { Conventions, RiskStatistics, Summary, UndefinedReason } from './summary.ts';

/** The part of a run that its statistics follow from. `initialCash` is positive. */
export type RunFigures = Pick<
  RunResult,
  | 'steps'
  | 'time'
  | 'equity'
  | 'initialCash'
  | 'trades'
  | 'openTrades'
  | 'fees'
  | 'slippage'
  | 'tradedNotional'
  | 'stepsInMarket'
>;

/** The blocks of `Summary` that are computed here, and why any figure in them is `null`. */
export type Statistics = Pick<
  Summary,
  'equity' | 'returns' | 'risk' | 'trades' | 'costs' | 'exposure' | 'undefined'
>;

type TailRisk = Pick<RiskStatistics, 'var_95' | 'cvar_95'>;

/** `Statistics` without the tail of the distribution, which costs more than all the rest. */
export type QuickStatistics = Omit<Statistics, 'risk'> & {
  readonly risk: Omit<RiskStatistics, keyof TailRisk>;
};

/** A statistic, or the reason why there is none. */
type Figure = number | UndefinedReason;

/** Below this many calendar days a yearly rate extrapolates noise: a good week reads as 10^20 %. */
export const SHORTEST_ANNUAL_DAYS = 30;
/**
 * A standard deviation this small is rounding, not risk: prices and cash carry 16 digits, so the
 * returns of a constant equity scatter around 1e-16 and their ratios would run into the billions.
 */
export const ROUNDING = 1e-12;

const BUCKETS: Readonly<Record<Conventions['sampling'], Timeframe>> = {
  day: parseTimeframe('1d'),
  week: parseTimeframe('1w'),
  month: parseTimeframe('1mo'),
};

/**
 * The conventions that fit a run's clock, printed with its results. A year has 12 samples of months,
 * 52 of weeks, and of days as many as its weekdays make that usually trade: 365 with all seven,
 * 313 with six, else 252.
 *
 * @param time Bar times in ms since the epoch, ascending.
 */
export function conventionsFor(
  time: Float64Array,
  { barMs }: Pick<BacktestJob, 'barMs'>,
): Conventions {
  const sampling = barMs <= DAY ? 'day' : barMs <= BUCKETS.week.ms ? 'week' : 'month';
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
 * The equity from which returns are taken: the starting cash, then the last of each UTC day, week or
 * month; `n` samples make `n - 1` returns. Where the first of these is a single bar in which nothing
 * was filled, it stands for the starting cash: its return of zero is nobody's doing.
 */
export function sampleEquity(
  { time, equity, initialCash }: Pick<RunFigures, 'time' | 'equity' | 'initialCash'>,
  sampling: Conventions['sampling'],
): Float64Array {
  const endOf = (instant: number): number => bucketOf(instant, BUCKETS[sampling]).end;
  const samples = [initialCash];
  let end = -Infinity;
  for (let i = 0; i < equity.length; i++) {
    if (time[i]! < end) continue;
    if (i > 0) samples.push(equity[i - 1]!);
    end = endOf(time[i]!);
  }
  if (equity.length > 0) samples.push(equity.at(-1)!);
  const isFirstAlone = time.length > 0 && !(time[1]! < endOf(time[0]!));
  if (isFirstAlone && equity[0] === initialCash) samples.shift();
  return Float64Array.from(samples);
}

/** How far each value lies below the highest so far, `peak` at first: −0.1 is 10 %, 0 a new peak. */
export function drawdownsOf(equity: Float64Array, peak = -Infinity): Float64Array {
  let highest = peak;
  return equity.map((value) => {
    highest = Math.max(highest, value);
    return value / highest - 1;
  });
}

/** Simple returns from each sample to the next. */
export function returnsOf(samples: Float64Array): Float64Array {
  const returns = new Float64Array(Math.max(0, samples.length - 1));
  for (let i = 0; i < returns.length; i++) {
    returns[i] = (samples[i + 1]! - samples[i]!) / samples[i]!;
  }
  return returns;
}

/**
 * Every statistic of a run.
 *
 * With A samples a year, n returns r, their mean μ and standard deviation s (ddof 1):
 * Sharpe (μ−f)/s·√A and Sortino (μ−f)/√(Σmin(r−f,0)²/n)·√A with f = risk_free/A; volatility s·√A;
 * `annual` (last/first sample)^(A/n)−1; `cagr` (1+total)^(year_days/days)−1 over the calendar days
 * from the first to the last bar; Calmar `cagr`/|max_drawdown|, both as printed.
 * `var_95` is the 5th percentile of r (linear between ranks), `cvar_95` the mean of all r ≤ it.
 * The drawdown is taken over all bars, not only the sampled ones, with the starting cash as the
 * first peak; −1 is everything, and a debt beyond that shows in `total`.
 * Turnover is the traded notional per year of 365.25 days, as a multiple of the mean equity.
 * SQN is √n·mean/s over the trades' profits; Kelly W−(1−W)/(mean gain/mean loss).
 */
export function statistics(run: RunFigures, conventions: Conventions): Statistics {
  const quick = quickStatistics(run, conventions);
  const reasons: Record<string, UndefinedReason> = {};
  // The tail exists wherever the volatility does: both need two returns from a positive equity.
  const lacking = quick.undefined['risk.volatility'];
  const tail: Record<keyof TailRisk, Figure> =
    lacking === undefined
      ? tailRisk(returnsOf(sampleEquity(run, conventions.sampling)))
      : { var_95: lacking, cvar_95: lacking };
  return {
    ...quick,
    risk: { ...quick.risk, ...settle('risk', tail, reasons) },
    undefined: { ...quick.undefined, ...reasons },
  };
}

/** What `statistics` computes except `var_95` and `cvar_95`: one pass over bars, samples, trades. */
export function quickStatistics(run: RunFigures, conventions: Conventions): QuickStatistics {
  const reasons: Record<string, UndefinedReason> = {};
  const curve = followEquity(run);
  const total = curve.end / run.initialCash - 1;
  const days = daysOf(run);
  const years = days / conventions.year_days;
  const { count, annual, best_day, worst_day, ...ratios } = returnFigures(run, conventions, days);

  const yearly = (equity: number, figure: number): Figure => {
    if (days < SHORTEST_ANNUAL_DAYS) return 'window_too_short';
    return equity > 0 ? figure : 'equity_not_positive';
  };
  const cagr = yearly(curve.end, (1 + total) ** (1 / years) - 1);
  let calmar: Figure = typeof cagr === 'string' ? cagr : cagr / -curve.maxDrawdown;
  if (curve.maxDrawdown > -ROUNDING) calmar = 'no_drawdown';
  const turnover = yearly(curve.mean, run.tradedNotional / curve.mean / years);

  return {
    equity: { start: run.initialCash, end: curve.end, peak: curve.peak },
    returns: {
      total,
      count,
      ...settle('returns', { cagr, annual, best_day, worst_day }, reasons),
    },
    risk: {
      ...settle('risk', { ...ratios, calmar }, reasons),
      max_drawdown: curve.maxDrawdown,
      max_drawdown_days: curve.maxDrawdownDays,
    },
    trades: {
      count: run.trades.length,
      open: run.openTrades.length,
      ...settle('trades', tradeFigures(run.trades), reasons),
    },
    costs: {
      fees: run.fees,
      slippage: run.slippage,
      ...settle('costs', { turnover }, reasons),
    },
    exposure: { time: run.steps === 0 ? 0 : run.stepsInMarket / run.steps },
    undefined: reasons,
  };
}

/** Calendar days from the first bar of a run to its last. */
export function daysOf({ steps, time }: Pick<RunFigures, 'steps' | 'time'>): number {
  return steps < 2 ? 0 : (time.at(-1)! - time[0]!) / DAY;
}

/** Turns reasons into `null`, and notes them under the figure's path. */
function settle<K extends string>(
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

/** The end, peak, mean and worst drawdown of the equity over all bars. */
function followEquity({ time, equity, initialCash }: RunFigures) {
  let peak = initialCash;
  let peakTime = time[0] ?? 0;
  let underWater = false;
  let longest = 0;
  let maxDrawdown = 0;
  // Only an equity below this deepens the drawdown: the division waits for that.
  let floor = peak;
  let sum = 0;
  for (let i = 0; i < equity.length; i++) {
    const value = equity[i]!;
    sum += value;
    if (value >= peak) {
      const now = time[i]!;
      if (underWater && now - peakTime > longest) longest = now - peakTime;
      underWater = false;
      peak = value;
      peakTime = now;
      floor = peak * (1 + maxDrawdown);
    } else {
      underWater = true;
      if (value < floor) {
        floor = value;
        maxDrawdown = value / peak - 1;
      }
    }
  }
  if (underWater) longest = Math.max(longest, time.at(-1)! - peakTime);
  return {
    end: equity.at(-1) ?? initialCash,
    peak,
    mean: equity.length === 0 ? initialCash : sum / equity.length,
    maxDrawdown: Math.max(-1, maxDrawdown),
    maxDrawdownDays: longest / DAY,
  };
}

/** Everything that follows from the sampled returns, but for their tail. */
function returnFigures(run: RunFigures, conventions: Conventions, days: number) {
  const { periods_per_year: perYear, ddof } = conventions;
  const samples = sampleEquity(run, conventions.sampling);
  const count = samples.length - 1;
  if (count < 1) return { count: 0, ...allReturnFigures('too_few_returns') };

  const growth = samples[count]! / samples[0]!;
  // The mean lies close to this, and squares taken around it lose no digits to cancellation.
  const centre = growth > 0 ? growth ** (1 / count) - 1 : 0;
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
    const deviation = change - centre;
    deviations += deviation;
    squares += deviation * deviation;
    // Twice the shortfall, or zero: a branch here would be mispredicted on every other bar.
    const shortfall = Math.abs(change - riskFree) - (change - riskFree);
    downside += shortfall * shortfall;
  }
  if (lowest <= 0) return { count, ...allReturnFigures('equity_not_positive') };

  const annual: Figure =
    days < SHORTEST_ANNUAL_DAYS ? 'window_too_short' : growth ** (perYear / count) - 1;
  if (count <= ddof) {
    const ratios = allReturnFigures('too_few_returns');
    return { ...ratios, count, annual, best_day: best, worst_day: worst };
  }
  const excessMean = centre + deviations / count - riskFree;
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

const allReturnFigures = (figure: Figure) => ({
  annual: figure,
  best_day: figure,
  worst_day: figure,
  volatility: figure,
  sharpe: figure,
  sortino: figure,
});

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

/**
 * The value below which the share `q` of `values` lies, linear between ranks (numpy's default).
 * Partly sorts `values` in place.
 */
export function percentile(values: Float64Array, q: number): number {
  const rank = (values.length - 1) * q;
  const below = Math.floor(rank);
  const low = select(values, below);
  if (rank === below) return low;
  let high = Infinity;
  for (let i = below + 1; i < values.length; i++) if (values[i]! < high) high = values[i]!;
  return low + (high - low) * (rank - below);
}

/**
 * The value of rank `k`, with smaller ones moved before it and larger ones behind it (Hoare's
 * quickselect): on 100,000 values forty times as fast as sorting them all.
 */
function select(values: Float64Array, k: number): number {
  let from = 0;
  let to = values.length - 1;
  while (from < to) {
    const pivot = values[(from + to) >> 1]!;
    let left = from;
    let right = to;
    while (left <= right) {
      while (values[left]! < pivot) left++;
      while (values[right]! > pivot) right--;
      if (left > right) break;
      const value = values[left]!;
      values[left++] = values[right]!;
      values[right--] = value;
    }
    if (k <= right) to = right;
    else if (k >= left) from = left;
    else break;
  }
  return values[k]!;
}

function tradeFigures(trades: readonly Trade[]) {
  const count = trades.length;
  let wins = 0;
  let losses = 0;
  let gained = 0;
  let lost = 0;
  let returns = 0;
  let best = -Infinity;
  let worst = Infinity;
  for (const trade of trades) {
    if (trade.pnl > 0) {
      wins++;
      gained += trade.pnl;
    } else if (trade.pnl < 0) {
      losses++;
      lost -= trade.pnl;
    }
    returns += trade.return;
    if (trade.return > best) best = trade.return;
    if (trade.return < worst) worst = trade.return;
  }
  if (count === 0) {
    const none: Figure = 'no_closed_trades';
    return {
      win_rate: none,
      profit_factor: none,
      expectancy: none,
      average: none,
      best: none,
      worst: none,
      sqn: none,
      kelly: none,
    };
  }
  const mean = (gained - lost) / count;
  let squares = 0;
  for (const trade of trades) squares += (trade.pnl - mean) ** 2;
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
