import { setImmediate as nextTurn } from 'node:timers/promises';
import type { EngineConfig } from '../engine/config.ts';
import { Engine } from '../engine/engine.ts';
import type { OrderEvent } from '../engine/journal.ts';
import type { Order } from '../engine/orders.ts';
import type { Params, ParamValues } from '../engine/params.ts';
import type { RunResult } from '../engine/result.ts';
import type { Step } from '../engine/steps.ts';
import type { Strategy } from '../engine/strategy.ts';
import { explainStrategyError } from '../engine/strategy-error.ts';
import { ServiceError } from '../errors.ts';
import { allocateBars, sliceBars } from '../market/bars.ts';
import type { Bars } from '../market/bars.ts';
import { inSlices, underWatchdog } from '../watchdog.ts';
import type { Progress, SessionState, SessionStatus, WorkingOrder } from './session-state.ts';

export interface SessionSetup {
  /** In the order of the universe, which is also the order of simultaneous events. */
  readonly symbols: readonly string[];
  readonly strategy: Strategy;
  /** Complete and checked by the strategy's own declaration. */
  readonly params: ParamValues<Params>;
  readonly config: EngineConfig;
  /** Longest time the strategy may take over one step, ms. */
  readonly timeoutMs: number;
}

export interface SessionResult {
  readonly result: RunResult;
  /** In the order of the symbols. */
  readonly bars: readonly Bars[];
  /** For how long the engine and the strategy were at work on them. */
  readonly workMs: number;
}

/**
 * A strategy that trades on paper, one step after another. It is what its setup and the steps so far
 * make of it and nothing else, so that the recorded steps give it back after a crash.
 */
export class Session {
  readonly #setup: SessionSetup;
  readonly #engine: Engine;
  /** Of the first step, ms. */
  #first: number | undefined;
  #isHalted = false;
  #workMs = 0;
  #failure: ServiceError | undefined;

  constructor(setup: SessionSetup) {
    const { symbols, strategy, params, config } = setup;
    const instruments = symbols.map((symbol) => ({ symbol, bars: allocateBars(0) }));
    this.#setup = { ...setup, timeoutMs: Math.ceil(setup.timeoutMs) };
    this.#engine = new Engine({ instruments, strategy, params, config });
  }

  /**
   * The session that these steps lead to; whether it was halted after them is not theirs to say.
   *
   * @throws RangeError for steps that no session could have taken.
   */
  static async resume(
    setup: SessionSetup,
    recorded: Iterable<Step> | AsyncIterable<Step>,
  ): Promise<Session> {
    const session = new Session(setup);
    const engine = session.#engine;
    for await (const step of recorded) session.#append(step);
    const slice = inSlices((steps) => engine.advance(steps));
    while (session.#attempt(slice)) await nextTurn();
    return session;
  }

  /** Why the session failed, if it did; `interrupted` when Ctrl-C came amid a step. */
  get failure(): ServiceError | undefined {
    return this.#failure;
  }

  /**
   * Fills what the step's bars fill and lets the strategy act on them. A strategy that throws or
   * does not come back is no error here: the session has failed then, and its working orders stand
   * in the state.
   *
   * @throws RangeError for bars that are not later than those before, or of other instruments, and
   *   ServiceError `conflict` when the session has ended; it is as before then.
   */
  push(step: Step): Progress {
    const status = this.#status;
    if (status !== 'running') {
      throw new ServiceError('conflict', `the session takes no more bars: it is ${status}`, {
        remedy: 'Start another session.',
      });
    }
    return this.#progress(() => {
      this.#append(step);
      this.#attempt(() => this.#engine.advance(1));
    });
  }

  /**
   * Cancels every working order, and lets the strategy place no more. One that has ended otherwise
   * keeps its status; halting again changes nothing.
   */
  halt(): Progress {
    return this.#progress(() => {
      if (this.#status === 'running') this.#isHalted = true;
      this.#engine.halt();
    });
  }

  /** Order events after the one of number `seq`. */
  events(seq = 0): readonly OrderEvent[] {
    return [...this.#engine.result().journal.events(seq)];
  }

  state(): SessionState {
    const { time, equity, initialCash, cash, positions, journal } = this.#engine.result();
    // A strategy that could not be created has seen bars of which the engine made no step.
    const last = time.at(-1) ?? this.#first;
    return {
      status: this.#status,
      time: last === undefined ? null : new Date(last).toISOString(),
      seq: journal.count,
      cash,
      equity: equity.at(-1) ?? initialCash,
      positions,
      working: this.#engine.working.map(workingOrder),
    };
  }

  /** What it has come to so far, as a run of the engine over the bars that it took. */
  result(): SessionResult {
    return {
      result: this.#engine.result(),
      bars: this.#engine.histories.map((bars) => sliceBars(bars, 0, bars.length)),
      workMs: this.#workMs,
    };
  }

  get #status(): SessionStatus {
    if (this.#failure !== undefined) return 'failed';
    if (this.#engine.isRuined) return 'ruined';
    return this.#isHalted ? 'halted' : 'running';
  }

  #append(step: Step): void {
    this.#engine.append(step);
    this.#first ??= step.time;
  }

  #progress(change: () => void): Progress {
    const { count } = this.#engine.result().journal;
    change();
    return { events: this.events(count), state: this.state() };
  }

  /** Whether any steps remain. */
  #attempt(advance: () => boolean): boolean {
    const { strategy, timeoutMs } = this.#setup;
    const begun = performance.now();
    try {
      return underWatchdog(timeoutMs, advance);
    } catch (error) {
      // Ended by the watchdog, the engine does not know that the strategy's turn is over.
      this.#engine.endTurn();
      const context = { strategy: strategy.name, done: this.#engine.done, timeoutMs };
      const reason = explainStrategyError(error, context);
      this.#failure =
        reason instanceof ServiceError
          ? reason
          : new ServiceError('failure', `the engine failed: ${String(error)}`, { cause: error });
      return false;
    } finally {
      this.#workMs += performance.now() - begun;
    }
  }
}

function workingOrder(order: Readonly<Order>): WorkingOrder {
  const { id, instrument, side, type, timeInForce, filled, triggered } = order;
  const known = (name: 'quantity' | 'weight' | 'limit' | 'stop'): Partial<WorkingOrder> =>
    Number.isNaN(order[name]) ? {} : { [name]: order[name] };
  return {
    order: id,
    symbol: instrument.symbol,
    side,
    type,
    time_in_force: timeInForce,
    ...known('quantity'),
    ...known('weight'),
    ...known('limit'),
    ...known('stop'),
    // The engine's zeros are negative.
    filled: filled + 0,
    triggered,
  };
}
