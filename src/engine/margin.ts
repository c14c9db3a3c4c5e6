import type { Instrument } from './instrument.ts';
import { requestLiquidation } from './orders/create-order.ts';
import type { OrderBook } from './orders/order-book.ts';
import type { OrderReason } from './orders/order.ts';
import type { WorkingOrder } from './orders/working-order.ts';
import { STEPS_TO_FREEZE, type RunState } from './run-state.ts';

/** Margin calls: closes all positions when equity falls below the maintenance margin. */
export class MarginCalls {
  readonly #run: RunState;
  readonly #book: OrderBook;
  #isCalled = false;

  constructor(run: RunState, book: OrderBook) {
    this.#run = run;
    this.#book = book;
  }

  /** During a margin call, no order is accepted. */
  denial({ instrument }: WorkingOrder): OrderReason | undefined {
    return this.#isCalled || this.#isLiquidating(instrument) ? 'margin_call' : undefined;
  }

  /**
   * Begins a margin call if equity is below maintenance. Ends it at the first close with enough
   * equity, or with no position left that could be closed: a position without bars must not block
   * the account. Its closing order works until the instrument has a bar again.
   */
  check(isInMarket: boolean): void {
    const { account } = this.#run.config;
    if (account.model !== 'margin' || !(isInMarket || this.#isCalled)) return;
    const { instruments, portfolio, curve, step } = this.#run;
    const equity = curve.values[step]!;
    const required = account.maintenance * portfolio.grossExposure();
    const isBelow = equity < required;
    const closable = isBelow ? instruments.filter((one) => this.#isClosable(one)) : [];
    const wasCalled = this.#isCalled;
    this.#isCalled = closable.length > 0;
    if (wasCalled || closable.every((instrument) => this.#isLiquidating(instrument))) return;
    this.#run.marginCalls += 1;
    this.#run.journal.marginCall(this.#run.now, equity, required);
    this.#liquidate();
  }

  #liquidate(): void {
    const { instruments, portfolio, working } = this.#run;
    for (const order of working) {
      if (!order.isLiquidation) this.#book.cancel(order, 'margin_call');
    }
    this.#book.dropEnded();
    for (const instrument of instruments) {
      const position = portfolio.positions[instrument.index]!;
      if (position === 0 || this.#isLiquidating(instrument)) continue;
      const order = this.#book.create(requestLiquidation(instrument, position));
      this.#book.submit(order);
    }
  }

  /** Whether there is a position with a recent price. */
  #isClosable(instrument: Instrument): boolean {
    const { portfolio, step } = this.#run;
    const hasPrice = instrument.count > 0 || step < STEPS_TO_FREEZE;
    return (
      portfolio.positions[instrument.index] !== 0 && hasPrice && !this.#run.isStale(instrument)
    );
  }

  #isLiquidating(instrument: Instrument): boolean {
    if (this.#run.marginCalls === 0) return false;
    return this.#run.working.some(
      (order) => order.isLiquidation && order.instrument === instrument,
    );
  }
}
