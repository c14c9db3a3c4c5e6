import type { EngineConfig } from '../engine/config.ts';
import type { EngineInstrument } from '../engine/engine-setup.ts';
import type { HistoryNeed } from '../engine/history-need.ts';
import type { Params, ParamValues } from '../engine/params.ts';
import type { Strategy } from '../engine/strategy.ts';
import type { Signals } from '../engine/model-signals.ts';
import type { Bars } from '../market/bars.ts';
import type { UncoveredEdge } from '../market/data-gaps.ts';
import type { RunAssertion } from './gates.ts';
import type { Execute } from './execute.ts';
import type { Holdout, Lock } from './summary.ts';

export interface BacktestJob {
  readonly bot: { readonly name: string; readonly slug: string };
  /** Account currency, such as `USD`. */
  readonly currency: string;
  readonly lock: Lock;
  /** Hash of files that replace the files of the version; null for no files. Absent by default. */
  readonly unsaved?: string | null | undefined;
  readonly strategy: Strategy;
  /** Runs the strategy in another thread; by default it runs in this one. */
  readonly execute?: Execute | undefined;
  /** Complete and valid for the strategy. */
  readonly params: ParamValues<Params>;
  readonly config: EngineConfig;
  /** Buying and holding the instruments by default. */
  readonly benchmark?: BenchmarkSeries | undefined;
  /** Length of a bar, ms. */
  readonly barMs: number;
  readonly instruments: readonly JobInstrument[];
  /** Bars before the window that declared indicators need; undefined without a window. */
  readonly historyNeeds?: readonly HistoryNeed[] | undefined;
  /** Outputs of the spec's models for these bars, if it has models. */
  readonly signals?: Signals | undefined;
  /** Absent if the spec declares none. */
  readonly holdout?: Holdout | undefined;
  readonly assertions: readonly RunAssertion[];
}

export interface JobInstrument extends EngineInstrument {
  /** Absent if the strategy declares no indicators, empty if there are no earlier bars. */
  readonly warmUp?: Bars | undefined;
  /** Number of bars before resampling, and of bars missing among them. */
  readonly source: { readonly bars: number; readonly missing: number };
  /** Share of these bars outside the sessions of the calendar, 0 to 1. */
  readonly outsideSessions?: number;
  /** Edges of the window that the bars do not reach. */
  readonly uncovered?: readonly UncoveredEdge[] | undefined;
}

/** A series that a run is compared with instead of its own instruments. */
export interface BenchmarkSeries {
  /** Symbol, or name of the file without its extension or of the dataset. */
  readonly name: string;
  /** File or `catalog://NAME` as the user named it; absent for a symbol of the bot. */
  readonly source?: string;
  /** One or more bars at or before the end of the run. */
  readonly bars: Bars;
  /** `barsDigest` of the bars. */
  readonly digest: string;
}
