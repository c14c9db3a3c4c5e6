import { allocateBars } from '../market/bars.ts';
import type { Params, ParamValues } from './params.ts';
import type { BarSeries } from './series/declared-series.ts';
import { SeriesGraph, type DeclaredIndicator } from './series/series-graph.ts';
import type { Strategy } from './strategy.ts';

/**
 * The indicators that a strategy declares with these parameters, without a run.
 *
 * @throws what `indicators` of the strategy throws.
 */
export function declaredIndicators(
  strategy: Pick<Strategy, 'indicators'>,
  params: ParamValues<Params>,
  symbols: readonly string[],
): readonly DeclaredIndicator[] {
  const bars = symbols.map(() => allocateBars(0));
  const series = new SeriesGraph({
    symbols,
    histories: bars,
    withWarmUp: bars,
    cursors: new Int32Array(symbols.length).fill(-1),
    fresh: new Uint8Array(symbols.length),
  });
  strategy.indicators?.({
    params: Object.freeze({ ...params }),
    instruments: series.bars as readonly [BarSeries],
  });
  return series.outputs;
}
