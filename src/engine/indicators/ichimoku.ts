import { checkPeriod, type Indicator } from './indicator.ts';
import { Donchian } from './donchian.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type BarSeries, type Lines } from '../series/declared-series.ts';
import { ofWindow } from '../series/warm-up.ts';

/**
 * Ichimoku (Hosoda, 1969). `conversion` and `base` are the middle between the highest high and the
 * lowest low of `conversion` and `base` bars, `spanB` that of `span` bars, and `spanA` the mean of `conversion` and
 * `base`; `value` is `conversion`. Ready at bar `max(conversion, base, span)`.
 *
 * The spans are those of the newest bar. Charts draw them `base` bars later: the cloud at the newest
 * bar is `spanA` and `spanB` of `base` bars before.
 */
export class Ichimoku implements Indicator {
  private readonly conversionChannel: Donchian;
  private readonly baseChannel: Donchian;
  private readonly spanChannel: Donchian;

  constructor(conversion: number, base: number, span: number) {
    this.conversionChannel = new Donchian(checkPeriod('conversion', conversion));
    this.baseChannel = new Donchian(checkPeriod('base', base));
    this.spanChannel = new Donchian(checkPeriod('span', span));
  }

  get ready(): boolean {
    return this.conversionChannel.ready && this.baseChannel.ready && this.spanChannel.ready;
  }

  get value(): number {
    return this.conversion;
  }

  get conversion(): number {
    return this.ready ? this.conversionChannel.middle : NaN;
  }

  get base(): number {
    return this.ready ? this.baseChannel.middle : NaN;
  }

  get spanA(): number {
    return (this.conversion + this.base) / 2;
  }

  get spanB(): number {
    return this.ready ? this.spanChannel.middle : NaN;
  }

  next(high: number, low: number): number {
    this.conversionChannel.next(high, low);
    this.baseChannel.next(high, low);
    this.spanChannel.next(high, low);
    return this.value;
  }
}

/** Declares {@link Ichimoku}. */
export function ichimoku(
  bars: Pick<BarSeries, 'high' | 'low'>,
  conversion = 9,
  base = 26,
  span = 52,
): Lines<IchimokuLine> {
  return declare(ICHIMOKU, [bars.high, bars.low], [conversion, base, span]);
}

type IchimokuLine = 'conversion' | 'base' | 'spanA' | 'spanB';

export const ICHIMOKU: IndicatorKind<
  [conversion: number, base: number, span: number],
  Ichimoku,
  IchimokuLine
> = {
  name: 'ichimoku',
  lines: ['conversion', 'base', 'spanA', 'spanB'],
  scale: 'price',
  start: (conversion, base, span) => new Ichimoku(conversion, base, span),
  warmUp: (...periods) => ofWindow(Math.max(...periods)),
  fill(machine, [high, low], [conversion, base, spanA, spanB], from, to) {
    for (let at = from; at < to; at++) {
      machine.next(high[at]!, low[at]!);
      conversion[at] = machine.conversion;
      base[at] = machine.base;
      spanA[at] = machine.spanA;
      spanB[at] = machine.spanB;
    }
  },
};
