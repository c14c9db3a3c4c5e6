import type { HistoryNeed } from '../engine/history-need.ts';
import type { OrderCounts, RunResult } from '../engine/run-result.ts';
import type { CalendarName } from '../market/trading-calendar.ts';
import { formatCountOf, formatPercent, formatRatio } from '../base/format.ts';
import {
  dataEndEarly,
  dataStartLate,
  missingBars,
  outsideSessions,
  shortWarmUp,
  staleBars,
  windowBeyondData,
} from './data-findings.ts';
import type { StrategyTraces } from './execute.ts';
import type { JobInstrument } from './job.ts';
import { daysOf, SHORTEST_ANNUAL_DAYS, type Statistics } from './statistics.ts';
import type { Finding } from './summary.ts';

export interface FindingsInput {
  readonly run: Pick<
    RunResult,
    | 'steps'
    | 'time'
    | 'trades'
    | 'openTrades'
    | 'fees'
    | 'orders'
    | 'ambiguousBars'
    | 'marginCalls'
    | 'cappedTargets'
    | 'ruinedAt'
  >;
  readonly statistics: Statistics;
  /** Each has at least one bar. */
  readonly instruments: readonly JobInstrument[];
  readonly calendar?: CalendarName | undefined;
  /** See `BacktestJob`. */
  readonly historyNeeds?: readonly HistoryNeed[] | undefined;
  /** Equity at the end of buying and holding the instruments, see `holdEquity`. */
  readonly heldEquity: number;
  readonly parameters: number;
  /** Absent if the strategy ran in this thread. */
  readonly traces?: StrategyTraces | undefined;
}

/** With fewer closed trades, a result has little significance. */
const ENOUGH_TRADES = 30;
const TRADES_PER_PARAMETER = 10;
/** A higher Sharpe ratio over a whole history usually comes from look-ahead. */
const TOO_GOOD_SHARPE = 3;
const RANK: Readonly<Record<Finding['severity'], number>> = { critical: 0, warning: 1, info: 2 };

/**
 * Finds reasons to doubt a result, the most severe first, with the numbers that show them and what to do
 * about them.
 */
export function findings(input: FindingsInput): Finding[] {
  return [
    ruin(input),
    neverTraded(input),
    marginCalls(input),
    windowBeyondData(input.instruments),
    outsideSessions(input.instruments, input.calendar),
    shortWarmUp(input.historyNeeds),
    dataEndEarly(input),
    neverClosed(input),
    fewTrades(input),
    oneTrade(input),
    openProfit(input),
    feesEatProfit(input),
    parametersPerTrade(input),
    sharpeTooGood(input),
    shortWindow(daysOf(input.run)),
    refusedOrders(input),
    cappedTargets(input),
    staleBars(input),
    missingBars(input),
    dataStartLate(input),
    ambiguousBars(input),
    holdingIsBetter(input),
    outsideFinding(input.traces?.outside),
    leftRunning(input),
  ]
    .filter((finding) => finding !== undefined)
    .sort(bySeverity);
}

/** Puts the most severe first. */
export function bySeverity(a: Finding, b: Finding): number {
  return RANK[a.severity] - RANK[b.severity];
}

/** @param fault why the trial ledger cannot be used */
export function trialsNotCounted(fault: Error): Finding {
  return {
    code: 'trials_not_counted',
    severity: 'warning',
    issue: `Trials are not counted: ${fault.message}`,
    evidence: {},
    remedy: 'Use a home directory that can be written to.',
  };
}

type Check = (input: FindingsInput) => Finding | undefined;

const netProfit = ({ statistics }: FindingsInput): number =>
  statistics.equity.end - statistics.equity.start;
const total = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((sum, count) => sum + count, 0);

const ruin: Check = ({ run, statistics }) => {
  if (run.ruinedAt === undefined) return undefined;
  return {
    code: 'ruin',
    severity: 'critical',
    issue: 'The account was lost: equity reached zero, and the run ended there.',
    evidence: {
      time: new Date(run.time[run.ruinedAt]!).toISOString(),
      end_equity: statistics.equity.end,
    },
    remedy: 'Trade smaller, or limit max_position_pct and max_drawdown_pct under risk.',
  };
};

/** @param outside see `StrategyTraces` */
export function outsideFinding(outside: readonly string[] = []): Finding | undefined {
  if (outside.length === 0) return undefined;
  const uses = outside.join(', ');
  return {
    code: 'outside_used',
    severity: 'warning',
    issue: `The strategy uses ${uses}: its result can depend on files or network data that the lock does not cover.`,
    evidence: { uses },
    remedy:
      'Declare these data in the bot file, or use --sealed, which blocks files and the network.',
  };
}

const leftRunning: Check = ({ traces }) => {
  const left = traces?.left ?? {};
  const counts = Object.entries(left);
  if (counts.length === 0) return undefined;
  const list = counts.map(([name, count]) => `${count} ${name}`).join(', ');
  return {
    code: 'left_running',
    severity: 'warning',
    issue: `The strategy did not close these timers or connections: ${list}. They were closed after the last bar.`,
    evidence: { ...left },
    remedy:
      'Clear timers and close connections: in paper and production they stay open as long as the bot runs.',
  };
};

