import type { ReturnedIndicator } from '../../engine/series/returned-indicators.ts';
import type { RunResult } from '../../engine/run-result.ts';
import type { Bars } from '../../market/bars.ts';
import type { Summary } from '../summary.ts';

export interface ReportInput {
  readonly summary: Summary;
  readonly result: Pick<RunResult, 'time' | 'equity' | 'initialCash' | 'trades' | 'openTrades'>;
  /** By step, see `drawdownsOf`. */
  readonly drawdown: Float64Array;
  readonly instruments: readonly { readonly symbol: string; readonly bars: Bars }[];
  /** Indicators that the strategy declared; none by default. */
  readonly indicators?: readonly ReturnedIndicator[] | undefined;
  /** Account currency, such as `USD`. */
  readonly currency: string;
  /** Equity of buying and holding the instruments at each step of the run, see `holdEquity`. */
  readonly benchmark?: Float64Array;
}
