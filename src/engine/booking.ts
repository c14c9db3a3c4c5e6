/** One fill as the books need it. The engine keeps one and writes each fill into it. */
export interface Booking {
  /** The instrument's place in the universe. */
  instrument: number;
  /** Units, signed: positive bought, negative sold. */
  quantity: number;
  /** Per unit, slippage included. */
  price: number;
  /** The fill model's price, before slippage. */
  reference: number;
  /** Account currency, both as costs. */
  fee: number;
  slippage: number;
  /** Milliseconds since the epoch, and the step: when it happened. */
  time: number;
  step: number;
}

/** The part of the account that the journal records after a booking. */
export interface Account {
  /** Signed units of each instrument. */
  readonly positions: Float64Array;
  readonly cash: number;
}
