/**
 * The figures of `backtest robustness`, each of which can be a gate: name, range, value and a sentence
 * that says what it means. Terminal, report, document and gates read this table.
 */
import { formatFigure } from '../../base/format-figure.ts';
import { formatCount, formatPercent, formatRatio } from '../../base/format.ts';
import { RUN_FIGURES } from '../../base/run-figures.ts';
import type { Range } from '../assertion.ts';
import type { Objective } from '../search/goal.ts';
import type { TrialMetrics } from '../search/trial-figures.ts';
import type { Bootstrap, BootstrapFigure } from './bootstrap.ts';
import type { Overfitting } from './overfitting.ts';
import type { StressName } from './stresses.ts';

/** Results from which the figures are computed; a reason where a test was not possible. */
export interface RobustnessTests {
  /** Figure by which the parameters were chosen. */
  readonly objective: Objective;
  readonly chosen: TrialMetrics;
  readonly overfitting: Overfitting | UndefinedFigure;
  readonly permutations: PermutationTest | UndefinedFigure;
  readonly bootstrap: Bootstrap | UndefinedFigure;
  readonly neighbors: readonly Variant<'neighbor'>[];
  readonly stresses: readonly Variant<StressName>[];
}

export interface PermutationTest {
  readonly count: number;
  /** Permutations whose best objective is at least as good as that of the run. */
  readonly at_least_as_good: number;
  /** Permutations with exactly the objective of the run. */
  readonly equal: number;
  /** (1 + at_least_as_good) / (1 + count) */
  readonly p: number;
}

/** A run with one change. */
export interface Variant<Name extends string = string> {
  readonly name: Name;
  /** The change in words, such as `fees × 2`. */
  readonly label: string;
  /** Null if the run failed. */
  readonly metrics: TrialMetrics | null;
  readonly error?: string | undefined;
}

export const UNDEFINED_FIGURES = {
  one_trial:
    'cross-validation needs at least two trials with results, from parameters given with -p',
  too_few_returns: 'there are too few returns',
  no_permutations: 'no permutations were run',
  models: 'bars cannot be shuffled for a bot with models',
  no_objective: 'the run has no value of the objective',
  no_share: 'the objective is not positive, or a lower value is better',
  no_variation: 'the figures do not vary',
  no_neighbors: 'no numeric parameter of the strategy can be changed',
  no_fees: 'the bot pays no fees',
  no_slippage: 'the bot has no slippage',
  too_few_symbols: 'the strategy needs all of its symbols',
  run_undefined: 'a run has no value of the objective',
} as const;
export type UndefinedFigure = keyof typeof UNDEFINED_FIGURES;

interface RobustnessFigure {
  readonly label: string;
  readonly unit: 'percent' | 'ratio' | 'objective';
  readonly range: Range;
  readonly valueOf: (tests: RobustnessTests) => number | UndefinedFigure;
  /** One sentence for a trader. */
  readonly explain: (value: number, tests: RobustnessTests) => string;
}

const ANY: Range = [-Infinity, Infinity];
const SHARE: Range = [0, 1];
/** Limit of the number of permutations, and so of the p-value. */
export const MOST_PERMUTATIONS = 1_000_000;
/** The usual significance level, and the p-value above which luck often gives the result. */
const SIGNIFICANT = 0.05;
const COMMON = 0.2;

const isReason = (part: object | string): part is UndefinedFigure => typeof part === 'string';

const overfitting = (
  label: string,
  unit: RobustnessFigure['unit'],
  range: Range,
  read: (part: Overfitting) => number | UndefinedFigure,
  explain: (value: number, part: Overfitting) => string,
): RobustnessFigure => ({
  label,
  unit,
  range,
  valueOf: ({ overfitting: part }) => (isReason(part) ? part : read(part)),
  explain: (value, { overfitting: part }) => explain(value, part as Overfitting),
});

const BOUNDED = {
  total_return: 'total return',
  cagr: 'CAGR',
  sharpe: 'Sharpe ratio',
  sortino: 'Sortino ratio',
  max_drawdown: 'max drawdown',
} as const satisfies Record<BootstrapFigure, string>;

