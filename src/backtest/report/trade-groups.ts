import type { Trade } from '../../engine/round-trip.ts';

/** Closed trades with something in common. */
export interface TradeGroup {
  readonly name: string;
  readonly count: number;
  /** Share of trades with a net profit. */
  readonly winRate: number;
  /** Sum of the profits, account currency. */
  readonly pnl: number;
  /** Mean of the returns on the entry value. */
  readonly averageReturn: number;
}

/** Groups trades by name, in the order of `names` if given, else of the largest number of trades. */
export function groupTrades(
  trades: readonly Trade[],
  nameOf: (trade: Trade) => string | undefined,
  names?: readonly string[],
): TradeGroup[] {
  const groups = new Map<string, { count: number; wins: number; pnl: number; returns: number }>();
  for (const trade of trades) {
    const name = nameOf(trade);
    if (name === undefined) continue;
    let group = groups.get(name);
    if (group === undefined) {
      group = { count: 0, wins: 0, pnl: 0, returns: 0 };
      groups.set(name, group);
    }
    group.count += 1;
    if (trade.pnl > 0) group.wins += 1;
    group.pnl += trade.pnl;
    group.returns += trade.return;
  }
  const all = [...groups].map(([name, { count, wins, pnl, returns }]): TradeGroup => ({
    name,
    count,
    winRate: wins / count,
    pnl,
    averageReturn: returns / count,
  }));
  return names === undefined
    ? all.toSorted((a, b) => b.count - a.count)
    : all.toSorted((a, b) => names.indexOf(a.name) - names.indexOf(b.name));
}
