import { accumulation } from './chaikin-oscillator.ts';
import { checkPeriod, type Indicator } from './indicator.ts';
import { RollingSum } from './sums.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type BarSeries, type Series } from '../series/declared-series.ts';
import { ofWindow } from '../series/warm-up.ts';

/**
 * Chaikin money flow, −1 to 1: accumulation, as in {@link ChaikinOscillator}, of the last `period`
 * bars divided by their volume. Ready at bar `period`. Without volume, it is 0.
 */
export class ChaikinMoneyFlow implements Indicator {
  private readonly flows: RollingSum;
  private readonly volumes: RollingSum;

  constructor(period: number) {
    this.flows = new RollingSum(checkPeriod('period', period));
    this.volumes = new RollingSum(period);
  }

  get ready(): boolean {
    return this.flows.full;
  }

  get value(): number {
    if (!this.ready) return NaN;
    const volume = this.volumes.mean;
    return volume === 0 ? 0 : this.flows.mean / volume;
  }

  next(high: number, low: number, close: number, volume: number): number {
    if (Number.isFinite(high + low + close + volume)) {
      this.flows.roll(accumulation(high, low, close, volume));
      this.volumes.roll(volume);
    }
    return this.value;
  }
}

/** Declares {@link ChaikinMoneyFlow}. */
export function chaikinMoneyFlow(
  bars: Pick<BarSeries, 'high' | 'low' | 'close' | 'volume'>,
  period = 20,
): Series {
  return declare(CHAIKIN_MONEY_FLOW, [bars.high, bars.low, bars.close, bars.volume], [period])
    .value;
}

export const CHAIKIN_MONEY_FLOW: IndicatorKind<[period: number], ChaikinMoneyFlow, 'value'> = {
  name: 'chaikinMoneyFlow',
  lines: ['value'],
  scale: 'own',
  start: (period) => new ChaikinMoneyFlow(period),
  warmUp: (period) => ofWindow(period),
  fill(machine, [high, low, close, volume], [value], from, to) {
    for (let at = from; at < to; at++) {
      value[at] = machine.next(high[at]!, low[at]!, close[at]!, volume[at]!);
    }
  },
};
