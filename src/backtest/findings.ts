import type { OrderCounts, RunResult } from '../engine/result.ts';
import { formatCountOf, formatPercent, formatRatio } from '../base/format.ts';
import type { Bars } from '../market/bars.ts';
import type { UncoveredEdge } from '../market/gaps.ts';
import { DAY, formatTime, HOUR, MINUTE } from '../market/time.ts';
import { barSpacing } from '../market/timeframe.ts';
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
    | 'ruinedAt'
  >;
  readonly statistics: Statistics;
  /** At least one bar each. */
  readonly instruments: readonly JobInstrument[];
  /** Equity at the end, had the instruments been bought and held. */
  readonly heldEquity: number;
  /** How many parameters of the strategy can be tuned. */
  readonly parameters: number;
  /** Absent where the strategy ran in this thread. */
  readonly traces?: StrategyTraces | undefined;
}

/** Fewer round trips than this say little about the next ones. */
const ENOUGH_TRADES = 30;
const TRADES_PER_PARAMETER = 10;
/** More than this is seldom earned over a whole history, and often seen where the future leaks in. */
const TOO_GOOD_SHARPE = 3;
/** A price that stood still for so many bars was probably not traded at all. */
const STALE_RUN = 5;
/** Share of the bars from which on faulty data are more than a footnote. */
const MANY_BARS = 0.01;
/** An instrument may be silent for so many of its own bars before its data count as ended. */
const SILENT_BARS = 5;
/** The longest pause that markets make over weekends and holidays. */
const LONG_WEEKEND = 4 * DAY;

const RANK: Readonly<Record<Finding['severity'], number>> = { critical: 0, warning: 1, info: 2 };

/**
 * Reasons not to believe a result at first sight, the gravest first: what was found, the numbers
 * that show it, and what to do about it.
 */
export function findings(input: FindingsInput): Finding[] {
  return [
    ruin(input),
    neverTraded(input),
    marginCalls(input),
    windowBeyondData(input.instruments),
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
    staleBars(input),
    missingBars(input),
    dataStartLate(input),
    ambiguousBars(input),
    holdingIsBetter(input),
    outsideFinding(input.traces?.outside),
    leftRunning(input),
  ]
    .filter((finding) => finding !== undefined)
    .sort((a, b) => RANK[a.severity] - RANK[b.severity]);
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
    issue: 'The account was lost: its equity reached zero and the run stopped there.',
    evidence: {
      time: new Date(run.time[run.ruinedAt]!).toISOString(),
      end_equity: statistics.equity.end,
    },
    remedy: 'Trade smaller, or limit max_position_pct and max_drawdown_pct under risk.',
  };
};

/** @param outside see `StrategyTraces`. */
export function outsideFinding(outside: readonly string[] = []): Finding | undefined {
  if (outside.length === 0) return undefined;
  const uses = outside.join(', ');
  return {
    code: 'outside_used',
    severity: 'warning',
    issue: `The strategy uses ${uses}: its result can depend on files or a network that the lock does not cover.`,
    evidence: { uses },
    remedy:
      'Declare such data in the bot file, or use --sealed, which blocks files and the network.',
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
    issue: `The strategy left timers or connections open, which were closed after the last bar: ${list}.`,
    evidence: { ...left },
    remedy:
      'Clear timers and close connections: in paper and production they stay open as long as the bot runs.',
  };
};

const neverTraded: Check = ({ run }) => {
  if (run.trades.length + run.openTrades.length > 0) return undefined;
  return {
    code: 'never_traded',
    severity: 'critical',
    issue: 'No order was ever filled, so nothing was tested.',
    evidence: {
      bars: run.steps,
      orders_submitted: run.orders.submitted,
      orders_rejected: total(run.orders.rejected),
      orders_denied: total(run.orders.denied),
    },
    remedy:
      'Check that the window is longer than the strategy needs to warm up, and that its conditions can occur in these data.',
  };
};

const marginCalls: Check = ({ run }) => {
  if (run.marginCalls === 0) return undefined;
  return {
    code: 'margin_call',
    severity: 'critical',
    issue: `Positions were closed by force: ${formatCountOf(run.marginCalls, 'margin call')}.`,
    evidence: { margin_calls: run.marginCalls },
    remedy: 'Trade smaller, so that the account survives its worst drawdown without being closed.',
  };
};

const neverClosed: Check = ({ run, statistics }) => {
  if (run.trades.length > 0 || run.openTrades.length === 0) return undefined;
  return {
    code: 'never_closed',
    severity: 'warning',
    issue:
      'No position was closed: the result is what the market made of holding, and no exit was tested.',
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
    remedy: 'Look at that trade, and judge the strategy by what is left without it.',
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
    issue: `A Sharpe ratio of ${formatRatio(sharpe)} is more than strategies earn over a whole history.`,
    evidence: { sharpe, usual_limit: TOO_GOOD_SHARPE },
    remedy:
      'Look for data from the future in the inputs, missing costs, and a window too short or too kind.',
  };
};

