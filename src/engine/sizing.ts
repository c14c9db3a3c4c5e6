import type { EngineConfig } from './config.ts';
import { affordableQuantity, feeOf } from './costs.ts';
import type { Portfolio } from './portfolio.ts';

/** The position, in signed units, that is worth `weight` of equity at `price`. */
export function targetPosition(portfolio: Portfolio, weight: number, price: number): number {
  if (weight === 0) return 0;
  // A share of debts would be a position on the other side.
  return (weight * Math.max(0, portfolio.equity())) / price;
}

/**
 * Units that a fill may trade in direction `sign`: what closes the position plus what can be paid for.
 */
export function affordableUnits(
  { account, fees }: EngineConfig,
  portfolio: Portfolio,
  index: number,
  sign: number,
  price: number,
): number {
  const position = portfolio.positions[index]!;
  if (account.model === 'cash') {
    return sign < 0 ? position : affordableQuantity(fees, portfolio.cash, price, 1);
  }
  const closing = position * sign < 0 ? Math.abs(position) : 0;
  const kept = closing > 0 ? 0 : Math.abs(position);
  const mark = portfolio.marks[index]!;
  const others = portfolio.grossExposure() - Math.abs(position === 0 ? 0 : position * mark);
  const equity = portfolio.equity() + (position === 0 ? 0 : position * (price - mark));
  const closingFee = closing === 0 ? 0 : feeOf(fees, closing, price);
  const budget = equity - closingFee - account.initial * (others + kept * price);
  return closing + affordableQuantity(fees, budget, price, account.initial);
}
