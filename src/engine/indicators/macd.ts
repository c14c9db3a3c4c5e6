import { Ema, emaWarmUp } from './ema.ts';
import { checkPeriod, type Indicator } from './indicator.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type Lines, type Series } from '../series/declared-series.ts';
import { inTurn } from '../series/warm-up.ts';

/**
 * Moving average convergence/divergence (Appel): `macd` is the fast exponential average
 * minus the slow one, `signal` the exponential average of `macd`, and `histogram` is `macd` minus
 * `signal`; `value` is `macd`. Ready at bar `slow + signal − 1`.
 *
 * Each average starts from the mean of its own first values, like {@link Ema}.
 */
export class Macd implements Indicator {
  private readonly fast: Ema;
  private readonly slow: Ema;
  private readonly average: Ema;

  constructor(fast: number, slow: number, signal: number) {
    this.fast = new Ema(checkPeriod('fast', fast));
    this.slow = new Ema(checkPeriod('slow', slow));
    this.average = new Ema(checkPeriod('signal', signal));
    if (fast >= slow) throw new RangeError(`fast must be below slow (${slow}), not ${fast}`);
  }

  get ready(): boolean {
    return this.average.ready;
  }

  get value(): number {
    return this.macd;
  }

  get macd(): number {
    return this.ready ? this.fast.value - this.slow.value : NaN;
  }

  get signal(): number {
    return this.average.value;
  }

  get histogram(): number {
    return this.macd - this.signal;
  }

  next(x: number): number {
    if (Number.isFinite(x)) this.average.next(this.fast.next(x) - this.slow.next(x));
    return this.macd;
  }
}

/** Declares {@link Macd} of `input`. */
export function macd(input: Series, fast = 12, slow = 26, signal = 9): Lines<MacdLine> {
  return declare(MACD, [input], [fast, slow, signal]);
}

type MacdLine = 'macd' | 'signal' | 'histogram';

export const MACD: IndicatorKind<[fast: number, slow: number, signal: number], Macd, MacdLine> = {
  name: 'macd',
  lines: ['macd', 'signal', 'histogram'],
  scale: 'own',
  start: (fast, slow, signal) => new Macd(fast, slow, signal),
  warmUp: (_, slow, signal) => inTurn(emaWarmUp(slow), emaWarmUp(signal)),
  fill(machine, [input], [difference, signal, histogram], from, to) {
    for (let at = from; at < to; at++) {
      machine.next(input[at]!);
      difference[at] = machine.macd;
      signal[at] = machine.signal;
      histogram[at] = machine.histogram;
    }
  },
};
