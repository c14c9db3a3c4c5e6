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
