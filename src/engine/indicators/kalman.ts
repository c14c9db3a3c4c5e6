import { checkMultiplier, type Indicator } from './indicator.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type Series } from '../series/declared-series.ts';
import { ofAverage, type WarmUp } from '../series/warm-up.ts';

/**
 * Kalman filter of the local level model: values are a level plus noise of variance `measurement`, and
 * the level moves by noise of variance `process` per bar (Durbin and Koopman, "Time Series Analysis by
 * State Space Methods", chapter 2). Ready at the first value, which is the first level.
 */
export class Kalman implements Indicator {
  private readonly process: number;
  private readonly measurement: number;
  private level = NaN;
  private variance = NaN;

  constructor(process: number, measurement: number) {
    this.process = checkMultiplier('process', process);
    this.measurement = checkMultiplier('measurement', measurement);
  }

  get ready(): boolean {
    return !Number.isNaN(this.level);
  }

  get value(): number {
    return this.level;
  }

  next(x: number): number {
    if (Number.isFinite(x)) {
      if (this.ready) {
        const predicted = this.variance + this.process;
        const gain = predicted / (predicted + this.measurement);
        this.level += gain * (x - this.level);
        this.variance = predicted * (1 - gain);
      } else {
        this.level = x;
        this.variance = this.measurement;
      }
    }
    return this.level;
  }
}

/** Declares {@link Kalman} of `input`. */
export function kalman(input: Series, process: number, measurement: number): Series {
  return declare(KALMAN, [input], [process, measurement]).value;
}

export const KALMAN: IndicatorKind<[process: number, measurement: number], Kalman, 'value'> = {
  name: 'kalman',
  lines: ['value'],
  scale: 'input',
  start: (process, measurement) => new Kalman(process, measurement),
  warmUp: kalmanWarmUp,
  fill(machine, [input], [value], from, to) {
    for (let at = from; at < to; at++) value[at] = machine.next(input[at]!);
  },
};

/** The gain, which is the weight of the newest value, falls to that of the stationary filter. */
function kalmanWarmUp(process: number, measurement: number): WarmUp {
  const predicted = (process + Math.sqrt(process * (process + 4 * measurement))) / 2;
  return ofAverage(1, predicted / (predicted + measurement));
}
