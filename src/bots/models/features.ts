/** Inputs of models, computed for each bar: its columns, and indicators over the bars up to it. */
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
  /** All parameters of the indicator. */
  readonly params?: Readonly<Record<string, number>> | undefined;
  /** Source column of an indicator over a single series. Default: `close`. */
  readonly of?: Column | undefined;
  /** Output of an indicator with several. Default: its main one. */
  readonly line?: string | undefined;
  /** Column by which the value is divided. */
  readonly over?: Column | undefined;
}

/** Takes the next bar, with its opening time in ms; returns NaN until there are enough bars. */
type Machine = (bar: Candle, time: number) => number;

interface Kind {
  /** In the order of the arguments of `create`. */
  readonly params: readonly string[];
  /** The main one first. */
  readonly lines: readonly string[];
  /** Whether `of` may choose the source column. */
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

/** A problem of one field of a feature. */
export interface FeatureFault {
  readonly at: readonly string[];
  readonly code: 'missing_field' | 'unknown_field' | 'conflicting_fields' | 'invalid_value';
  readonly message: string;
  /** Valid names, if the fault is an unknown one. */
  readonly known?: readonly string[];
}

/** @param feature with fields of the right types. */
export function featureFaults(feature: Feature): FeatureFault[] {
  const { column, indicator, params = {}, of, line } = feature;
  if (indicator === undefined) {
    const extra = (['params', 'of', 'line'] as const).filter((name) => feature[name] !== undefined);
    if (column !== undefined) {
      return extra.map((name) => ({
        at: [name],
        code: 'conflicting_fields',
        message: `${name} can only be used with indicator, not with column`,
      }));
    }
    const message = 'missing field indicator (or column)';
    return [{ at: ['indicator'], code: 'missing_field', message }];
  }
  if (column !== undefined) {
    const message =
      'give column or indicator, not both; use of for the source column of an indicator';
    return [{ at: ['column'], code: 'conflicting_fields', message }];
  }
  const kind: Kind = KINDS[indicator];
  const faults: FeatureFault[] = [];
  for (const name of Object.keys(params)) {
    if (kind.params.includes(name)) continue;
    const message = `unknown parameter; parameters of ${indicator}: ${kind.params.join(', ') || 'none'}`;
    faults.push({ at: ['params', name], code: 'unknown_field', message, known: kind.params });
  }
  for (const name of kind.params) {
    if (Object.hasOwn(params, name)) continue;
    const message = `missing parameter ${name} of ${indicator}`;
    faults.push({ at: ['params', name], code: 'missing_field', message });
  }
  if (of !== undefined && !kind.isOfColumn) {
    const message = `${indicator} uses whole bars; remove of`;
    faults.push({ at: ['of'], code: 'conflicting_fields', message });
  }
  if (line !== undefined && !kind.lines.includes(line)) {
    const message = `${indicator} has no line ${JSON.stringify(line)}; its lines: ${kind.lines.join(', ')}`;
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
 * Creates the calculation of a feature for one instrument, which must get every bar in order.
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

/** Whether the feature needs bars with volume. */
export function usesVolume({ column, indicator, of, over }: Feature): boolean {
  const isTraded = indicator === 'obv' || indicator === 'vwap';
  return isTraded || [column, of, over].includes('volume');
}

function columnOf(column: Column): Machine {
  return (bar) => bar[column];
}
