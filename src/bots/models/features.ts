/** What models are given of each bar: columns of it, and indicators over the bars up to it. */
import { Adx } from '../../engine/indicators/adx.ts';
import { Atr } from '../../engine/indicators/atr.ts';
import { Bollinger } from '../../engine/indicators/bollinger.ts';
import { Donchian } from '../../engine/indicators/donchian.ts';
import { Ema } from '../../engine/indicators/ema.ts';
import { checkPeriod } from '../../engine/indicators/indicator.ts';
import { Keltner } from '../../engine/indicators/keltner.ts';
import { Macd } from '../../engine/indicators/macd.ts';
import { Obv } from '../../engine/indicators/obv.ts';
import { Rsi } from '../../engine/indicators/rsi.ts';
import { Sma } from '../../engine/indicators/sma.ts';
import { StandardDeviation } from '../../engine/indicators/standard-deviation.ts';
import { Stochastic } from '../../engine/indicators/stochastic.ts';
import { Vwap } from '../../engine/indicators/vwap.ts';
import { Wma } from '../../engine/indicators/wma.ts';
import { ZScore } from '../../engine/indicators/z-score.ts';
import type { Candle } from '../../market/bars.ts';

export const FEATURE_COLUMNS = ['open', 'high', 'low', 'close', 'volume'] as const;
type Column = (typeof FEATURE_COLUMNS)[number];

/** One input of a model: a column, or an indicator; see `ml_models[].inputs` of the spec. */
export interface Feature {
  readonly column?: Column | undefined;
  readonly indicator?: IndicatorName | undefined;
  /** Of the indicator, all of them. */
  readonly params?: Readonly<Record<string, number>> | undefined;
  /** What an indicator of one series is taken of; close by default. */
  readonly of?: Column | undefined;
  /** Of an indicator with several; its main one by default. */
  readonly line?: string | undefined;
  /** What all of it is divided by. */
  readonly over?: Column | undefined;
}

/** Takes a bar, at its opening instant in ms, and answers; NaN until there were bars enough. */
type Machine = (bar: Candle, time: number) => number;

interface Kind {
  /** In the order in which `create` takes them. */
  readonly params: readonly string[];
  /** The main one first. */
  readonly lines: readonly string[];
  /** Whether it is taken of one column, which may be chosen. */
  readonly isOfColumn: boolean;
  /** Throws `RangeError` for parameters out of range. */
  readonly create: (params: readonly number[], line: string, of: Column) => Machine;
}

type Series<L extends string> = { next(x: number): number } & { readonly [K in L]: number };

function ofColumn<L extends string>(
  params: readonly string[],
  lines: readonly [L, ...L[]],
  make: (...values: number[]) => Series<L>,
): Kind {
  return {
    params,
    lines,
    isOfColumn: true,
    create(values, line, of) {
      const indicator = make(...values);
      return (bar) => {
        indicator.next(bar[of]);
        return indicator[line as L];
      };
    },
  };
}

function ofBars<L extends string, I extends { readonly [K in L]: number }>(
  params: readonly string[],
  lines: readonly [L, ...L[]],
  make: (...values: number[]) => I,
  feed: (indicator: I, bar: Candle, time: number) => void,
): Kind {
  return {
    params,
    lines,
    isOfColumn: false,
    create(values, line) {
      const indicator = make(...values);
      return (bar, time) => {
        feed(indicator, bar, time);
        return indicator[line as L];
      };
    },
  };
}

const PERIOD = ['period'];
const MAIN = ['value'] as const;

const KINDS = {
  sma: ofColumn(PERIOD, MAIN, (period) => new Sma(period)),
  ema: ofColumn(PERIOD, MAIN, (period) => new Ema(period)),
  wma: ofColumn(PERIOD, MAIN, (period) => new Wma(period)),
  rsi: ofColumn(PERIOD, MAIN, (period) => new Rsi(period)),
  standard_deviation: ofColumn(PERIOD, MAIN, (period) => new StandardDeviation(period)),
  z_score: ofColumn(PERIOD, MAIN, (period) => new ZScore(period)),
  return: ofColumn(PERIOD, MAIN, (period) => new Return(period)),
  macd: ofColumn(
    ['fast', 'slow', 'signal'],
    ['macd', 'signal', 'histogram'],
    (fast, slow, signal) => new Macd(fast, slow, signal),
  ),
  bollinger: ofColumn(
    ['period', 'k'],
    ['middle', 'upper', 'lower'],
    (period, k) => new Bollinger(period, k),
  ),
  atr: ofBars(
    PERIOD,
    MAIN,
    (period) => new Atr(period),
    (atr, { high, low, close }) => atr.next(high, low, close),
  ),
  adx: ofBars(
    PERIOD,
    ['value', 'plusDi', 'minusDi'],
    (period) => new Adx(period),
    (adx, { high, low, close }) => adx.next(high, low, close),
  ),
  donchian: ofBars(
    PERIOD,
    ['middle', 'upper', 'lower'],
    (period) => new Donchian(period),
    (channel, { high, low }) => channel.next(high, low),
  ),
  keltner: ofBars(
    ['period', 'atrPeriod', 'multiplier'],
    ['middle', 'upper', 'lower'],
    (period, atrPeriod, multiplier) => new Keltner(period, atrPeriod, multiplier),
    (channel, { high, low, close }) => channel.next(high, low, close),
  ),
  stochastic: ofBars(
    ['k', 'smooth', 'd'],
    ['k', 'd'],
    (k, smooth, d) => new Stochastic(k, smooth, d),
    (stochastic, { high, low, close }) => stochastic.next(high, low, close),
  ),
  obv: ofBars(
    [],
    MAIN,
    () => new Obv(),
    (obv, { close, volume }) => obv.next(close, volume),
  ),
  vwap: ofBars(
    [],
    MAIN,
    () => new Vwap(),
    (vwap, { high, low, close, volume }, time) => vwap.next(time, high, low, close, volume),
  ),
} as const satisfies Readonly<Record<string, Kind>>;

