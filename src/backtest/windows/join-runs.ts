import { drawdownOf } from '../../engine/equity-curve.ts';
import { Journal } from '../../engine/journal.ts';
import type { RunResult } from '../../engine/run-result.ts';

/**
 * Joins consecutive runs into one. Each begins with the cash with which the one before it ended, and
 * all but the last end without a position. The numbers of trades and orders continue from run to run.
 *
 * @param runs at least one
 */
export function joinRuns(runs: readonly RunResult[]): RunResult {
  const last = runs.at(-1)!;
  const sum = (count: (run: RunResult) => number): number =>
    runs.reduce((total, run) => total + count(run), 0);
  const steps = sum((run) => run.steps);
  const { initialCash } = runs[0]!;
  const time = join(runs.map((run) => run.time));
  const equity = join(runs.map((run) => run.equity));
  const outcomes = runs.map(({ tradeOutcomes }) => tradeOutcomes);
  return {
    steps,
    time,
    equity,
    drawdown: drawdownOf(initialCash, time, equity),
    initialCash,
    cash: last.cash,
    positions: last.positions,
    trades: runs.flatMap(({ trades }, at) => {
      const before = runs.slice(0, at).reduce((total, run) => total + run.trades.length, 0);
      return trades.map((trade) => ({ ...trade, id: before + trade.id }));
    }),
    tradeOutcomes: {
      pnl: join(outcomes.map(({ pnl }) => pnl)),
      return: join(outcomes.map((outcome) => outcome.return)),
    },
    openTrades: last.openTrades,
    orders: {
      submitted: sum(({ orders }) => orders.submitted),
      filled: sum(({ orders }) => orders.filled),
      fills: sum(({ orders }) => orders.fills),
      canceled: sum(({ orders }) => orders.canceled),
      expired: sum(({ orders }) => orders.expired),
      working: last.orders.working,
      rejected: addCounts(runs.map(({ orders }) => orders.rejected)),
      denied: addCounts(runs.map(({ orders }) => orders.denied)),
      limited: addCounts(runs.map(({ orders }) => orders.limited)),
    },
    fees: sum(({ fees }) => fees),
    otherFees: sum(({ otherFees }) => otherFees),
    slippage: sum(({ slippage }) => slippage),
    tradedNotional: sum(({ tradedNotional }) => tradedNotional),
    stepsInMarket: sum(({ stepsInMarket }) => stepsInMarket),
    ambiguousBars: sum(({ ambiguousBars }) => ambiguousBars),
    marginCalls: sum(({ marginCalls }) => marginCalls),
    cappedTargets: {
      count: sum(({ cappedTargets }) => cappedTargets.count),
      since: runs.find(({ cappedTargets }) => cappedTargets.count > 0)?.cappedTargets.since,
    },
    ruinedAt: last.ruinedAt === undefined ? undefined : steps - last.steps + last.ruinedAt,
    journal: Journal.join(runs.map(({ journal }) => journal)),
  };
}

function join(parts: readonly Float64Array[]): Float64Array {
  const joined = new Float64Array(parts.reduce((total, { length }) => total + length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

type Counts = Readonly<Record<string, number>>;

function addCounts(all: readonly Counts[]): Counts {
  const sums: Record<string, number> = {};
  for (const counts of all) {
    for (const [name, count] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + count;
  }
  return sums;
}
