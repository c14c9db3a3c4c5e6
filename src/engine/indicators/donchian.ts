import { checkPeriod, type Indicator } from './indicator.ts';
import { RollingMaximum } from './rolling-maximum.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type BarSeries, type Lines } from '../series/declared-series.ts';
import { ofWindow } from '../series/warm-up.ts';

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

/** Declares {@link Donchian}. */
export function donchian(bars: Pick<BarSeries, 'high' | 'low'>, period = 20): Lines<DonchianLine> {
  return declare(DONCHIAN, [bars.high, bars.low], [period]);
}

type DonchianLine = 'middle' | 'upper' | 'lower';

export const DONCHIAN: IndicatorKind<[period: number], Donchian, DonchianLine> = {
  name: 'donchian',
  lines: ['middle', 'upper', 'lower'],
  scale: 'input',
  start: (period) => new Donchian(period),
  warmUp: (period) => ofWindow(period),
  fill(machine, [high, low], [middle, upper, lower], from, to) {
    for (let at = from; at < to; at++) {
      machine.next(high[at]!, low[at]!);
      middle[at] = machine.middle;
      upper[at] = machine.upper;
      lower[at] = machine.lower;
    }
  },
};
