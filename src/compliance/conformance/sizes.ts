import type { EngineConfig } from '../../engine/config.ts';

/** Prices and quantities with which a test trades within the limits of the bot. */
export interface Sizes {
  /** Market price, in the currency of the account. */
  readonly price: number;
  /** Units of one order, of which a fourth can be filled. */
  readonly quantity: number;
  /** Smallest quantity that the exchange trades, units. */
  readonly unit: number;
  /** Limits of orders that rest below and above the market price. */
  readonly below: number;
  readonly above: number;
}

/** Size of a price step of the simulated exchange. */
export const PRICE_UNIT = 0.01;
const LEAST_QUARTERS = 8;

export function sizesFor({ cash, units, risk }: EngineConfig): Sizes {
  const budget = Math.min(cash / 20, risk.max_order_value / 2, (risk.max_position_pct * cash) / 8);
  const isWhole = units === 'whole';
  const most = risk.max_order_qty / 2;
  const price = Math.max(1, Math.min(100, isWhole ? Math.floor(budget / LEAST_QUARTERS) : 100));
  const wanted = Math.min(budget / price, most);
  const unit = isWhole ? 1 : 10 ** Math.min(-3, Math.floor(Math.log10(wanted / 1000)));
  const quantity = Number((Math.floor(wanted / unit / 4) * 4 * unit).toFixed(9));
  const away = Math.min(0.01, risk.price_collar_bps / 20_000);
  const onTick = (value: number): number => Number((Math.round(value * 100) / 100).toFixed(2));
  return {
    price,
    quantity,
    unit,
    below: onTick(price * (1 - away)),
    above: onTick(price * (1 + away)),
  };
}
