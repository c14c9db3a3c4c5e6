import { DAY } from '../../base/durations.ts';
import { formatFigure, readFigure } from '../../base/format-figure.ts';
import { formatInstant } from '../../base/format.ts';
import { RUN_FIGURES, type FigureName } from '../../base/run-figures.ts';
import type { RunFigure } from '../../base/run-figure.ts';
import { curveStatistics } from '../curve-statistics.ts';
import { driftOf } from '../lock-drift.ts';
import { FIGURE_GROUPS } from '../report/figure-groups.ts';
import type { Summary } from '../summary.ts';
import { type Basis, describeDiffering, differingBases, isComparable } from './comparability.ts';
import { cutTo, sharedWindow, type Window } from './shared-window.ts';
import type { StoredRun, StoredTrade } from './stored-run.ts';

/** Document of `runs compare`. Times are RFC 3339 in UTC. */
export interface Comparison {
  readonly schema: 'service-local/comparison/v1';
  readonly runs: readonly ComparedRun[];
  /** Sentences about limits of the comparison. */
  readonly notes: readonly string[];
  /** Each run over its own window. */
  readonly figures: readonly ComparedFigure[];
  /** The runs over the window that all have in common; `null` if they do not overlap. */
  readonly shared: SharedFigures | null;
  /** One for each run after the first, compared with the first. */
  readonly differences: readonly Difference[];
}

export interface ComparedRun {
  /** `A`, `B`, …, in the order in which they were named. */
  readonly label: string;
  readonly run_id: string;
  readonly directory: string;
  readonly bot: Summary['bot'];
  readonly version: string;
  readonly window: Summary['window'];
  /** `null` in a summary of an earlier version, as `params`. */
  readonly currency: string | null;
  readonly params: NonNullable<Summary['params']> | null;
}

export interface ComparedFigure {
  readonly figure: FigureName;
  /** In the order of the runs; `null` if undefined. */
  readonly values: readonly (number | null)[];
  /**
   * Indexes of the runs with the best value, as printed; empty if all are printed alike, no direction is
   * better, or the runs are not comparable by this figure.
   */
  readonly best: readonly number[];
}

export interface SharedFigures {
  readonly from: string;
  readonly to: string;
  readonly figures: readonly ComparedFigure[];
}

export interface Difference {
  readonly run: string;
  /** Parts of the lock that differ, one sentence each. */
  readonly lock: readonly string[];
  readonly params: readonly ChangedParam[];
  /** The first trade that differs among those entered in the shared window; `null` if none does. */
  readonly trade: TradeDifference | null;
}

interface ChangedParam {
  readonly name: string;
  /** `null` if the run has no such parameter. */
  readonly first: number | string | boolean | null;
  readonly other: number | string | boolean | null;
}

export interface TradeDifference {
  /** Place among the trades of the shared window, from 1. */
  readonly number: number;
  readonly fields: readonly (typeof TRADE_FIELDS)[number][];
  /** `null` if the run has fewer trades. */
  readonly first: TradeRow | null;
  readonly other: TradeRow | null;
}

export type TradeRow = Omit<StoredTrade, 'entry_time' | 'exit_time'> & {
  readonly entry_time: string;
  readonly exit_time: string;
};

const SHARED_FIGURES = [
  'total_return',
  'cagr',
  'volatility',
  'sharpe',
  'sortino',
  'calmar',
  'max_drawdown',
  'max_drawdown_days',
] as const satisfies readonly FigureName[];

const TRADE_FIELDS = [
  'symbol',
  'side',
  'entry_time',
  'exit_time',
  'quantity',
  'entry_price',
  'exit_price',
  'fees',
  'pnl',
  'status',
] as const satisfies readonly (keyof StoredTrade)[];

const labelOf = (index: number): string => String.fromCharCode(65 + index);

/** @param runs at least two */
export function compareRuns(runs: readonly StoredRun[]): Comparison {
  const window = sharedWindow(runs);
  const summaries = runs.map(({ summary }) => summary);
  const differing = differingBases(runs);
  const [first, ...others] = runs;
  return {
    schema: 'service-local/comparison/v1',
    runs: runs.map(({ directory, summary }, index) => ({
      label: labelOf(index),
      run_id: summary.run_id,
      directory,
      bot: summary.bot,
      version: summary.version,
      window: summary.window,
      currency: summary.currency ?? null,
      params: summary.params ?? null,
    })),
    notes: notesOn(runs, window, differing),
    figures: compareFigures(summaries, differing),
    shared:
      window === undefined
        ? null
        : {
            from: new Date(window.from).toISOString(),
            to: new Date(window.to).toISOString(),
            figures: sharedFigures(runs, window, differing),
          },
    differences: others.map((other, index) => ({
      run: labelOf(index + 1),
      lock: driftOf(first!.summary.lock, other.summary.lock),
      params: changedParams(first!.summary.params, other.summary.params),
      trade: firstDifferingTrade(first!, other, window),
    })),
  };
}

