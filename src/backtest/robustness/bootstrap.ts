import { seededRandom } from '../../engine/random.ts';
import { drawdownsOf, percentile, ROUNDING } from '../returns.ts';
import type { Conventions } from '../summary.ts';
import { meanBlockLength } from './block-length.ts';

/** The 95 % interval of a figure; natural units. */
export interface Interval {
  readonly low: number;
  readonly high: number;
}

/**
 * For the first four figures, confidence intervals: of 100 strategies, the true values of about 95 are
 * within theirs. For `max_drawdown`, the range in 95 % of the resampled histories. Null if the figure is
 * undefined.
 */
export interface Bootstrap {
  readonly resamples: number;
  /** Mean length of a block, in returns. */
  readonly mean_block_length: number;
  readonly intervals: Readonly<Record<BootstrapFigure, Interval | null>>;
}

export type BootstrapFigure = 'total_return' | 'cagr' | 'sharpe' | 'sortino' | 'max_drawdown';

/** With fewer returns, the intervals are too narrow. */
const FEWEST_RETURNS = 60;

/**
 * Means over the returns r, from which all figures follow: of r, r², min(r, 0)² and ln(1 + r).
 */
type Means = readonly [mean: number, squares: number, shortfalls: number, growth: number];
type Gradient = Means;

/** A figure as a function of the means, and its derivatives by them. */
interface MeanFigure {
  readonly value: (means: Means) => number;
  readonly gradient: (means: Means) => Gradient;
}

const MEAN_FIGURES: readonly MeanFigure[] = [
  { value: ([, , , growth]) => growth, gradient: () => [0, 0, 0, 1] },
  {
    value: ([mean, squares]) => mean / Math.sqrt(squares - mean * mean),
    gradient([mean, squares]) {
      const variance = squares - mean * mean;
      const cubed = variance * Math.sqrt(variance);
      return [squares / cubed, -mean / (2 * cubed), 0, 0];
    },
  },
  {
    value: ([mean, , shortfalls]) => mean / Math.sqrt(shortfalls),
    gradient: ([mean, , shortfalls]) => [
      1 / Math.sqrt(shortfalls),
      0,
      -mean / (2 * shortfalls * Math.sqrt(shortfalls)),
      0,
    ],
  },
];
const TERMS = 4;

/**
 * Intervals from the stationary bootstrap: D. N. Politis and J. P. Romano, J. of the American
 * Statistical Association 89(428), 1994. They are studentized, as O. Ledoit and M. Wolf do for the
 * Sharpe ratio (J. of Empirical Finance 15(5), 2008), because percentile intervals of dependent returns
 * are too narrow.
 *
 * @param returns sampled as for the Sharpe ratio
 * @param years duration of the run, for `cagr`
 * @returns undefined for fewer than 60 returns, or if one of them loses everything
 */
export function bootstrap(
  returns: Float64Array,
  { conventions, years, resamples, seed }: BootstrapOptions,
): Bootstrap | undefined {
  const n = returns.length;
  if (n < FEWEST_RETURNS || returns.some((value) => value <= -1)) return undefined;
  const riskFree = conventions.risk_free / conventions.periods_per_year;
  const terms = termsOf(returns, riskFree);
  const length = meanBlockLength(returns);
  const draws = resample(terms, returns, { length, resamples, seed });
  const means = meansOf(terms, n);
  const [growth, sharpe, sortino] = MEAN_FIGURES.map((figure, place) =>
    studentizedInterval(figure, draws.ratios[place]!, { terms, means }),
  );
  const scale = Math.sqrt(conventions.periods_per_year);
  const bias = Math.sqrt((n - conventions.ddof) / n);
  return {
    resamples,
    mean_block_length: length,
    intervals: {
      total_return: mapInterval(growth, (value) => Math.expm1(value * n)),
      cagr: mapInterval(growth, (value) => Math.expm1((value * n) / years)),
      sharpe: mapInterval(sharpe, (value) => value * scale * bias),
      sortino: mapInterval(sortino, (value) => value * scale),
      max_drawdown: {
        low: quantile(draws.drawdowns, 0.025),
        high: quantile(draws.drawdowns, 0.975),
      },
    },
  };
}

