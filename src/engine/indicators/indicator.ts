/**
 * What every indicator keeps to. It is a state machine that takes one step per `next(…)`, so a
 * backtest and a live session run the same code and no later bar can reach an earlier value.
 *
 * - `next` answers the new `value`. An indicator with several lines answers its main one.
 * - Every output is NaN until the indicator is ready and a number ever after. Each class names the
 *   bar at which it becomes ready.
 * - Only finite inputs are observations; a step with any other input changes nothing. That lets
 *   indicators feed one another: the NaN of one that is warming up is not an observation.
 * - Nothing is allocated per step, and outputs are float64.
 */
export interface Indicator {
  readonly value: number;
  readonly ready: boolean;
}

/** The length of a window in bars; anything but a whole number of at least `min` is a RangeError. */
export function checkPeriod(name: string, period: number, min = 1): number {
  if (!Number.isSafeInteger(period) || period < min) {
    throw new RangeError(`${name} must be a whole number of at least ${min}, not ${period}`);
  }
  return period;
}

/** A factor; anything but a finite number above zero is a RangeError. */
export function checkMultiplier(name: string, multiplier: number): number {
  if (!Number.isFinite(multiplier) || multiplier <= 0) {
    throw new RangeError(`${name} must be a number above 0, not ${multiplier}`);
  }
  return multiplier;
}
