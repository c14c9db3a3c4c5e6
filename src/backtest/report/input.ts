import type { RunResult } from '../../engine/result.ts';
import type { Bars } from '../../market/bars.ts';
import type { Summary } from '../summary.ts';

/** What the report of one backtest is made from. */
export interface ReportInput {
  readonly summary: Summary;
  readonly result: Pick<RunResult, 'time' | 'equity' | 'initialCash' | 'trades' | 'openTrades'>;
  /** The bars of the run's window. */
  readonly instruments: readonly { readonly symbol: string; readonly bars: Bars }[];
  /** Of the account, e.g. `USD`. */
  readonly currency: string;
  /** Equity of buying and holding the same instruments, one per step of the run. */
  readonly benchmark?: Float64Array;
}
