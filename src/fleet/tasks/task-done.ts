import { readFigure } from '../../base/format-figure.ts';
import type { FigureName } from '../../base/run-figures.ts';
import type { BacktestDone } from './backtest-work.ts';
import type { PaperDone } from './paper-result.ts';

/** Result of a successful task, as the worker stores it. */
export interface TaskDone {
  readonly result: object;
  /** Short form of the result, for events and lists. */
  readonly summary: Readonly<Record<string, unknown>>;
  readonly files: readonly string[];
  /** Absent if the task is not a backtest. */
  readonly sharpe?: number | null;
}

const DIGEST_FIGURES = [
  'total_return',
  'cagr',
  'sharpe',
  'max_drawdown',
  'trades',
  'end_equity',
] as const satisfies readonly FigureName[];

export function toTaskDone(done: BacktestDone | PaperDone): TaskDone {
  const { summary, notes, files } = done;
  const { window, gates, hashes, unsaved_bundle } = summary;
  return {
    result: summary,
    summary: {
      metrics: Object.fromEntries(DIGEST_FIGURES.map((name) => [name, readFigure(summary, name)])),
      gates: { met: gates.filter(({ pass }) => pass).length, total: gates.length },
      window,
      hashes,
      notes,
      ...(unsaved_bundle !== undefined && { unsaved_bundle }),
      ...('stopped' in done && done.stopped && { stopped: true }),
    },
    files,
  };
}
