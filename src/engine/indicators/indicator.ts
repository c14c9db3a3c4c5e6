/**
 * Contract of all indicators. An indicator is a state machine that advances one bar per `next(…)`,
 * so a backtest and a live session run the same code, and no value depends on later bars.
 *
 * - `next` returns the new `value`. For an indicator with several lines, that is its main line.
 * - Every output is NaN until the indicator is ready, and a number from then on. Each class states
 *   the bar at which it becomes ready.
 * - A step with an input that is not finite changes nothing. Therefore one indicator can be the
 *   input of another: its NaN values during warm-up are ignored.
 * - A step allocates no memory, and outputs are float64.
 */
export interface Indicator {
  readonly value: number;
  readonly ready: boolean;
}

/** @throws RangeError unless `period` is a whole number of at least `min`. */
export function checkPeriod(name: string, period: number, min = 1): number {
  if (!Number.isSafeInteger(period) || period < min) {
    throw new RangeError(`${name} must be a whole number of at least ${min}, not ${period}`);
  }
  return period;
}

/** @throws RangeError unless `multiplier` is a finite number above 0. */
export function checkMultiplier(name: string, multiplier: number): number {
  if (!Number.isFinite(multiplier) || multiplier <= 0) {
    throw new RangeError(`${name} must be a number above 0, not ${multiplier}`);
  }
  return multiplier;
}
