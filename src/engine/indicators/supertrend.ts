import { Atr } from './atr.ts';
import { checkMultiplier, checkPeriod, type Indicator } from './indicator.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type BarSeries, type Lines } from '../series/declared-series.ts';
import { ofAll } from '../series/warm-up.ts';

/**
 * Supertrend (Seban): a stop `multiplier` average true ranges from the middle of the bar, which moves
 * only with the trend. `direction` is 1 while the stop is below the close, −1 while it is above;
 * `value` is the stop. Ready at bar `period`.
 */
export class Supertrend implements Indicator {
  private readonly atr: Atr;
  private readonly multiplier: number;
  private previousClose = NaN;
  private upper = NaN;
  private lower = NaN;
  private isUp = false;

  constructor(period: number, multiplier: number) {
    this.atr = new Atr(checkPeriod('period', period));
    this.multiplier = checkMultiplier('multiplier', multiplier);
  }

  get ready(): boolean {
    return this.atr.ready;
  }

  get value(): number {
    return this.isUp ? this.lower : this.upper;
  }

  get direction(): number {
    if (!this.ready) return NaN;
    return this.isUp ? 1 : -1;
  }

  next(high: number, low: number, close: number): number {
    if (Number.isFinite(high + low + close)) {
      const range = this.multiplier * this.atr.next(high, low, close);
      if (this.ready) this.follow((high + low) / 2, range, close);
      this.previousClose = close;
    }
    return this.value;
  }

  private follow(middle: number, range: number, close: number): void {
    const { previousClose } = this;
    const isFirst = Number.isNaN(this.upper);
    if (isFirst || middle + range < this.upper || previousClose > this.upper) {
      this.upper = middle + range;
    }
    if (isFirst || middle - range > this.lower || previousClose < this.lower) {
      this.lower = middle - range;
    }
    this.isUp = this.isUp ? close >= this.lower : close > this.upper;
  }
}

/** Declares {@link Supertrend}. */
export function supertrend(
  bars: Pick<BarSeries, 'high' | 'low' | 'close'>,
  period = 10,
  multiplier = 3,
): Lines<SupertrendLine> {
  return declare(SUPERTREND, [bars.high, bars.low, bars.close], [period, multiplier]);
}

type SupertrendLine = 'stop' | 'direction';

export const SUPERTREND: IndicatorKind<
  [period: number, multiplier: number],
  Supertrend,
  SupertrendLine
> = {
  name: 'supertrend',
  lines: ['stop', 'direction'],
  scale: { stop: 'price', direction: 'none' },
  start: (period, multiplier) => new Supertrend(period, multiplier),
  warmUp: (period) => ofAll(period),
  fill(machine, [high, low, close], [stop, direction], from, to) {
    for (let at = from; at < to; at++) {
      machine.next(high[at]!, low[at]!, close[at]!);
      stop[at] = machine.value;
      direction[at] = machine.direction;
    }
  },
};