export interface BootstrapOptions {
  readonly conventions: Conventions;
  readonly years: number;
  readonly resamples: number;
  readonly seed: number;
}

/** The four terms of each return, whose means are `Means`. */
function termsOf(returns: Float64Array, riskFree: number): Float64Array {
  const terms = new Float64Array(TERMS * returns.length);
  returns.forEach((value, i) => {
    const excess = value - riskFree;
    const shortfall = Math.min(excess, 0);
    terms.set([excess, excess * excess, shortfall * shortfall, Math.log1p(value)], TERMS * i);
  });
  return terms;
}

function meansOf(terms: Float64Array, n: number): Means {
  const means: [number, number, number, number] = [0, 0, 0, 0];
  terms.forEach((value, i) => {
    means[i % TERMS]! += value / n;
  });
  return means;
}

interface Draws {
  /** For each of `MEAN_FIGURES`, its deviation in each resample in standard errors of the resample. */
  readonly ratios: readonly Float64Array[];
  readonly drawdowns: Float64Array;
}

/**
 * Draws resamples: blocks that start anywhere, wrap around the end, and have geometrically distributed
 * lengths. The standard error of a resample follows from the sums of its blocks (F. Götze and
 * H. R. Künsch, Annals of Statistics 24(5), 1996).
 */
function resample(
  terms: Float64Array,
  returns: Float64Array,
  { length, resamples, seed }: { length: number; resamples: number; seed: number },
): Draws {
  const n = returns.length;
  const random = seededRandom(seed);
  const means = meansOf(terms, n);
  const values = MEAN_FIGURES.map(({ value }) => value(means));
  const ratios = MEAN_FIGURES.map(() => new Float64Array(resamples));
  const drawdowns = new Float64Array(resamples);
  const equity = new Float64Array(n);
  // For each block, the sums of the four terms and the number of returns.
  const width = TERMS + 1;
  const blocks = new Float64Array(width * n);
  for (let draw = 0; draw < resamples; draw++) {
    let block = -width;
    let at = 0;
    let value = 1;
    blocks.fill(0);
    for (let i = 0; i < n; i++) {
      if (i === 0 || random() * length < 1) {
        at = Math.floor(random() * n);
        block += width;
      } else at = at + 1 === n ? 0 : at + 1;
      for (let term = 0; term < TERMS; term++) blocks[block + term]! += terms[TERMS * at + term]!;
      blocks[block + TERMS]! += 1;
      value *= 1 + returns[at]!;
      equity[i] = value;
    }
    const used = blocks.subarray(0, block + width);
    const drawn = blockMeans(used, n);
    MEAN_FIGURES.forEach((figure, place) => {
      const error = blockError(used, drawn, figure.gradient(drawn), n);
      ratios[place]![draw] = (figure.value(drawn) - values[place]!) / error;
    });
    drawdowns[draw] = drawdownsOf(equity, 1).reduce((least, depth) => Math.min(least, depth), 0);
  }
  return { ratios, drawdowns };
}

function blockMeans(blocks: Float64Array, n: number): Means {
  const means: [number, number, number, number] = [0, 0, 0, 0];
  for (let at = 0; at < blocks.length; at += TERMS + 1) {
    for (let term = 0; term < TERMS; term++) means[term]! += blocks[at + term]! / n;
  }
  return means;
}

/** Standard error of a figure with this gradient, over blocks that are independent of each other. */
function blockError(blocks: Float64Array, means: Means, gradient: Gradient, n: number): number {
  let variance = 0;
  for (let at = 0; at < blocks.length; at += TERMS + 1) {
    let sum = 0;
    for (let term = 0; term < TERMS; term++) {
      sum += gradient[term]! * (blocks[at + term]! - blocks[at + TERMS]! * means[term]!);
    }
    variance += sum * sum;
  }
  return Math.sqrt(variance) / n;
}

