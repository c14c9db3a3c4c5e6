import type { EarlierPart } from './earlier-bars.ts';
import { createParts, type EngineParts } from './engine-parts.ts';
import type { EngineSetup } from './engine-setup.ts';
import { SimulatedExecution } from './execution/simulated-execution.ts';
import { showBar } from './instrument.ts';
import type { RunResult } from './run-result.ts';
import type { Thresholds } from './risk/firm-thresholds.ts';
import type { RunView } from './run-state.ts';
import type { ReturnedIndicator } from './series/returned-indicators.ts';
import { startStrategy } from './start-strategy.ts';
import type { Step } from './steps.ts';
import { StrategyError } from './strategy-error.ts';
import type { LogLine } from './strategy-log.ts';

/**
 * The trading core: one step per distinct bar time. In a step, in this order:
 *
 * 1. Every instrument with a bar at that time shows it.
 * 2. Orders of earlier steps are filled: first at the opens in order of submission over all
 *    instruments, then within the bars, instrument by instrument. At a venue, `venue.report` fills
 *    them between steps.
 * 3. Positions are marked to the closes, and equity is recorded.
 * 4. The strategy is notified of the fills, then of the bars, and places orders for later steps.
 *
 * It has no clock, no I/O, and no randomness but the seeded one. Equal setups with equal steps, reports,
 * denials, thresholds and halts, in the same order, give equal results.
 */
export class Engine {
  /** Limits, permits and denials. */
  readonly risk: EngineParts['gate'];
  /** Undefined if bars fill the orders. */
  readonly venue: EngineParts['venue'];
  readonly #setup: EngineSetup;
  readonly #parts: EngineParts;
  readonly #run: EngineParts['run'];

  /** @throws RangeError for a venue without a cash account. */
  constructor(setup: EngineSetup) {
    this.#setup = setup;
    this.#parts = createParts(setup);
    this.#run = this.#parts.run;
    this.risk = this.#parts.gate;
    this.venue = this.#parts.venue;
  }

  get run(): RunView {
    return this.#run;
  }

  /** Number of steps with bars. */
  get steps(): number {
    return this.#run.stepCount;
  }

  /** Number of steps taken. */
  get done(): number {
    return this.#run.step;
  }

  result(): RunResult {
    return this.#run.result();
  }

  /** Returns and removes the lines that the strategy logged; none if the setup drops them. */
  takeLog(): readonly LogLine[] {
    return this.#run.log?.take() ?? [];
  }

  /** The indicators that the strategy declared, with their values so far. */
  indicators(): readonly ReturnedIndicator[] {
    return this.#run.series?.returned() ?? [];
  }

  /**
   * Takes some of the bars before the run, which only declared indicators see.
   *
   * @throws RangeError after the first bars.
   */
  warmUp(part: EarlierPart): void {
    this.#run.warmUp(part);
  }

  /**
   * Adds the bars of a new time, for `advance`.
   *
   * @throws RangeError for bars that cannot follow; nothing is added then.
   */
  append(step: Step): void {
    this.#run.append(step);
  }

  /** Replaces all thresholds, and cancels working orders that break them, the newest first. */
  setThresholds(thresholds: Thresholds): void {
    const { run, gate, book, execution } = this.#parts;
    run.betweenSteps(() => {
      for (const { order, reason } of gate.setThresholds(thresholds)) {
        execution.withdraw(order, reason);
      }
      book.dropEnded();
    });
  }

  /** Cancels every working order. Orders at a venue end when it confirms. */
  halt(): void {
    const { run, book, execution } = this.#parts;
    run.betweenSteps(() => {
      for (const order of run.working) execution.withdraw(order, 'halted');
      book.dropEnded();
    });
  }

  /**
   * Ends a run whose orders bars fill: cancels all orders, and closes all positions at the last closes
   * with fees and slippage. The strategy is not notified.
   */
  closeOut(): void {
    const { run, execution } = this.#parts;
    if (!(execution instanceof SimulatedExecution))
      throw new RangeError('a venue fills the orders');
    run.betweenSteps(() => execution.closeOut());
  }

  /** Prevents further orders, also from callbacks of a strategy that was interrupted. */
  endTurn(): void {
    this.#run.isStrategysTurn = false;
  }

  /** Takes up to `maxSteps` steps. Returns whether any remain. @throws StrategyError */
  advance(maxSteps: number): boolean {
    const run = this.#run;
    const end = Math.min(run.step + maxSteps, run.stepCount);
    run.isStrategysTurn = true;
    try {
      if (end > run.step) this.#takeSteps(end);
    } finally {
      run.isStrategysTurn = false;
    }
    return run.step < run.stepCount && !run.isRuined;
  }

  /**
   * Takes steps up to `end`. While no order works, cash and position do not change, so only the mark of
   * the instrument and the turn of the strategy remain. Most bars of most runs are such steps. They are
   * written out here because V8 inlines a limited amount of code into a function, and what it does not
   * inline of a strategy and its indicators allocates an object for each number that it returns.
   */
  #takeSteps(end: number): void {
    const { run, broker, lone, margin } = this.#parts;
    if (run.strategy === undefined) startStrategy(this.#setup, run, broker);
    const { working, portfolio, instruments, curve, cursors, fresh, wakeUp } = run;
    run.prepare(end);
    const { positions, marks } = portfolio;
    const { values: equity } = curve;
    const { close } = run.histories[0]!;
    const follows = run.series?.follows === true;
    const canCoast = instruments.length === 1 && this.venue === undefined;
    const canRest = canCoast && margin === undefined;
    while (run.step < end && !run.isRuined) {
      if (wakeUp !== undefined && canRest && working.length === 0) {
        const next = Math.min(wakeUp.next(), end);
        if (next > run.step) {
          run.coast(next);
          continue;
        }
      }
      const { step } = run;
      let isInMarket: boolean;
      if (canCoast && (working.length === 0 || lone?.fill() === true)) {
        const mark = close[step]!;
        const position = positions[0]!;
        marks[0] = mark;
        equity[step] = portfolio.cash + position * mark;
        cursors[0] = step;
        fresh[0] = 1;
        if (follows) run.series!.advance();
        showBar(instruments[0]!, step);
        isInMarket = position !== 0;
      } else isInMarket = this.#trade();
      curve.record(step);
      if (isInMarket) run.stepsInMarket += 1;
      // Equity is read from its column, since a number that a call returns may be allocated.
      if (equity[step]! <= 0) run.ruinedAt = step;
      else margin?.check(isInMarket);
      if (wakeUp === undefined || wakeUp.isDue()) {
        try {
          if (run.fills.length > 0) run.deliverFills();
          run.strategy!.onBar();
        } catch (error) {
          throw new StrategyError(step, run.now, error);
        }
        wakeUp?.called();
      }
      run.step = step + 1;
    }
  }

  #trade(): boolean {
    const { run, execution } = this.#parts;
    run.showBars();
    execution.fillFromBars();
    run.markToCloses();
    execution.sendWaiting();
    run.curve.values[run.step] = run.portfolio.equity();
    return run.portfolio.isInMarket();
  }
}
