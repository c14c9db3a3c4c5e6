import type { EngineMemory } from './memory.ts';
import { Rows } from './number-rows.ts';
import type { Trade, TradeOutcomes } from './round-trip.ts';
import type { RiskState } from './risk/risk-state.ts';

/**
 * A fill, fee or correction. A run keeps one and writes each into it, since it makes too many to leave to
 * the garbage collector. −0 counts like 0 and is stored as a double from the start.
 */
export class Booking {
  /** The instrument's place in the universe. */
  instrument = 0;
  /** Units, signed: positive bought, negative sold. */
  quantity = -0;
  /** Per unit, slippage included. */
  price = -0;
  /** The fill model's price, before slippage. */
  reference = -0;
  /** Account currency, both as costs. */
  fee = -0;
  slippage = -0;
  /** Milliseconds since the epoch, and the step: when it happened. */
  time = -0;
  step = 0;
}

/** Columns of one trade, open or closed; quantities and notionals are unsigned. */
const ID = 0;
const INSTRUMENT = 1;
const SIDE = 2;
const ENTRY_TIME = 3;
const ENTRY_STEP = 4;
const QUANTITY = 5;
const ENTRY_NOTIONAL = 6;
const EXIT_NOTIONAL = 7;
const FEES = 8;
const EXIT_TIME = 9;
const EXIT_STEP = 10;
const WIDTH = 11;

/** Initial state of an account that continues another, without fees and events. */
export interface Opening {
  /** Account currency. */
  readonly cash: number;
  /** Keyed by symbol. `quantity` is in units; `price` values the position until there are bars. */
  readonly positions: Readonly<
    Record<string, { readonly quantity: number; readonly price: number }>
  >;
  /** Risk state of the previous account; by default, losses count from `cash`. */
  readonly risk?: RiskState | undefined;
}

/**
 * Cash, positions and the round trips that led there. Quantities are signed: negative is short.
 * Trades are rows of numbers until they are requested, because a run makes hundreds of thousands.
 */
export class Portfolio {
  readonly positions: Float64Array;
  /** Last known price of each instrument: its open while a bar's fills are worked out, then its close. */
  readonly marks: Float64Array;
  cash: number;
  // -0 adds like 0 and is stored as a double from the start.
  fees = -0;
  slippage = -0;
  tradedNotional = -0;
  /** The part of `fees` that belongs to no trade. */
  otherFees = -0;
  readonly #symbols: readonly string[];
  /** The trade that each open position belongs to; stale where the position is flat. */
  readonly #open: readonly Float64Array[];
  readonly #closed: Rows;
  #tradeCount = 0;

  constructor(symbols: readonly string[], cash: number, memory: EngineMemory) {
    this.#symbols = symbols;
    this.#closed = new Rows(WIDTH, memory);
    this.#open = symbols.map(() => new Float64Array(WIDTH));
    this.positions = new Float64Array(symbols.length);
    this.marks = new Float64Array(symbols.length);
    this.cash = cash;
  }

  /** Sets the initial account before the first step. @throws RangeError for an unknown symbol. */
  open({ cash, positions }: Opening): void {
    this.cash = cash;
    for (const [symbol, { quantity, price }] of Object.entries(positions)) {
      const instrument = this.#symbols.indexOf(symbol);
      if (instrument === -1) throw new RangeError(`this run has no instrument ${symbol}`);
      if (quantity === 0) continue;
      this.positions[instrument] = quantity;
      this.marks[instrument] = price;
      const trade = this.#open[instrument]!;
      this.#enter(trade, { instrument, price, time: 0, step: 0 }, quantity, 0);
    }
  }

