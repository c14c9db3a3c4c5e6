import { isAnalysis } from '../analyses/analysis-kinds.ts';
import type { TasksTable } from '../../storage/tables.ts';

interface TaskLevel {
  /** Version of service-local that introduced the level, for people. */
  readonly since: string;
  /** @param input the decoded `input` of the task. */
  readonly isNeededBy: (
    kind: TasksTable['kind'],
    input: Readonly<Record<string, unknown>>,
  ) => boolean;
}

/**
 * Features that a worker needs to run a task. The level is the position in this list, from 1. A worker
 * claims only tasks up to its own level, so that during an upgrade it leaves tasks that it would run
 * wrongly to newer workers. Add a level for each field of an input, or kind of task, that earlier
 * workers would ignore or misread.
 */
export const TASK_LEVELS: readonly TaskLevel[] = [
  { since: '0.1.0', isNeededBy: () => true },
  { since: '0.2.0', isNeededBy: () => false },
  { since: '0.2.0', isNeededBy: (kind) => isAnalysis(kind) },
  // Earlier workers would run the files of the version.
  { since: '0.2.0', isNeededBy: (kind, input) => kind === 'backtest' && 'bundle_hash' in input },
];

/** Level of a paper session with archived inputs; earlier workers read inputs only from the database. */
export const ARCHIVED_INPUTS_LEVEL = 2;

/** Level of a worker of this version. */
export function ownTaskLevel(): number {
  return TASK_LEVELS.length;
}

/** Lowest level of workers that can run a task. */
export function neededTaskLevel(
  kind: TasksTable['kind'],
  input: Readonly<Record<string, unknown>>,
): number {
  return TASK_LEVELS.findLastIndex(({ isNeededBy }) => isNeededBy(kind, input)) + 1;
}
