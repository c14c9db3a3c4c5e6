import type { Bars } from '../market/bars.ts';
import type { TimeframeName } from '../market/timeframe.ts';
import type { EngineConfig } from './config.ts';
import type { VenueRules } from './execution/venue-protocol.ts';
import type { EngineMemory } from './memory.ts';
import type { Params, ParamValues } from './params.ts';
import type { Opening } from './portfolio.ts';
import type { Signals } from './model-signals.ts';
import type { SharedComputations } from './series/shared-computations.ts';
import type { Strategy } from './strategy.ts';

export interface EngineInstrument {
  readonly symbol: string;
  /** Bars of the run. */
  readonly bars: Bars;
  /** Earlier bars, which only declared indicators see. */
  readonly warmUp?: Bars | undefined;
  /**
   * Complete bars of longer timeframes before the run. Within their time, indicators of these timeframes
   * read no bars of the run or before it.
   */
  readonly longer?: Readonly<Partial<Record<TimeframeName, Bars>>> | undefined;
}

export interface EngineSetup<P extends Params = Params> {
  /**
   * In the order of the universe, which is also the order of simultaneous events. Bars are optional
   * and can be appended.
   */
  readonly instruments: readonly EngineInstrument[];
  readonly strategy: Strategy<P>;
  readonly params: ParamValues<P>;
  readonly config: EngineConfig;
  /** Memory to reuse, of a run whose result is no longer needed; new memory by default. */
  readonly memory?: EngineMemory | undefined;
  /** Whether the result has a journal with events, which is the default; otherwise, it is empty. */
  readonly keepsEvents?: boolean | undefined;
  /** Whether the lines that the strategy logs are kept; by default, they are dropped. */
  readonly keepsLog?: boolean | undefined;
  /** Rules of the venue that executes the orders; by default, bars fill them. */
  readonly venue?: VenueRules | undefined;
  /** Initial state of the account, instead of the cash of the configuration. */
  readonly opening?: Opening | undefined;
  /**
   * Indicators of earlier runs over the same bars, which this run uses and adds to. No bars can be
   * appended to such a run.
   */
  readonly computations?: SharedComputations | undefined;
  /** Whether the strategy is called in every step, despite its `wakeOn`. */
  readonly ignoresWakeOn?: boolean | undefined;
  /** Outputs of models. They must exist for a bar before `advance` reaches it. */
  readonly signals?: Signals | undefined;
}