const lowerBound = (
  name: BootstrapFigure,
  unit: RobustnessFigure['unit'],
  range: Range,
): RobustnessFigure => {
  const format = unit === 'percent' ? formatPercent : formatRatio;
  const span = ({ bootstrap }: RobustnessTests): string => {
    const { low, high } = (bootstrap as Bootstrap).intervals[name]!;
    return `${format(low)} to ${format(high)}`;
  };
  return {
    label: name === 'max_drawdown' ? 'Worst max drawdown' : `Lowest ${BOUNDED[name]}`,
    unit,
    range,
    valueOf({ bootstrap }) {
      if (isReason(bootstrap)) return bootstrap;
      return bootstrap.intervals[name]?.low ?? 'no_variation';
    },
    explain: (_, tests) =>
      name === 'max_drawdown'
        ? `In 95% of resampled histories, the max drawdown was ${span(tests)}.`
        : `These returns are compatible with a true ${BOUNDED[name]} of ${span(tests)} (95% interval).`,
  };
};

/** The variant with the worst objective; a reason if one has none. */
function worstOf<V extends Variant>(
  { objective: { figure, better } }: RobustnessTests,
  variants: readonly V[],
  none: UndefinedFigure,
): V | UndefinedFigure {
  if (variants.length === 0) return none;
  const score = ({ metrics }: V): number => {
    const value = metrics?.[figure] ?? Number.NaN;
    return better === 'higher' ? value : -value;
  };
  if (variants.some((one) => Number.isNaN(score(one)))) return 'run_undefined';
  return variants.reduce((least, one) => (score(one) < score(least) ? one : least));
}

const worst = (
  label: string,
  none: UndefinedFigure,
  select: (tests: RobustnessTests) => readonly Variant[],
): RobustnessFigure => ({
  label,
  unit: 'objective',
  range: ANY,
  valueOf(tests) {
    const found = worstOf(tests, select(tests), none);
    return isReason(found) ? found : found.metrics![tests.objective.figure]!;
  },
  explain(value, tests) {
    const { label: run } = worstOf(tests, select(tests), none) as Variant;
    const { figure } = tests.objective;
    const [now, before] = [value, tests.chosen[figure]].map((one) => formatFigure(figure, one));
    const change = now === before ? `still ${now}` : `${now} instead of ${before}`;
    return `The ${inSentence(RUN_FIGURES[figure].label)} of the run “${run}” is ${change}.`;
  },
});

/** A label within a sentence: `Max drawdown` → `max drawdown`, but `Sharpe ratio` and `CAGR`. */
const NAMES = /^(Sharpe|Sortino|Calmar|CAGR)/;
function inSentence(label: string): string {
  return NAMES.test(label) ? label : label.charAt(0).toLowerCase() + label.slice(1);
}

const stress = (label: string, name: StressName, none: UndefinedFigure): RobustnessFigure =>
  worst(label, none, ({ stresses }) => stresses.filter((one) => one.name === name));

