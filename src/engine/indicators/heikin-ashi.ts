import type { Indicator } from './indicator.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type BarSeries, type Lines } from '../series/declared-series.ts';
import { ofAverage } from '../series/warm-up.ts';

/**
 * Heikin-Ashi bars: `close` is the mean of the four prices of the bar, `open` the middle of the
 * Heikin-Ashi body before, `high` and `low` extend the bar to both; `value` is `close`. Ready at the
 * first bar, whose `open` is the middle of its own body.
 */
export class HeikinAshi implements Indicator {
  open = NaN;
  high = NaN;
  low = NaN;
  close = NaN;

  get ready(): boolean {
    return !Number.isNaN(this.close);
  }

  get value(): number {
    return this.close;
  }

  next(open: number, high: number, low: number, close: number): number {
    if (Number.isFinite(open + high + low + close)) {
      this.open = this.ready ? (this.open + this.close) / 2 : (open + close) / 2;
      this.close = (open + high + low + close) / 4;
      this.high = Math.max(high, this.open, this.close);
      this.low = Math.min(low, this.open, this.close);
    }
    return this.close;
  }
}

/** Declares {@link HeikinAshi}. */
export function heikinAshi(
  bars: Pick<BarSeries, 'open' | 'high' | 'low' | 'close'>,
): Lines<HeikinAshiLine> {
  return declare(HEIKIN_ASHI, [bars.open, bars.high, bars.low, bars.close], []);
}

type HeikinAshiLine = 'open' | 'high' | 'low' | 'close';

export const HEIKIN_ASHI: IndicatorKind<[], HeikinAshi, HeikinAshiLine> = {
  name: 'heikinAshi',
  lines: ['open', 'high', 'low', 'close'],
  scale: 'price',
  start: () => new HeikinAshi(),
  warmUp: () => ofAverage(1, 1 / 2),
  fill(machine, [open, high, low, close], [opens, highs, lows, closes], from, to) {
    for (let at = from; at < to; at++) {
      machine.next(open[at]!, high[at]!, low[at]!, close[at]!);
      opens[at] = machine.open;
      highs[at] = machine.high;
      lows[at] = machine.low;
      closes[at] = machine.close;
    }
  },
};
