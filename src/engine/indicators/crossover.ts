/**
 * Tells when one series crosses another. `next` answers 1 when `a` came to lie above `b` on this
 * step (now above, before below or equal), −1 when it came to lie below (now below, before above
 * or equal), else 0. Nothing is compared before both were numbers on two steps in a row.
 */
export class Crossover {
  // NaN compares as false with everything, which is what keeps a missing step from crossing.
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
