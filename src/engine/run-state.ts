import { DAY } from '../base/durations.ts';
import { appendBar, followedBy, sliceBars, type Bars } from '../market/bars.ts';
import { parseTimeframe } from '../market/timeframe.ts';
import { calendarOf, type TradingCalendar } from '../market/trading-calendar.ts';
import type { EngineConfig } from './config.ts';
import { EarlierBars, type EarlierPart } from './earlier-bars.ts';
import type { EngineInstrument, EngineSetup } from './engine-setup.ts';
import { EventCounter } from './event-counter.ts';
import { EquityCurve } from './equity-curve.ts';
import { hideBar, Instrument, lengthen, showBar } from './instrument.ts';
import { Journal } from './journal.ts';
import { EngineMemory } from './memory.ts';
import type { WorkingOrder } from './orders/working-order.ts';
import { Portfolio, Booking } from './portfolio.ts';
import type { CappedTargets, RunResult } from './run-result.ts';
import type { Trade } from './round-trip.ts';
import { mergeTimes, type Step } from './steps.ts';
import type { SeriesGraph } from './series/series-graph.ts';
import type { Fill, StrategyRun } from './strategy.ts';
import { StrategyLog } from './strategy-log.ts';
import type { WakeUp } from './wake-up.ts';

/**
 * Number of steps without a bar after which an instrument is not traded at a venue and a margin
 * call does not wait for it.
 */
export const STEPS_TO_FREEZE = 2;

/** Number of known steps that are prepared at once; their columns fit into the cache of a processor. */
const STEPS_AHEAD = 8192;

/** The part of a run that callers of the engine read. */
export type RunView = Readonly<
  Pick<RunState, 'histories' | 'portfolio' | 'working' | 'orderCount' | 'marks' | 'isRuined'>
>;

/** State of a run: bars and the step in them, account, journal, working orders and counters. */
export class RunState {
  readonly config: EngineConfig;
  /** Undefined for UTC days. */
  readonly #calendar: TradingCalendar | undefined;
  readonly instruments: readonly Instrument[];
  /** Bars of each instrument. Columns may be longer than `length`. */
  readonly histories: Bars[];
  /** Bars of each instrument, after those before the run, which only declared indicators see. */
  readonly withWarmUp: Bars[];
  /** Complete bars of longer timeframes before the run, of each instrument. */
  readonly longer: EngineInstrument['longer'][];
  readonly #earlier = new EarlierBars();
  /** Number of steps whose indicators are computed. */
  #prepared = 0;
  readonly portfolio: Portfolio;
  readonly journal: Journal | EventCounter;
  /** Undefined if the lines of the strategy are dropped. */
  readonly log: StrategyLog | undefined;
  /** Account currency, before the first step. */
  readonly initialCash: number;
  /** Oldest first. During a step, it may contain orders that have ended. */
  readonly working: WorkingOrder[] = [];
  readonly booking = new Booking();
  /** Index of the newest bar of each instrument; −1 before its first. */
  readonly cursors: Int32Array;
  /** 1 for instruments with a bar in the current step. */
  readonly fresh: Uint8Array;
  /** Opening instants of the steps, ms. It may have room for further steps. */
  times: Float64Array;
  readonly curve: EquityCurve;
  /** Number of steps with bars. */
  stepCount: number;
  /** Index of the current step. */
  step = 0;
  /** The strategy, from the first step on. */
  strategy: StrategyRun | undefined;
  /** Indicators that the strategy declares. */
  series: SeriesGraph | undefined;
  /** Undefined if the strategy is called in every step. */
  wakeUp: WakeUp | undefined;
  /** Fills that the strategy has not been notified of. */
  fills: Fill[] = [];
  /** False outside of `create`, `onFill` and `onBar`, for example after an `await`. */
  isStrategysTurn = false;
  /** Number of orders created so far, which is also the id of the newest one. */
  orderCount = 0;
  readonly orders = {
    submitted: 0,
    filled: 0,
    fills: 0,
    canceled: 0,
    expired: 0,
    rejected: {} as Record<string, number>,
    denied: {} as Record<string, number>,
    limited: {} as Record<string, number>,
  };
  stepsInMarket = 0;
  /** Result of `readAhead`, because V8 omits reads without one. */
  readSum = -0;
  ambiguousBars = 0;
  marginCalls = 0;
  #cappedTargets: CappedTargets = { count: 0, since: undefined };
  /** The step at which equity fell to 0 or below; no step follows it. */
  ruinedAt: number | undefined;

