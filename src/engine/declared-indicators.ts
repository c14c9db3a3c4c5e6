import { ServiceError } from '../base/errors.ts';
import { placeIn } from '../base/strategy-guard.ts';
import { allocateBars } from '../market/bars.ts';
import type { Params, ParamValues } from './params.ts';
import type { BarKind } from './series/coarse-bars.ts';
import { testOf } from './series/condition.ts';
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
 * The indicators that a strategy declares with these parameters, without a run. Calls `wakeOn` too,
 * so that its faults are found before a run.
 *
 * @throws ServiceError `strategy_failed` if the strategy throws.
 */
export function declaredIndicators(
  strategy: Pick<Strategy, 'name' | 'indicators' | 'wakeOn'>,
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
  let method = 'indicators';
  try {
    const values = Object.freeze({ ...params });
    const instruments = series.bars as readonly [BarSeries];
    const indicators = strategy.indicators?.({ params: values, instruments });
    method = 'wakeOn';
    const condition = strategy.wakeOn?.(indicators, values);
    if (condition !== undefined) testOf(condition);
  } catch (error) {
    const place = placeIn(error instanceof Error ? error.stack : undefined);
    const where = place === undefined ? '' : ` (${place})`;
    throw new ServiceError(
      'strategy_failed',
      `${method}() of strategy ${strategy.name} threw: ${String(error)}${where}`,
      { cause: error },
    );
  }
  return series.outputs;
}
