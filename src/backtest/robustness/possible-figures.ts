import { ServiceError } from '../../base/errors.ts';
import { formatCount } from '../../base/format.ts';
import { neverHolds, type Assertion } from '../assertion.ts';
import type { Search } from '../search/plan-search.ts';
import {
  UNDEFINED_FIGURES,
  type RobustnessFigureName,
  type UndefinedFigure,
} from './robustness-figures.ts';

const DEFAULT_PERMUTATIONS = 1000;

/**
 * Returns the number of permutations of a test. Models would have to run again over each permutation.
 *
 * @throws ServiceError `usage` for permutations of a bot with models
 */
export function countPermutations(hasModels: boolean, asked: number | undefined): number {
  if (!hasModels) return asked ?? DEFAULT_PERMUTATIONS;
  if (asked === undefined || asked === 0) return 0;
  throw new ServiceError('usage', 'the bars of a bot with models cannot be permuted', {
    remedy: 'Leave out the number of permutations, or set it to 0. The other tests run.',
  });
}

type RobustnessAssertion = Assertion<RobustnessFigureName>;

/**
 * Checks assertions before hours of runs.
 *
 * @throws ServiceError `usage` for an assertion that a test of this plan can never meet
 */
export function requirePossible(
  assertions: readonly RobustnessAssertion[],
  search: Search,
  permutations: number,
): void {
  for (const assertion of assertions) {
    const { name, op, threshold } = assertion;
    const refuse = (fault: string, remedy: string): never => {
      throw new ServiceError('usage', `assertion "${name}${op}${threshold}": ${fault}`, { remedy });
    };
    const reason = REASONS[name]?.(search, permutations);
    if (reason !== undefined) {
      refuse(
        `can never pass: ${UNDEFINED_FIGURES[reason]}`,
        reason === 'no_permutations'
          ? `Run at least ${formatCount(permutationsFor(assertion))} permutations, or remove the assertion.`
          : 'Remove the assertion.',
      );
    }
    if (name !== 'permutation_p') continue;
    const least = 1 / (1 + permutations);
    if (neverHolds(assertion, [least, 1]) === undefined) continue;
    refuse(
      `can never pass: with ${formatCount(permutations)} permutations, the p-value is at least ${Number(least.toPrecision(3))}`,
      `Run at least ${formatCount(permutationsFor(assertion))} permutations.`,
    );
  }
}

/** Lowest number of permutations whose lowest p-value meets an assertion. */
function permutationsFor(assertion: RobustnessAssertion): number {
  const { op, threshold } = assertion;
  if (op === '>' || op === '>=') return 1;
  const estimate = Math.max(1, Math.floor(1 / threshold) - 2);
  let count = estimate;
  while (neverHolds(assertion, [1 / (1 + count), 1]) !== undefined) count += 1;
  return count;
}

type FindReason = (search: Search, permutations: number) => UndefinedFigure | undefined;

const needsTrials: FindReason = ({ trials }) => (trials.capacity < 2 ? 'one_trial' : undefined);

/** Why a test cannot define a figure, whatever its runs return. */
const REASONS: Partial<Readonly<Record<RobustnessFigureName, FindReason>>> = {
  permutation_p({ job }, permutations) {
    if (job.signals !== undefined) return 'models';
    return permutations === 0 ? 'no_permutations' : undefined;
  },
  pbo: needsTrials,
  probability_of_loss: needsTrials,
  degradation_slope: needsTrials,
  neighbors_share: ({ goal }) => (goal.objectives[0].better === 'lower' ? 'no_share' : undefined),
  fees_doubled: ({ job }) => (job.config.fees.model === 'none' ? 'no_fees' : undefined),
  slippage_doubled: ({ job }) => (job.config.slippage.model === 'none' ? 'no_slippage' : undefined),
  symbol_left_out: ({ job: { instruments, strategy } }) =>
    instruments.length > (strategy.instruments?.min ?? 1) ? undefined : 'too_few_symbols',
};
