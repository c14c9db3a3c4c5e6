import { Atr } from './atr.ts';
import { Ema, emaWarmUp } from './ema.ts';
import { checkMultiplier, checkPeriod, type Indicator } from './indicator.ts';
import { wilderWarmUp } from './wilder.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type BarSeries, type Lines } from '../series/declared-series.ts';
import { together } from '../series/warm-up.ts';

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

/** Declares {@link Keltner}. */
export function keltner(
  bars: Pick<BarSeries, 'high' | 'low' | 'close'>,
  period = 20,
  atrPeriod = 10,
  multiplier = 2,
): Lines<KeltnerLine> {
  return declare(KELTNER, [bars.high, bars.low, bars.close], [period, atrPeriod, multiplier]);
}

type KeltnerLine = 'middle' | 'upper' | 'lower';

export const KELTNER: IndicatorKind<
  [period: number, atrPeriod: number, multiplier: number],
  Keltner,
  KeltnerLine
> = {
  name: 'keltner',
  lines: ['middle', 'upper', 'lower'],
  scale: 'price',
  start: (period, atrPeriod, multiplier) => new Keltner(period, atrPeriod, multiplier),
  warmUp: (period, atrPeriod) => together(emaWarmUp(period), wilderWarmUp(atrPeriod)),
  fill(machine, [high, low, close], [middle, upper, lower], from, to) {
    for (let at = from; at < to; at++) {
      machine.next(high[at]!, low[at]!, close[at]!);
      middle[at] = machine.middle;
      upper[at] = machine.upper;
      lower[at] = machine.lower;
    }
  },
};