/** What a window of so many calendar days leaves out, and what of the rest means little. */
export function shortWindow(days: number): Finding | undefined {
  if (days >= SHORTEST_ANNUAL_DAYS) return undefined;
  return {
    code: 'short_window',
    severity: 'warning',
    issue:
      `${formatCountOf(Math.round(days), 'day')} of history: CAGR, annual return, Calmar and turnover are left out. ` +
      'Sharpe, Sortino and volatility are scaled up to a year from so little that they mean next to nothing, and so do gates on them.',
    evidence: { days, enough: SHORTEST_ANNUAL_DAYS },
    remedy: 'Test on at least a year, better on several with rising and falling markets.',
  };
}

/** Refused orders by reason; one reason can be met before an order is accepted, and at its fill. */
export function refusalsOf({ rejected, denied }: OrderCounts): Record<string, number> {
  const counts: Record<string, number> = { ...rejected };
  for (const [reason, count] of Object.entries(denied)) {
    counts[reason] = (counts[reason] ?? 0) + count;
  }
  return counts;
}

const REFUSAL_REMEDIES: Readonly<Record<string, string>> = {
  short_not_allowed:
    'Selling short needs margin; under engine: account: {model: margin, initial: 0.5, maintenance: 0.25}.',
  insufficient_funds: 'Size orders to the cash at hand, or let broker.target() do it.',
  post_only_would_cross: 'Place post-only limits further from the market.',
};

const refusedOrders: Check = ({ run }) => {
  const causes = Object.entries(refusalsOf(run.orders)).sort(([, a], [, b]) => b - a);
  const [first] = causes;
  if (first === undefined) return undefined;
  const { rejected, denied, submitted } = run.orders;
  return {
    code: 'refused_orders',
    severity: 'warning',
    issue: `${formatCountOf(total(rejected) + total(denied), 'order')} refused, so the run did not do what the strategy asked for.`,
    evidence: {
      submitted,
      rejected: total(rejected),
      denied: total(denied),
      causes: causes.map(([cause, count]) => `${cause} ${count}`).join(', '),
    },
    remedy: refusalRemedy(first[0]),
  };
};

function refusalRemedy(reason: string): string {
  if (reason.startsWith('threshold_')) {
    return `Trade within ${reason}, which an administrator sets above the spec: see \`service-local risk thresholds list\`.`;
  }
  return REFUSAL_REMEDIES[reason] ?? `Trade within ${reason}, or change it under risk.`;
}

const staleBars: Check = ({ instruments }) => {
  const counts = instruments.map(({ symbol, bars }) => {
    const stale = countStale(bars);
    return { symbol, stale, share: stale / bars.length };
  });
  const worst = counts.toSorted((a, b) => b.share - a.share)[0];
  if (worst === undefined || worst.stale === 0) return undefined;
  return {
    code: 'stale_bars',
    severity: worst.share >= MANY_BARS ? 'warning' : 'info',
    issue: `${formatPercent(worst.share)} of the bars of ${worst.symbol} repeat one price without any range.`,
    evidence: Object.fromEntries(
      counts.filter(({ stale }) => stale > 0).map(({ symbol, stale }) => [symbol, stale]),
    ),
    remedy:
      'Nobody may have traded then: check the data, and do not count on fills at such prices.',
  };
};

/** Bars in runs of at least `STALE_RUN` with the same close and no range. */
function countStale({ length, high, low, close }: Bars): number {
  let stale = 0;
  let run = 0;
  for (let i = 0; i <= length; i++) {
    const still = i < length && high[i] === low[i];
    if (still && run > 0 && close[i] === close[i - 1]) {
      run++;
    } else {
      if (run >= STALE_RUN) stale += run;
      run = still ? 1 : 0;
    }
  }
  return stale;
}

const missingBars: Check = ({ instruments }) => {
  const gappy = instruments
    .map(({ symbol, source: { bars, missing } }) => ({
      symbol,
      missing,
      share: missing / (missing + bars),
    }))
    .filter(({ missing }) => missing > 0);
  const worst = gappy.toSorted((a, b) => b.share - a.share)[0];
  if (worst === undefined) return undefined;
  return {
    code: 'missing_bars',
    severity: worst.share >= MANY_BARS ? 'warning' : 'info',
    issue: `${formatPercent(worst.share)} of the bars that the source of ${worst.symbol} should have are missing: the strategy saw neither them nor the moves inside.`,
    evidence: Object.fromEntries(gappy.map(({ symbol, missing }) => [symbol, missing])),
    remedy: 'Load the history again or from another source.',
  };
};

