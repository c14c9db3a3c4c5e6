import { formatCount, formatCountOf, formatInstant, formatPrice } from '../../base/format.ts';
import type { EntryBars } from '../../engine/series/clock.ts';
import type { ReturnedIndicator } from '../../engine/series/returned-indicators.ts';
import type { Level, Ranges, Candles } from '../../base/charts/level.ts';
import type { PriceChart } from './client/chart-data.ts';
import { chartIndicator, indicatorsOf, labelOf, linesOf, sortedLines } from './chart-indicators.ts';
import type { ReportInput } from './input.ts';
import { packLevel } from './pack-level.ts';
import { toCandles, toMarkers, toRanges } from './series.ts';
import {
  chooseSingleBars,
  singleCandles,
  singleMarkers,
  singleValues,
  type SingleBars,
} from './single-bars.ts';

// With the list of trades, these limit the page to 4 MB, regardless of the length of the run.
const MAX_CANDLES = 13_000;
const MAX_NUMBERS = 130_000;
/** Limit of numbers, not of bars: all single bars and their indicators together. */
const MAX_SINGLE_NUMBERS = 400_000;
const NUMBERS_PER_CANDLE = 7;
const NUMBERS_PER_RANGE = 3;
const MAX_INSTRUMENTS = 50;

/** Charts of the most traded instruments, which share the page's limit of candles. */
export function priceCharts(input: ReportInput, dateOnly: boolean): PriceChart[] {
  const { instruments, indicators = [], result } = input;
  const closed = Map.groupBy(result.trades, ({ symbol }) => symbol);
  const open = Map.groupBy(result.openTrades, ({ symbol }) => symbol);
  const traded = ({ symbol }: { readonly symbol: string }): number =>
    (closed.get(symbol)?.length ?? 0) + (open.get(symbol)?.length ?? 0);
  const drawn = instruments
    .filter(({ bars }) => bars.length > 0)
    .toSorted((a, b) => traded(b) - traded(a))
    .slice(0, MAX_INSTRUMENTS);
  const charts = drawn.map((instrument) => {
    const index = instruments.indexOf(instrument);
    return { instrument, index, shown: indicatorsOf(index, indicators) };
  });
  const limit = candleLimit(
    charts.map(({ instrument, shown }) => ({
      bars: instrument.bars.length,
      lines: linesOf(shown).length,
    })),
  );

  const single = chooseSingleBars(
    charts
      .filter(({ instrument }) => instrument.bars.length > limit)
      .map(({ instrument: { symbol, bars }, shown }) => ({
        symbol,
        bars,
        numbersPerBar: NUMBERS_PER_CANDLE + linesOf(shown).length,
      })),
    result.trades,
    MAX_SINGLE_NUMBERS,
  );
  return charts.map(({ instrument, index, shown }): PriceChart => {
    const { symbol, bars } = instrument;
    const candles = toCandles(bars, limit);
    const [own, ownOpen] = [closed.get(symbol) ?? [], open.get(symbol) ?? []];
    const ranges = (toLine: (values: Float64Array, at: EntryBars) => Ranges): Ranges[] =>
      shown.flatMap((indicator) =>
        sortedLines(indicator).map(({ values }) => toLine(values, indicator.bars.get(index)!)),
      );
    const stretches = single.get(symbol)?.stretches ?? [];
    const markers = toMarkers(candles, own, ownOpen);
    const chart = {
      symbol,
      indicators: shown.map(chartIndicator),
      overview: packLevel({
        candles,
        ranges: ranges((values, at) => toRanges(values, at, candles)),
        markers,
      }),
      summary: summaryOf(
        input,
        instrument,
        shown,
        { ...candles, markers },
        single.get(symbol),
        dateOnly,
      ),
    };
    if (stretches.length === 0) return chart;
    const bySingle = singleCandles(bars, stretches);
    const level = packLevel({
      candles: bySingle,
      ranges: ranges((values, at) => ({ close: singleValues(values, at, stretches) })),
      markers: singleMarkers(bySingle, own, ownOpen),
    });
    return { ...chart, single: { stretches, level } };
  });
}

/** Number of marks above which `marksOf` of the page draws none over narrow candles. */
const MOST_NARROW_MARKS = 1000;

/** Text alternative of a chart, which also states what the chart omits. */
function summaryOf(
  { result, indicators = [], instruments }: ReportInput,
  instrument: ReportInput['instruments'][number],
  shown: readonly ReturnedIndicator[],
  { barsPerCandle, markers }: Candles & Pick<Level, 'markers'>,
  single: SingleBars | undefined,
  dateOnly: boolean,
): string {
  const { symbol, bars } = instrument;
  const instant = (ms: number): string => formatInstant(ms, dateOnly);
  const trades = [...result.trades, ...result.openTrades].filter(
    (trade) => trade.symbol === symbol,
  );
  const [first, last] = [bars.close[0]!, bars.close.at(-1)!];
  const sentences = [
    `${symbol}: ${formatCountOf(bars.length, 'bar')} from ${instant(bars.time[0]!)} to ${instant(bars.time.at(-1)!)}, the close from ${formatPrice(first)} to ${formatPrice(last)}; ${formatCountOf(trades.length, 'trade')}.`,
  ];
  if (barsPerCandle > 1) sentences.push(`Each candle is ${formatCount(barsPerCandle)} bars.`);
  if (markers.length > MOST_NARROW_MARKS) {
    sentences.push('Entries and exits appear after zooming in.');
  }
  if (single !== undefined && single.trades > 0) {
    sentences.push(
      `Single bars are included around ${formatCount(single.trades)} of the trades, those with the largest profits and losses.`,
    );
  }
  if (shown.length > 0) sentences.push(`Indicators: ${shown.map(labelOf).join(', ')}.`);
  const all = indicatorsOf(instruments.indexOf(instrument), indicators, Infinity);
  const omitted = linesOf(all).length - linesOf(shown).length;
  if (omitted > 0) {
    sentences.push(`Not drawn: ${formatCountOf(omitted, 'line')} of further indicators.`);
  }
  return sentences.join(' ');
}

/** Largest number of candles of each chart. A line has three numbers per candle, or one if each is one bar. */
function candleLimit(charts: readonly { readonly bars: number; readonly lines: number }[]): number {
  const sum = (numbers: readonly number[]): number => numbers.reduce((all, each) => all + each, 0);
  const single = sum(charts.map(({ bars, lines }) => bars * (NUMBERS_PER_CANDLE + lines)));
  if (single <= MAX_NUMBERS && charts.every(({ bars }) => bars <= MAX_CANDLES)) return MAX_CANDLES;
  const perCandle = charts.map(({ lines }) => NUMBERS_PER_CANDLE + NUMBERS_PER_RANGE * lines);
  return Math.min(MAX_CANDLES, Math.floor(MAX_NUMBERS / sum(perCandle)));
}
