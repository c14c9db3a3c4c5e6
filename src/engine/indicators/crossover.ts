/**
 * Detects crossings of two series. `next` returns 1 if `a` is above `b` now and was below or equal
 * at the previous step, −1 if it is below now and was above or equal, and 0 otherwise. It also
 * returns 0 if either series is NaN at one of the two steps.
 */
export class Crossover {
  // Every comparison with NaN is false, so no crossing follows a missing value.
  private previousA = NaN;
  private previousB = NaN;

  next(a: number, b: number): -1 | 0 | 1 {
    const { previousA, previousB } = this;
    this.previousA = a;
    this.previousB = b;
    if (a > b && previousA <= previousB) return 1;
    if (a < b && previousA >= previousB) return -1;
    return 0;
  }
}