export type IndicatorName = keyof typeof KINDS;
export const INDICATOR_NAMES = Object.keys(KINDS) as [IndicatorName, ...IndicatorName[]];

/** Change since `period` bars before, as a share: 0.01 is 1 %. */
class Return {
  readonly #last: Float64Array;
  #count = 0;
  value = Number.NaN;

  constructor(period: number) {
    this.#last = new Float64Array(checkPeriod('period', period));
  }

  next(x: number): number {
    const place = this.#count % this.#last.length;
    if (this.#count >= this.#last.length) this.value = x / this.#last[place]! - 1;
    this.#last[place] = x;
    this.#count += 1;
    return this.value;
  }
}

/** What is wrong with a feature, and with which of its fields. */
export interface FeatureFault {
  readonly at: readonly string[];
  readonly code: 'missing_field' | 'unknown_field' | 'conflicting_fields' | 'invalid_value';
  readonly message: string;
  /** What there is in place of a name that is unknown. */
  readonly known?: readonly string[];
}

/** @param feature whose fields are each of the right type. */
export function featureFaults(feature: Feature): FeatureFault[] {
  const { column, indicator, params = {}, of, line } = feature;
  if (indicator === undefined) {
    const extra = (['params', 'of', 'line'] as const).filter((name) => feature[name] !== undefined);
    if (column !== undefined) {
      return extra.map((name) => ({
        at: [name],
        code: 'conflicting_fields',
        message: `${name} goes with an indicator, not with a column`,
      }));
    }
    const message = 'missing field indicator (or column)';
    return [{ at: ['indicator'], code: 'missing_field', message }];
  }
  if (column !== undefined) {
    const message = 'give column or indicator, not both; of names the column of an indicator';
    return [{ at: ['column'], code: 'conflicting_fields', message }];
  }
  const kind: Kind = KINDS[indicator];
  const faults: FeatureFault[] = [];
  for (const name of Object.keys(params)) {
    if (kind.params.includes(name)) continue;
    const message = `unknown parameter; ${indicator} has: ${kind.params.join(', ') || 'none'}`;
    faults.push({ at: ['params', name], code: 'unknown_field', message, known: kind.params });
  }
  for (const name of kind.params) {
    if (Object.hasOwn(params, name)) continue;
    const message = `missing parameter ${name} of ${indicator}`;
    faults.push({ at: ['params', name], code: 'missing_field', message });
  }
  if (of !== undefined && !kind.isOfColumn) {
    const message = `${indicator} is taken of whole bars, and of none of their columns`;
    faults.push({ at: ['of'], code: 'conflicting_fields', message });
  }
  if (line !== undefined && !kind.lines.includes(line)) {
    const message = `${indicator} has no line ${JSON.stringify(line)}; it has: ${kind.lines.join(', ')}`;
    faults.push({ at: ['line'], code: 'invalid_value', message, known: kind.lines });
  }
  if (faults.length > 0) return faults;
  try {
    featureOf(feature);
    return [];
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return [{ at: ['params'], code: 'invalid_value', message: error.message }];
  }
}

/**
 * A feature of one instrument, from its first bar on.
 * @throws RangeError for parameters out of range.
 */
export function featureOf({ column, indicator, params = {}, of, line, over }: Feature): Machine {
  const whole = indicator === undefined ? columnOf(column!) : indicatorOf();
  if (over === undefined) return whole;
  return (bar, time) => whole(bar, time) / bar[over];

  function indicatorOf(): Machine {
    const { params: names, lines, create }: Kind = KINDS[indicator!];
    const values = names.map((name) => params[name]!);
    return create(values, line ?? lines[0]!, of ?? 'close');
  }
}

/** Whether it means nothing where bars have no volume. */
export function usesVolume({ column, indicator, of, over }: Feature): boolean {
  const isTraded = indicator === 'obv' || indicator === 'vwap';
  return isTraded || [column, of, over].includes('volume');
}

function columnOf(column: Column): Machine {
  return (bar) => bar[column];
}
