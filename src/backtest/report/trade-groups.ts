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
  const groups = Map.groupBy(trades, nameOf);
  const all = [...groups].flatMap(([name, own]) => {
    if (name === undefined) return [];
    const wins = own.filter(({ pnl }) => pnl > 0).length;
    return {
      name,
      count: own.length,
      winRate: wins / own.length,
      pnl: own.reduce((sum, { pnl }) => sum + pnl, 0),
      averageReturn: own.reduce((sum, trade) => sum + trade.return, 0) / own.length,
    };
  });
  return names === undefined
    ? all.toSorted((a, b) => b.count - a.count)
    : all.toSorted((a, b) => names.indexOf(a.name) - names.indexOf(b.name));
}
