import type { FigureName } from './run-figures.ts';

/** Figures of a walk-forward analysis that lists show. */
export const JOINED_FIGURES = [
  'total_return',
  'cagr',
  'sharpe',
  'max_drawdown',
  'trades',
] as const satisfies readonly FigureName[];