const neverTraded: Check = ({ run }) => {
  if (run.trades.length + run.openTrades.length > 0) return undefined;
  const [cause] = causesOfRefusals(run.orders);
  const refused = total(refusalsOf(run.orders));
  return {
    code: 'never_traded',
    severity: 'critical',
    issue:
      cause === undefined
        ? 'No order was filled, so nothing was tested.'
        : `No order was filled, so nothing was tested: ${formatCountOf(refused, 'order')} refused, most often for ${cause[0]}.`,
    evidence: {
      bars: run.steps,
      orders_submitted: run.orders.submitted,
      orders_rejected: total(run.orders.rejected),
      orders_denied: total(run.orders.denied),
      orders_canceled_by_limit: total(run.orders.limited),
    },
    remedy:
      cause === undefined
        ? 'Check that the window is longer than the warm-up of the strategy, and that its conditions can occur in these data.'
        : refusalRemedy(cause[0]),
  };
};

const marginCalls: Check = ({ run }) => {
  if (run.marginCalls === 0) return undefined;
  return {
    code: 'margin_call',
    severity: 'critical',
    issue: `Positions were liquidated: ${formatCountOf(run.marginCalls, 'margin call')}.`,
    evidence: { margin_calls: run.marginCalls },
    remedy: 'Trade smaller, so that the account survives its worst drawdown without a margin call.',
  };
};

const neverClosed: Check = ({ run, statistics }) => {
  if (run.trades.length > 0 || run.openTrades.length === 0) return undefined;
  return {
    code: 'never_closed',
    severity: 'warning',
    issue:
      'No position was closed: the result only reflects price changes of the open position, and no exit was tested.',
    evidence: { open_positions: run.openTrades.length, total_return: statistics.returns.total },
    remedy: 'Measure other strategies against it; to judge this one, test until it closes trades.',
  };
};

const fewTrades: Check = ({ run }) => {
  const closed = run.trades.length;
  if (closed === 0 || closed >= ENOUGH_TRADES) return undefined;
  return {
    code: 'few_trades',
    severity: 'warning',
    issue: `Only ${formatCountOf(closed, 'trade')} closed: too few to tell skill from luck.`,
    evidence: { closed_trades: closed, enough: ENOUGH_TRADES },
    remedy: 'Test on a longer history, more instruments or shorter bars.',
  };
};

const oneTrade: Check = (input) => {
  const net = netProfit(input);
  const best = input.run.trades.reduce((most, { pnl }) => Math.max(most, pnl), 0);
  if (net <= 0 || best < net / 2) return undefined;
  return {
    code: 'one_trade_makes_the_profit',
    severity: 'warning',
    issue: `The best trade alone made ${formatPercent(best / net)} of the net profit.`,
    evidence: { best_trade_pnl: best, net_profit: net, share: best / net },
    remedy: 'Look at that trade, and judge the strategy by its result without that trade.',
  };
};

const openProfit: Check = (input) => {
  const net = netProfit(input);
  const open = input.run.openTrades.reduce((sum, { pnl }) => sum + pnl, 0);
  if (net <= 0 || open <= net / 2 || input.run.trades.length === 0) return undefined;
  return {
    code: 'open_position_carries_the_profit',
    severity: 'warning',
    issue: `${formatPercent(open / net)} of the net profit is still open at the end, and no exit was tested.`,
    evidence: { open_pnl: open, net_profit: net, share: open / net },
    remedy: 'End the window elsewhere and see whether the result holds.',
  };
};

const feesEatProfit: Check = (input) => {
  const { fees } = input.run;
  const gross = netProfit(input) + fees;
  if (gross <= 0 || fees <= gross / 2) return undefined;
  return {
    code: 'fees_eat_the_profit',
    severity: 'warning',
    issue: `Fees took ${formatPercent(fees / gross)} of what the trades made before fees.`,
    evidence: { fees, profit_before_fees: gross, share: fees / gross },
    remedy: 'Trade less often or for larger moves, and check the fee model against your broker.',
  };
};

const parametersPerTrade: Check = ({ run, parameters }) => {
  const closed = run.trades.length;
  if (closed === 0 || closed >= parameters * TRADES_PER_PARAMETER) return undefined;
  return {
    code: 'many_parameters',
    severity: 'warning',
    issue: `${formatCountOf(parameters, 'parameter')} for ${formatCountOf(closed, 'closed trade')}: the result may be fitted to this history.`,
    evidence: { parameters, closed_trades: closed, trades_per_parameter: closed / parameters },
    remedy: `Use fewer parameters, or test until there are ${TRADES_PER_PARAMETER} trades for each.`,
  };
};

