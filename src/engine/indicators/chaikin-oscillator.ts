import { Ema, emaWarmUp } from './ema.ts';
import { checkPeriod, type Indicator } from './indicator.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type BarSeries, type Series } from '../series/declared-series.ts';

/**
 * Chaikin oscillator: the fast exponential average of the accumulation/distribution line minus the
 * slow one. The line is the sum of volumes, each weighted by the position of the close in its bar,
 * from −1 at the low to 1 at the high. Ready at bar `slow`.
 */
export class ChaikinOscillator implements Indicator {
  private readonly fast: Ema;
  private readonly slow: Ema;
  private line = -0;

  constructor(fast: number, slow: number) {
    this.fast = new Ema(checkPeriod('fast', fast));
    this.slow = new Ema(checkPeriod('slow', slow));
    if (fast >= slow) throw new RangeError(`fast must be below slow (${slow}), not ${fast}`);
  }

  get ready(): boolean {
    return this.slow.ready;
  }

  get value(): number {
    return this.fast.value - this.slow.value;
  }

  next(high: number, low: number, close: number, volume: number): number {
    if (Number.isFinite(high + low + close + volume)) {
      this.line += accumulation(high, low, close, volume);
      this.fast.next(this.line);
      this.slow.next(this.line);
    }
    return this.value;
  }
}

/** The volume of a bar, weighted by the position of the close: −1 at the low, 1 at the high. */
export function accumulation(high: number, low: number, close: number, volume: number): number {
  return high === low ? 0 : ((close - low - (high - close)) / (high - low)) * volume;
}

/** Declares {@link ChaikinOscillator}. */
export function chaikinOscillator(
  bars: Pick<BarSeries, 'high' | 'low' | 'close' | 'volume'>,
  fast = 3,
  slow = 10,
): Series {
  return declare(CHAIKIN_OSCILLATOR, [bars.high, bars.low, bars.close, bars.volume], [fast, slow])
    .value;
}

export const CHAIKIN_OSCILLATOR: IndicatorKind<
  [fast: number, slow: number],
  ChaikinOscillator,
  'value'
> = {
  name: 'chaikinOscillator',
  lines: ['value'],
  scale: 'own',
  start: (fast, slow) => new ChaikinOscillator(fast, slow),
  warmUp: (_, slow) => emaWarmUp(slow),
  fill(machine, [high, low, close, volume], [value], from, to) {
    for (let at = from; at < to; at++) {
      value[at] = machine.next(high[at]!, low[at]!, close[at]!, volume[at]!);
    }
  },
};
