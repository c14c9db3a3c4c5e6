import { checkPeriod, type Indicator } from './indicator.ts';
import { RollingMaximum } from './rolling-maximum.ts';
import { Sma } from './sma.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type BarSeries, type Lines } from '../series/declared-series.ts';
import { ofWindow } from '../series/warm-up.ts';

/**
 * Stochastic oscillator (Lane), 0 to 100: where the close lies between the lowest low and the
 * highest high of the last `k` bars. The line `k` is this position, averaged over `smooth` bars (1
 * gives the fast stochastic); the line `d` is `k` averaged over `d` bars; `value` is `k`. Ready at
 * bar `k + smooth + d − 2`.
 *
 * A window without a range counts as 50: the price is neither at its high nor at its low.
 */
export class Stochastic implements Indicator {
  private readonly highs: RollingMaximum;
  private readonly negatedLows: RollingMaximum;
  private readonly smoothed: Sma;
  private readonly average: Sma;

  constructor(k: number, smooth: number, d: number) {
    this.highs = new RollingMaximum(checkPeriod('k', k));
    this.negatedLows = new RollingMaximum(k);
    this.smoothed = new Sma(checkPeriod('smooth', smooth));
    this.average = new Sma(checkPeriod('d', d));
  }

  get ready(): boolean {
    return this.average.ready;
  }

  get value(): number {
    return this.k;
  }

  get k(): number {
    return this.ready ? this.smoothed.value : NaN;
  }

  get d(): number {
    return this.average.value;
  }

  next(high: number, low: number, close: number): number {
    if (Number.isFinite(high + low + close)) {
      const highest = this.highs.next(high);
      const lowest = -this.negatedLows.next(-low);
      const position = highest === lowest ? 50 : 100 * ((close - lowest) / (highest - lowest));
      this.average.next(this.smoothed.next(position));
    }
    return this.k;
  }
}

/** Declares {@link Stochastic}. */
export function stochastic(
  bars: Pick<BarSeries, 'high' | 'low' | 'close'>,
  k = 14,
  smooth = 3,
  d = 3,
): Lines<StochasticLine> {
  return declare(STOCHASTIC, [bars.high, bars.low, bars.close], [k, smooth, d]);
}

type StochasticLine = 'k' | 'd';

export const STOCHASTIC: IndicatorKind<
  [k: number, smooth: number, d: number],
  Stochastic,
  StochasticLine
> = {
  name: 'stochastic',
  lines: ['k', 'd'],
  scale: 'own',
  start: (k, smooth, d) => new Stochastic(k, smooth, d),
  warmUp: (k, smooth, d) => ofWindow(k + smooth + d - 2),
  fill(machine, [high, low, close], [k, d], from, to) {
    for (let at = from; at < to; at++) {
      machine.next(high[at]!, low[at]!, close[at]!);
      k[at] = machine.k;
      d[at] = machine.d;
    }
  },
};
