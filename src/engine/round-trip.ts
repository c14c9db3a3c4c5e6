/** A round trip in one instrument, from flat to flat; adds and partial exits in between belong to it. */
export interface Trade {
  /** 1-based, in order of entry. */
  readonly id: number;
  readonly symbol: string;
  readonly side: 'long' | 'short';
  /** Milliseconds since the epoch, UTC: the bars of the first and the last fill. */
  readonly entry_time: number;
  readonly exit_time: number;
  /** Steps (bars of the run's clock) from entry to exit. */
  readonly bars: number;
  /** Units entered, summed over all entry fills. */
  readonly quantity: number;
  /** Quantity-weighted mean prices of the fills. For an open trade the exit is the last close. */
  readonly entry_price: number;
  readonly exit_price: number;
  /** Account currency, net of the fees of both sides. */
  readonly pnl: number;
  /** `pnl / (quantity × entry_price)`. */
  readonly return: number;
  readonly fees: number;
}

/** `pnl` and `return` of closed trades, in order of exit. */
export interface TradeOutcomes {
  readonly pnl: Float64Array;
  readonly return: Float64Array;
}
