import { DAY } from '../../base/durations.ts';
import { SHORTEST_ANNUAL_DAYS } from '../statistics.ts';
import type { UndefinedReason } from '../summary.ts';
import type { WalkForward } from './walk-forward.ts';

/** R. Pardo, "The Evaluation and Optimization of Trading Strategies", 2nd ed., 2008, chapter 11. */
export interface Efficiency {
  /**
   * Annual return of the tests ÷ that of the chosen parameters in training; null if one of them is
   * undefined, or if the one in training is not positive.
   */
  readonly value: number | null;
  /**
   * Annual return at which the growth of all training windows in a row takes as many years. A window in
   * which no trial could be chosen has a return of 0, in training and in its test.
   */
  readonly in_sample_annual: number | null;
  /** CAGR of the joined tests. */
  readonly out_of_sample_annual: number | null;
  /** Share of the test windows with a profit. */
  readonly profitable_windows: number;
}

export interface EfficiencyOfWindows {
  readonly efficiency: Efficiency;
  /** Reason for each figure that is null, by its path in the document. */
  readonly undefined: Readonly<Record<string, UndefinedReason>>;
}

/** @param cagr of the joined tests, or the reason why it is undefined */
export function efficiencyOf(
  { windows, conventions }: Pick<WalkForward, 'windows' | 'conventions'>,
  cagr: number | UndefinedReason,
): EfficiencyOfWindows {
  let days = 0;
  let growth = 1;
  for (const { training, best } of windows) {
    const times = training.instruments.map(({ bars }) => bars.time);
    const first = Math.min(...times.map((time) => time[0]!));
    const last = Math.max(...times.map((time) => time.at(-1)!));
    days += (last - first) / DAY;
    growth *= Math.max(0, 1 + (best?.metrics.total_return ?? 0));
  }
  const inSample: number | UndefinedReason =
    growth === 0
      ? 'equity_not_positive'
      : days < SHORTEST_ANNUAL_DAYS
        ? 'window_too_short'
        : growth ** (conventions.year_days / days) - 1;
  const figures = {
    value: ratioOf(cagr, inSample),
    in_sample_annual: inSample,
    out_of_sample_annual: cagr,
  };
  const orNull = (figure: number | UndefinedReason): number | null =>
    typeof figure === 'number' ? figure : null;
  const reasons = Object.entries(figures).filter(([, figure]) => typeof figure !== 'number');
  return {
    efficiency: {
      value: orNull(figures.value),
      in_sample_annual: orNull(figures.in_sample_annual),
      out_of_sample_annual: orNull(figures.out_of_sample_annual),
      profitable_windows:
        windows.filter(({ outOfSample }) => outOfSample.total_return > 0).length / windows.length,
    },
    undefined: Object.fromEntries(
      reasons.map(([name, reason]) => [`efficiency.${name}`, reason as UndefinedReason]),
    ),
  };
}

function ratioOf(
  outOfSample: number | UndefinedReason,
  inSample: number | UndefinedReason,
): number | UndefinedReason {
  if (typeof inSample !== 'number') return inSample;
  if (typeof outOfSample !== 'number') return outOfSample;
  return inSample > 0 ? outOfSample / inSample : 'in_sample_not_positive';
}
