import { closest } from '../../base/closest.ts';
import { ServiceError } from '../../base/errors.ts';
import type { RunFigure } from '../../base/run-figure.ts';
import { RUN_FIGURES } from '../../base/run-figures.ts';
import { parseAssertionOn, type Assertion, type Range } from '../assertion.ts';
import { SWEEP_FIGURES, TRIAL_FIGURES, type TrialFigureName } from './trial-figures.ts';

export interface Objective {
  readonly figure: TrialFigureName;
  readonly better: 'higher' | 'lower';
}

/** A condition that a trial must meet to be ranked. */
export type Constraint = Assertion<TrialFigureName>;

/** Several objectives have no single best trial, but a front of trials. */
export interface Goal {
  readonly objectives: readonly [Objective, ...Objective[]];
  readonly constraints: readonly Constraint[];
}

export const HIGHEST_SHARPE: Goal = {
  objectives: [{ figure: 'sharpe', better: 'higher' }],
  constraints: [],
};

const betterOf = (figure: TrialFigureName): RunFigure['better'] => {
  const { better }: RunFigure = RUN_FIGURES[figure];
  return better;
};

/** @throws ServiceError `usage` for an unknown figure, or one for which neither direction is better */
export function parseObjective(text: string): Objective {
  const figure = TRIAL_FIGURES.find((name) => name === text);
  const better = figure && betterOf(figure);
  if (figure !== undefined && better !== undefined) return { figure, better };
  const known = TRIAL_FIGURES.filter((name) => betterOf(name) !== undefined);
  const near = closest(text, known);
  throw new ServiceError('usage', `${JSON.stringify(text)} cannot be an objective`, {
    remedy: near === undefined ? `Use one of ${known.join(', ')}.` : `Did you mean ${near}?`,
  });
}

const RANGES = Object.fromEntries(
  TRIAL_FIGURES.map((name) => [name, RUN_FIGURES[name].range]),
) as Readonly<Record<TrialFigureName, Range>>;

/** Parses `trades>=30`. @throws ServiceError `usage` as `parseAssertionOn` */
export function parseConstraint(text: string): Constraint {
  return parseAssertionOn(RANGES, text);
}

/** The columns of a table of trials: the objectives, then the figures of every sweep. */
export function shownFigures(objectives: Goal['objectives']): TrialFigureName[] {
  return [...new Set([...objectives.map(({ figure }) => figure), ...SWEEP_FIGURES])];
}
