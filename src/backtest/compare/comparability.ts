import { RUN_FIGURES, type FigureName } from '../../base/run-figures.ts';
import type { RunFigure } from '../../base/run-figure.ts';
import { formatSpacing, barSpacing } from '../../market/timeframe.ts';
import { FIGURE_GROUPS } from '../report/figure-groups.ts';
import type { Conventions, Summary } from '../summary.ts';
import type { StoredRun } from './stored-run.ts';

/** Properties in which runs must agree before the figures that depend on them can be ranked. */
export type Basis = 'window' | 'money' | 'sampling' | 'bars' | 'benchmark';

type Differing = ReadonlySet<Basis>;

export const NOTHING_DIFFERS: Differing = new Set();

/** Figures of sampled returns, most of them annualized. */
const SAMPLED: ReadonlySet<FigureName> = new Set<FigureName>([
  'annual_return',
  'best_day',
  'worst_day',
  'volatility',
  'sharpe',
  'sortino',
  'var_95',
  'cvar_95',
]);
/** Figures of the highest and lowest close. With shorter bars, more closes are compared. */
const EXTREMES: ReadonlySet<FigureName> = new Set<FigureName>([
  'peak_equity',
  'max_drawdown',
  'max_drawdown_days',
  'calmar',
]);
const RELATIVE: readonly FigureName[] = FIGURE_GROUPS['Against the benchmark'];

/** Whether a figure can be ranked although the runs differ. */
export function isComparable(figure: FigureName, differing: Differing): boolean {
  const { unit }: RunFigure = RUN_FIGURES[figure];
  const isRelative = RELATIVE.includes(figure);
  return !(
    differing.has('window') ||
    (differing.has('money') && unit === 'money') ||
    (differing.has('sampling') && (isRelative || SAMPLED.has(figure))) ||
    (differing.has('bars') && EXTREMES.has(figure)) ||
    (differing.has('benchmark') && isRelative)
  );
}

export function differingBases(runs: readonly StoredRun[]): Differing {
  const differs: Readonly<Record<Basis, (run: StoredRun) => string | undefined>> = {
    window: ({ summary }) => windowOf(summary),
    money: ({ summary }) => `${summary.currency ?? ''} ${summary.equity.start}`,
    sampling: ({ summary }) => samplingOf(summary.conventions),
    bars: barLengthOf,
    benchmark: ({ summary }) => benchmarkId(summary),
  };
  const bases = Object.keys(differs) as Basis[];
  return new Set(bases.filter((basis) => distinct(runs, differs[basis]).length > 1));
}

/** Sentences about all differences except different windows. */
export function describeDiffering(runs: readonly StoredRun[], differing: Differing): string[] {
  const notes: string[] = [];
  if (differing.has('money')) {
    const currencies = distinct(runs, ({ summary }) => summary.currency ?? 'an unknown currency');
    notes.push(
      currencies.length > 1
        ? `The accounts are in ${currencies.join(' and ')}: amounts of money are not ranked.`
        : 'The runs start with different equity: amounts of money are not ranked.',
    );
  }
  if (differing.has('sampling')) {
    const samplings = distinct(runs, ({ summary }) => samplingOf(summary.conventions));
    notes.push(
      `Returns are sampled and annualized differently, ${samplings.join(' and ')}: volatility, Sharpe and Sortino ratio, annual return, VaR, best and worst period, alpha and information ratio are not ranked.`,
    );
  }
  if (differing.has('bars')) {
    const lengths = distinct(runs, barLengthOf);
    notes.push(
      `The bars are ${lengths.join(' and ')} long, and drawdowns are measured at their closes: drawdowns, Calmar ratio and peak equity are not ranked.`,
    );
  }
  if (differing.has('benchmark')) {
    const names = distinct(runs, ({ summary }) => benchmarkInWords(summary));
    if (names.length > 1) {
      notes.push(
        `The benchmarks differ, ${names.join(' and ')}: alpha and the information ratio are not ranked.`,
      );
    } else if (!differing.has('window')) {
      notes.push(
        `The data of the benchmark differ, ${names[0]}: alpha and the information ratio are not ranked.`,
      );
    }
  }
  return notes;
}

function distinct(
  runs: readonly StoredRun[],
  valueOf: (run: StoredRun) => string | undefined,
): string[] {
  return [...new Set(runs.flatMap((run) => valueOf(run) ?? []))];
}

const windowOf = ({ window }: Summary): string => `${window.from} ${window.to}`;

function samplingOf({ sampling, periods_per_year, ddof, risk_free }: Conventions): string {
  const rest = `${ddof === 1 ? '' : `, ddof ${ddof}`}${risk_free === 0 ? '' : `, risk-free rate ${risk_free}`}`;
  return `by ${sampling} (${periods_per_year} a year${rest})`;
}

function barLengthOf({ time }: StoredRun): string | undefined {
  const spacing = barSpacing({ time, length: time.length });
  return spacing === undefined ? undefined : formatSpacing(spacing);
}

/** Buying and holding depends on the bars of the run. */
function benchmarkId({ benchmark, lock }: Summary): string | undefined {
  return benchmark && JSON.stringify(benchmark.data ?? lock.data);
}

function benchmarkInWords({ benchmark, lock }: Summary): string | undefined {
  return benchmark?.name === 'buy_and_hold'
    ? `buying and holding ${Object.keys(lock.data).join(', ')}`
    : benchmark?.name;
}
