/**
 * The figures of a run: their place in `summary.json`, name, unit, range and formula. The summary's
 * reports, gates, sweeps, terminal tables, console pages and chat answers all read this table.
 */
import { formatNumber } from './format.ts';
import type { FormulaTerms, RunFigure } from './run-figure.ts';

const ANY = [-Infinity, Infinity] as const;
const AT_LEAST_ZERO = [0, Infinity] as const;
/** A positive equity cannot lose more than itself from one sample to the next. */
const AT_LEAST_ALL_LOST = [-1, Infinity] as const;
const SHARE = [0, 1] as const;

const deviation = ({ ddof }: FormulaTerms): string => `standard deviation (ddof ${ddof})`;
const excess = ({ risk_free }: FormulaTerms): string =>
  risk_free === 0 ? 'mean return' : 'mean return above the risk-free rate';
const root = ({ periods_per_year }: FormulaTerms): string => `√${formatNumber(periods_per_year)}`;
/** The period of one return: `UTC day`, `week` or `month`. */
export const samplingPeriod = (sampling: FormulaTerms['sampling']): string =>
  sampling === 'day' ? 'UTC day' : sampling;

export const RUN_FIGURES = {
  /** W. F. Sharpe, "The Sharpe Ratio", J. of Portfolio Management 21(1), 1994. */
  sharpe: {
    path: 'risk.sharpe',
    label: 'Sharpe ratio',
    unit: 'ratio',
    better: 'higher',
    range: ANY,
    formula: (terms) => `${excess(terms)} ÷ ${deviation(terms)} × ${root(terms)}`,
  },
  /** F. A. Sortino and L. N. Price, "Performance Measurement in a Downside Risk Framework", 1994. */
  sortino: {
    path: 'risk.sortino',
    label: 'Sortino ratio',
    unit: 'ratio',
    better: 'higher',
    range: ANY,
    formula: (terms) =>
      `${excess(terms)} ÷ root mean square of the shortfalls, over all returns, × ${root(terms)}`,
  },
  /** T. W. Young, "Calmar Ratio: A Smoother Tool", Futures, 1991. */
  calmar: {
    path: 'risk.calmar',
    label: 'Calmar ratio',
    unit: 'ratio',
    better: 'higher',
    range: ANY,
    formula: 'CAGR ÷ |max drawdown|',
  },
  total_return: {
    path: 'returns.total',
    label: 'Total return',
    unit: 'percent',
    better: 'higher',
    range: ANY,
    formula: 'end equity ÷ start equity − 1',
  },
  cagr: {
    path: 'returns.cagr',
    label: 'CAGR',
    unit: 'percent',
    better: 'higher',
    range: AT_LEAST_ALL_LOST,
    formula: ({ year_days }) => `(1 + total return)^(${year_days} ÷ calendar days) − 1`,
  },
  annual_return: {
    path: 'returns.annual',
    label: 'Annual return',
    unit: 'percent',
    better: 'higher',
    range: AT_LEAST_ALL_LOST,
    formula: ({ periods_per_year }) =>
      `(last ÷ first sample)^(${formatNumber(periods_per_year)} ÷ number of returns) − 1`,
  },
  best_day: {
    path: 'returns.best_day',
    label: 'Best period',
    unit: 'percent',
    better: 'higher',
    range: AT_LEAST_ALL_LOST,
    formula: ({ sampling }) => `largest return of a ${samplingPeriod(sampling)}`,
  },
  worst_day: {
    path: 'returns.worst_day',
    label: 'Worst period',
    unit: 'percent',
    better: 'higher',
    range: AT_LEAST_ALL_LOST,
    formula: ({ sampling }) => `smallest return of a ${samplingPeriod(sampling)}`,
  },
  volatility: {
    path: 'risk.volatility',
    label: 'Volatility',
    unit: 'percent',
    better: 'lower',
    range: AT_LEAST_ZERO,
    formula: (terms) => `${deviation(terms)} of returns × ${root(terms)}`,
  },
  max_drawdown: {
    path: 'risk.max_drawdown',
    label: 'Max drawdown',
    unit: 'percent',
    better: 'higher',
    range: [-1, 0],
    formula: 'lowest equity ÷ highest before it − 1, at every close',
  },
  max_drawdown_days: {
    path: 'risk.max_drawdown_days',
    label: 'Longest drawdown',
    unit: 'days',
    better: 'lower',
    range: AT_LEAST_ZERO,
    formula: 'calendar days below a former peak',
  },
  var_95: {
    path: 'risk.var_95',
    label: 'VaR 95%',
    unit: 'percent',
    better: 'higher',
    range: AT_LEAST_ALL_LOST,
    formula: ({ sampling }) => `5th percentile of returns per ${samplingPeriod(sampling)}`,
  },
  /** R. T. Rockafellar and S. Uryasev, "Optimization of Conditional Value-at-Risk", 2000. */
  cvar_95: {
    path: 'risk.cvar_95',
    label: 'CVaR 95%',
    unit: 'percent',
    better: 'higher',
    range: AT_LEAST_ALL_LOST,
    formula: 'mean of the returns up to VaR',
  },
  trades: {
    path: 'trades.count',
    label: 'Closed trades',
    unit: 'count',
    range: AT_LEAST_ZERO,
    formula: 'from flat to flat in one instrument',
  },
  open_trades: {
    path: 'trades.open',
    label: 'Open trades',
    unit: 'count',
    range: AT_LEAST_ZERO,
    formula: 'not closed by the end; excluded from the figures below',
  },
  win_rate: {
    path: 'trades.win_rate',
    label: 'Win rate',
    unit: 'percent',
    better: 'higher',
    range: SHARE,
    formula: 'share of closed trades with a net profit',
  },
  profit_factor: {
    path: 'trades.profit_factor',
    label: 'Profit factor',
    unit: 'ratio',
    better: 'higher',
    range: AT_LEAST_ZERO,
    formula: 'sum of profits ÷ sum of losses',
  },
  expectancy: {
    path: 'trades.expectancy',
    label: 'Expectancy',
    unit: 'money',
    better: 'higher',
    range: ANY,
    formula: ({ currency }) => `mean net profit of a closed trade, ${currency}`,
  },
  average_trade: {
    path: 'trades.average',
    label: 'Average trade',
    unit: 'percent',
    better: 'higher',
    range: ANY,
    formula: 'mean of profit ÷ entry value',
  },
  best_trade: {
    path: 'trades.best',
    label: 'Best trade',
    unit: 'percent',
    better: 'higher',
    range: ANY,
    formula: 'profit ÷ entry value',
  },
  worst_trade: {
    path: 'trades.worst',
    label: 'Worst trade',
    unit: 'percent',
    better: 'higher',
    range: ANY,
    formula: 'profit ÷ entry value',
  },
  /** System quality number: V. K. Tharp, "Definitive Guide to Position Sizing", 2008. */
  sqn: {
    path: 'trades.sqn',
    label: 'SQN',
    unit: 'ratio',
    better: 'higher',
    range: ANY,
    formula: '√count × mean ÷ standard deviation of profits',
  },
  /** J. L. Kelly, "A New Interpretation of Information Rate", Bell System Technical J. 35(4), 1956. */
  kelly: {
    path: 'trades.kelly',
    label: 'Kelly fraction',
    unit: 'percent',
    range: [-Infinity, 1],
    formula: 'win rate − loss rate ÷ (mean profit ÷ mean loss)',
  },
  fees: {
    path: 'costs.fees',
    label: 'Fees',
    unit: 'money',
    better: 'lower',
    range: AT_LEAST_ZERO,
    formula: ({ currency }) => `over all fills, ${currency}`,
  },
  slippage: {
    path: 'costs.slippage',
    label: 'Slippage',
    unit: 'money',
    better: 'lower',
    range: AT_LEAST_ZERO,
    formula: ({ currency }) => `fill price against reference price, ${currency}`,
  },
  turnover: {
    path: 'costs.turnover',
    label: 'Turnover',
    unit: 'ratio',
    range: AT_LEAST_ZERO,
    formula: 'traded value per year ÷ mean equity',
  },
  exposure: {
    path: 'exposure.time',
    label: 'Time in market',
    unit: 'percent',
    range: SHARE,
    formula: 'share of closes with a position',
  },
  /** M. C. Jensen, "The Performance of Mutual Funds", J. of Finance 23(2), 1968; as in QuantStats. */
  alpha: {
    path: 'benchmark.alpha',
    label: 'Alpha',
    unit: 'percent',
    better: 'higher',
    range: ANY,
    formula: (terms) =>
      `(${excess(terms)} − beta × that of the benchmark) × ${formatNumber(terms.periods_per_year)}`,
  },
  /** W. F. Sharpe, "Capital Asset Prices", J. of Finance 19(3), 1964. */
  beta: {
    path: 'benchmark.beta',
    label: 'Beta',
    unit: 'ratio',
    range: ANY,
    formula: 'covariance with the returns of the benchmark ÷ their variance',
  },
  correlation: {
    path: 'benchmark.correlation',
    label: 'Correlation',
    unit: 'ratio',
    range: [-1, 1],
    formula: 'Pearson correlation of the returns with the benchmark returns',
  },
  /** R. Grinold and R. Kahn, "Active Portfolio Management", 1999, chapter 5, with the ratio below. */
  tracking_error: {
    path: 'benchmark.tracking_error',
    label: 'Tracking error',
    unit: 'percent',
    range: AT_LEAST_ZERO,
    formula: (terms) => `${deviation(terms)} of returns minus benchmark returns × ${root(terms)}`,
  },
  /** QuantStats and empyrical (`excess_sharpe`) do not annualize it. */
  information_ratio: {
    path: 'benchmark.information_ratio',
    label: 'Information ratio',
    unit: 'ratio',
    better: 'higher',
    range: ANY,
    formula: ({ periods_per_year }) =>
      `mean of returns minus benchmark returns × ${formatNumber(periods_per_year)} ÷ tracking error`,
  },
  /** See `deflatedSharpe`. */
  deflated_sharpe: {
    path: 'deflated_sharpe.probability',
    label: 'Deflated Sharpe ratio',
    unit: 'percent',
    better: 'higher',
    range: SHARE,
    formula:
      'probability that the true Sharpe ratio exceeds the expected maximum of as many trials without skill',
  },
  start_equity: {
    path: 'equity.start',
    label: 'Start equity',
    unit: 'money',
    formula: ({ currency }) => `cash at the start, ${currency}`,
  },
  end_equity: {
    path: 'equity.end',
    label: 'End equity',
    unit: 'money',
    better: 'higher',
    range: ANY,
    formula: 'cash and positions at the last close',
  },
  peak_equity: {
    path: 'equity.peak',
    label: 'Peak equity',
    unit: 'money',
    better: 'higher',
    range: AT_LEAST_ZERO,
    formula: 'equity at the highest close',
  },
  submitted_orders: {
    path: 'orders.submitted',
    label: 'Submitted orders',
    unit: 'count',
    formula: 'accepted by the risk limits',
  },
  filled_orders: {
    path: 'orders.filled',
    label: 'Filled orders',
    unit: 'count',
    formula: 'completely filled',
  },
  fills: {
    path: 'orders.fills',
    label: 'Fills',
    unit: 'count',
    formula: 'of all orders, partial fills included',
  },
  canceled_orders: {
    path: 'orders.canceled',
    label: 'Canceled orders',
    unit: 'count',
    formula:
      'by the strategy, a paired order, a risk limit or the fill rules; also targets that need no trade',
  },
  expired_orders: {
    path: 'orders.expired',
    label: 'Expired orders',
    unit: 'count',
    formula: 'by their time in force',
  },
  working_orders: {
    path: 'orders.working',
    label: 'Working orders',
    unit: 'count',
    formula: 'when the run ended',
  },
  rejected_orders: {
    path: 'orders.rejected',
    label: 'Rejected orders',
    unit: 'count',
    better: 'lower',
    range: AT_LEAST_ZERO,
    formula: 'when they would have been filled',
  },
  denied_orders: {
    path: 'orders.denied',
    label: 'Denied orders',
    unit: 'count',
    better: 'lower',
    range: AT_LEAST_ZERO,
    formula: 'by a risk limit or another check, before submission or at their first fill',
  },
  refused_orders: {
    path: 'orders.refused',
    label: 'Refused orders',
    unit: 'count',
    better: 'lower',
    range: AT_LEAST_ZERO,
    formula: 'rejected, denied, or canceled by a risk limit such as the price collar',
  },
  ambiguous_bars: {
    path: 'ambiguity.bars',
    label: 'Ambiguous bars',
    unit: 'count',
    better: 'lower',
    range: AT_LEAST_ZERO,
    formula: 'several orders could have been filled; the worse sequence was assumed',
  },
  margin_calls: {
    path: 'margin_calls',
    label: 'Margin calls',
    unit: 'count',
    better: 'lower',
    range: AT_LEAST_ZERO,
    formula: 'positions closed for lack of equity',
  },
} as const satisfies Readonly<Record<string, RunFigure>>;

export type FigureName = keyof typeof RUN_FIGURES;
