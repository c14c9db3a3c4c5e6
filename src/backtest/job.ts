import type { EngineConfig } from '../engine/config.ts';
import type { Params, ParamValues } from '../engine/params.ts';
import type { Strategy } from '../engine/strategy.ts';
import type { Signals } from '../engine/signals.ts';
import type { Bars } from '../market/bars.ts';
import type { UncoveredEdge } from '../market/gaps.ts';
import type { Assertion } from './gates.ts';
import type { Execute } from './execute.ts';
import type { Lock } from './summary.ts';

/** A backtest with everything it needs at hand: nothing in it is read or looked up any more. */
export interface BacktestJob {
  readonly bot: { readonly name: string; readonly slug: string };
  /** Of the account, e.g. `USD`. */
  readonly currency: string;
  readonly lock: Lock;
  readonly strategy: Strategy;
  /** Where the strategy runs, if not in this thread. */
  readonly execute?: Execute | undefined;
  /** Complete and checked by the strategy's own declaration. */
  readonly params: ParamValues<Params>;
  readonly config: EngineConfig;
  /** Length of a bar, ms. */
  readonly barMs: number;
  readonly instruments: readonly JobInstrument[];
  /** What the models of the spec say of these bars, where it has any. */
  readonly signals?: Signals | undefined;
  readonly assertions: readonly Assertion[];
}

export interface JobInstrument {
  readonly symbol: string;
  readonly bars: Bars;
  /** Before they were made longer: bars there were, and that a regular series would have beside. */
  readonly source: { readonly bars: number; readonly missing: number };
  /** Edges of the window that the bars do not reach. */
  readonly uncovered?: readonly UncoveredEdge[];
}
