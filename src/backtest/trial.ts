import type { EngineConfig } from '../engine/config.ts';
import type { EngineMemory } from '../engine/memory.ts';
import type { Params, ParamValues } from '../engine/params.ts';
import type { Signals } from '../engine/signals.ts';
import type { Strategy } from '../engine/strategy.ts';
import type { Bars } from '../market/bars.ts';
import { execute } from './execute.ts';
import { quickStatistics, type QuickStatistics } from './statistics.ts';
import type { Conventions } from './summary.ts';

/** One combination of parameters, by its place in the grid. */
export interface Trial {
  readonly index: number;
  readonly params: ParamValues<Params>;
}

/** What a sweep keeps of one run; names and units as in `Summary`. */
export interface TrialMetrics {
  readonly sharpe: number | null;
  readonly total_return: number;
  readonly cagr: number | null;
  readonly annual_return: number | null;
  readonly volatility: number | null;
  readonly sortino: number | null;
  readonly calmar: number | null;
  readonly max_drawdown: number;
  readonly trades: number;
  readonly win_rate: number | null;
  readonly profit_factor: number | null;
  readonly fees: number;
  readonly exposure: number;
  readonly end_equity: number;
}

const METRICS: { readonly [K in keyof TrialMetrics]: (run: QuickStatistics) => TrialMetrics[K] } = {
  sharpe: ({ risk }) => risk.sharpe,
  total_return: ({ returns }) => returns.total,
  cagr: ({ returns }) => returns.cagr,
  annual_return: ({ returns }) => returns.annual,
  volatility: ({ risk }) => risk.volatility,
  sortino: ({ risk }) => risk.sortino,
  calmar: ({ risk }) => risk.calmar,
  max_drawdown: ({ risk }) => risk.max_drawdown,
  trades: ({ trades }) => trades.count,
  win_rate: ({ trades }) => trades.win_rate,
  profit_factor: ({ trades }) => trades.profit_factor,
  fees: ({ costs }) => costs.fees,
  exposure: ({ exposure }) => exposure.time,
  end_equity: ({ equity }) => equity.end,
};

function metricsOf(run: QuickStatistics): TrialMetrics {
  return Object.fromEntries(
    Object.entries(METRICS).map(([name, read]) => [name, read(run)]),
  ) as unknown as TrialMetrics;
}

/** Whether the figures are complete; a trial kept by an earlier version can lack some. */
export function isComplete(metrics: object): metrics is TrialMetrics {
  return Object.keys(METRICS).every((name) => Object.hasOwn(metrics, name));
}

/** A trial's figures, or why it has none. */
export type TrialResult = Trial & ({ readonly metrics: TrialMetrics } | { readonly error: string });

/** What all trials of a sweep share; plain data and shared memory, so that it goes to a worker. */
export interface TrialSetup {
  readonly instruments: readonly { readonly symbol: string; readonly bars: Bars }[];
  readonly signals?: Signals | undefined;
  readonly config: EngineConfig;
  readonly conventions: Conventions;
  readonly timeoutMs: number;
}

/** Runs one trial. What goes wrong in it is its result: the others go on. */
export async function runTrial(
  setup: TrialSetup,
  strategy: Strategy,
  { index, params }: Trial,
  memory: EngineMemory,
): Promise<TrialResult> {
  const { instruments, signals, config, conventions, timeoutMs } = setup;
  try {
    const asked = { instruments, signals, config, strategy, params, memory };
    const run = await execute(asked, { timeoutMs });
    return { index, params, metrics: metricsOf(quickStatistics(run, conventions)) };
  } catch (error) {
    return { index, params, error: error instanceof Error ? error.message : String(error) };
  }
}
