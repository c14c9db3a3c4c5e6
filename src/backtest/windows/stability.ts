import type { ParamValue } from '../search/axes.ts';
import { holds } from '../assertion.ts';
import type { Goal, Objective } from '../search/goal.ts';
import type { Search } from '../search/plan-search.ts';
import type { TrialResult } from '../search/trial.ts';

/** Best value of the first objective, over the trials with each value of a parameter, keyed by parameter. */
export type Profiles = Readonly<Record<string, ReadonlyMap<ParamValue, number>>>;

/** Summarizes the trials of a search that meet its conditions, so that they need not be kept. */
export function profilesOf({ axes, goal, results }: Search): Profiles {
  const { figure, better } = goal.objectives[0];
  const profiles = axes.map(({ name }) => [name, new Map<ParamValue, number>()] as const);
  for (const trial of results.inOrder()) {
    const isPruned = !results.has(trial.index);
    const objective = 'metrics' in trial && !isPruned ? trial.metrics[figure] : null;
    if (objective === null || !meets(trial, goal)) continue;
    for (const [name, best] of profiles) {
      const value = trial.params[name]!;
      best.set(value, betterOf(better, best.get(value) ?? objective, objective));
    }
  }
  return Object.fromEntries(profiles);
}

function meets(trial: TrialResult, { constraints }: Goal): boolean {
  if (!('metrics' in trial)) return false;
  return constraints.every((one) => {
    const value = trial.metrics[one.name];
    return value !== null && holds(value, one);
  });
}

function betterOf(better: Objective['better'], one: number, other: number): number {
  return better === 'higher' ? Math.max(one, other) : Math.min(one, other);
}

/** How the choice of a parameter, and the objective around it, change from window to window. */
export interface ParameterStability {
  readonly name: string;
  /** Value that each window chose; null if it could choose none. */
  readonly chosen: readonly (ParamValue | null)[];
  /** Windows that chose another value than the last one that chose. */
  readonly changes: number;
  /** Columns of `objective`: tried values in ascending order, or equal intervals between them. */
  readonly values: readonly string[];
  /** Column of the value that each window chose, or null. */
  readonly chosen_at: readonly (number | null)[];
  /** Best objective in training, by window and column; null without a trial that has one and meets the conditions. */
  readonly objective: readonly (readonly (number | null)[])[];
}

export function stabilityOf(
  name: string,
  better: Objective['better'],
  windows: readonly {
    readonly best: { readonly params: Readonly<Record<string, ParamValue>> } | undefined;
    readonly profiles: Profiles;
  }[],
): ParameterStability {
  const chosen = windows.map(({ best }) => best?.params[name] ?? null);
  const choices = chosen.filter((value) => value !== null);
  const tried = new Set(windows.flatMap(({ profiles }) => [...profiles[name]!.keys()]));
  const { labels, columnOf } = columnsFor([...new Set([...tried, ...choices])]);
  const objective = windows.map(({ profiles }) => {
    const row = labels.map((): number | null => null);
    for (const [value, best] of profiles[name]!) {
      const at = columnOf(value);
      row[at] = betterOf(better, row[at] ?? best, best);
    }
    return row;
  });
  return {
    name,
    chosen,
    changes: choices.filter((value, at) => at > 0 && value !== choices[at - 1]).length,
    values: labels,
    chosen_at: chosen.map((value) => (value === null ? null : columnOf(value))),
    objective,
  };
}

/** More columns could not be read side by side. */
const MOST_COLUMNS = 30;

interface Columns {
  readonly labels: readonly string[];
  readonly columnOf: (value: ParamValue) => number;
}

function columnsFor(values: readonly ParamValue[]): Columns {
  const numbers = values.filter((value) => typeof value === 'number');
  if (values.length > MOST_COLUMNS && numbers.length === values.length) return intervals(numbers);
  const sorted = values.toSorted((a, b) =>
    typeof a === 'number' && typeof b === 'number'
      ? a - b
      : String(a).localeCompare(String(b), 'en'),
  );
  return { labels: sorted.map(String), columnOf: (value) => sorted.indexOf(value) };
}

function intervals(numbers: readonly number[]): Columns {
  const least = Math.min(...numbers);
  const width = (Math.max(...numbers) - least) / MOST_COLUMNS;
  const edge = (at: number): string => String(Number((least + at * width).toPrecision(4)));
  return {
    labels: Array.from({ length: MOST_COLUMNS }, (_, at) => `${edge(at)}–${edge(at + 1)}`),
    columnOf: (value) => Math.min(MOST_COLUMNS - 1, Math.floor((Number(value) - least) / width)),
  };
}
