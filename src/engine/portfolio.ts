import type { Trade } from './result.ts';

interface OpenTrade {
  readonly id: number;
  readonly side: 1 | -1;
  readonly entryTime: number;
  readonly entryStep: number;
  entryQuantity: number;
  entryNotional: number;
  exitNotional: number;
  fees: number;
}

/** Cash, positions and the round trips that led there. Quantities are signed: negative is short. */
export class Portfolio {
  readonly positions: Float64Array;
  /** Last known price of each instrument: its open while a bar's fills are worked out, then its close. */
  readonly marks: Float64Array;
  cash: number;
  fees = 0;
  slippage = 0;
  tradedNotional = 0;
  readonly closed: Trade[] = [];
  readonly #symbols: readonly string[];
  readonly #open: (OpenTrade | undefined)[];
  #tradeCount = 0;

  constructor(symbols: readonly string[], cash: number) {
    this.#symbols = symbols;
    this.#open = symbols.map(() => undefined);
    this.positions = new Float64Array(symbols.length);
    this.marks = new Float64Array(symbols.length);
    this.cash = cash;
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

  entryPrice(index: number): number {
    const trade = this.#open[index];
    return trade === undefined ? Number.NaN : trade.entryNotional / trade.entryQuantity;
  }

  /** Books `quantity` (signed) at `price`; a fill through flat closes one trade and opens another. */
  fill(
    index: number,
    quantity: number,
    price: number,
    fee: number,
    slippage: number,
    time: number,
    step: number,
  ): void {
    const before = this.positions[index]!;
    const sum = before + quantity;
    // Fractions such as 0.1 + 0.2 − 0.3 leave dust that would keep a closed trade open.
    const after = Math.abs(sum) < 1e-12 * Math.abs(quantity) ? 0 : sum;
    this.cash -= quantity * price + fee;
    this.fees += fee;
    this.slippage += slippage;
    this.tradedNotional += Math.abs(quantity) * price;
    this.positions[index] = after;

    if (before === 0) {
      this.#enter(index, quantity, price, fee, time, step);
    } else if (before > 0 === quantity > 0) {
      const trade = this.#open[index]!;
      trade.entryQuantity += Math.abs(quantity);
      trade.entryNotional += Math.abs(quantity) * price;
      trade.fees += fee;
    } else {
      const closing = Math.min(Math.abs(before), Math.abs(quantity));
      const closingFee = (fee * closing) / Math.abs(quantity);
      const trade = this.#open[index]!;
      trade.exitNotional += closing * price;
      trade.fees += closingFee;
      if (after === 0 || after > 0 !== before > 0) this.#close(index, time, step);
      if (after !== 0 && after > 0 !== before > 0) {
        this.#enter(index, after, price, fee - closingFee, time, step);
      }
    }
  }

  /** The open positions as trades that end at `time` and the current marks, without an exit fee. */
  openTrades(time: number, step: number): Trade[] {
    return this.#open.flatMap((trade, index) => {
      if (trade === undefined) return [];
      const remaining = Math.abs(this.positions[index]!);
      const exitNotional = trade.exitNotional + remaining * this.marks[index]!;
      return [this.#trade(index, trade, exitNotional, time, step)];
    });
  }

  #enter(
    index: number,
    quantity: number,
    price: number,
    fee: number,
    time: number,
    step: number,
  ): void {
    this.#tradeCount += 1;
    this.#open[index] = {
      id: this.#tradeCount,
      side: quantity > 0 ? 1 : -1,
      entryTime: time,
      entryStep: step,
      entryQuantity: Math.abs(quantity),
      entryNotional: Math.abs(quantity) * price,
      exitNotional: 0,
      fees: fee,
    };
  }

  #close(index: number, time: number, step: number): void {
    const trade = this.#open[index]!;
    this.#open[index] = undefined;
    this.closed.push(this.#trade(index, trade, trade.exitNotional, time, step));
  }

  #trade(
    index: number,
    trade: OpenTrade,
    exitNotional: number,
    time: number,
    step: number,
  ): Trade {
    const pnl = trade.side * (exitNotional - trade.entryNotional) - trade.fees;
    return {
      id: trade.id,
      symbol: this.#symbols[index]!,
      side: trade.side === 1 ? 'long' : 'short',
      entry_time: trade.entryTime,
      exit_time: time,
      bars: step - trade.entryStep,
      quantity: trade.entryQuantity,
      entry_price: trade.entryNotional / trade.entryQuantity,
      exit_price: exitNotional / trade.entryQuantity,
      pnl,
      return: pnl / trade.entryNotional,
      fees: trade.fees,
    };
  }
}