  /** Dates initial positions as entered at `time`, that of the first step. */
  date(time: number): void {
    for (const trade of this.#open) trade[ENTRY_TIME] = time;
  }

  equity(): number {
    let equity = this.cash;
    for (let index = 0; index < this.positions.length; index += 1) {
      const position = this.positions[index]!;
      // A flat instrument may have no mark yet, and 0 × NaN would spoil the sum.
      if (position !== 0) equity += position * this.marks[index]!;
    }
    return equity;
  }

  /** The position in an instrument, signed units, that is worth `weight` of equity at `price`. */
  targetPosition(weight: number, price: number): number {
    if (weight === 0) return 0;
    // A share of debts would be a position on the other side.
    return (weight * Math.max(0, this.equity())) / price;
  }

  /** Signed units between the position and `targetPosition`. */
  unitsToTarget(index: number, weight: number, price: number): number {
    return this.targetPosition(weight, price) - this.positions[index]!;
  }

  /** Σ |position × mark|, account currency. */
  grossExposure(): number {
    let gross = 0;
    for (let index = 0; index < this.positions.length; index += 1) {
      const position = this.positions[index]!;
      if (position !== 0) gross += Math.abs(position * this.marks[index]!);
    }
    return gross;
  }

  isInMarket(): boolean {
    for (let index = 0; index < this.positions.length; index += 1) {
      if (this.positions[index] !== 0) return true;
    }
    return false;
  }

  /** Id of the open trade; undefined when flat. */
  openTrade(index: number): number | undefined {
    return this.positions[index] === 0 ? undefined : this.#open[index]![ID]!;
  }

  /** Id of the trade that contains the newest fill of the instrument, open or closed. */
  lastTrade(index: number): number {
    return this.#open[index]![ID]!;
  }

  /** Mean price of the open position's entries; NaN when flat. */
  entryPrice(index: number): number {
    if (this.positions[index] === 0) return Number.NaN;
    const trade = this.#open[index]!;
    return trade[ENTRY_NOTIONAL]! / trade[QUANTITY]!;
  }

  /** Books a fill; one that goes through flat closes one trade and opens another. */
  book(booking: Booking): void {
    const { instrument, quantity, price, fee } = booking;
    const size = Math.abs(quantity);
    const before = this.positions[instrument]!;
    const sum = before + quantity;
    // Fractions such as 0.1 + 0.2 − 0.3 leave dust that would keep a closed trade open.
    const after = Math.abs(sum) < 1e-12 * size ? 0 : sum;
    this.cash -= quantity * price + fee;
    this.fees += fee;
    this.slippage += booking.slippage;
    this.tradedNotional += size * price;
    this.positions[instrument] = after;

    const trade = this.#open[instrument]!;
    if (before === 0) {
      this.#enter(trade, booking, quantity, fee);
    } else if (before > 0 === quantity > 0) {
      trade[QUANTITY]! += size;
      trade[ENTRY_NOTIONAL]! += size * price;
      trade[FEES]! += fee;
    } else {
      const closing = Math.min(Math.abs(before), size);
      const closingFee = (fee * closing) / size;
      const flips = after !== 0 && after > 0 !== before > 0;
      trade[EXIT_NOTIONAL]! += closing * price;
      trade[FEES]! += closingFee;
      if (after === 0 || flips) {
        this.#close(trade, booking);
      }
      if (flips) this.#enter(trade, booking, after, fee - closingFee);
    }
  }

  /**
   * Undoes or changes earlier bookings of an order. If the trade of its newest fill is still open, the
   * sums of that trade change. If that trade has closed, or the correction would reverse the position,
   * the correction is booked as a new fill.
   */
  correct(booking: Booking, side: 'buy' | 'sell', tradeId: number | undefined): void {
    const { instrument, quantity, price, fee } = booking;
    const trade = this.#open[instrument]!;
    const before = this.positions[instrument]!;
    const after = before + quantity;
    const isEntry = before > 0 === (side === 'buy');
    const units = side === 'buy' ? quantity : -quantity;
    const isInside = tradeId === this.openTrade(instrument) && after * before >= 0;
    // A larger exit is booked like a further exit.
    if (tradeId === undefined || !isInside || (!isEntry && units > 0)) {
      if (quantity === 0) this.#charge(fee, tradeId);
      else this.book(booking);
      return;
    }
    // Without a change of units, the amount corrects the price.
    const notional = quantity === 0 ? (side === 'buy' ? fee : -fee) : units * price;
    this.cash -= quantity * price + fee;
    this.tradedNotional += notional;
    this.positions[instrument] = Math.abs(after) < 1e-12 * Math.abs(quantity) ? 0 : after;
    if (isEntry) trade[QUANTITY]! += units;
    trade[isEntry ? ENTRY_NOTIONAL : EXIT_NOTIONAL]! += notional;
    if (quantity === 0) return;
    this.fees += fee;
    trade[FEES]! += fee;
    const isSold = trade[QUANTITY]! > 1e-12 * Math.abs(quantity);
    if (this.positions[instrument] === 0 && isSold) this.#close(trade, booking);
  }

  /**
   * Books a fee that was reported after its fill, in money or in units. Units leave the position at
   * `price`. The fee belongs to the trade `tradeId`, even if that has closed; undefined for an order
   * without fills.
   */
  settle(booking: Booking, tradeId: number | undefined): void {
    if (booking.quantity !== 0) this.book(Object.assign(new Booking(), booking, { fee: 0 }));
    this.#charge(booking.fee, tradeId);
  }

  #charge(fee: number, tradeId: number | undefined): void {
    this.cash -= fee;
    this.fees += fee;
    const trade = tradeId === undefined ? undefined : this.#trade(tradeId);
    if (trade === undefined) this.otherFees += fee;
    else trade[FEES]! += fee;
  }