/** @returns null if the figure is undefined, or nearly always so in the resamples */
function studentizedInterval(
  { value, gradient }: MeanFigure,
  ratios: Float64Array,
  { terms, means }: { readonly terms: Float64Array; readonly means: Means },
): Interval | null {
  const estimate = value(means);
  const slopes = gradient(means);
  const influence = new Float64Array(terms.length / TERMS);
  for (let i = 0; i < influence.length; i++) {
    for (let term = 0; term < TERMS; term++) {
      influence[i]! += slopes[term]! * (terms[TERMS * i + term]! - means[term]!);
    }
  }
  const error = errorOfMean(influence);
  const finite = ratios.filter(Number.isFinite);
  const isDefined = Number.isFinite(estimate) && error > ROUNDING;
  if (!isDefined || finite.length < ratios.length / 2) return null;
  return {
    low: estimate - quantile(finite, 0.975) * error,
    high: estimate - quantile(finite, 0.025) * error,
  };
}

/** Largest autocorrelation that is removed, so that the correction stays finite. */
const LARGEST_CORRELATION = 0.97;

/**
 * Standard error of the mean of dependent values with mean 0. The blocks underestimate the error of
 * positively correlated values, because values in different blocks are independent. The first
 * autocorrelation is therefore removed before, and its effect restored after: D. W. K. Andrews and
 * J. C. Monahan, Econometrica 60(4), 1992. Without it, 95 % intervals of an autoregression with a
 * coefficient of 0.2 cover 93 %.
 */
function errorOfMean(values: Float64Array): number {
  let products = 0;
  let squares = 0;
  for (let i = 0; i < values.length; i++) {
    products += values[i]! * (values[i - 1] ?? 0);
    squares += values[i]! * values[i]!;
  }
  const limited = Math.min(LARGEST_CORRELATION, Math.max(-LARGEST_CORRELATION, products / squares));
  const correlation = squares === 0 ? 0 : limited;
  const rest = values.map((value, i) => value - correlation * (values[i - 1] ?? 0));
  // The first value has no predecessor: scaled, its variance equals that of the other residuals.
  rest[0]! *= Math.sqrt(1 - correlation * correlation);
  const mean = rest.reduce((sum, value) => sum + value / rest.length, 0);
  const centered = rest.map((value) => value - mean);
  return blockedError(centered, meanBlockLength(centered)) / (1 - correlation);
}

/** Beyond this many mean block lengths, two returns are in one block with a probability below 1e-6. */
const FARTHEST_BLOCKS = 14;

/**
 * Standard error of the mean of dependent values with mean 0, as the stationary bootstrap would
 * estimate it with infinitely many resamples (Politis and Romano, 1994, lemma 1).
 */
function blockedError(values: Float64Array, length: number): number {
  const n = values.length;
  const same = 1 - 1 / length;
  const farthest = Math.min(n - 1, Math.ceil(FARTHEST_BLOCKS * length));
  let variance = 0;
  for (let lag = 0; lag <= farthest; lag++) {
    let covariance = 0;
    for (let i = lag; i < n; i++) covariance += values[i]! * values[i - lag]!;
    const weight = (1 - lag / n) * same ** lag + (lag / n) * same ** (n - lag);
    variance += ((lag === 0 ? 1 : 2 * weight) * covariance) / n;
  }
  return Math.sqrt(Math.max(0, variance) / n);
}

/** The value of rank (n + 1)q, which for few resamples is closer to the quantile than rank (n − 1)q + 1. */
function quantile(values: Float64Array, q: number): number {
  const n = values.length;
  return percentile(values, Math.min(1, Math.max(0, ((n + 1) * q - 1) / (n - 1))));
}

function mapInterval(
  interval: Interval | null | undefined,
  map: (value: number) => number,
): Interval | null {
  return interval ? { low: map(interval.low), high: map(interval.high) } : null;
}
