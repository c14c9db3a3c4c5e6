import { checkMultiplier, type Indicator } from './indicator.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type BarSeries, type Lines } from '../series/declared-series.ts';
import { ofAll } from '../series/warm-up.ts';

/**
 * Parabolic SAR (Wilder, 1978): a stop that approaches the extreme of the trend by `step` of the
 * distance, by `step` more with every new extreme, at most by `maximum`. It never enters the ranges of
 * the two bars before, and reverses when a bar reaches it. `direction` is 1 below a rising market, −1
 * above a falling one; `value` is the stop. Ready at bar 2, whose high or low decides the direction.
 */
export class ParabolicSar implements Indicator {
  private readonly step: number;
  private readonly maximum: number;
  private acceleration = NaN;
  private extreme = NaN;
  private stop = NaN;
  private isUp = false;
  private previousHigh = NaN;
  private previousLow = NaN;
  private earlierHigh = NaN;
  private earlierLow = NaN;

  constructor(step: number, maximum: number) {
    this.step = checkMultiplier('step', step);
    this.maximum = checkMultiplier('maximum', maximum);
    if (step > maximum)
      throw new RangeError(`step must be at most maximum (${maximum}), not ${step}`);
  }

  get ready(): boolean {
    return !Number.isNaN(this.stop);
  }

  get value(): number {
    return this.stop;
  }

  get direction(): number {
    if (!this.ready) return NaN;
    return this.isUp ? 1 : -1;
  }

  next(high: number, low: number): number {
    if (Number.isFinite(high + low)) {
      if (this.ready) this.follow(high, low);
      else if (!Number.isNaN(this.previousHigh)) this.begin(high, low);
      this.earlierHigh = this.previousHigh;
      this.earlierLow = this.previousLow;
      this.previousHigh = high;
      this.previousLow = low;
    }
    return this.stop;
  }

  private begin(high: number, low: number): void {
    this.isUp = high - this.previousHigh >= this.previousLow - low;
    this.stop = this.isUp ? this.previousLow : this.previousHigh;
    this.extreme = this.isUp ? high : low;
    this.acceleration = this.step;
  }

  private follow(high: number, low: number): void {
    const stop = this.stop + this.acceleration * (this.extreme - this.stop);
    if (this.isUp) {
      this.stop = min(stop, this.previousLow, this.earlierLow);
      if (high > this.extreme) this.accelerate(high);
      if (low < this.stop) this.reverse(low);
    } else {
      this.stop = -min(-stop, -this.previousHigh, -this.earlierHigh);
      if (low < this.extreme) this.accelerate(low);
      if (high > this.stop) this.reverse(high);
    }
  }

  private accelerate(extreme: number): void {
    this.extreme = extreme;
    this.acceleration = Math.min(this.acceleration + this.step, this.maximum);
  }

  private reverse(extreme: number): void {
    this.isUp = !this.isUp;
    this.stop = this.extreme;
    this.extreme = extreme;
    this.acceleration = this.step;
  }
}

/** The least of three numbers; NaN for the third is ignored. */
function min(a: number, b: number, c: number): number {
  const least = Math.min(a, b);
  return c < least ? c : least;
}

/** Declares {@link ParabolicSar}. */
export function parabolicSar(
  bars: Pick<BarSeries, 'high' | 'low'>,
  step = 0.02,
  maximum = 0.2,
): Lines<ParabolicSarLine> {
  return declare(PARABOLIC_SAR, [bars.high, bars.low], [step, maximum]);
}

type ParabolicSarLine = 'stop' | 'direction';

export const PARABOLIC_SAR: IndicatorKind<
  [step: number, maximum: number],
  ParabolicSar,
  ParabolicSarLine
> = {
  name: 'parabolicSar',
  lines: ['stop', 'direction'],
  scale: { stop: 'price', direction: 'none' },
  start: (step, maximum) => new ParabolicSar(step, maximum),
  warmUp: () => ofAll(2),
  fill(machine, [high, low], [stop, direction], from, to) {
    for (let at = from; at < to; at++) {
      machine.next(high[at]!, low[at]!);
      stop[at] = machine.value;
      direction[at] = machine.direction;
    }
  },
};