const sharpeTooGood: Check = ({ statistics }) => {
  const { sharpe } = statistics.risk;
  if (sharpe === null || sharpe <= TOO_GOOD_SHARPE) return undefined;
  return {
    code: 'sharpe_too_good',
    severity: 'warning',
    issue: `A Sharpe ratio of ${formatRatio(sharpe)} over a whole history is implausibly high.`,
    evidence: { sharpe, usual_limit: TOO_GOOD_SHARPE },
    remedy:
      'Check for future data in the inputs, missing costs, and a window that is short or unusually favorable.',
  };
};

/** @param days calendar days of the window */
export function shortWindow(days: number): Finding | undefined {
  if (days >= SHORTEST_ANNUAL_DAYS) return undefined;
  return {
    code: 'short_window',
    severity: 'warning',
    issue:
      `${formatCountOf(Math.round(days), 'day')} of history: CAGR, annual return, Calmar and turnover are not computed. ` +
      'Sharpe, Sortino and volatility, annualized from so few returns, are hardly meaningful, nor are gates on them.',
    evidence: { days, enough: SHORTEST_ANNUAL_DAYS },
    remedy: 'Test on at least a year, better on several with rising and falling markets.',
  };
}

/**
 * Counts orders that were rejected, denied or canceled by a limit, by reason. The same reason can occur
 * in each of them.
 */
export function refusalsOf({ rejected, denied, limited }: OrderCounts): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const part of [rejected, denied, limited]) {
    for (const [reason, count] of Object.entries(part)) {
      counts[reason] = (counts[reason] ?? 0) + count;
    }
  }
  return counts;
}

/** Reasons of refused orders with their counts, the most frequent first. */
function causesOfRefusals(orders: OrderCounts): [reason: string, count: number][] {
  return Object.entries(refusalsOf(orders)).sort(([, a], [, b]) => b - a);
}

const REFUSAL_REMEDIES: Readonly<Record<string, string>> = {
  short_not_allowed:
    'To sell short, set under engine: account: {model: margin, initial: 0.5, maintenance: 0.25}.',
  insufficient_funds: 'Limit orders to the available cash, or size them with broker.target().',
  post_only_would_cross: 'Place post-only orders further from the market.',
};

const refusedOrders: Check = ({ run }) => {
  const causes = causesOfRefusals(run.orders);
  const [first] = causes;
  if (first === undefined) return undefined;
  const { rejected, denied, limited, submitted } = run.orders;
  return {
    code: 'refused_orders',
    severity: 'warning',
    issue: `${formatCountOf(total(refusalsOf(run.orders)), 'order')} refused, so the run differs from what the strategy intended.`,
    evidence: {
      submitted,
      rejected: total(rejected),
      denied: total(denied),
      canceled_by_limit: total(limited),
      causes: causes.map(([cause, count]) => `${cause} ${count}`).join(', '),
    },
    remedy: refusalRemedy(first[0]),
  };
};

function refusalRemedy(reason: string): string {
  if (reason.startsWith('threshold_')) {
    return `Trade within ${reason}, which an administrator sets for all bots: see \`service-local risk thresholds list\`.`;
  }
  return REFUSAL_REMEDIES[reason] ?? `Trade within ${reason}, or change this limit under risk.`;
}

const cappedTargets: Check = ({ run }) => {
  const { count, since } = run.cappedTargets;
  if (since === undefined) return undefined;
  const first = new Date(since).toISOString();
  return {
    code: 'capped_targets',
    severity: 'warning',
    issue: `${formatCountOf(count, 'target')} exceeded the leverage of the account and filled only as far as it affords, first at ${first}.`,
    evidence: { targets: count, first },
    remedy:
      'Ask broker.target() for smaller weights, or lower initial under engine: account: {model: margin, initial: 0.5, maintenance: 0.25}.',
  };
};

const ambiguousBars: Check = ({ run }) => {
  const bars = run.ambiguousBars;
  if (bars === 0) return undefined;
  const share = bars / Math.max(1, run.orders.fills);
  return {
    code: 'ambiguous_bars',
    severity: share >= 0.1 ? 'warning' : 'info',
    issue: `In ${formatCountOf(bars, 'bar')} several orders could have been filled in any sequence; the worst was assumed.`,
    evidence: { bars, fills: run.orders.fills },
    remedy: 'Test on shorter bars, in which the sequence of prices matters less.',
  };
};

const holdingIsBetter: Check = ({ run, statistics, heldEquity }) => {
  // A run that never closed a trade is buy and hold itself.
  if (run.trades.length === 0) return undefined;
  const held = heldEquity / statistics.equity.start - 1;
  const made = statistics.returns.total;
  if (held <= made) return undefined;
  return {
    code: 'holding_is_better',
    severity: 'info',
    issue: `Buying at the start and holding made ${formatPercent(held)}, the strategy ${formatPercent(made)}.`,
    evidence: { buy_and_hold: held, total_return: made },
    remedy: 'Compare the drawdowns too: trading has to be worth its effort in return or in calm.',
  };
};