  #trade(id: number): Float64Array | undefined {
    const open = this.#open.find((trade, index) => this.positions[index] !== 0 && trade[ID] === id);
    if (open !== undefined) return open;
    for (let index = this.#closed.count - 1; index >= 0; index -= 1) {
      const trade = this.#closed.row(index);
      if (trade[ID] === id) return trade;
    }
    return undefined;
  }

  /** Closed trades in order of exit. */
  closedTrades(): Trade[] {
    return this.#closed.map((chunk, at) => this.#tradeOf(chunk, at));
  }

  closedOutcomes(): TradeOutcomes {
    const { count } = this.#closed;
    const outcomes = { pnl: new Float64Array(count), return: new Float64Array(count) };
    let place = 0;
    this.#closed.forEach((rows, at) => {
      const pnl = pnlOf(rows, at);
      outcomes.pnl[place] = pnl;
      outcomes.return[place] = pnl / rows[at + ENTRY_NOTIONAL]!;
      place += 1;
    });
    return outcomes;
  }

  /** The open positions as trades that end at `time` and the current marks, without an exit fee. */
  openTrades(time: number, step: number): Trade[] {
    return this.#open.flatMap((open, index) => {
      const position = this.positions[index]!;
      if (position === 0) return [];
      const row = Float64Array.from(open);
      row[EXIT_NOTIONAL]! += Math.abs(position) * this.marks[index]!;
      row[EXIT_TIME] = time;
      row[EXIT_STEP] = step;
      return [this.#tradeOf(row, 0)];
    });
  }

  #enter(
    trade: Float64Array,
    booking: Pick<Booking, 'instrument' | 'price' | 'time' | 'step'>,
    quantity: number,
    fee: number,
  ): void {
    this.#tradeCount += 1;
    trade[ID] = this.#tradeCount;
    trade[INSTRUMENT] = booking.instrument;
    trade[SIDE] = quantity > 0 ? 1 : -1;
    trade[ENTRY_TIME] = booking.time;
    trade[ENTRY_STEP] = booking.step;
    trade[QUANTITY] = Math.abs(quantity);
    trade[ENTRY_NOTIONAL] = Math.abs(quantity) * booking.price;
    trade[EXIT_NOTIONAL] = 0;
    trade[FEES] = fee;
  }

  #close(trade: Float64Array, { time, step }: Booking): void {
    trade[EXIT_TIME] = time;
    trade[EXIT_STEP] = step;
    const at = this.#closed.append();
    const { chunk } = this.#closed;
    // Faster than `set` for so few numbers.
    for (let column = 0; column < WIDTH; column += 1) chunk[at + column] = trade[column]!;
  }

  #tradeOf(rows: Float64Array, at: number): Trade {
    const quantity = rows[at + QUANTITY]!;
    const entryNotional = rows[at + ENTRY_NOTIONAL]!;
    const exitNotional = rows[at + EXIT_NOTIONAL]!;
    const pnl = pnlOf(rows, at);
    return {
      id: rows[at + ID]!,
      symbol: this.#symbols[rows[at + INSTRUMENT]!]!,
      side: rows[at + SIDE] === 1 ? 'long' : 'short',
      entry_time: rows[at + ENTRY_TIME]!,
      exit_time: rows[at + EXIT_TIME]!,
      bars: rows[at + EXIT_STEP]! - rows[at + ENTRY_STEP]!,
      quantity,
      entry_price: entryNotional / quantity,
      exit_price: exitNotional / quantity,
      pnl,
      return: pnl / entryNotional,
      fees: rows[at + FEES]!,
    };
  }
}

function pnlOf(rows: Float64Array, at: number): number {
  const gain = rows[at + EXIT_NOTIONAL]! - rows[at + ENTRY_NOTIONAL]!;
  return rows[at + SIDE]! * gain - rows[at + FEES]!;
}