/** Finds parts of the requested window that have no data. */
export function windowBeyondData(
  instruments: readonly Pick<JobInstrument, 'symbol' | 'uncovered'>[],
): Finding | undefined {
  const beyond = instruments.flatMap(({ symbol, uncovered = [] }) =>
    uncovered.map((edge) => ({ symbol, ...edge })),
  );
  if (beyond.length === 0) return undefined;
  return {
    code: 'window_beyond_data',
    severity: 'warning',
    issue: `The window extends beyond the data: ${beyond.map(describeEdge).join('; ')}.`,
    evidence: Object.fromEntries(
      beyond.map(({ symbol, edge, missing }) => [`${symbol} ${EDGE_SIDES[edge]}`, missing]),
    ),
    remedy: 'Load the rest of the history, or set from and to inside the data.',
  };
}

const EDGE_SIDES = { from: 'bars missing at the start', to: 'bars missing at the end' } as const;

function describeEdge(edge: UncoveredEdge & { readonly symbol: string }): string {
  const bar = edge.edge === 'from' ? 'first' : 'last';
  return `${edge.edge} is ${edge.asked}, and the ${bar} bar of ${edge.symbol} is of ${formatTime(edge.nearest)}`;
}

const dataEndEarly: Check = ({ instruments, run }) => {
  const end = run.time.at(-1)!;
  const isHeld = (symbol: string): boolean =>
    run.openTrades.some((trade) => trade.symbol === symbol);
  const ended = instruments
    .map(({ symbol, bars }) => ({ symbol, bars, last: bars.time.at(-1)! }))
    .filter(({ bars, last }) => end - last > usualSilence(bars))
    .sort((a, b) => Number(isHeld(b.symbol)) - Number(isHeld(a.symbol)) || a.last - b.last);
  const [worst] = ended;
  if (worst === undefined) return undefined;
  const { symbol, last } = worst;
  const isStuck = isHeld(symbol);
  return {
    code: 'data_end_early',
    severity: isStuck ? 'critical' : 'warning',
    issue:
      `${symbol} ends ${formatTime(last)}, ${formatSpan(end - last)} before the run; ` +
      `${isStuck ? 'its position is valued at that close, and ' : ''}since then no order for it could fill.`,
    evidence: Object.fromEntries(ended.map((other) => [other.symbol, formatTime(other.last)])),
    remedy: `End the window by then, load the rest of the history, or leave ${symbol} out.`,
  };
};

const dataStartLate: Check = ({ instruments, run }) => {
  const start = run.time[0]!;
  const late = instruments
    .map(({ symbol, bars }) => ({ symbol, bars, first: bars.time[0]! }))
    .filter(({ bars, first }) => first - start > usualSilence(bars))
    .sort((a, b) => b.first - a.first);
  const [worst] = late;
  if (worst === undefined) return undefined;
  const { symbol, first } = worst;
  return {
    code: 'data_start_late',
    severity: 'info',
    issue: `${symbol} begins ${formatTime(first)}, ${formatSpan(first - start)} after the run: until then only the others were traded.`,
    evidence: Object.fromEntries(late.map((other) => [other.symbol, formatTime(other.first)])),
    remedy: 'Begin the window by then, or load the history before it.',
  };
};

/** How long an instrument may have no bar without its data being at an end, ms. */
function usualSilence(bars: Bars): number {
  let pause = 0;
  for (let i = 1; i < bars.length; i++) pause = Math.max(pause, bars.time[i]! - bars.time[i - 1]!);
  return Math.max(SILENT_BARS * (barSpacing(bars) ?? 0), Math.min(pause, LONG_WEEKEND));
}

/** `121 months`, `12 days`, `5 hours`: in the longest unit of which there are at least two. */
function formatSpan(ms: number): string {
  const units = [
    [30.436875 * DAY, 'month'],
    [DAY, 'day'],
    [HOUR, 'hour'],
  ] as const;
  const [length, name] = units.find(([unit]) => ms >= 2 * unit) ?? [MINUTE, 'minute'];
  return formatCountOf(Math.round(ms / length), name);
}

const ambiguousBars: Check = ({ run }) => {
  const bars = run.ambiguousBars;
  if (bars === 0) return undefined;
  const share = bars / Math.max(1, run.orders.fills);
  return {
    code: 'ambiguous_bars',
    severity: share >= 0.1 ? 'warning' : 'info',
    issue: `In ${formatCountOf(bars, 'bar')} several orders could have been filled in either order; the worse one was assumed.`,
    evidence: { bars, fills: run.orders.fills },
    remedy: 'Test on shorter bars, where the order of prices within them matters less.',
  };
};

const holdingIsBetter: Check = ({ run, statistics, heldEquity }) => {
  // A run that bought once and never let go is itself what it would be compared with.
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
