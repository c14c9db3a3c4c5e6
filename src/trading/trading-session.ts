import { setImmediate as nextTurn } from 'node:timers/promises';
import type { EngineConfig } from '../engine/config.ts';
import { Engine } from '../engine/engine.ts';
import type { OrderEvent } from '../engine/journal.ts';
import type { Params, ParamValues } from '../engine/params.ts';
import type { RunResult } from '../engine/run-result.ts';
import type { Signals } from '../engine/model-signals.ts';
import type { Step } from '../engine/steps.ts';
import type { Strategy } from '../engine/strategy.ts';
import type { Thresholds } from '../engine/risk/firm-thresholds.ts';
import type { DenyReason } from '../engine/orders/order.ts';
import type { Opening } from '../engine/portfolio.ts';
import type { VenueReport, VenueRules } from '../engine/execution/venue-protocol.ts';
import { explainStrategyError } from '../engine/strategy-error.ts';
import { ServiceError } from '../base/errors.ts';
import { allocateBars, type Bars, sliceBars } from '../market/bars.ts';
import { runStrategy } from '../base/strategy-guard.ts';
import { inSlices } from '../base/watchdog.ts';
import {
  applySupervision,
  type SupervisionInput,
  type SupervisedState,
} from './session-supervision.ts';
import type { SessionInput } from './session-events.ts';
import type { VenueOrderId } from './venue.ts';
import { VenueOrders, workingOrder, type VenueRequest } from './venue-orders.ts';
import type {
  Progress,
  SessionState,
  SessionStatus,
  WorkingOrder,
} from '../events/session-state.ts';

export interface SessionSetup {
  /** In the order of the universe. Simultaneous events have the same order. */
  readonly symbols: readonly string[];
  readonly strategy: Strategy;
  /** Complete and validated parameters. */
  readonly params: ParamValues<Params>;
  readonly config: EngineConfig;
  /** Longest time for one step of the strategy, ms. */
  readonly timeoutMs: number;
  /** Account of the session that this one continues, instead of the cash of the configuration. */
  readonly opening?: Opening | undefined;
  /** Signals of models. Each step must be computed before it is pushed. */
  readonly signals?: Signals | undefined;
  /** The venue that executes the orders; without one, the engine fills them. */
  readonly venue?: SessionVenue | undefined;
}

export interface SessionVenue {
  /** Stays the same for the whole deployment. Client order ids are derived from it. */
  readonly deployment_id: string;
  readonly rules: VenueRules;
}

export interface SessionResult {
  readonly result: RunResult;
  /** In the order of the symbols. */
  readonly bars: readonly Bars[];
  /** Time spent in the engine and the strategy, ms. */
  readonly workMs: number;
}

/**
 * Trades a strategy, one step at a time: on paper, where the engine fills orders from the bars, or at
 * a venue, where the caller sends the requests of `outbox` and passes what the venue reports to
 * `report`. Its setup and its inputs decide its state, so replaying the recorded inputs restores it
 * after a crash.
 */
export class TradingSession {
  readonly #engine: Engine;
  readonly #setup: SessionSetup;
  /** Undefined on paper. */
  readonly #orders: VenueOrders | undefined;
  #rules: VenueRules | undefined;
  /** Time of the first step, ms since epoch. */
  #first: number | undefined;
  #isHalted = false;
  #workMs = 0;
  #failure: ServiceError | undefined;
  #thresholds: Thresholds = {};
  #latchesLifted = 0;
  #epoch = 1;

  /** @throws ServiceError `invalid_spec` for a venue unless the account model is `cash`. */
  constructor(setup: SessionSetup) {
    const { symbols, strategy, params, config, opening, signals, venue } = setup;
    if (venue !== undefined && config.account.model !== 'cash') {
      throw new ServiceError('invalid_spec', 'a bot at a venue needs a cash account', {
        remedy: 'Set engine.account.model to cash, or use the simulated venue.',
      });
    }
    const instruments = symbols.map((symbol) => ({ symbol, bars: allocateBars(0) }));
    this.#setup = { ...setup, timeoutMs: Math.ceil(setup.timeoutMs) };
    this.#rules = venue?.rules;
    const run = { instruments, strategy, params, config, opening, signals, venue: venue?.rules };
    this.#engine = new Engine({ ...run, keepsLog: true });
    this.#orders = venue && new VenueOrders(this.#engine, venue.deployment_id);
  }