  constructor(setup: EngineSetup) {
    const { config, instruments, opening, signals, computations } = setup;
    const { memory = new EngineMemory(), keepsEvents = true } = setup;
    memory.reuse();
    const symbols = instruments.map(({ symbol }) => symbol);
    this.config = config;
    this.#calendar = calendarOf(config.calendar);
    this.histories = instruments.map(({ bars }) => bars);
    this.withWarmUp = instruments.map(({ bars, warmUp }) =>
      warmUp === undefined ? bars : followedBy(warmUp, bars),
    );
    this.longer = instruments.map(({ longer }) => longer);
    this.instruments = instruments.map(
      ({ symbol, bars }, index) => new Instrument(symbol, index, bars, signals),
    );
    this.times = computations?.timesOf(this.histories) ?? mergeTimes(this.histories);
    this.stepCount = this.times.length;
    this.cursors = new Int32Array(symbols.length).fill(-1);
    this.fresh = new Uint8Array(symbols.length);
    this.portfolio = new Portfolio(symbols, config.cash, memory);
    if (opening !== undefined) this.portfolio.open(opening);
    this.initialCash = opening === undefined ? config.cash : this.portfolio.equity();
    this.curve = new EquityCurve(this.initialCash, this.times, memory.equity(this.stepCount));
    this.journal = keepsEvents ? new Journal(symbols, memory) : new EventCounter();
    this.log = setup.keepsLog ? new StrategyLog() : undefined;
  }

  /** Opening instant of the current step, ms. */
  get now(): number {
    return this.times[this.step]!;
  }

  /**
   * The trading day of the current step, in days since the epoch: its UTC day or, with a calendar, the
   * date of the session at this time or after it.
   */
  get tradingDay(): number {
    const date = this.#calendar === undefined ? this.now : this.#calendar.sessionAt(this.now).date;
    return Math.floor(date / DAY);
  }

