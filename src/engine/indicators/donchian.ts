import { checkPeriod, type Indicator } from './indicator.ts';
import { RollingMaximum } from './rolling-maximum.ts';

/**
 * Donchian channel: the highest high and the lowest low of the last `period` bars, and `middle`
 * halfway between; `value` is `middle`. Ready at bar `period`.
 *
 * The channel includes the newest bar, whose price therefore never lies outside. To detect a
 * breakout, read the channel before `next` and compare the new price with it.
 */
export class Donchian implements Indicator {
  private readonly highs: RollingMaximum;
  private readonly negatedLows: RollingMaximum;

  constructor(period: number) {
    this.highs = new RollingMaximum(checkPeriod('period', period));
    this.negatedLows = new RollingMaximum(period);
  }

  get ready(): boolean {
    return this.highs.ready;
  }

  get value(): number {
    return this.middle;
  }

  get upper(): number {
    return this.highs.value;
  }

  get middle(): number {
    return (this.upper + this.lower) / 2;
  }

  get lower(): number {
    return -this.negatedLows.value;
  }

  next(high: number, low: number): number {
    if (Number.isFinite(high + low)) {
      this.highs.next(high);
      this.negatedLows.next(-low);
    }
    return this.middle;
  }
}