  /**
   * Restores a session from its recorded inputs. Steps do not record a halt: pass it as an input.
   *
   * @throws RangeError for inputs that no session of this setup can have.
   */
  static async resume(
    setup: SessionSetup,
    recorded: Iterable<Step | SessionInput> | AsyncIterable<Step | SessionInput>,
  ): Promise<TradingSession> {
    const session = new TradingSession(setup);
    await session.#replay(recorded);
    return session;
  }

  /**
   * Undefined unless the session failed; has the reason `interrupted` after Ctrl-C during a step.
   */
  get failure(): ServiceError | undefined {
    return this.#failure;
  }

  /**
   * Fills orders from the bars of the step, then runs the strategy on them. Does not throw if the
   * strategy throws or times out: the session fails, and its state keeps the working orders.
   *
   * @throws RangeError for bars of other instruments or not later than those before; ServiceError
   *   `conflict` if the session has ended. The session is then unchanged.
   */
  push(step: Step): Progress {
    const status = this.status;
    if (status !== 'running') {
      throw new ServiceError('conflict', `the session cannot accept bars: it is ${status}`, {
        remedy: 'Start another session.',
      });
    }
    return this.#progress(() => {
      this.#append(step);
      this.#attempt(() => this.#engine.advance(1));
    });
  }

  /**
   * Denies all new orders with this reason; null accepts them again. Working orders continue and
   * can be canceled.
   */
  deny(reason: DenyReason | null): Progress {
    return this.#progress(() => this.#engine.risk.deny(reason ?? undefined));
  }

  /** Applies a change of thresholds, permits, latches or the epoch from now on. */
  supervise(input: SupervisionInput): Progress {
    return this.#progress(() => {
      if (input.kind === 'risk.thresholds_set') this.#thresholds = input.thresholds;
      if (input.kind === 'control.latch_lifted') this.#latchesLifted = input.latches;
      if (input.kind === 'control.epoch_set') {
        this.#epoch = input.epoch;
        this.#orders?.startEpoch(input.epoch);
      }
      applySupervision(this.#engine, input);
    });
  }

  /** Effect of all calls of `supervise` so far. */
  get supervised(): SupervisedState {
    const { permits, latches } = this.#engine.risk;
    const idOf = ({ override_id }: { readonly override_id: string }): string => override_id;
    return {
      thresholds: this.#thresholds,
      open: permits.open.map(idOf),
      used: permits.used.map(idOf),
      latches,
      lifted: this.#latchesLifted,
      epoch: this.#epoch,
    };
  }

  /**
   * Cancels every working order and denies further ones. An order that has ended keeps its status.
   * Halting again changes nothing.
   */
  halt(): Progress {
    return this.#progress(() => {
      if (this.status === 'running') this.#isHalted = true;
      this.#engine.halt();
    });
  }

  /**
   * Applies a report of the venue, even after the session or the order has ended: a fill always
   * counts. The strategy is notified with the next bars.
   *
   * @throws RangeError for an order that this session did not send, or for invalid numbers; the
   *   session is then unchanged.
   */
  report(report: VenueReport): Progress {
    return this.#progress(() => {
      if (this.#orders === undefined)
        throw new RangeError('a session without a venue accepts no reports');
      this.#orders.checkId(report);
      this.#engine.venue!.report(this.#orders.numberCorrections(report));
    });
  }

  /** Applies new rules of the venue, including the market phases of its instruments. */
  revise(rules: VenueRules): Progress {
    return this.#progress(() => {
      if (this.#orders === undefined)
        throw new RangeError('a session without a venue has no rules');
      this.#engine.venue!.revise(rules);
      this.#rules = rules;
    });
  }

  /** Applies an input by the method that its kind names. */
  take(input: SessionInput): Progress {
    if (input.kind === 'data.bars') return this.push(input.step);
    if (input.kind === 'data.warm_up') return this.#progress(() => this.#engine.warmUp(input));
    if (input.kind === 'venue.report') return this.report(input.report);
    if (input.kind === 'venue.terms') return this.revise(input.rules);
    if (input.kind === 'control.denying') return this.deny(input.reason);
    if (input.kind === 'control.halted') return this.halt();
    return this.supervise(input);
  }

  /** Rules of the venue in use; undefined on paper. */
  get rules(): VenueRules | undefined {
    return this.#rules;
  }

  /** Whether an order must wait because its instrument is halted, closed or delisted. */
  isShut(order: VenueOrderId): boolean {
    return this.#orders?.isShut(order) === true;
  }

  /**
   * Requests to send to the venue, oldest order first. Places orders without a report and cancels
   * those whose cancel is not confirmed. An order that needs both is only canceled; if the venue
   * has never seen it, report it `canceled`. An ended session places no orders.
   *
   * Requests may be repeated safely. After a crash, it is unknown which were sent.
   */
  outbox(): readonly VenueRequest[] {
    return this.#orders?.requests(this.status === 'running') ?? [];
  }

  get hasWorkingOrders(): boolean {
    return this.#engine.run.working.length > 0;
  }

  /** Count of bar steps taken. */
  get steps(): number {
    return this.#engine.steps;
  }

  /** Order events with a sequence number above `seq`. */
  events(seq = 0): readonly OrderEvent[] {
    return [...this.#engine.result().journal.events(seq)];
  }

  state(): SessionState {
    const { time, cash, positions, journal } = this.#engine.result();
    // If creating the strategy failed, the engine has made no step of the bars.
    const last = time.at(-1) ?? this.#first;
    const messages = last === undefined ? 0 : this.#engine.risk.messagesAt(last);
    return {
      status: this.status,
      time: last === undefined ? null : new Date(last).toISOString(),
      seq: journal.count,
      cash,
      // At a venue, includes fills since the newest bars.
      equity: this.#engine.run.portfolio.equity(),
      positions,
      working: this.#working(),
      ...(messages > 0 && { messages }),
      carry: { marks: this.#engine.run.marks, risk: this.#engine.risk.state },
    };
  }

  /** Result so far, as of a run of the engine over the same bars. */
  result(): SessionResult {
    return {
      result: this.#engine.result(),
      bars: this.#engine.run.histories.map((bars) => sliceBars(bars, 0, bars.length)),
      workMs: this.#workMs,
    };
  }

  get status(): SessionStatus {
    if (this.#failure !== undefined) return 'failed';
    if (this.#engine.run.isRuined) return 'ruined';
    return this.#isHalted ? 'halted' : 'running';
  }

  #append(step: Step): void {
    this.#engine.append(step);
    this.#first ??= step.time;
  }

  #working(): readonly WorkingOrder[] {
    return this.#orders?.working() ?? this.#engine.run.working.map(workingOrder);
  }

  /** Applies the recorded inputs of an earlier session to this new one. */
  async #replay(
    recorded: Iterable<Step | SessionInput> | AsyncIterable<Step | SessionInput>,
  ): Promise<void> {
    const slice = inSlices((steps) => this.#engine.advance(steps));
    const catchUp = async (): Promise<void> => {
      if (this.#engine.done === this.#engine.steps || this.#failure !== undefined) return;
      while (this.#attempt(slice)) await nextTurn();
    };
    for await (const item of recorded) {
      if (!('kind' in item)) this.#append(item);
      else if (item.kind === 'data.bars') this.#append(item.step);
      else {
        await catchUp();
        this.take(item);
      }
    }
    await catchUp();
    // The session that recorded the inputs has already recorded these lines.
    this.#engine.takeLog();
    this.#orders?.invalidate();
  }

  #progress(change: () => void): Progress {
    this.#orders?.invalidate();
    const { count } = this.#engine.result().journal;
    const { permits } = this.#engine.risk;
    const usedBefore = permits.used.length;
    change();
    const used = permits.used.slice(usedBefore);
    const log = this.#engine.takeLog().map(({ text }) => text);
    return {
      events: this.events(count),
      state: this.state(),
      ...(used.length > 0 && { used }),
      ...(log.length > 0 && { log }),
    };
  }

  /** @returns whether steps remain. */
  #attempt(advance: () => boolean): boolean {
    const { strategy, timeoutMs } = this.#setup;
    const begun = performance.now();
    try {
      return runStrategy(timeoutMs, advance);
    } catch (error) {
      // After a timeout, the engine does not know that the strategy has stopped.
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
