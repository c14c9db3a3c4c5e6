import { Atr } from './atr.ts';
import { Ema } from './ema.ts';
import { checkMultiplier, checkPeriod, type Indicator } from './indicator.ts';

/**
 * Keltner channel in Raschke's form: `middle` is the exponential average of the close; `upper` and
 * `lower` are `multiplier` average true ranges above and below it; `value` is `middle`. Ready at
 * bar `max(period, atrPeriod)`.
 */
export class Keltner implements Indicator {
  private readonly average: Ema;
  private readonly atr: Atr;
  private readonly multiplier: number;

  constructor(period: number, atrPeriod: number, multiplier: number) {
    this.average = new Ema(checkPeriod('period', period));
    this.atr = new Atr(checkPeriod('atrPeriod', atrPeriod));
    this.multiplier = checkMultiplier('multiplier', multiplier);
  }

  get ready(): boolean {
    return this.average.ready && this.atr.ready;
  }

  get value(): number {
    return this.middle;
  }

  get upper(): number {
    return this.average.value + this.multiplier * this.atr.value;
  }

  get middle(): number {
    return this.ready ? this.average.value : NaN;
  }

  get lower(): number {
    return this.average.value - this.multiplier * this.atr.value;
  }

  next(high: number, low: number, close: number): number {
    if (Number.isFinite(high + low + close)) {
      this.average.next(close);
      this.atr.next(high, low, close);
    }
    return this.middle;
  }
}
