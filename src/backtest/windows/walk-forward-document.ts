import { coveredWindow, outcomeOf, type Outcome } from '../backtest.ts';
import type { Axis } from '../search/axes.ts';
import { HIGHEST_SHARPE, type Goal } from '../search/goal.ts';
import type { SearchMethod } from '../search/search-method.ts';
import type { TrialMetrics } from '../search/trial-figures.ts';
import type { Trial } from '../search/trial.ts';
import type { EarlierTrials, Holdout, Summary } from '../summary.ts';
import { efficiencyOf, type Efficiency } from './efficiency.ts';
import type { FlatReason } from './flat-window.ts';
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
  | 'deflated_sharpe'
  | 'holdout'
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
  /** Null if no trial could be chosen. */
  readonly params: Trial['params'] | null;
  readonly in_sample: TrialMetrics | null;
  readonly out_of_sample: TrialMetrics;
  /** Why the test window has no position: no trial could be chosen, or the chosen one failed in the test. */
  readonly flat: FlatReason | null;
}

export interface WalkForwardOutcome {
  /** The joined tests as one run. */
  readonly tests: Outcome;
  readonly document: Omit<WalkForwardDocument, 'files' | 'hashes'>;
}

/**
 * Computes the figures of a finished walk-forward analysis.
 *
 * @param ledger `trials` on these data so far, including those of all windows, and the use of the
 * holdout; undefined if they do not count
 */
export function walkForwardOutcome(
  walk: WalkForward,
  assertions: readonly WalkForwardAssertion[],
  {
    trials,
    holdout,
  }: { readonly trials: EarlierTrials | undefined; readonly holdout: Holdout | undefined },
): WalkForwardOutcome {
  const { job, plan, axes, windows, tested, result } = walk;
  const unjudged = { ...tested, lock: { ...tested.lock, trials }, holdout, assertions: [] };
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
      lock: { ...job.lock, trials },
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
      deflated_sharpe: summary.deflated_sharpe,
      ...(holdout && { holdout }),
      gates: evaluateWalkForwardGates(assertions, figures),
      findings: summary.findings,
      undefined: reasons,
    },
  };
}

function windowDocument(window: WalkedWindow): WindowDocument {
  const { training, testing, result, trials, best, flat, outOfSample } = window;
  const times = training.instruments.map(({ bars }) => bars.time);
  return {
    train: {
      from: new Date(Math.min(...times.map((time) => time[0]!))).toISOString(),
      to: new Date(Math.max(...times.map((time) => time.at(-1)!))).toISOString(),
      bars: times.reduce((sum, { length }) => sum + length, 0),
    },
    test: coveredWindow(testing.instruments, result.time),
    trials,
    params: best?.params ?? null,
    in_sample: best?.metrics ?? null,
    out_of_sample: outOfSample,
    flat: flat ?? null,
  };
}
