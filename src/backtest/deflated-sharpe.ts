import { normalCdf, normalQuantile } from './normal.ts';
import { returnsOf, ROUNDING, sampleEquity } from './returns.ts';
import type { Conventions, EarlierTrials, RunDeflatedSharpe, UndefinedReason } from './summary.ts';
import type { RunResult } from '../engine/run-result.ts';

/** Moments of a series of returns, per period and not annualized. */
export interface Moments {
  readonly count: number;
  readonly mean: number;
  /** Sample standard deviation (ddof 1). */
  readonly deviation: number;
  /** Adjusted for bias, as in pandas and spreadsheets (G₁). Requires three returns. */
  readonly skewness: number;
  /** Adjusted for bias (G₂ + 3), so 3 for a normal distribution. Requires four returns. */
  readonly kurtosis: number;
}

export function momentsOf(returns: Float64Array): Moments {
  const n = returns.length;
  let mean = 0;
  for (const value of returns) mean += value / n;
  let m2 = 0;
  let m3 = 0;
  let m4 = 0;
  for (const value of returns) {
    const d = value - mean;
    m2 += (d * d) / n;
    m3 += (d * d * d) / n;
    m4 += (d * d * d * d) / n;
  }
  const excess = m4 / (m2 * m2) - 3;
  return {
    count: n,
    mean,
    deviation: Math.sqrt((m2 * n) / (n - 1)),
    skewness: ((m3 / m2 ** 1.5) * Math.sqrt(n * (n - 1))) / (n - 2),
    kurtosis: 3 + (((n + 1) * excess + 6) * (n - 1)) / ((n - 2) * (n - 3)),
  };
}

/**
 * Probability that the true Sharpe ratio exceeds `benchmark`, given the ratio observed over `count`
 * returns of this skewness and kurtosis. Both ratios are per period. Bailey & López de Prado, "The
 * Sharpe Ratio Efficient Frontier", J. of Risk 15(2), 2012.
 */
export function probabilisticSharpe(
  observed: Pick<Moments, 'count' | 'skewness' | 'kurtosis'> & { readonly sharpe: number },
  benchmark: number,
): number {
  const { count, sharpe, skewness, kurtosis } = observed;
  const spread = 1 - skewness * sharpe + ((kurtosis - 1) / 4) * sharpe * sharpe;
  return normalCdf(((sharpe - benchmark) * Math.sqrt(count - 1)) / Math.sqrt(spread));
}

const EULER_MASCHERONI = 0.577_215_664_901_532_9;

/**
 * Expected Sharpe ratio of the best of `trials` strategies without skill, if the Sharpe ratios of the
 * trials have this `variance`. The result has the period of these ratios. Bailey &
 * López de Prado, "The Deflated Sharpe Ratio", J. of Portfolio Management 40(5), 2014.
 */
export function expectedMaxSharpe(trials: number, variance: number): number {
  if (trials < 2) return 0;
  return (
    -Math.sqrt(variance) *
    ((1 - EULER_MASCHERONI) * normalQuantile(1 / trials) +
      EULER_MASCHERONI * normalQuantile(1 / (trials * Math.E)))
  );
}

export interface DeflatedSharpe {
  /** Probability that the best trial's true Sharpe ratio exceeds `expected_max_sharpe`. */
  readonly probability: number;
  /** Expected Sharpe ratio of the best of as many trials without skill, annualized. */
  readonly expected_max_sharpe: number;
  readonly trials: number;
}

/**
 * Corrects the Sharpe ratio of the best trial for the number of trials.
 *
 * @param returns the best trial's returns, as sampled for its Sharpe ratio
 * @param sharpes annualized Sharpe ratio of every trial, including the best, in any order, each
 *   converted to the length of the best; `null` for a trial that failed or never traded, which still
 *   counts as a trial
 * @param earlier further trials
 * @returns `undefined` if fewer than two trials have a Sharpe ratio, or if the best trial's returns are
 *   too few, too equal or too extreme for a standard error
 */
export function deflatedSharpe(
  returns: Float64Array,
  sharpes: readonly (number | null)[],
  periodsPerYear: number,
  earlier?: EarlierTrials,
): DeflatedSharpe | undefined {
  const variance = varianceOf(sharpes, earlier);
  if (returns.length < 4 || variance === undefined) return undefined;
  const observed = momentsOf(returns);
  if (observed.deviation <= ROUNDING) return undefined;
  const trials = sharpes.length + (earlier?.count ?? 0);
  const expected = expectedMaxSharpe(trials, variance);
  const probability = probabilisticSharpe(
    { ...observed, sharpe: observed.mean / observed.deviation },
    expected / Math.sqrt(periodsPerYear),
  );
  if (Number.isNaN(probability)) return undefined;
  return { probability, expected_max_sharpe: expected, trials };
}

/**
 * Converts a Sharpe ratio to the length of another run. Without skill, its standard error falls with the
 * square root of the number of returns (Lo, "The Statistics of Sharpe Ratios", Financial Analysts Journal
 * 58(4), 2002), so the ratios of shorter runs would exaggerate the variance between trials.
 *
 * @param share length of the trial divided by that of the run
 */
export function sharpeAtLength(sharpe: number, share: number): number {
  return sharpe * Math.sqrt(share);
}

/** Sample variance of all Sharpe ratios; undefined for fewer than two. */
function varianceOf(
  sharpes: readonly (number | null)[],
  earlier: EarlierTrials | undefined,
): number | undefined {
  // Sorted, because trials end in any order and the order changes the last digit of a sum.
  const own = Float64Array.from(sharpes.filter((sharpe) => sharpe !== null)).sort();
  const n = earlier?.sharpe_count ?? 0;
  const count = own.length + n;
  if (count < 2) return undefined;
  if (n === 0) return momentsOf(own).deviation ** 2;
  const { sharpe_mean: mean, sharpe_variance: variance } = earlier!;
  if (own.length === 0) return variance!;
  const ownMean = own.reduce((sum, sharpe) => sum + sharpe, 0) / own.length;
  const ownSquares = own.reduce((sum, sharpe) => sum + (sharpe - ownMean) ** 2, 0);
  // T. F. Chan, G. H. Golub and R. J. LeVeque, "Updating Formulae and a Pairwise Algorithm", 1979.
  const between = ((ownMean - mean!) ** 2 * own.length * n) / count;
  return (ownSquares + (variance ?? 0) * (n - 1) + between) / (count - 1);
}

/** Figures of a run among the trials on its data, and the reasons for those that are undefined. */
export interface DeflatedStatistics {
  readonly deflated_sharpe?: RunDeflatedSharpe;
  /** Keyed by path. */
  readonly undefined?: Readonly<Record<string, UndefinedReason>>;
}

/** @param earlier undefined for a run that is not counted, which has no such figures */
export function deflatedStatistics(
  run: Pick<RunResult, 'time' | 'equity' | 'initialCash'>,
  sharpe: number | null,
  { sampling, periods_per_year }: Conventions,
  earlier: EarlierTrials | undefined,
): DeflatedStatistics {
  if (earlier === undefined) return {};
  const trials = earlier.count + 1;
  const deflated =
    sharpe === null
      ? undefined
      : deflatedSharpe(returnsOf(sampleEquity(run, sampling)), [sharpe], periods_per_year, earlier);
  if (deflated !== undefined) return { deflated_sharpe: deflated };
  const reason =
    sharpe !== null && earlier.sharpe_count === 0 ? 'too_few_trials' : 'too_few_returns';
  return {
    deflated_sharpe: { probability: null, expected_max_sharpe: null, trials },
    undefined: { 'deflated_sharpe.probability': reason },
  };
}
