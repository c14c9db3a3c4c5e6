import type { Indicator } from './indicator.ts';
import { WilderAverage, wilderWarmUp } from './wilder.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type Series } from '../series/declared-series.ts';
import { inTurn, ofWindow } from '../series/warm-up.ts';

/**
 * Relative strength index (Wilder, 1978), 0 to 100: the share of gains in all movement, both
 * smoothed by Wilder's average, whose start is the mean of the first `period` changes. Ready at
 * bar `period + 1`.
 *
 * Only gains give 100, only losses give 0. No movement gives 50, because an unchanged price is
 * neither overbought nor oversold. Other libraries give 100 or 0, which would cause trades.
 */
export class Rsi implements Indicator {
  private readonly gains: WilderAverage;
  private readonly losses: WilderAverage;
  private previous = NaN;

  constructor(period: number) {
    this.gains = new WilderAverage(period);
    this.losses = new WilderAverage(period);
  }

  get ready(): boolean {
    return this.gains.ready;
  }

  get value(): number {
    const gain = this.gains.value;
    const movement = gain + this.losses.value;
    return movement === 0 ? 50 : 100 * (gain / movement);
  }

  next(price: number): number {
    if (Number.isFinite(price)) {
      // NaN at the first price; the averages ignore it.
      const change = price - this.previous;
      this.gains.next(Math.max(change, 0));
      this.losses.next(Math.max(-change, 0));
      this.previous = price;
    }
    return this.value;
  }
}

/** Declares {@link Rsi} of `input`. */
export function rsi(input: Series, period: number): Series {
  return declare(RSI, [input], [period]).value;
}

export const RSI: IndicatorKind<[period: number], Rsi, 'value'> = {
  name: 'rsi',
  lines: ['value'],
  scale: 'own',
  start: (period) => new Rsi(period),
  warmUp: (period) => inTurn(ofWindow(2), wilderWarmUp(period)),
  fill(machine, [input], [value], from, to) {
    for (let at = from; at < to; at++) value[at] = machine.next(input[at]!);
  },
};