  /** Whether the bars of the current step end with the session, or after it; false without a calendar. */
  get endsSession(): boolean {
    const { timeframe } = this.config;
    if (this.#calendar === undefined || timeframe === undefined) return false;
    return this.now + parseTimeframe(timeframe).ms >= this.#calendar.sessionAt(this.now).close;
  }

  get symbols(): readonly string[] {
    return this.instruments.map(({ symbol }) => symbol);
  }

  /** Whether equity has fallen to 0 or below. No step follows. */
  get isRuined(): boolean {
    return this.ruinedAt !== undefined;
  }

  /** The prices at which open positions are valued, by symbol. */
  get marks(): Readonly<Record<string, number>> {
    return this.#ofHeld(this.portfolio.marks);
  }

  /** Whether the newest bar of the instrument is too old for its price to count. */
  isStale({ time }: Instrument): boolean {
    const at = this.step - STEPS_TO_FREEZE;
    return at >= 0 && this.times[at]! > time;
  }

  /**
   * Takes some of the bars before a run whose bars are appended.
   *
   * @throws RangeError after the first bars.
   */
  warmUp(part: EarlierPart): void {
    if (this.stepCount > 0)
      throw new RangeError('bars before the run must be set before its first step');
    this.#earlier.add(part);
    for (const { index, symbol } of this.instruments) {
      const { warmUp = this.histories[index]!, longer } = this.#earlier.of(symbol);
      this.withWarmUp[index] = warmUp;
      this.longer[index] = longer;
    }
  }

  /**
   * Adds the bars of a new time.
   *
   * @throws RangeError if the time is not later than that of the last step, there are no bars, or a
   *   symbol is unknown; nothing is added then.
   */
  append({ time, bars }: Step): void {
    const last = this.stepCount === 0 ? -Infinity : this.times[this.stepCount - 1]!;
    if (!(time > last && time < Infinity)) {
      throw new RangeError(`bars of time ${time} must be later than those of time ${last}`);
    }
    const symbols = Object.keys(bars);
    if (symbols.length === 0) throw new RangeError(`the step of time ${time} has no bars`);
    const added = symbols.map((symbol) => {
      const instrument = this.instruments.find((one) => one.symbol === symbol);
      if (instrument === undefined) throw new RangeError(`this run has no instrument ${symbol}`);
      return instrument;
    });
    // `withWarmUp` and `longer` have these bars, and no others follow.
    this.#earlier.clear();
    for (const instrument of added) {
      const { index, symbol } = instrument;
      const before = this.withWarmUp[index]!;
      const first = before.length - this.histories[index]!.length;
      const longer = appendBar(before, time, bars[symbol]!);
      this.withWarmUp[index] = longer;
      this.histories[index] = first === 0 ? longer : sliceBars(longer, first, longer.length);
      lengthen(instrument, this.histories[index]);
    }
    if (this.stepCount === this.times.length) {
      this.times = doubled(this.times);
      this.curve.times = this.times;
      this.curve.values = doubled(this.curve.values);
    }
    this.times[this.stepCount] = time;
    this.stepCount += 1;
  }

  /** Computes indicators and evaluates `wakeOn` up to the step `end` or farther, since fewer calls are faster. */
  prepare(end: number): void {
    if (end <= this.#prepared) return;
    this.#prepared = Math.max(end, Math.min(this.step + STEPS_AHEAD, this.stepCount));
    this.series?.extend(this.times[this.#prepared - 1]!);
    this.wakeUp?.prepare(this.#prepared);
  }

  /** Moves every instrument with a bar in the current step to that bar. */
  showBars(): void {
    const time = this.now;
    for (let index = 0; index < this.histories.length; index += 1) {
      const next = this.cursors[index]! + 1;
      if (this.histories[index]!.time[next] === time) {
        this.cursors[index] = next;
        this.fresh[index] = 1;
        showBar(this.instruments[index]!, next);
      } else if (this.fresh[index] === 1) {
        this.fresh[index] = 0;
        hideBar(this.instruments[index]!);
      }
    }
    this.series?.advance();
  }

  /**
   * Takes steps up to `end`, in which only the position of a single instrument is valued. Ends early
   * if equity is lost.
   */
  coast(end: number): void {
    const { portfolio, curve, step } = this;
    const { cash } = portfolio;
    const { close } = this.histories[0]!;
    const position = portfolio.positions[0]!;
    let next = end;
    if (position === 0 && cash > 0) curve.hold(step, end, cash);
    else next = curve.mark(step, end, cash, position, close);
    const last = next - 1;
    if (curve.values[last]! <= 0) this.ruinedAt = last;
    portfolio.marks[0] = close[last]!;
    const follows = this.series?.follows === true;
    if (follows && last > step) {
      // Series of longer timeframes also know their entry at the step before the last one.
      this.cursors[0] = last - 1;
      this.series!.advance();
    }
    this.cursors[0] = last;
    this.fresh[0] = 1;
    if (follows) this.series!.advance();
    showBar(this.instruments[0]!, last);
    if (position !== 0) this.stepsInMarket += next - step;
    this.step = next;
  }

  /**
   * Reads the bars at the first `count` of these steps of a single instrument, so that they are in the
   * cache of the processor when orders need them. Later, each read would wait for memory by itself.
   */
  readAhead(steps: Int32Array, count: number): void {
    const { times } = this;
    const { open, close } = this.histories[0]!;
    let sum = 0;
    for (let at = 0; at < count; at += 1) {
      const step = steps[at]!;
      sum += times[step]! + open[step]! + close[step]!;
    }
    this.readSum = sum;
  }

  /** Logs a line of the strategy. An invalid call throws even if the setup drops the lines. */
  writeLog(message: string): void {
    if (typeof message !== 'string') {
      throw new TypeError('log needs a string, such as `close ${asset.close}`');
    }
    if (!this.isStrategysTurn) {
      throw new Error('log must be called within create, onBar or onFill, not after an await');
    }
    this.log?.write(this.step, this.now, message);
  }

  /** Notifies the strategy of its fills. */
  deliverFills(): void {
    const { fills, strategy } = this;
    this.fills = [];
    for (const fill of fills) strategy!.onFill!(fill);
  }

  /** Values positions at the closes of the current step's bars. */
  markToCloses(): void {
    const { marks } = this.portfolio;
    for (let index = 0; index < this.histories.length; index += 1) {
      if (this.fresh[index] === 1) {
        marks[index] = this.histories[index]!.close[this.cursors[index]!]!;
      }
    }
  }

  /** Counts a target that was cut to the affordable quantity, if its weight exceeds the leverage. */
  countCut({ weight }: WorkingOrder): void {
    const { account } = this.config;
    const initial = account.model === 'cash' ? 1 : account.initial;
    if (Math.abs(weight) * initial <= 1 + 1e-9) return;
    const { count, since = this.now } = this.#cappedTargets;
    this.#cappedTargets = { count: count + 1, since };
  }

  /** Applies a change between two steps, which is dated at the last one. */
  betweenSteps(change: () => void): void {
    const next = this.step;
    // If the strategy failed in the first step, no equity is recorded yet.
    this.step = Math.max(0, this.curve.recorded - 1);
    change();
    this.step = next;
  }

  result(): RunResult {
    const { portfolio, curve } = this;
    const { recorded: steps } = curve;
    const lastTime = this.times[steps - 1] ?? Number.NaN;
    const { rejected, denied, limited, ...counts } = this.orders;
    let trades: readonly Trade[] | undefined;
    return {
      steps,
      time: this.times.subarray(0, steps),
      equity: curve.values.subarray(0, steps),
      drawdown: curve.drawdown(),
      initialCash: this.initialCash,
      cash: portfolio.cash,
      positions: this.#ofHeld(portfolio.positions),
      // Made only on demand, since a long run has hundreds of thousands.
      get trades() {
        return (trades ??= portfolio.closedTrades());
      },
      get tradeOutcomes() {
        return portfolio.closedOutcomes();
      },
      openTrades: portfolio.openTrades(lastTime, steps - 1),
      orders: { ...counts, working: this.working.length, rejected, denied, limited },
      fees: portfolio.fees,
      otherFees: portfolio.otherFees,
      slippage: portfolio.slippage,
      tradedNotional: portfolio.tradedNotional,
      stepsInMarket: this.stepsInMarket,
      ambiguousBars: this.ambiguousBars,
      marginCalls: this.marginCalls,
      cappedTargets: this.#cappedTargets,
      ruinedAt: this.ruinedAt,
      journal: this.journal instanceof Journal ? this.journal : Journal.empty(this.symbols),
      log: this.log?.lines,
    };
  }

  /** Values of a column by symbol, for instruments with a position. */
  #ofHeld(column: Float64Array): Readonly<Record<string, number>> {
    const { positions } = this.portfolio;
    const held = this.instruments.filter(({ index }) => positions[index] !== 0);
    return Object.fromEntries(held.map(({ symbol, index }) => [symbol, column[index]!]));
  }
}

function doubled(column: Float64Array): Float64Array {
  const longer = new Float64Array(Math.max(64, 2 * column.length));
  longer.set(column);
  return longer;
}
