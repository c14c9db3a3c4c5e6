import { ServiceError } from '../base/errors.ts';
import { allocateBars } from '../market/bars.ts';
import type { Params, ParamValues } from './params.ts';
import type { BarKind } from './series/coarse-bars.ts';
import type { BarSeries } from './series/declared-series.ts';
import { SeriesGraph, type DeclaredIndicator } from './series/series-graph.ts';
import type { Strategy } from './strategy.ts';

/** Returns the declared indicators of a strategy that runs elsewhere. */
export type DeclareIndicators = (
  params: ParamValues<Params>,
  symbols: readonly string[],
  kind: BarKind,
) => readonly DeclaredIndicator[];

/**
 * The indicators that a strategy declares with these parameters, without a run.
 *
 * @throws ServiceError `strategy_failed` if the strategy throws.
 */
export function declaredIndicators(
  strategy: Pick<Strategy, 'name' | 'indicators'>,
  params: ParamValues<Params>,
  symbols: readonly string[],
  { timeframe, calendar }: BarKind,
): readonly DeclaredIndicator[] {
  const bars = symbols.map(() => allocateBars(0));
  const series = new SeriesGraph({
    symbols,
    histories: bars,
    withWarmUp: bars,
    cursors: new Int32Array(symbols.length).fill(-1),
    fresh: new Uint8Array(symbols.length),
    config: { timeframe, calendar },
  });
  try {
    strategy.indicators?.({
      params: Object.freeze({ ...params }),
      instruments: series.bars as readonly [BarSeries],
    });
  } catch (error) {
    throw new ServiceError(
      'strategy_failed',
      `indicators() of strategy ${strategy.name} threw: ${String(error)}`,
      { cause: error },
    );
  }
  return series.outputs;
}
