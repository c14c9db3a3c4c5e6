import type { Profile } from './profiles.ts';

type Description = readonly [label: string, explanation: string];

/** Figures that several libraries define alike. */
const COMMON: Readonly<Record<string, Description>> = {
  max_drawdown: ['Max drawdown', 'lowest sample ÷ highest before it − 1'],
  win_rate: ['Win rate', 'share of trades with a profit'],
  trades: ['Closed trades', 'number of closed trades'],
};

const OF_PROFILE: Readonly<Record<Profile, Readonly<Record<string, Description>>>> = {
  quantstats: {
    comp: ['Cumulative return', 'last ÷ first sample − 1'],
    cagr: ['CAGR', '(last ÷ first sample)^(periods per year ÷ number of returns) − 1'],
    volatility: ['Volatility', 'standard deviation of returns × √periods per year'],
    sharpe: ['Sharpe ratio', 'mean ÷ standard deviation of returns × √periods per year'],
    smart_sharpe: ['Smart Sharpe', 'Sharpe ratio divided by a penalty for autocorrelation'],
    sortino: ['Sortino ratio', 'mean return ÷ root mean square of losses × √periods per year'],
    adjusted_sortino: ['Sortino ÷ √2', 'comparable with the Sharpe ratio, by J. Schwager'],
    calmar: ['Calmar ratio', 'CAGR ÷ |max drawdown|'],
    value_at_risk: ['Daily value at risk', '5th percentile of a normal distribution of returns'],
    conditional_value_at_risk: [
      'Expected shortfall',
      'mean of the returns below the value at risk',
    ],
    ulcer_index: ['Ulcer index', '√(sum of squared drawdowns ÷ (samples − 1))'],
    recovery_factor: ['Recovery factor', '|sum of returns| ÷ |max drawdown|'],
    payoff_ratio: ['Payoff ratio', 'mean gain ÷ mean loss of a period'],
    win_rate: ['Win days', 'share of periods with a gain, without periods of zero'],
    kelly_criterion: ['Kelly criterion', '(payoff ratio × win rate − loss rate) ÷ payoff ratio'],
    skew: ['Skew', 'skewness of returns, corrected for bias'],
    kurtosis: ['Kurtosis', 'excess kurtosis of returns, corrected for bias'],
    probabilistic_sharpe_ratio: [
      'Probabilistic Sharpe ratio',
      'probability that the true Sharpe ratio is above 0; version 0.0.81 subtracts 3 twice',
    ],
  },
  lean: {
    net_profit: ['Net profit', 'end equity ÷ starting cash − 1'],
    compounding_annual_return: ['Compounding annual return', 'growth^(365 ÷ calendar days) − 1'],
    annual_performance: ['Annual performance', '(1 + mean return)^periods per year − 1'],
    annual_variance: ['Annual variance', 'variance of returns × periods per year'],
    annual_standard_deviation: ['Annual standard deviation', 'root of the annual variance'],
    sharpe_ratio: ['Sharpe ratio', 'annual performance ÷ annual standard deviation'],
    sortino_ratio: ['Sortino ratio', 'annual performance ÷ annual deviation of losses'],
    probabilistic_sharpe_ratio: [
      'Probabilistic Sharpe ratio',
      'probability that the true yearly Sharpe ratio is above 1',
    ],
    value_at_risk_95: ['Value at risk 95%', '5th percentile of a normal distribution, last year'],
    drawdown: ['Drawdown', 'deepest drawdown, positive, with three decimals'],
    loss_rate: ['Loss rate', '1 − win rate'],
    average_win: ['Average win', 'mean profit of winning trades ÷ capital before each'],
    average_loss: ['Average loss', 'mean loss of losing trades ÷ capital before each'],
    profit_loss_ratio: ['Profit-loss ratio', 'average win ÷ |average loss|'],
    expectancy: ['Expectancy', 'win rate × profit-loss ratio − loss rate'],
  },
  freqtrade: {
    profit_total: ['Total profit', 'sum of the profits of trades ÷ starting balance'],
    cagr: ['CAGR', '(1 + total profit)^(365 ÷ days) − 1'],
    sharpe: ['Sharpe', 'profit per day ÷ deviation of profits per trade × √365'],
    sortino: ['Sortino', 'profit per day ÷ deviation of losing trades × √365'],
    calmar: ['Calmar', 'profit per day in percent × √365 ÷ drawdown'],
    profit_factor: ['Profit factor', 'sum of profits ÷ sum of losses of trades'],
    max_drawdown_account: ['Absolute drawdown', 'depth of the drawdown with the largest loss'],
    max_relative_drawdown: ['Max drawdown', 'deepest fall of the balance after trades, positive'],
    winrate: ['Win rate', 'share of trades with a profit, open ones included'],
    expectancy: ['Expectancy', 'mean profit of a trade, account currency'],
    expectancy_ratio: ['Expectancy ratio', '(1 + mean profit ÷ mean loss) × win rate − 1'],
  },
  'backtesting-py': {
    return: ['Return', 'end equity ÷ first equity − 1'],
    return_ann: ['Return (annual)', '(1 + geometric mean return)^periods per year − 1'],
    volatility_ann: ['Volatility (annual)', 'deviation of the compounded return of a year'],
    cagr: ['CAGR', 'growth^(365.25 ÷ calendar days) − 1'],
    sharpe_ratio: ['Sharpe ratio', 'annual return ÷ annual volatility'],
    sortino_ratio: ['Sortino ratio', 'annual return ÷ annual root mean square of losses'],
    calmar_ratio: ['Calmar ratio', 'annual return ÷ |max drawdown|'],
    max_drawdown: ['Max drawdown', 'lowest equity ÷ highest before it − 1, at every close'],
    best_trade: ['Best trade', 'highest return of a trade'],
    worst_trade: ['Worst trade', 'lowest return of a trade'],
    avg_trade: ['Average trade', 'geometric mean of the returns of trades'],
    profit_factor: ['Profit factor', 'sum of positive ÷ sum of negative returns of trades'],
    expectancy: ['Expectancy', 'mean return of trades'],
    sqn: ['SQN', '√trades × mean profit ÷ deviation of profits'],
    kelly_criterion: ['Kelly criterion', 'win rate − loss rate ÷ (mean profit ÷ mean loss)'],
  },
  empyrical: {
    cum_returns_final: ['Cumulative return', 'last ÷ first sample − 1'],
    annual_return: ['Annual return', 'growth^(periods per year ÷ number of returns) − 1'],
    annual_volatility: ['Annual volatility', 'standard deviation of returns × √periods per year'],
    sharpe_ratio: ['Sharpe ratio', 'mean ÷ standard deviation of returns × √periods per year'],
    sortino_ratio: [
      'Sortino ratio',
      'mean return ÷ root mean square of losses × √periods per year',
    ],
    calmar_ratio: ['Calmar ratio', 'annual return ÷ |max drawdown|'],
    omega_ratio: ['Omega ratio', 'sum of gains ÷ sum of losses'],
    tail_ratio: ['Tail ratio', '|95th percentile| ÷ |5th percentile| of returns'],
    value_at_risk: ['Value at risk', '5th percentile of returns'],
    conditional_value_at_risk: ['Expected shortfall', 'mean of the lowest 5% of returns'],
    stability_of_timeseries: ['Stability', 'R² of a line through the cumulated log returns'],
  },
};

/** Name and formula of a figure of `profileStatistics`; the key itself for one of another version. */
export function describeProfileFigure(profile: string, name: string): Description {
  const own: Readonly<Record<string, Description>> | undefined = Object.hasOwn(OF_PROFILE, profile)
    ? OF_PROFILE[profile as Profile]
    : undefined;
  if (own !== undefined && Object.hasOwn(own, name)) return own[name]!;
  return own !== undefined && Object.hasOwn(COMMON, name) ? COMMON[name]! : [name, ''];
}
