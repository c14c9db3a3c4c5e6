import type { FigureName } from '../../base/run-figures.ts';

/** The figures that describe a result, in the order of tables. */
export const FIGURE_GROUPS = {
  Equity: ['start_equity', 'end_equity', 'peak_equity'],
  Return: ['total_return', 'cagr', 'annual_return', 'best_day', 'worst_day'],
  Risk: [
    'volatility',
    'sharpe',
    'sortino',
    'calmar',
    'max_drawdown',
    'max_drawdown_days',
    'var_95',
    'cvar_95',
  ],
  'Against the benchmark': ['alpha', 'beta', 'correlation', 'tracking_error', 'information_ratio'],
  Trades: [
    'trades',
    'open_trades',
    'win_rate',
    'profit_factor',
    'expectancy',
    'average_trade',
    'best_trade',
    'worst_trade',
    'sqn',
    'kelly',
  ],
  Costs: ['fees', 'slippage', 'turnover', 'exposure'],
} as const satisfies Readonly<Record<string, readonly FigureName[]>>;
