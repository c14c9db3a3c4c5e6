import { firstAtLeast } from '../base/sorted.ts';
import { sliceBars, type Bars } from '../market/bars.ts';
import { curveStatistics, type Curve } from './curve-statistics.ts';
import { momentsOf } from './deflated-sharpe.ts';
import type { BenchmarkSeries } from './job.ts';
import { returnsOf, ROUNDING, sampleEquity } from './returns.ts';
import type { BenchmarkStatistics, Conventions, UndefinedReason } from './summary.ts';

/** Buying and holding, as a curve to compare a run with. */
export interface Benchmark {
  /** Absent for the instruments of the run. */
  readonly series?: BenchmarkSeries | undefined;
  /** Equity at each step of the run. */
  readonly equity: Float64Array;
}

export function benchmarkOf(
  job: {
    readonly instruments: readonly { readonly bars: Bars }[];
    readonly benchmark?: BenchmarkSeries | undefined;
  },
  { time, initialCash }: Pick<Curve, 'time' | 'initialCash'>,
): Benchmark {
  const { instruments, benchmark: series } = job;
  const held = series === undefined ? instruments : [{ bars: barsSince(series.bars, time[0]!) }];
  const equity = holdEquity(held, time, initialCash);
  return { series, equity };
}

/** The bars from the last one at or before a time on. A window of a walk-forward analysis can begin after the first bar. */
function barsSince(bars: Bars, start: number): Bars {
  const next = firstAtLeast(bars.time.subarray(0, bars.length), start + 1, 0);
  return sliceBars(bars, Math.max(0, next - 1), bars.length);
}

/**
 * Equity at each of the times if the cash had been divided equally among the instruments, each bought
 * at the close of its first bar and held, without costs.
 */
export function holdEquity(
  instruments: readonly { readonly bars: Bars }[],
  time: Float64Array,
  initialCash: number,
): Float64Array {
  const equity = new Float64Array(time.length);
  const share = initialCash / instruments.length;
  for (const { bars } of instruments) {
    const units = share / bars.close[0]!;
    if (isSameColumn(bars.time, time)) {
      for (let step = 0; step < time.length; step += 1) equity[step]! += units * bars.close[step]!;
      continue;
    }
    let next = 0;
    let value = share;
    for (let step = 0; step < time.length; step += 1) {
      for (; next < bars.length && bars.time[next]! <= time[step]!; next += 1) {
        value = units * bars.close[next]!;
      }
      equity[step]! += value;
    }
  }
  return equity;
}

/**
 * Whether two columns start at the same place of the same memory, such as the times of a run and of its
 * only instrument. Their lengths may differ.
 */
function isSameColumn(one: Float64Array, other: Float64Array): boolean {
  return one.buffer === other.buffer && one.byteOffset === other.byteOffset;
}

/** Figures of a run against its benchmark, and the reasons for those that are undefined. */
export interface BenchmarkComparison {
  readonly benchmark: BenchmarkStatistics;
  /** Keyed by path, such as `benchmark.alpha`. */
  readonly undefined: Readonly<Record<string, UndefinedReason>>;
}

const RELATIVE_FIGURES = [
  'alpha',
  'beta',
  'correlation',
  'tracking_error',
  'information_ratio',
] as const;
type Relative = Record<(typeof RELATIVE_FIGURES)[number], number | UndefinedReason>;

/** Computes the figures of `RUN_FIGURES` that relate a run to its benchmark. */
export function compareWithBenchmark(
  run: Curve,
  { series, equity }: Benchmark,
  conventions: Conventions,
): BenchmarkComparison {
  const { time, initialCash } = run;
  const curve: Curve = { time, equity, initialCash };
  const held = curveStatistics(curve, conventions);
  const relative = relativeFigures(run, curve, conventions);
  const reasons: Record<string, UndefinedReason> = {};
  const settled = {} as Record<keyof Relative, number | null>;
  for (const name of RELATIVE_FIGURES) {
    const figure = relative[name];
    settled[name] = typeof figure === 'number' ? figure : null;
    if (typeof figure !== 'number') reasons[`benchmark.${name}`] = figure;
  }
  const { volatility, sharpe, max_drawdown } = held.risk;
  return {
    benchmark: {
      name: series?.name ?? 'buy_and_hold',
      ...(series?.source !== undefined && { source: series.source }),
      ...(series && { data: series.digest }),
      total: held.returns.total,
      cagr: held.returns.cagr,
      volatility,
      sharpe,
      max_drawdown,
      ...settled,
    },
    undefined: reasons,
  };
}

function relativeFigures(run: Curve, held: Curve, conventions: Conventions): Relative {
  const { sampling, periods_per_year: perYear, ddof, risk_free } = conventions;
  const samples = [run, held].map((curve) => sampleEquity(curve, sampling));
  // One curve may lack the first sample. Both end at the same time, so they are paired from the end.
  const count = Math.min(...samples.map(({ length }) => length));
  const [own, other] = samples.map((each) => each.subarray(each.length - count));
  if (own!.some((equity) => equity <= 0)) return all('equity_not_positive');
  if (count - 1 <= ddof) return all('too_few_returns');

  const [returns, market] = [returnsOf(own!), returnsOf(other!)];
  const excess = returns.map((value, i) => value - market[i]!);
  const [ofRun, ofMarket, ofExcess] = [returns, market, excess].map(momentsOf);
  const tracking = ofExcess!.deviation;
  const isSame = tracking <= ROUNDING;
  const active: Pick<Relative, 'tracking_error' | 'information_ratio'> = {
    tracking_error: isSame ? 0 : tracking * Math.sqrt(perYear),
    information_ratio: isSame
      ? 'equals_benchmark'
      : (ofExcess!.mean / tracking) * Math.sqrt(perYear),
  };
  if (ofMarket!.deviation <= ROUNDING) return { ...all('constant_benchmark'), ...active };

  let covariance = 0;
  returns.forEach((value, i) => {
    covariance += ((value - ofRun!.mean) * (market[i]! - ofMarket!.mean)) / (returns.length - 1);
  });
  const beta = covariance / ofMarket!.deviation ** 2;
  const riskFree = risk_free / perYear;
  return {
    alpha: (ofRun!.mean - riskFree - beta * (ofMarket!.mean - riskFree)) * perYear,
    beta,
    correlation:
      ofRun!.deviation <= ROUNDING
        ? 'zero_variance'
        : covariance / (ofRun!.deviation * ofMarket!.deviation),
    ...active,
  };
}

function all(reason: UndefinedReason): Relative {
  return Object.fromEntries(RELATIVE_FIGURES.map((name) => [name, reason])) as Relative;
}