export const ROBUSTNESS_FIGURES = {
  permutation_p: {
    label: 'Permutation p-value',
    unit: 'ratio',
    range: [1 / (1 + MOST_PERMUTATIONS), 1],
    valueOf: ({ permutations }) => (isReason(permutations) ? permutations : permutations.p),
    explain(value, { permutations }) {
      const { at_least_as_good, count } = permutations as PermutationTest;
      let verdict = 'luck alone rarely gives this result';
      if (value > SIGNIFICANT) verdict = 'this result may well be luck';
      if (value > COMMON) verdict = 'luck alone often gives this result';
      return `Shuffled prices did as well in ${formatCount(at_least_as_good)} of ${formatCount(count)} cases, so ${verdict}.`;
    },
  },
  pbo: overfitting(
    'Probability of overfitting',
    'percent',
    SHARE,
    ({ pbo }) => pbo,
    (value, { combinations }) =>
      `In ${formatPercent(value)} of ${formatCount(combinations)} splits of the history, the parameters that were best in one half ranked below the median in the other; ${
        value >= 0.5
          ? 'choosing parameters by past results is no better than chance'
          : 'without skill, this share would be about 50%'
      }.`,
  ),
  probability_of_loss: overfitting(
    'Probability of loss',
    'percent',
    SHARE,
    ({ probability_of_loss }) => probability_of_loss,
    (value, { combinations }) =>
      `In ${formatPercent(value)} of ${formatCount(combinations)} splits, the parameters that were best in one half of the history lost money in the other.`,
  ),
  degradation_slope: overfitting(
    'Performance degradation',
    'ratio',
    ANY,
    ({ degradation }) => degradation?.slope ?? 'no_variation',
    (value) =>
      `If the Sharpe ratio was higher by 1 in the half that chose the parameters, it was ${value < 0 ? 'lower' : 'higher'} by ${formatRatio(Math.abs(value))} in the other half, on average.`,
  ),
  total_return_low: lowerBound('total_return', 'percent', ANY),
  cagr_low: lowerBound('cagr', 'percent', [-1, Infinity]),
  sharpe_low: lowerBound('sharpe', 'ratio', ANY),
  sortino_low: lowerBound('sortino', 'ratio', ANY),
  max_drawdown_low: lowerBound('max_drawdown', 'percent', [-1, 0]),
  neighbors_worst: worst('Worst neighbor', 'no_neighbors', ({ neighbors }) => neighbors),
  neighbors_share: {
    label: 'Share that the worst neighbor keeps',
    unit: 'percent',
    range: ANY,
    valueOf(tests) {
      const found = worstOf(tests, tests.neighbors, 'no_neighbors');
      if (isReason(found)) return found;
      const { figure, better } = tests.objective;
      const chosen = tests.chosen[figure];
      if (chosen === null) return 'no_objective';
      return better === 'higher' && chosen > 0 ? found.metrics![figure]! / chosen : 'no_share';
    },
    explain(value, tests) {
      const { label } = worstOf(tests, tests.neighbors, 'no_neighbors') as Variant;
      const { label: figure } = RUN_FIGURES[tests.objective.figure];
      return `The run “${label}” keeps ${formatPercent(value)} of the ${inSentence(figure)}.`;
    },
  },
  fees_doubled: stress('Fees × 2', 'fees_doubled', 'no_fees'),
  slippage_doubled: stress('Slippage × 2', 'slippage_doubled', 'no_slippage'),
  one_bar_late: stress('Orders one bar late', 'one_bar_late', 'run_undefined'),
  start_shifted: stress('Worst shifted start', 'start_shifted', 'too_few_returns'),
  symbol_left_out: stress('Worst without one symbol', 'symbol_left_out', 'too_few_symbols'),
} as const satisfies Readonly<Record<string, RobustnessFigure>>;

export type RobustnessFigureName = keyof typeof ROBUSTNESS_FIGURES;

export const ROBUSTNESS_FIGURE_NAMES = Object.keys(ROBUSTNESS_FIGURES) as RobustnessFigureName[];

export const ROBUSTNESS_RANGES = Object.fromEntries(
  ROBUSTNESS_FIGURE_NAMES.map((name) => [name, ROBUSTNESS_FIGURES[name].range]),
) as Readonly<Record<RobustnessFigureName, Range>>;

/** A figure with the sentence that explains it, or null with the reason. */
export interface ExplainedFigure {
  readonly value: number | null;
  readonly explanation: string;
}

export function explainFigures(
  tests: RobustnessTests,
): Readonly<Record<RobustnessFigureName, ExplainedFigure>> {
  const entries = ROBUSTNESS_FIGURE_NAMES.map((name) => {
    const { label, valueOf, explain }: RobustnessFigure = ROBUSTNESS_FIGURES[name];
    const value = valueOf(tests);
    const explained: ExplainedFigure =
      typeof value === 'number'
        ? { value, explanation: explain(value, tests) }
        : { value: null, explanation: `${label} is undefined: ${UNDEFINED_FIGURES[value]}.` };
    return [name, explained];
  });
  return Object.fromEntries(entries) as Record<RobustnessFigureName, ExplainedFigure>;
}

/** Formats a defined figure. */
export function formatRobustness(
  name: RobustnessFigureName,
  value: number,
  { figure }: Objective,
): string {
  const { unit } = ROBUSTNESS_FIGURES[name];
  if (name === 'permutation_p') return String(Number(value.toPrecision(3)));
  if (unit === 'objective') return formatFigure(figure, value);
  return unit === 'percent' ? formatPercent(value) : formatRatio(value);
}
