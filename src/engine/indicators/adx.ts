import { trueRange } from './atr.ts';
import { checkPeriod, type Indicator } from './indicator.ts';
import { WilderAverage, wilderWarmUp } from './wilder.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type BarSeries, type Lines } from '../series/declared-series.ts';
import { inTurn, ofWindow } from '../series/warm-up.ts';

/**
 * Average directional index (Wilder, 1978), 0 to 100, with the directional indicators `plusDi` and
 * `minusDi` on the same scale; `value` is the ADX. Ready at bar `2 × period`.
 *
 * As in Wilder's book, movement is counted from the second bar on. Bars that move up and down by
 * the same amount have no direction, and a market without movement gives 0 on all three lines.
 */
export class Adx implements Indicator {
  private readonly ranges: WilderAverage;
  private readonly rises: WilderAverage;
  private readonly falls: WilderAverage;
  private readonly average: WilderAverage;
  private previousHigh = NaN;
  private previousLow = NaN;
  private previousClose = NaN;

  constructor(period: number) {
    checkPeriod('period', period);
    this.ranges = new WilderAverage(period);
    this.rises = new WilderAverage(period);
    this.falls = new WilderAverage(period);
    this.average = new WilderAverage(period);
  }

  get ready(): boolean {
    return this.average.ready;
  }

  get value(): number {
    return this.average.value;
  }

  get plusDi(): number {
    return this.ready ? percentage(this.rises.value, this.ranges.value) : NaN;
  }

  get minusDi(): number {
    return this.ready ? percentage(this.falls.value, this.ranges.value) : NaN;
  }

  next(high: number, low: number, close: number): number {
    if (Number.isFinite(high + low + close)) {
      if (!Number.isNaN(this.previousClose)) this.move(high, low);
      this.previousHigh = high;
      this.previousLow = low;
      this.previousClose = close;
    }
    return this.value;
  }

  private move(high: number, low: number): void {
    const up = high - this.previousHigh;
    const down = this.previousLow - low;
    this.ranges.next(trueRange(high, low, this.previousClose));
    // NaN until the averages are ready; the average of the index ignores NaN.
    const rise = this.rises.next(up > down && up > 0 ? up : 0);
    const fall = this.falls.next(down > up && down > 0 ? down : 0);
    this.average.next(percentage(Math.abs(rise - fall), rise + fall));
  }
}

function percentage(part: number, whole: number): number {
  return whole === 0 ? 0 : 100 * (part / whole);
}

/** Declares {@link Adx}. */
export function adx(bars: Pick<BarSeries, 'high' | 'low' | 'close'>, period = 14): Lines<AdxLine> {
  return declare(ADX, [bars.high, bars.low, bars.close], [period]);
}

type AdxLine = 'adx' | 'plusDi' | 'minusDi';

export const ADX: IndicatorKind<[period: number], Adx, AdxLine> = {
  name: 'adx',
  lines: ['adx', 'plusDi', 'minusDi'],
  scale: 'own',
  start: (period) => new Adx(period),
  warmUp: (period) => inTurn(ofWindow(2), wilderWarmUp(period), wilderWarmUp(period)),
  fill(machine, [high, low, close], [index, plusDi, minusDi], from, to) {
    for (let at = from; at < to; at++) {
      machine.next(high[at]!, low[at]!, close[at]!);
      index[at] = machine.value;
      plusDi[at] = machine.plusDi;
      minusDi[at] = machine.minusDi;
    }
  },
};
