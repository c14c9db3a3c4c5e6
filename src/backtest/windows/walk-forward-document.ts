import { outcomeOf, type Outcome } from '../backtest.ts';
import type { Axis } from '../search/axes.ts';
import { HIGHEST_SHARPE, type Goal } from '../search/goal.ts';
import type { SearchMethod } from '../search/plan-search.ts';
import type { TrialMetrics } from '../search/trial-figures.ts';
import type { Trial } from '../search/trial.ts';
import type { Summary } from '../summary.ts';
import { efficiencyOf, type Efficiency } from './efficiency.ts';
import { stabilityOf, type ParameterStability } from './stability.ts';
import { evaluateWalkForwardGates, type WalkForwardAssertion } from './walk-forward-gates.ts';
import type { WalkedWindow, WalkForward } from './walk-forward.ts';

/** Blocks of a summary that describe the joined tests. */
type RunBlocks = Pick<
  Summary,
  | 'bot'
  | 'version'
  | 'lock'
  | 'window'
  | 'conventions'
  | 'equity'
  | 'returns'
  | 'risk'
  | 'trades'
  | 'costs'
  | 'exposure'
  | 'orders'
  | 'ambiguity'
  | 'margin_calls'
  | 'findings'
>;

/** `walk_forward.json`, and the document that `backtest walk-forward --json` prints. */
export interface WalkForwardDocument extends RunBlocks, Required<Pick<Summary, 'benchmark'>> {
  readonly schema: 'service-local/walk-forward/v1';
  readonly plan: {
    readonly train: string;
    readonly test: string;
    readonly embargo: string | null;
    readonly anchored: boolean;
  };
  /** Search of each training window. */
  readonly search: SearchMethod & {
    readonly objectives: Goal['objectives'];
    readonly constraints: Goal['constraints'];
    readonly prune: boolean;
  };
  readonly axes: readonly Axis[];
  readonly efficiency: Efficiency;
  readonly windows: readonly WindowDocument[];
  /** One entry for each parameter. */
  readonly stability: readonly ParameterStability[];
  readonly gates: Summary['gates'];
  readonly files: readonly string[];
  readonly hashes: Summary['hashes'];
  readonly undefined: Summary['undefined'];
}

export interface WindowDocument {
  readonly train: Summary['window'];
  readonly test: Summary['window'];
  readonly trials: WalkedWindow['trials'];
  readonly params: Trial['params'];
  readonly in_sample: TrialMetrics;
  readonly out_of_sample: TrialMetrics;
}

export interface WalkForwardOutcome {
  /** The joined tests as one run. */
  readonly tests: Outcome;
  readonly document: Omit<WalkForwardDocument, 'files' | 'hashes'>;
}

/** Computes the figures of a finished walk-forward analysis. */
export function walkForwardOutcome(
  walk: WalkForward,
  assertions: readonly WalkForwardAssertion[],
): WalkForwardOutcome {
  const { job, plan, axes, windows, tested, result } = walk;
  const unjudged = { ...tested, assertions: [] };
  const tests = outcomeOf(unjudged, result, { runId: '', wallMs: 0 });
  const { summary } = tests;
  const cagr = summary.returns.cagr ?? summary.undefined['returns.cagr']!;
  const efficiency = efficiencyOf(walk, cagr);
  const reasons = { ...summary.undefined, ...efficiency.undefined };
  const { train, test, embargo, anchored, search } = plan;
  const { method = { kind: 'grid' }, goal = HIGHEST_SHARPE, prune = false } = search;
  const figures = { ...summary, efficiency: efficiency.efficiency, undefined: reasons };
  return {
    tests,
    document: {
      schema: 'service-local/walk-forward/v1',
      bot: job.bot,
      version: job.lock.spec,
      lock: job.lock,
      window: summary.window,
      conventions: summary.conventions,
      plan: {
        train: train.text,
        test: test.text,
        embargo: embargo?.text ?? null,
        anchored,
      },
      search: { ...method, ...goal, prune },
      axes,
      efficiency: efficiency.efficiency,
      windows: windows.map(windowDocument),
      stability: axes.map(({ name }) => stabilityOf(name, goal.objectives[0].better, windows)),
      equity: summary.equity,
      returns: summary.returns,
      risk: summary.risk,
      trades: summary.trades,
      costs: summary.costs,
      exposure: summary.exposure,
      benchmark: summary.benchmark!,
      orders: summary.orders,
      ambiguity: summary.ambiguity,
      margin_calls: summary.margin_calls,
      gates: evaluateWalkForwardGates(assertions, figures),
      findings: summary.findings,
      undefined: reasons,
    },
  };
}

function windowDocument(window: WalkedWindow): WindowDocument {
  const { training, result, trials, params, inSample, outOfSample } = window;
  const times = training.instruments.map(({ bars }) => bars.time);
  return {
    train: {
      from: new Date(Math.min(...times.map((time) => time[0]!))).toISOString(),
      to: new Date(Math.max(...times.map((time) => time.at(-1)!))).toISOString(),
      bars: times.reduce((sum, { length }) => sum + length, 0),
    },
    test: {
      from: new Date(result.time[0]!).toISOString(),
      to: new Date(result.time.at(-1)!).toISOString(),
      bars: result.steps,
    },
    trials,
    params,
    in_sample: inSample,
    out_of_sample: outOfSample,
  };
}
