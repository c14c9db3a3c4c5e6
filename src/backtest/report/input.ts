import type { ReturnedIndicator } from '../../engine/series/returned-indicators.ts';
import type { RunResult } from '../../engine/run-result.ts';
import type { Bars } from '../../market/bars.ts';
import type { CalendarName } from '../../market/trading-calendar.ts';
import type { ExitReason } from './exit-reasons.ts';
import type { UnhashedSummary } from '../summary.ts';

export interface ReportInput {
  readonly summary: UnhashedSummary;
  readonly result: Pick<RunResult, 'time' | 'equity' | 'initialCash' | 'trades' | 'openTrades'>;
  /** By step, see `drawdownsOf`. */
  readonly drawdown: Float64Array;
  readonly instruments: readonly { readonly symbol: string; readonly bars: Bars }[];
  /** Indicators that the strategy declared; none by default. */
  readonly indicators?: readonly ReturnedIndicator[] | undefined;
  /** Calendar of the instruments; UTC days by default. */
  readonly calendar?: CalendarName | undefined;
  /** Account currency, such as `USD`. */
  readonly currency: string;
  /** Exit reasons of closed trades by id; unknown by default. */
  readonly exitReasons?: ReadonlyMap<number, ExitReason> | undefined;
  /** Equity of holding the benchmark at each step of the run, see `benchmarkOf`. */
  readonly benchmark?: Float64Array;
}
