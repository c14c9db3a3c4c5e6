import { momentsOf } from '../deflated-sharpe.ts';
import { returnsOf, ROUNDING, sampleEquity, sampleTimes } from '../returns.ts';
import type { Conventions } from '../summary.ts';
import type { ReportInput } from './input.ts';

/** Figures of the six months before each sample; `null` where they are undefined. */
export interface Rolling {
  /** Returns in each window. */
  readonly window: number;
  /** ms since the epoch, of the last return in each window. */
  readonly time: readonly number[];
  readonly volatility: readonly (number | null)[];
  readonly sharpe: readonly (number | null)[];
}

/** Sampled returns and the time of each, ms since the epoch. */
export function sampledReturns(
  result: ReportInput['result'],
  sampling: Conventions['sampling'],
): { readonly time: Float64Array; readonly returns: Float64Array } {
  const returns = returnsOf(sampleEquity(result, sampling));
  const time = sampleTimes(result.time, sampling);
  return { time: time.subarray(time.length - returns.length), returns };
}

/**
 * Computes volatility and Sharpe ratio over windows of half a year of returns, by the formulas of the
 * whole run.
 *
 * @param limit largest number of windows; if there are more, every n-th one up to the last is kept
 */
export function rollingFigures(
  { time, returns }: ReturnType<typeof sampledReturns>,
  { periods_per_year: perYear, risk_free }: Conventions,
  limit: number,
): Rolling {
  const window = Math.max(2, Math.round(perYear / 2));
  const windows = Math.max(0, returns.length - window + 1);
  const every = Math.max(1, Math.ceil(windows / limit));
  const times: number[] = [];
  const volatility: (number | null)[] = [];
  const sharpe: (number | null)[] = [];
  for (let end = window + ((windows - 1) % every); end <= returns.length; end += every) {
    const { mean, deviation } = momentsOf(returns.subarray(end - window, end));
    times.push(time[end - 1]!);
    const isFinite = Number.isFinite(mean) && Number.isFinite(deviation);
    volatility.push(isFinite ? deviation * Math.sqrt(perYear) : null);
    sharpe.push(
      isFinite && deviation > ROUNDING
        ? ((mean - risk_free / perYear) / deviation) * Math.sqrt(perYear)
        : null,
    );
  }
  return { window, time: times, volatility, sharpe };
}