/** @param summaries statistics of each run. */
export function compareFigures(
  summaries: readonly object[],
  differing: ReadonlySet<Basis>,
): ComparedFigure[] {
  return Object.values(FIGURE_GROUPS)
    .flat()
    .map((name) => compareFigure(name, summaries, differing))
    .filter(({ values }) => values.some((value) => value !== null));
}

function compareFigure(
  name: FigureName,
  summaries: readonly object[],
  differing: ReadonlySet<Basis>,
): ComparedFigure {
  const { better }: RunFigure = RUN_FIGURES[name];
  const values = summaries.map((summary) => readFigure(summary, name));
  const defined = values.filter((value) => value !== null);
  const isRanked = better !== undefined && isComparable(name, differing);
  const printed = values.map((value) => (value === null ? null : formatFigure(name, value)));
  const differ = new Set(printed.filter((text) => text !== null)).size > 1;
  if (!isRanked || !differ) return { figure: name, values, best: [] };
  const best = better === 'higher' ? Math.max(...defined) : Math.min(...defined);
  return {
    figure: name,
    values,
    best: printed.flatMap((text, index) => (text === formatFigure(name, best) ? index : [])),
  };
}

function sharedFigures(
  runs: readonly StoredRun[],
  window: Window,
  differing: ReadonlySet<Basis>,
): ComparedFigure[] {
  const blocks = runs.map((run) => curveStatistics(cutTo(run, window), run.summary.conventions));
  return compareCurves(blocks, new Set([...differing].filter((basis) => basis !== 'window')));
}

/** @param blocks statistics of each curve over the same window. */
export function compareCurves(
  blocks: readonly object[],
  differing: ReadonlySet<Basis>,
): ComparedFigure[] {
  return SHARED_FIGURES.map((name) => compareFigure(name, blocks, differing));
}

function changedParams(
  first: Summary['params'] = {},
  other: Summary['params'] = {},
): ChangedParam[] {
  const names = [...new Set([...Object.keys(first), ...Object.keys(other)])];
  return names
    .filter((name) => first[name] !== other[name])
    .map((name) => ({ name, first: first[name] ?? null, other: other[name] ?? null }));
}

function firstDifferingTrade(
  one: StoredRun,
  other: StoredRun,
  window: Window | undefined,
): TradeDifference | null {
  if (window === undefined) return null;
  const [left, right] = [one, other].map(({ trades }) =>
    trades.filter(({ entry_time: at }) => at >= window.from && at <= window.to),
  ) as [StoredTrade[], StoredTrade[]];
  for (let i = 0; i < Math.max(left.length, right.length); i += 1) {
    const [a, b] = [left[i], right[i]];
    const fields = TRADE_FIELDS.filter((field) => a?.[field] !== b?.[field]);
    if (fields.length > 0) return { number: i + 1, fields, first: rowOf(a), other: rowOf(b) };
  }
  return null;
}

function rowOf(trade: StoredTrade | undefined): TradeRow | null {
  if (trade === undefined) return null;
  return {
    ...trade,
    entry_time: new Date(trade.entry_time).toISOString(),
    exit_time: new Date(trade.exit_time).toISOString(),
  };
}

function notesOn(
  runs: readonly StoredRun[],
  window: Window | undefined,
  differing: ReadonlySet<Basis>,
): string[] {
  const notes: string[] = [];
  if (window === undefined) {
    notes.push(
      'The windows of the runs do not overlap: their figures are listed, but none is ranked.',
    );
  } else if (differing.has('window')) {
    const [from, to] = [window.from, window.to].map((ms) => formatInstant(ms, ms % DAY === 0));
    notes.push(
      `The runs cover different windows. Curves, trades and the figures over the shared window are those from ${from} to ${to}; all other figures cover the window of each run and are not ranked.`,
    );
  }
  notes.push(...describeDiffering(runs, differing));
  if (new Set(runs.map(({ summary }) => summary.hashes.events)).size === 1) {
    notes.push('The runs have the same events: their results are identical.');
  }
  return notes;
}
