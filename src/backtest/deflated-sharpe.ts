import { normalCdf, normalQuantile } from './normal.ts';
import { ROUNDING } from './returns.ts';

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
 * @param sharpes annualized Sharpe ratio of every trial, including the best, in any order; `null` for
 *   a trial that failed or never traded, which still counts as a trial
 * @returns `undefined` if fewer than two trials have a Sharpe ratio, or if the best trial's returns are
 *   too few, too equal or too extreme for a standard error
 */
export function deflatedSharpe(
  returns: Float64Array,
  sharpes: readonly (number | null)[],
  periodsPerYear: number,
): DeflatedSharpe | undefined {
  const defined = sharpes.filter((sharpe) => sharpe !== null);
  if (returns.length < 4 || defined.length < 2) return undefined;
  const observed = momentsOf(returns);
  if (observed.deviation <= ROUNDING) return undefined;
  // Sorted, because trials end in any order and the order changes the last digit of a sum.
  const { deviation } = momentsOf(Float64Array.from(defined).sort());
  const expected = expectedMaxSharpe(sharpes.length, deviation ** 2);
  const probability = probabilisticSharpe(
    { ...observed, sharpe: observed.mean / observed.deviation },
    expected / Math.sqrt(periodsPerYear),
  );
  if (Number.isNaN(probability)) return undefined;
  return { probability, expected_max_sharpe: expected, trials: sharpes.length };
}
