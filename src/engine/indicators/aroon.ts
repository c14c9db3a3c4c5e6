import { checkPeriod, type Indicator } from './indicator.ts';
import { RollingMaximum } from './rolling-maximum.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type BarSeries, type Lines } from '../series/declared-series.ts';
import { ofWindow } from '../series/warm-up.ts';

/**
 * Aroon (Chande, 1995): `up` is 100 if the newest bar has the highest high of the last `period + 1`
 * bars, and falls to 0 as that high ages; `down` is the same for the lowest low. Of equal extremes, the
 * newest counts. `value` is the oscillator, `up − down`. Ready at bar `period + 1`.
 */
export class Aroon implements Indicator {
  private readonly period: number;
  private readonly highs: RollingMaximum;
  private readonly negatedLows: RollingMaximum;

  constructor(period: number) {
    this.period = checkPeriod('period', period);
    this.highs = new RollingMaximum(period + 1);
    this.negatedLows = new RollingMaximum(period + 1);
  }

  get ready(): boolean {
    return this.highs.ready;
  }

  get value(): number {
    return this.up - this.down;
  }

  get up(): number {
    return this.youth(this.highs);
  }

  get down(): number {
    return this.youth(this.negatedLows);
  }

  next(high: number, low: number): number {
    if (Number.isFinite(high + low)) {
      this.highs.next(high);
      this.negatedLows.next(-low);
    }
    return this.value;
  }

  private youth({ age }: RollingMaximum): number {
    return this.ready ? (100 * (this.period - age)) / this.period : NaN;
  }
}

/** Declares {@link Aroon}. */
export function aroon(bars: Pick<BarSeries, 'high' | 'low'>, period = 25): Lines<AroonLine> {
  return declare(AROON, [bars.high, bars.low], [period]);
}

type AroonLine = 'oscillator' | 'up' | 'down';

export const AROON: IndicatorKind<[period: number], Aroon, AroonLine> = {
  name: 'aroon',
  lines: ['oscillator', 'up', 'down'],
  scale: 'own',
  start: (period) => new Aroon(period),
  warmUp: (period) => ofWindow(period + 1),
  fill(machine, [high, low], [oscillator, up, down], from, to) {
    for (let at = from; at < to; at++) {
      machine.next(high[at]!, low[at]!);
      oscillator[at] = machine.value;
      up[at] = machine.up;
      down[at] = machine.down;
    }
  },
};
