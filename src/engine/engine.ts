import { appendBar } from '../market/bars.ts';
import type { Bars } from '../market/bars.ts';
import { DAY } from '../market/bar-time.ts';
import type { EngineConfig, RiskLimits } from './config.ts';
import { OptionalLimitChecks } from './risk/optional-limits.ts';
import { StrategyBroker, viewOf } from './broker.ts';
import { affordableQuantity, feeOf, slippageOf } from './costs.ts';
import { beyondLimit, isStop, priceAtOpen, stopReached } from './fills/order-prices.ts';
import type { BarPrices } from './fills/order-prices.ts';
import { nextOnPath, pathOf } from './fills/path.ts';
import { nextInRange } from './fills/range.ts';
import { hideBar, Instrument, lengthen, showBar } from './instrument.ts';
import { Journal } from './journal.ts';
import type { RequestFields } from './orders/order-request.ts';
import type { ExitPrice, Order, OrderReason } from './orders/order.ts';
import type { Params, ParamValues } from './params.ts';
import { EngineMemory } from './memory.ts';
import { Portfolio } from './portfolio.ts';
import type { Booking } from './booking.ts';
import { seededRandom } from './random.ts';
import type { RunResult, Trade } from './result.ts';
import { Exposure, pendingUnits } from './risk/exposure.ts';
import { Losses, MessageRate, Reference, riskDenial } from './risk/limits.ts';
import type { OrderIntent } from './risk/limits.ts';
import type { Signals } from './signals.ts';
import { affordableUnits, targetPosition } from './sizing.ts';
import { mergeTimes } from './steps.ts';
import type { Step } from './steps.ts';
import type { Fill, Strategy, StrategyRun } from './strategy.ts';
import { StrategyError } from './strategy-error.ts';
import { covers, Permits } from './risk/permits.ts';
import type { Permit, Proposal, UsedPermit } from './risk/permits.ts';
import type { Threshold, Thresholds } from './risk/firm-thresholds.ts';
import { endReason, VenueDesk } from './execution/sent-orders.ts';
import type { ReportedChange, SentOrder } from './execution/sent-orders.ts';
import type {
  DenyReason,
  Opening,
  RiskState,
  VenueReport,
  VenueRules,
} from './execution/venue-protocol.ts';
import type { WorkingOrder } from './orders/working-order.ts';

export interface EngineSetup<P extends Params = Params> {
  /**
   * In the order of the universe, which is also the order of simultaneous events. There may be no
   * bars yet, and more may follow (`append`).
   */
  readonly instruments: readonly { readonly symbol: string; readonly bars: Bars }[];
  readonly strategy: Strategy<P>;
  readonly params: ParamValues<P>;
  readonly config: EngineConfig;
  /** Of a run whose result is of no use any more; new memory when absent. */
  readonly memory?: EngineMemory | undefined;
  /** Orders are worked by a venue that takes these, and end by its reports only; see `Engine`. */
  readonly venue?: VenueRules | undefined;
  /** What the account begins with, in place of the configuration's cash. */
  readonly opening?: Opening | undefined;
  /** Of models; those of bars that are appended are to be there before `advance` takes them. */
  readonly signals?: Signals | undefined;
}

const NOTHING = [] as const;

/**
 * Number of steps without a bar after which an instrument is not traded at a venue and a margin
 * call does not wait for it.
 */
const STEPS_TO_FREEZE = 2;

/**
 * The trading core: one step per distinct bar time. In a step, in this order: (1) every instrument
 * with a bar at that time shows it; (2) orders of earlier steps are filled, first at the opens in
 * order of submission over all instruments, then within the bars, instrument by instrument;
 * (3) positions are marked to the closes and equity is recorded; (4) the strategy sees the fills,
 * then `onBar`, and places orders for later steps.
 *
 * No clock, no I/O, no randomness but the seeded one: equal setups give equal results.
 *
 * With a venue it fills nothing: (2) is what `report` told since the step before. An order is sized
 * for the venue as soon as its instrument has a close, at that close, and denied where the venue
 * would not take it or the account, beside what works already, could not bear it. An order waits for
 * the end of those being canceled whose cash or units it needs, and a target for the end of the one
 * that it replaces, since they may still be filled. Equal steps, reports, denials and halts, in the
 * same order, give equal results.
 */
export class Engine {
  readonly #config: EngineConfig;
  readonly #strategy: () => StrategyRun;
  readonly #instruments: readonly Instrument[];
  readonly #bySymbol: ReadonlyMap<string, Instrument>;
  readonly #histories: Bars[];
  /** These two may have room for more steps than there are. */
  #times: Float64Array;
  #equity: Float64Array;
  #stepCount: number;
  readonly #cursors: Int32Array;
  readonly #fresh: Uint8Array;
  readonly #volumeUsed: Float64Array;
  readonly #portfolio: Portfolio;
  readonly #journal: Journal;
  readonly #rate: MessageRate;
  /** Written anew for every fill: a run makes too many of them to leave each to the collector. */
  readonly #execution: Booking = {
    instrument: 0,
    quantity: -0,
    price: -0,
    reference: -0,
    fee: -0,
    slippage: -0,
    time: -0,
    step: 0,
  };
  readonly #intent: OrderIntent = {
    quantity: -0,
    value: -0,
    reduces: false,
    farthest: -0,
    positionValue: -0,
    collarBps: -0,
    instruments: 0,
    equity: -0,
    peakEquity: -0,
    dayStartEquity: -0,
  };
  readonly #optionalLimits: OptionalLimitChecks | undefined;
  /** Of each instrument; none without a collar. */
  readonly #references: readonly Reference[];
  #hasRisk: boolean;
  readonly #tracksLoss: boolean;
  readonly #losses: Losses;
  readonly #isMargin: boolean;
  readonly #usesVolume: boolean;
  /** From the first step on. */
  #run: StrategyRun | undefined;
  readonly #working: WorkingOrder[] = [];
  readonly #exposure: Exposure;
  #fills: Fill[] = [];
  /** Outside of it only a strategy that waited for something can speak, and bars too late. */
  #isStrategysTurn = false;
  #step = 0;
  #orderCount = 0;
  #ocoCount = 0;
  /** Steps whose equity is known. */
  #recorded = 0;
  #inMarginCall = false;
  #stepsInMarket = 0;
  #ambiguousBars = 0;
  #marginCalls = 0;
  #ruinedAt: number | undefined;
  #submitted = 0;
  #filledOrders = 0;
  #fillCount = 0;
  #canceled = 0;
  #expired = 0;
  readonly #rejected: Record<string, number> = {};
  readonly #denied: Record<string, number> = {};
  readonly #desk: VenueDesk | undefined;
  #denying: DenyReason | undefined;
  #thresholds: Thresholds | undefined;
  /** Against the threshold. */
  #thresholdRate: MessageRate | undefined;
  readonly #permits = new Permits();
  /** Account currency, before the first step. */
  readonly #initialCash: number;

  constructor(setup: EngineSetup) {
    const { config, instruments, opening, signals, memory = new EngineMemory() } = setup;
    if (setup.venue !== undefined && config.account.model !== 'cash') {
      throw new RangeError('a venue needs a cash account');
    }
    memory.reuse();
    const symbols = instruments.map(({ symbol }) => symbol);
    this.#config = config;
    this.#histories = instruments.map(({ bars }) => bars);
    this.#instruments = instruments.map(
      ({ symbol, bars }, index) => new Instrument(symbol, index, bars, signals),
    );
    this.#bySymbol = new Map(
      this.#instruments.map((instrument) => [instrument.symbol, instrument]),
    );
    this.#times = mergeTimes(this.#histories);
    this.#stepCount = this.#times.length;
    this.#equity = memory.equity(this.#stepCount);
    this.#cursors = new Int32Array(symbols.length).fill(-1);
    this.#fresh = new Uint8Array(symbols.length);
    this.#volumeUsed = new Float64Array(symbols.length);
    this.#portfolio = new Portfolio(symbols, config.cash, memory);
    if (opening !== undefined) this.#portfolio.open(opening);
    this.#initialCash = opening === undefined ? config.cash : this.#portfolio.equity();
    this.#desk = setup.venue === undefined ? undefined : new VenueDesk(setup.venue, symbols);
    this.#journal = new Journal(symbols, memory);
    const { risk, optionalLimits } = config;
    this.#rate = new MessageRate(
      risk.max_messages_per_second,
      optionalLimits?.messages_kept_for_cancels,
    );
    this.#optionalLimits =
      optionalLimits && new OptionalLimitChecks(optionalLimits, symbols, opening?.risk?.executions);
    const isCollared = risk.price_collar_bps < Infinity || optionalLimits?.price_collar_period;
    this.#references = isCollared ? symbols.map(() => new Reference(risk.price_collar_bps)) : [];
    this.#hasRisk = Object.values(config.risk).some((limit) => limit < Infinity);
    this.#tracksLoss =
      config.risk.max_daily_loss_pct < Infinity || config.risk.max_drawdown_pct < Infinity;
    this.#isMargin = config.account.model === 'margin';
    this.#usesVolume =
      config.fill.model === 'volume_share' || config.slippage.model === 'volume_share';
    this.#losses = new Losses(this.#initialCash, opening?.risk);
    this.#exposure = new Exposure(
      this.#portfolio,
      this.#instruments,
      this.#working,
      !this.#isMargin,
    );
    this.#strategy = () =>
      setup.strategy.create({
        // Copies: a strategy that changes them would change the run, or the next one.
        params: Object.freeze({ ...setup.params }),
        instruments: Object.freeze([...this.#instruments]),
        broker: this.#newBroker(),
        random: seededRandom(config.seed),
      });
  }

  #newBroker(): StrategyBroker {
    return new StrategyBroker({
      portfolio: this.#portfolio,
      instruments: this.#instruments,
      working: this.#working,
      isStrategysTurn: () => this.#isStrategysTurn,
      order: (request) => this.#order(request),
      target: (instrument, weight) => this.#target(instrument, weight),
      cancel: (id) => this.#cancel(id),
    });
  }

  /** Steps there are bars for. */
  get steps(): number {
    return this.#stepCount;
  }

  /** Steps done so far. */
  get done(): number {
    return this.#step;
  }

  /** Takes up to `maxSteps` steps; whether any remain. Throws `StrategyError`. */
  advance(maxSteps: number): boolean {
    const end = Math.min(this.#step + maxSteps, this.#stepCount);
    this.#isStrategysTurn = true;
    try {
      if (end > 0) this.#run ??= this.#begin();
      while (this.#step < end && this.#ruinedAt === undefined) {
        const isIdle = this.#working.length === 0 && this.#desk === undefined;
        if (isIdle && this.#histories.length === 1) this.#coast(end);
        else this.#takeStep();
      }
    } finally {
      this.#isStrategysTurn = false;
    }
    return this.#step < this.#stepCount && this.#ruinedAt === undefined;
  }

  /**
   * Adds the bars of a new time, for `advance` to take. Throws `RangeError`, and adds nothing, when
   * the time is not later than that of the last step, there are no bars, or a symbol is not one of the run's.
   */
  append({ time, bars }: Step): void {
    const last = this.#stepCount === 0 ? -Infinity : this.#times[this.#stepCount - 1]!;
    if (!(time > last && time < Infinity)) {
      throw new RangeError(`bars of time ${time} come after those of time ${last}`);
    }
    const symbols = Object.keys(bars);
    if (symbols.length === 0) throw new RangeError(`there is no bar of time ${time}`);
    const unknown = symbols.find((symbol) => !this.#bySymbol.has(symbol));
    if (unknown !== undefined) throw new RangeError(`no instrument of this run is ${unknown}`);
    for (const symbol of symbols) {
      const instrument = this.#bySymbol.get(symbol)!;
      const { index } = instrument;
      this.#histories[index] = appendBar(this.#histories[index]!, time, bars[symbol]!);
      lengthen(instrument, this.#histories[index]);
    }
    if (this.#stepCount === this.#times.length) {
      this.#times = doubled(this.#times);
      this.#equity = doubled(this.#equity);
    }
    this.#times[this.#stepCount] = time;
    this.#stepCount += 1;
  }

  /** Number of orders created so far, which is also the number of the newest one. */
  get orderCount(): number {
    return this.#orderCount;
  }

  /** Whether the account was lost, after which no step is taken. */
  get isRuined(): boolean {
    return this.#ruinedAt !== undefined;
  }

  /** What it was given of each instrument, in their order; columns may be longer than `length`. */
  get histories(): readonly Bars[] {
    return this.#histories;
  }

  /** Orders still working, oldest first. */
  get working(): readonly Readonly<Order>[] {
    return this.#working;
  }

  /**
   * Takes the strategy's hands away for good, also from a callback that it left behind. A strategy
   * that was ended from outside had no end of its turn.
   */
  endTurn(): void {
    this.#isStrategysTurn = false;
  }

  /** Cancels every working order; those at a venue end when it says so. */
  halt(): void {
    this.#betweenSteps(() => {
      for (const order of this.#working) this.#withdraw(order, 'halted');
      this.#dropEnded();
    });
  }

  /** Denies every new order for this reason; undefined to take them again. */
  deny(reason: DenyReason | undefined): void {
    this.#denying = reason;
  }

  /**
   * Has these hold from now on, in place of those before. What works and breaks them is canceled, the
   * newest first.
   */
  setThresholds(thresholds: Thresholds): void {
    const rate = thresholds.max_messages_per_second?.value;
    if (rate !== this.#thresholds?.max_messages_per_second?.value) {
      this.#thresholdRate = rate === undefined ? undefined : new MessageRate(rate);
    }
    this.#thresholds = thresholds;
    this.#hasRisk = true;
    this.#betweenSteps(() => {
      // A cancel on its way may come too late, but to cancel others for that would leave nothing.
      let staying = this.#working.filter((order) => !this.#isLeaving(order));
      for (const order of staying.toReversed()) {
        if (order.parent !== 0 || order.permit !== undefined || order.isLiquidation) continue;
        this.#intend(order, this.#unitsLeft(order), order.instrument.close, staying);
        const reason = this.#thresholdDenial(order, [], staying);
        if (reason === undefined) {
          this.#passed(order, staying);
          continue;
        }
        this.#withdraw(order, reason);
        staying = staying.filter((other) => other !== order);
      }
      this.#dropEnded();
    });
  }

  /** How often it was latched for repeated execution. */
  get latches(): number {
    return this.#optionalLimits?.latches ?? 0;
  }

  /** Takes orders again after it was latched. */
  reEnable(): void {
    this.#optionalLimits?.reEnable();
  }

  /** Lets one order through; see `Permit`. */
  grant(permit: Permit): void {
    this.#permits.grant(permit);
  }

  /** Takes a permit back; one that was used, or that there is none of, changes nothing. */
  endPermit(override_id: string): void {
    this.#permits.end(override_id);
  }

  /** Permits that no order has used yet, and those that were used. */
  get permits(): { readonly open: readonly Permit[]; readonly used: readonly UsedPermit[] } {
    return this.#permits;
  }

  /**
   * Takes what the venue says of an order. The strategy hears of a fill in the next step.
   *
   * @throws RangeError for a report of no order that was handed to the venue; nothing has changed.
   */
  report(report: VenueReport): void {
    if (this.#desk === undefined) throw new RangeError('this run has no venue');
    const { sent, booking } = this.#desk.take(report);
    this.#betweenSteps(() => {
      const { order } = sent;
      if (booking !== undefined) this.#book(sent, booking, report.time);
      if (order.status === 'working') {
        if (report.status === 'filled' || order.filled >= order.quantity * (1 - 1e-12)) {
          order.status = 'filled';
          this.#filledOrders += 1;
        } else if (report.status !== 'open') {
          this.#end(order, report.status, endReason(report, sent), report.time);
        }
      }
      this.#dropEnded();
      this.#handWaiting();
    });
  }

  /** Has these rules of the venue hold from now on. What works there is the venue's to keep or end. */
  revise(rules: VenueRules): void {
    if (this.#desk === undefined) throw new RangeError('this run has no venue');
    this.#desk.revise(rules);
  }

  /** Whether nothing is to be sent for the instrument at the moment. */
  isShut(instrument: Instrument): boolean {
    return this.#desk?.isShut(instrument.index) === true;
  }

  /** Orders that were handed to the venue, by id and oldest first, the ended ones included. */
  get sent(): ReadonlyMap<number, Readonly<SentOrder>> | undefined {
    return this.#desk?.sent;
  }

  /** Cash plus all positions at their last close, account currency. */
  get equity(): number {
    return this.#portfolio.equity();
  }

  /** State of the account's limits after the last step. */
  get risk(): RiskState {
    const recorded = this.#recorded;
    if (recorded > 0) this.#losses.follow(this.#times, this.#equity, recorded, recorded - 1);
    const executions =
      this.#optionalLimits?.recent(this.#instruments.map(({ symbol }) => symbol)) ?? [];
    return { ...this.#losses.state, ...(executions.length > 0 && { executions }) };
  }

  /** The prices at which open positions are valued, by symbol. */
  get marks(): Readonly<Record<string, number>> {
    const { positions, marks } = this.#portfolio;
    const held = this.#instruments.filter(({ index }) => positions[index] !== 0);
    return Object.fromEntries(held.map(({ symbol, index }) => [symbol, marks[index]!]));
  }

  result(): RunResult {
    const steps = this.#recorded;
    const portfolio = this.#portfolio;
    const lastTime = this.#times[steps - 1] ?? Number.NaN;
    let trades: readonly Trade[] | undefined;
    const held = this.#instruments.filter(({ index }) => portfolio.positions[index] !== 0);
    return {
      steps,
      time: this.#times.subarray(0, steps),
      equity: this.#equity.subarray(0, steps),
      initialCash: this.#initialCash,
      cash: portfolio.cash,
      positions: Object.fromEntries(
        held.map(({ symbol, index }) => [symbol, portfolio.positions[index]!]),
      ),
      // Made once, and only when asked for: a long run has hundreds of thousands.
      get trades() {
        return (trades ??= portfolio.closedTrades());
      },
      openTrades: portfolio.openTrades(lastTime, steps - 1),
      orders: {
        submitted: this.#submitted,
        filled: this.#filledOrders,
        fills: this.#fillCount,
        canceled: this.#canceled,
        expired: this.#expired,
        working: this.#working.length,
        rejected: this.#rejected,
        denied: this.#denied,
      },
      fees: portfolio.fees,
      otherFees: portfolio.otherFees,
      slippage: portfolio.slippage,
      tradedNotional: portfolio.tradedNotional,
      stepsInMarket: this.#stepsInMarket,
      ambiguousBars: this.#ambiguousBars,
      marginCalls: this.#marginCalls,
      ruinedAt: this.#ruinedAt,
      journal: this.#journal,
    };
  }

  #begin(): StrategyRun {
    this.#portfolio.date(this.#now);
    try {
      const run = this.#strategy();
      refuseAsync(run);
      return run;
    } catch (error) {
      throw new StrategyError(0, this.#now, error);
    }
  }

  /** Opening instant of the current step's bars, ms. */
  get #now(): number {
    return this.#times[this.#step]!;
  }

  #takeStep(): void {
    const portfolio = this.#portfolio;
    this.#showBars(this.#now);
    if (this.#working.length > 0 && this.#desk === undefined) this.#match();
    for (let index = 0; index < this.#histories.length; index += 1) {
      if (this.#fresh[index] === 1) {
        portfolio.marks[index] = this.#histories[index]!.close[this.#cursors[index]!]!;
      }
    }
    if (this.#desk !== undefined) {
      if (this.#desk.resuming.size > 0) this.#resume(this.#desk);
      this.#handWaiting();
    }
    this.#equity[this.#step] = portfolio.equity();
    this.#closeStep(portfolio.isInMarket());
  }

  /**
   * Steps of one instrument while no order is working: with cash and position standing still,
   * nothing is left of a step but the mark and the strategy. Most bars of most runs pass here.
   */
  #coast(end: number): void {
    const { cash, positions, marks } = this.#portfolio;
    const instrument = this.#instruments[0]!;
    const close = this.#histories[0]!.close;
    const position = positions[0]!;
    const working = this.#working;
    this.#fresh[0] = 1;
    const equity = this.#equity;
    let step = this.#step;
    do {
      const mark = close[step]!;
      marks[0] = mark;
      equity[step] = cash + position * mark;
      this.#cursors[0] = step;
      showBar(instrument, step);
      this.#closeStep(position !== 0);
      step += 1;
    } while (step < end && working.length === 0 && this.#ruinedAt === undefined);
  }

  /**
   * Everything after a step's marks: limits that follow equity, and the strategy's turn. Equity is
   * read from its column, since numbers that pass through a call are boxed one by one.
   */
  #closeStep(inMarket: boolean): void {
    const step = this.#step;
    this.#recorded = step + 1;
    if (inMarket) this.#stepsInMarket += 1;
    if (this.#equity[step]! <= 0) this.#ruinedAt = step;
    else if (this.#isMargin && (inMarket || this.#inMarginCall)) this.#checkMargin();
    try {
      if (this.#fills.length > 0) this.#deliverFills();
      this.#run!.onBar();
    } catch (error) {
      throw new StrategyError(step, this.#now, error);
    }
    this.#step = step + 1;
  }

  #showBars(time: number): void {
    for (let index = 0; index < this.#histories.length; index += 1) {
      const next = this.#cursors[index]! + 1;
      if (this.#histories[index]!.time[next] === time) {
        this.#cursors[index] = next;
        this.#fresh[index] = 1;
        showBar(this.#instruments[index]!, next);
      } else if (this.#fresh[index] === 1) {
        this.#fresh[index] = 0;
        hideBar(this.#instruments[index]!);
      }
    }
  }

  #deliverFills(): void {
    const fills = this.#fills;
    this.#fills = [];
    for (const fill of fills) this.#run!.onFill!(fill);
  }

  /**
   * Begins a margin call if equity is below maintenance. Ends it at the first close with enough
   * equity, or with no position left that could be closed: a position without bars must not block
   * the account. Its closing order stays in the market until the instrument has a bar again.
   */
  #checkMargin(): void {
    const { account } = this.#config;
    if (account.model !== 'margin') return;
    const equity = this.#equity[this.#step]!;
    const required = account.maintenance * this.#portfolio.grossExposure();
    const closable =
      equity >= required ? [] : this.#instruments.filter((one) => this.#isClosable(one));
    const isCalled = this.#inMarginCall;
    this.#inMarginCall = closable.length > 0;
    if (isCalled || closable.every((instrument) => this.#isLiquidated(instrument))) return;
    this.#marginCalls += 1;
    this.#journal.marginCall(this.#now, equity, required);
    for (const order of this.#working) {
      if (!order.isLiquidation) this.#end(order, 'canceled', 'margin_call');
    }
    this.#dropEnded();
    for (const instrument of this.#instruments) {
      const position = this.#portfolio.positions[instrument.index]!;
      if (position === 0 || this.#isLiquidated(instrument)) continue;
      const side = position > 0 ? 'sell' : 'buy';
      const quantity = Math.abs(position);
      const order = this.#newOrder({ instrument, side, quantity, reduceOnly: true });
      order.isLiquidation = true;
      this.#accept(order);
    }
  }

  /** Whether there is a position with a recent price. */
  #isClosable({ index, time }: Instrument): boolean {
    const at = this.#step - STEPS_TO_FREEZE;
    return this.#portfolio.positions[index] !== 0 && !(at >= 0 && !(time >= this.#times[at]!));
  }

  #isLiquidated(instrument: Instrument): boolean {
    if (this.#marginCalls === 0) return false;
    return this.#working.some((order) => order.isLiquidation && order.instrument === instrument);
  }

  // ---- Orders from the strategy -------------------------------------------------------------

  #order(request: RequestFields): WorkingOrder {
    return this.#submit(this.#newOrder(request));
  }

  #target(instrument: Instrument, weight: number): WorkingOrder {
    const order = this.#newTarget(instrument, weight);
    this.#submit(order);
    if (order.status === 'working') this.#replaceTargets(order);
    return order;
  }

  #cancel(id: number): void {
    const found = this.#working.find((order) => order.id === id);
    if (found === undefined || found.isLiquidation) return;
    this.#countMessage();
    this.#withdraw(found, 'canceled_by_strategy');
    this.#dropEnded();
  }

  #newOrder(request: RequestFields, parent = 0, weight = Number.NaN): WorkingOrder {
    const { instrument, side, quantity, trail } = request;
    const type = request.type ?? 'market';
    const units = this.#config.units === 'whole' ? Math.floor(quantity) : quantity;
    const stop =
      type === 'trailing_stop'
        ? trailedStop(side, trail!, instrument.close)
        : (request.stop ?? Number.NaN);
    this.#orderCount += 1;
    return {
      id: this.#orderCount,
      instrument,
      side,
      type,
      timeInForce: request.timeInForce ?? 'gtc',
      quantity: units,
      weight,
      limit: request.limit ?? Number.NaN,
      stop,
      trail,
      postOnly: request.postOnly ?? false,
      reduceOnly: request.reduceOnly ?? false,
      takeProfit: request.takeProfit,
      stopLoss: request.stopLoss,
      ocoGroup: request.ocoGroup ?? 0,
      parent,
      status: 'working',
      reason: undefined,
      // -0 counts like 0 and is stored as a double from the start, as every quantity will be.
      filled: -0,
      triggered: false,
      session: -1,
      triedAt: -1,
      reference: Number.NaN,
      isCheckedAtFill: !Number.isNaN(weight) || Number.isNaN(instrument.close),
      exits: [],
      permit: undefined,
      farthest: undefined,
      view: undefined,
      isLiquidation: false,
    };
  }

  #newTarget(instrument: Instrument, weight: number): WorkingOrder {
    const estimate = this.#targetDelta(instrument.index, weight, instrument.close);
    // Without a bar there is no estimate yet; the side is settled at the fill.
    const side = (Number.isNaN(estimate) ? weight : estimate) < 0 ? 'sell' : 'buy';
    return this.#newOrder({ instrument, side, quantity: Number.NaN }, 0, weight);
  }

  /** Signed units between the position and `weight` of equity at `price`. */
  #targetDelta(index: number, weight: number, price: number): number {
    return targetPosition(this.#portfolio, weight, price) - this.#portfolio.positions[index]!;
  }

  /** Of several targets for one instrument only the newest is still wanted. */
  #replaceTargets(newest: WorkingOrder): void {
    if (this.#working.length === 1) return;
    for (const order of this.#working) {
      const isTarget = !Number.isNaN(order.weight) && order.instrument === newest.instrument;
      if (!isTarget || order === newest) continue;
      this.#countMessage();
      this.#withdraw(order, 'canceled_by_strategy');
    }
    this.#dropEnded();
    if (this.#desk !== undefined) this.#handWaiting();
  }

  #submit(order: WorkingOrder): WorkingOrder {
    if (this.#references.length > 0) this.#collar(order);
    const reason = this.#denialOf(order) ?? (this.#desk && this.#hand(order));
    if (reason === undefined) return this.#accept(order);
    this.#end(order, 'denied', reason);
    return order;
  }

  #accept(order: WorkingOrder): WorkingOrder {
    this.#submitted += 1;
    this.#countMessage();
    this.#journal.submitted(this.#now, order);
    this.#working.push(order);
    // Exits lie on both sides of the price by intent, and are no wish to trade there now.
    if (this.#optionalLimits !== undefined && order.parent === 0 && !Number.isNaN(order.limit)) {
      this.#optionalLimits.priced(order.instrument.index, order.side, order.limit, this.#now);
    }
    return order;
  }

  #countMessage(): void {
    this.#rate.count(this.#now);
    this.#thresholdRate?.count(this.#now);
  }

  #denialOf(order: WorkingOrder): OrderReason | undefined {
    const index = order.instrument.index;
    const price = order.instrument.close;
    const isTarget = !Number.isNaN(order.weight);
    const delta = isTarget
      ? this.#targetDelta(index, order.weight, price)
      : order.side === 'buy'
        ? order.quantity
        : -order.quantity;
    if (this.#denying !== undefined) return this.#denying;
    const bar = this.#optionalLimits?.bar(index);
    if (bar !== undefined) return bar;
    if (this.#inMarginCall || this.#isLiquidated(order.instrument)) return 'margin_call';
    const unfit = this.#unfit(order);
    if (unfit !== undefined) return unfit;
    if (!isTarget && order.quantity === 0) return 'quantity_rounds_to_zero';
    const overRate = this.#rate.denial(this.#now);
    if (overRate !== undefined) return overRate;
    if (this.#thresholdRate?.denial(this.#now) !== undefined) return 'threshold_messages';
    if (isTarget && this.#config.account.model === 'cash' && order.weight < 0) {
      return 'short_not_allowed';
    }
    return this.#riskDenial(order, delta, price);
  }

  /** Why the venue is not to have such an order now, whatever its size. */
  #unfit(order: WorkingOrder): OrderReason | undefined {
    if (this.#desk === undefined) return undefined;
    return this.#desk.denial(order) ?? (this.#isFrozen(order) ? 'stale_data' : undefined);
  }

  /** Whether the others have gone on for so long that there is no price to hold the order against. */
  #isFrozen({ instrument }: WorkingOrder): boolean {
    const at = this.#step - STEPS_TO_FREEZE;
    return at >= 0 && this.#times[at]! > instrument.time;
  }

  /** What prices for the instrument are held against now. */
  #referenceOf({ index, close }: Instrument): number {
    const reference = this.#references[index];
    if (reference === undefined) return close;
    return reference.after(this.#cursors[index]! + 1, this.#histories[index]!.close);
  }

  /** Holds the price that the order will get against what is known now. */
  #collar(order: WorkingOrder): void {
    if (order.type === 'market') order.reference = this.#referenceOf(order.instrument);
    else if (order.type === 'stop' || order.type === 'trailing_stop') order.reference = order.stop;
  }

  /** The worst price at which an order without one of its own may be filled; NaN where any will do. */
  #worstPrice(order: WorkingOrder): number {
    const { instrument, side, type, limit, stop, permit } = order;
    if (!Number.isNaN(limit)) return Number.NaN;
    // A stop may have followed the price since.
    const reference = type === 'market' ? order.reference : stop;
    const isBuy = side === 'buy';
    const none = isBuy ? Infinity : -Infinity;
    const lifted: readonly OrderReason[] = permit?.controls ?? NOTHING;
    // People have judged it by a price, and are not to get a worse one.
    let worst = permit?.worst_price ?? none;
    const narrow = (to: number): void => {
      worst = isBuy ? Math.min(worst, to) : Math.max(worst, to);
    };
    if (!Number.isNaN(reference)) {
      const share = this.#config.risk.price_collar_bps / 10_000;
      if (!lifted.includes('price_collar_bps')) narrow(reference * (isBuy ? 1 + share : 1 - share));
      if (!lifted.includes('price_collar_period')) {
        narrow(this.#optionalLimits?.worst(instrument.index, side, this.#now) ?? none);
      }
    }
    return worst > 0 && worst < Infinity ? worst : Number.NaN;
  }

  /**
   * Why the order breaks a limit that no permit lifts. `delta` is signed, at `price`; before an
   * instrument's first bar that is NaN and breaks no limit.
   */
  #riskDenial(order: WorkingOrder, delta: number, price: number): OrderReason | undefined {
    const reason = this.#limitDenial(order, delta, price, order.permit);
    if (reason !== undefined) {
      if (order.permit !== undefined || this.#permits.open.length === 0) return reason;
      const proposal = proposalOf(order, delta, price);
      const permit = this.#permits.find(reason, proposal);
      if (permit === undefined) return reason;
      const other = this.#limitDenial(order, delta, price, permit);
      if (other !== undefined) return other;
      order.permit = permit;
      this.#permits.use(permit, proposal, reason);
    }
    if (this.#hasRisk) this.#passed(order);
    return undefined;
  }

  /** Records that the intended order passed, with what was counted beside it. */
  #passed(order: WorkingOrder, beside = this.#working): void {
    this.#exposure.passed(order, this.#intent.farthest, beside);
    if (this.#thresholds?.max_gross_exposure !== undefined) {
      this.#exposure.holdBeside(order, beside);
    }
  }

  #limitDenial(
    order: WorkingOrder,
    delta: number,
    price: number,
    permit: Permit | undefined,
  ): OrderReason | undefined {
    const isLifted = permit !== undefined && covers(permit, proposalOf(order, delta, price));
    const lifted: readonly OrderReason[] = isLifted ? permit.controls : NOTHING;
    if (this.#optionalLimits !== undefined && !lifted.includes('price_collar_period')) {
      const side = delta < 0 ? 'sell' : 'buy';
      const at = askedPrice(order, price);
      if (this.#optionalLimits.drifts(order.instrument.index, side, at, this.#now)) {
        return 'price_collar_period';
      }
    }
    if (!this.#hasRisk) return undefined;
    this.#intend(order, delta, price);
    const { risk } = this.#config;
    const limits = lifted.length === 0 ? risk : without(risk, lifted);
    const reason = riskDenial(limits, this.#intent);
    if (reason !== undefined || this.#thresholds === undefined) return reason;
    return this.#thresholdDenial(order, lifted);
  }

  /** Writes into the intent what the order would be beside these. */
  #intend(order: WorkingOrder, delta: number, price: number, beside = this.#working): void {
    const index = order.instrument.index;
    const portfolio = this.#portfolio;
    // What a target may replace is still held when it is placed: that limit waits for its fill.
    const isNewTarget = !Number.isNaN(order.weight) && order.session === -1;
    const intent = this.#intent;
    intent.farthest = this.#exposure.farthest(order, delta, beside);
    intent.quantity = Math.abs(delta);
    const held = order.isCheckedAtFill ? price : this.#referenceOf(order.instrument);
    // By a single bad print no order is to look small.
    const worth = held > price ? held : price;
    intent.value = Math.abs(delta) * worth;
    intent.reduces = this.#exposure.reduces(order, delta, intent.farthest);
    intent.positionValue = Math.abs(intent.farthest) * worth;
    intent.collarBps = Math.max(distanceBps(order.limit, held), distanceBps(order.stop, held));
    intent.instruments = isNewTarget
      ? 0
      : this.#exposure.instrumentsWith(index, (other) => this.#isHeld(other));
    intent.equity = portfolio.equity();
    if (this.#tracksLoss || this.#thresholds !== undefined) {
      this.#losses.follow(this.#times, this.#equity, this.#recorded, this.#step);
    }
    intent.peakEquity = this.#losses.peak;
    intent.dayStartEquity = this.#losses.dayStart;
  }

  /** The first threshold that the intended order breaks; the same pass as in `riskDenial`. */
  #thresholdDenial(
    order: WorkingOrder,
    lifted: readonly OrderReason[],
    beside = this.#working,
  ): OrderReason | undefined {
    const { instruments, max_order_value, max_gross_exposure, max_daily_loss } = this.#thresholds!;
    const own = instruments?.[order.instrument.symbol];
    const { quantity, value, reduces, positionValue, equity, dayStartEquity } = this.#intent;
    const isOver = (measured: number, ...limits: (Threshold | undefined)[]): boolean =>
      limits.some((limit) => limit !== undefined && measured > limit.value * (1 + 1e-9));
    const breaks = (reason: OrderReason, isBroken: () => boolean): boolean =>
      !lifted.includes(reason) && isBroken();
    if (breaks('threshold_order_value', () => isOver(value, max_order_value, own?.max_order_value)))
      return 'threshold_order_value';
    if (breaks('threshold_order_qty', () => isOver(quantity, own?.max_order_qty)))
      return 'threshold_order_qty';
    if (reduces) return undefined;
    const isExposed = (): boolean =>
      isOver(positionValue, own?.max_gross_exposure) ||
      (max_gross_exposure !== undefined &&
        isOver(positionValue + this.#exposure.grossBeside(order, beside), max_gross_exposure));
    if (breaks('threshold_gross_exposure', isExposed)) return 'threshold_gross_exposure';
    return isOver(dayStartEquity - equity, max_daily_loss) ? 'threshold_daily_loss' : undefined;
  }

  /** Signed units that a working order may yet trade, of a target as things stand. */
  #unitsLeft({ instrument, side, quantity, filled, weight }: WorkingOrder): number {
    if (Number.isNaN(quantity)) {
      return this.#targetDelta(instrument.index, weight, instrument.close);
    }
    return side === 'buy' ? quantity - filled : filled - quantity;
  }

  // ---- At a venue ---------------------------------------------------------------------------

  /** What happens between two steps belongs to the last one. */
  #betweenSteps(change: () => void): void {
    const next = this.#step;
    // A strategy that failed in its first step may have left orders before any equity was known.
    this.#step = Math.max(0, this.#recorded - 1);
    change();
    this.#step = next;
  }

  /** Cancels an order, or asks the venue that has it to do so. */
  #withdraw(order: WorkingOrder, reason: OrderReason): void {
    const sent = this.#desk?.sent.get(order.id);
    // Between its submission and the end of the strategy's turn nobody sends an order.
    const isThere = sent !== undefined && !(this.#isStrategysTurn && sent.step === this.#step);
    if (!isThere) {
      this.#desk?.sent.delete(order.id);
      this.#end(order, 'canceled', reason);
    } else if (sent.canceling === undefined) {
      sent.canceling = reason;
      this.#journal.pendingCancel(this.#now, order, reason);
    }
  }

  /** Trading has gone on, and there is a price since: what rests too far from it is canceled. */
  #resume({ resuming }: VenueDesk): void {
    for (const index of resuming) {
      const instrument = this.#instruments[index]!;
      const reference = this.#referenceOf(instrument);
      // A bar without trades says nothing, and a close that is doubtful is to be confirmed.
      if (this.#fresh[index] === 0 || instrument.volume === 0) continue;
      if (reference !== instrument.close) continue;
      resuming.delete(index);
      for (const order of this.#working) {
        if (order.instrument.index !== index) continue;
        // What has no price of its own may have been meant for another one, and not be sent yet.
        const prices = [order.limit, order.stop, order.reference];
        const bps = Math.max(...prices.map((price) => distanceBps(price, reference)));
        if (bps > this.#config.risk.price_collar_bps) this.#withdraw(order, 'price_collar_bps');
      }
    }
    this.#dropEnded();
  }

  /** Hands over what waited, oldest first. */
  #handWaiting(): void {
    for (const order of this.#working) {
      if (this.#desk!.sent.has(order.id)) continue;
      const reason =
        this.#denying ??
        this.#optionalLimits?.bar(order.instrument.index) ??
        this.#unfit(order) ??
        this.#hand(order);
      if (reason !== undefined) this.#end(order, 'denied', reason);
    }
    this.#dropEnded();
  }

  /** Sizes an order for the venue, which has it then; why it must not, if it must not. It may wait. */
  #hand(order: WorkingOrder): OrderReason | undefined {
    const { index, close } = order.instrument;
    if (Number.isNaN(close) || this.#replacesWorking(order)) return undefined;
    const desk = this.#desk!;
    const position = this.#portfolio.positions[index]!;
    const isTarget = !Number.isNaN(order.weight);
    let wanted = order.quantity;
    let dust = 0;
    if (isTarget) {
      const delta = this.#targetDelta(index, order.weight, close);
      dust = 1e-9 * Math.max(Math.abs(position), Math.abs(position + delta));
      wanted = Math.abs(delta);
      order.side = delta < 0 ? 'sell' : 'buy';
    }
    desk.roundPrices(order);
    // A tick may be farther from 0 than the price.
    if (order.limit === 0 || order.stop === 0) return 'invalid_order';
    const sign = order.side === 'buy' ? 1 : -1;
    if (order.reduceOnly) {
      if (position * sign >= 0) return 'nothing_to_reduce';
      wanted = Math.min(wanted, Math.abs(position));
    }
    const price = this.#priceAtVenue(order, wanted);
    const affordable =
      sign < 0
        ? position - this.#unfilled(index, 'sell')
        : affordableQuantity(this.#config.fees, this.#uncommittedCash(), price, 1);
    // What was bought was rounded, too, and had its fee taken of it: it can be sold all the same.
    const missing = desk.wholeSteps(index, wanted) - affordable;
    if (missing > affordable * 1e-9) {
      if (this.#isBeingFreed(order)) return undefined;
      const isCut = isTarget || (sign < 0 && missing <= desk.feeUnits[index]! * (1 + 1e-9));
      if (!isCut) return sign < 0 ? 'short_not_allowed' : 'insufficient_funds';
      wanted = Math.max(0, affordable);
    }
    if (this.#config.units === 'whole') wanted = Math.floor(wanted);
    if (wanted <= dust) return 'quantity_rounds_to_zero';
    const quantity = desk.tradable(index, wanted, price);
    if (quantity === 0) return 'below_minimum';
    order.session = Math.floor(this.#now / DAY);
    // It may have waited since it was placed.
    if (this.#references.length > 0) this.#collar(order);
    const reason = this.#riskDenial(order, sign * quantity, close);
    if (reason !== undefined) return reason;
    const collar = desk.roundCollar(order, this.#collarAtVenue(order, quantity, price));
    if (collar === 0) return 'price_collar_bps';
    if (!Number.isNaN(collar) && !desk.takesLimitsFor(order)) return 'not_supported_by_venue';
    order.quantity = quantity;
    desk.hand(order, this.#step, collar);
    return undefined;
  }

  /** What an order may cost at its limit, venues put aside; what it brings, they hold to their least value. */
  #collarAtVenue(order: WorkingOrder, units: number, price: number): number {
    const worst = this.#worstPrice(order);
    const { index } = order.instrument;
    if (order.side === 'sell') return Math.max(worst, this.#desk!.leastPrice(index, units));
    const cash = this.#uncommittedCash();
    // The fee at no price that could be paid is higher than that.
    const payable = (cash - feeOf(this.#config.fees, units, cash / units)) / units;
    return Math.min(worst, Math.max(price, payable));
  }

  /** Whether the venue was asked to cancel it. */
  #isLeaving({ id }: WorkingOrder): boolean {
    return this.#desk?.sent.get(id)?.canceling !== undefined;
  }

  /** Whether an older target of the instrument is not known to have ended. */
  #replacesWorking(order: WorkingOrder): boolean {
    const { id, instrument, weight } = order;
    if (Number.isNaN(weight)) return false;
    return this.#working.some(
      (other) =>
        other.id < id &&
        other.status === 'working' &&
        other.instrument === instrument &&
        !Number.isNaN(other.weight),
    );
  }

  /** Whether cancels that are not confirmed may yet give back what the order needs. */
  #isBeingFreed({ side, instrument }: WorkingOrder): boolean {
    return this.#working.some(
      (other) =>
        other.status === 'working' &&
        other.side === side &&
        (side === 'buy' || other.instrument === instrument) &&
        this.#isLeaving(other),
    );
  }

  /** At which an order counts until it is filled: its own, or one with the slippage of the model. */
  #priceAtVenue(order: WorkingOrder, units: number): number {
    if (!Number.isNaN(order.limit)) return order.limit;
    const { close, volume } = order.instrument;
    return this.#slip(order, Number.isNaN(order.stop) ? close : order.stop, units, volume);
  }

  /** Units that orders of a side at the venue may yet trade. */
  #unfilled(index: number, side: 'buy' | 'sell'): number {
    const sent = this.#working.filter(({ id }) => this.#desk!.sent.has(id));
    return pendingUnits(sent, index, side, { withReduceOnly: true });
  }

  /** Cash less what purchases at the venue may take, and with what sales at the market will bring. */
  #uncommittedCash(): number {
    let { cash } = this.#portfolio;
    for (const order of this.#working) {
      if (order.status !== 'working' || !this.#desk!.sent.has(order.id)) continue;
      const units = Math.max(0, order.quantity - order.filled);
      if (units === 0 || (order.side === 'sell' && order.type !== 'market')) continue;
      const price = this.#priceAtVenue(order, units);
      const fee = feeOf(this.#config.fees, units, price);
      cash += order.side === 'sell' ? units * price - fee : -units * price - fee;
    }
    return cash;
  }

  /** Whether a position counts as one; at a venue not if it is being sold, or is too small for that. */
  #isHeld(index: number): boolean {
    const position = this.#portfolio.positions[index]!;
    if (this.#desk === undefined || position === 0) return position !== 0;
    const { close } = this.#instruments[index]!;
    if (Number.isNaN(close) || !this.#desk.trades(index)) return true;
    const left = position - this.#unfilled(index, 'sell');
    return this.#desk.tradable(index, Math.abs(left), close) > 0;
  }

  #book(sent: SentOrder, booking: ReportedChange, time: number): void {
    const { quantity, price, fee, isFill, isFirstFill, isCorrection } = booking;
    const { order } = sent;
    const { instrument } = order;
    const portfolio = this.#portfolio;
    const execution = this.#execution;
    execution.instrument = instrument.index;
    execution.quantity = quantity;
    execution.price = price;
    execution.reference = price;
    execution.fee = fee;
    execution.slippage = 0;
    execution.time = time;
    execution.step = this.#step;
    if (isCorrection) portfolio.correct(execution, order.side, sent.trade);
    else if (isFill) portfolio.book(execution);
    else portfolio.settle(execution, sent.trade);
    if (isFill) sent.trade = portfolio.lastTrade(instrument.index);
    const after = portfolio.positions[instrument.index]!;
    if (isCorrection) {
      this.#journal.corrected(order, execution, after, portfolio.cash);
      return;
    }
    if (!isFill) {
      this.#journal.fee(order, execution, after, portfolio.cash);
      return;
    }
    this.#fillCount += 1;
    this.#journal.filled(order, execution, after, portfolio.cash);
    if (this.#optionalLimits !== undefined) this.#executed(order, execution, isFirstFill);
    if (this.#run!.onFill !== undefined) {
      this.#fills.push(Object.freeze({ order: viewOf(order), instrument, quantity, price, fee }));
    }
  }

  // ---- Filling ------------------------------------------------------------------------------

  #match(): void {
    const { marks } = this.#portfolio;
    if (this.#usesVolume) this.#volumeUsed.fill(0);
    for (let index = 0; index < this.#histories.length; index += 1) {
      // Targets that fill at this open are sized on what everything is worth at this open.
      if (this.#fresh[index] === 1) {
        marks[index] = this.#histories[index]!.open[this.#cursors[index]!]!;
      }
    }
    this.#matchOpens();
    this.#dropEnded();
    for (let index = 0; index < this.#histories.length; index += 1) {
      if (this.#fresh[index] === 0 || this.#working.length === 0) continue;
      const ambiguous =
        this.#config.fill.model === 'ohlc_path' ? this.#matchPath(index) : this.#matchRange(index);
      if (ambiguous) this.#ambiguousBars += 1;
    }
    this.#dropEnded();
  }

  #matchOpens(): void {
    const day = Math.floor(this.#now / DAY);
    // Exits born here join the end of the list and are tried in the same pass: their whole bar is ahead.
    for (let at = 0; at < this.#working.length; at += 1) {
      const order = this.#working[at]!;
      const index = order.instrument.index;
      if (order.status !== 'working' || this.#fresh[index] === 0) continue;
      const firstBar = order.session === -1;
      if (firstBar) order.session = day;
      if (order.timeInForce === 'day' && order.session !== day) {
        this.#end(order, 'expired', 'day_ended');
        continue;
      }
      const open = this.#histories[index]!.open[this.#cursors[index]!]!;
      if (order.type === 'stop_limit' && !order.triggered && stopReached(order, open, open)) {
        this.#trigger(order);
      }
      const price = priceAtOpen(order, open);
      if (!Number.isNaN(price)) {
        if (order.postOnly && firstBar) this.#end(order, 'rejected', 'post_only_would_cross');
        else this.#fill(order, price);
      }
      if (order.type === 'trailing_stop') order.stop = ratchet(order, open);
      const atOnce = order.timeInForce === 'ioc' || order.timeInForce === 'fok';
      if (atOnce && order.status === 'working') {
        this.#end(order, 'canceled', 'not_filled_at_once');
      }
    }
  }

  /**
   * Fills within a bar of which only the range is known; returns whether the result is ambiguous.
   */
  #matchRange(index: number): boolean {
    const bar = this.#barOf(index);
    const entered = new Map<WorkingOrder, number>();
    let ambiguous = false;
    for (;;) {
      const next = nextInRange(this.#candidates(index), bar, entered);
      if (next.isAmbiguous) ambiguous = true;
      if (next.order === undefined) break;
      for (const exit of this.#meet(next.order, next.price)) entered.set(exit, next.price);
    }
    for (const order of this.#candidates(index)) {
      if (order.type === 'trailing_stop') {
        order.stop = ratchet(order, order.side === 'sell' ? bar.high : bar.low);
      }
    }
    return ambiguous;
  }

  /**
   * Fills along the path of a bar, including exits of entries within it; returns whether the result
   * is ambiguous.
   */
  #matchPath(index: number): boolean {
    const path = pathOf(this.#barOf(index));
    let ambiguous = false;
    let from = path.prices[0];
    for (let leg = 1; leg < path.prices.length; leg += 1) {
      for (;;) {
        const met = nextOnPath(this.#candidates(index), path, leg, from);
        if (met === undefined) break;
        if (met.isAmbiguous) ambiguous = true;
        from = met.at;
        const waits = met.order.type === 'stop_limit' && !met.order.triggered;
        if (waits && met.price === met.at) this.#trigger(met.order);
        else this.#meet(met.order, met.price);
      }
      from = path.prices[leg]!;
      for (const order of this.#candidates(index)) {
        if (order.type === 'trailing_stop') order.stop = ratchet(order, from);
      }
    }
    return ambiguous;
  }

  #barOf(index: number): BarPrices {
    const { open, high, low, close } = this.#histories[index]!;
    const at = this.#cursors[index]!;
    return { open: open[at]!, high: high[at]!, low: low[at]!, close: close[at]! };
  }

  #candidates(index: number): WorkingOrder[] {
    return this.#working.filter(
      (order) =>
        order.status === 'working' &&
        order.instrument.index === index &&
        order.session !== -1 &&
        order.triedAt !== this.#step,
    );
  }

  /** Fills `order` at `price`, where a stop-limit is triggered first; returns the exits this placed. */
  #meet(order: WorkingOrder, price: number): readonly WorkingOrder[] {
    if (order.type === 'stop_limit' && !order.triggered) {
      this.#trigger(order);
      // Not good enough at the trigger: what the bar did after it is unknown, so it waits.
      order.triedAt = this.#step;
      if (!beyondLimit(order, price)) return [];
    }
    return this.#fill(order, price);
  }

  #trigger(order: WorkingOrder): void {
    order.triggered = true;
    this.#journal.triggered(this.#now, order);
  }

  /** Fills `order` as far as it can be at `reference`; returns the exits its fill placed. */
  #fill(order: WorkingOrder, reference: number): readonly WorkingOrder[] {
    order.triedAt = this.#step;
    if (isStop(order)) order.triggered = true;
    const index = order.instrument.index;
    const portfolio = this.#portfolio;
    const position = portfolio.positions[index]!;
    // A column that no model looks at costs a cache miss for every fill.
    const volume = this.#usesVolume ? this.#histories[index]!.volume[this.#cursors[index]!]! : 0;
    const isTarget = !Number.isNaN(order.weight);
    const isSizing = isTarget && order.filled === 0;

    let wanted = order.quantity - order.filled;
    let dust = 0;
    if (isSizing) {
      const delta = this.#targetDelta(index, order.weight, reference);
      // A rounding error of a division or of the cash that is left is not a wish to trade.
      dust = 1e-9 * Math.max(Math.abs(position), Math.abs(position + delta));
      wanted = Math.abs(delta);
      order.side = delta < 0 ? 'sell' : 'buy';
    }
    const sign = order.side === 'buy' ? 1 : -1;
    // A target of none, too, was sized by a position that other orders may have reduced since.
    if (order.reduceOnly || (order.weight === 0 && !isSizing)) {
      if (position * sign >= 0) {
        this.#end(order, 'canceled', 'nothing_to_reduce');
        return [];
      }
      wanted = Math.min(wanted, Math.abs(position));
    }
    const available =
      this.#config.fill.model === 'volume_share'
        ? Math.max(0, this.#config.fill.limit * volume - this.#volumeUsed[index]!)
        : Infinity;
    const slipped = this.#slip(order, reference, Math.min(wanted, available), volume);
    const affordable = affordableUnits(this.#config, portfolio, index, sign, slipped);
    if (wanted > affordable * (1 + 1e-12)) {
      if (!isTarget) {
        const sellsShort = this.#config.account.model === 'cash' && sign < 0;
        this.#end(order, 'rejected', sellsShort ? 'short_not_allowed' : 'insufficient_funds');
        return [];
      }
      wanted = affordable;
    }
    if (this.#config.units === 'whole') wanted = Math.floor(wanted);
    if (wanted <= dust) {
      this.#end(order, 'canceled', 'quantity_rounds_to_zero');
      return [];
    }

    let quantity = Math.min(wanted, available);
    if (this.#config.units === 'whole') quantity = Math.floor(quantity);
    if (order.timeInForce === 'fok' && quantity < wanted) {
      this.#end(order, 'canceled', 'not_filled_at_once');
      return [];
    }
    if (quantity === 0) return [];
    const denial = this.#denialAtFill(order, sign * wanted, reference);
    const closing = denial === undefined ? Infinity : this.#closingUnits(order, sign);
    if (closing === 0) {
      this.#end(order, order.filled === 0 ? 'denied' : 'canceled', denial!);
      return [];
    }
    quantity = Math.min(quantity, closing);
    const price = this.#slip(order, reference, quantity, volume);
    const isHeldBack = !Number.isNaN(order.reference) || order.permit !== undefined;
    if (isHeldBack && (this.#worstPrice(order) * (1 + sign * 1e-9) - price) * sign < 0) {
      // A stop goes on as the stop-limit would that a venue is sent for it.
      if (order.type === 'market') this.#end(order, 'canceled', 'price_collar_bps');
      return [];
    }
    if (isTarget || order.reduceOnly) order.quantity = order.filled + wanted;

    const execution = this.#execution;
    const fee = feeOf(this.#config.fees, quantity, price);
    execution.instrument = index;
    execution.quantity = sign * quantity;
    execution.price = price;
    execution.reference = reference;
    execution.fee = fee;
    execution.slippage = Math.abs(price - reference) * quantity;
    execution.time = this.#now;
    execution.step = this.#step;
    portfolio.book(execution);
    const after = portfolio.positions[index]!;
    if (this.#usesVolume) this.#volumeUsed[index]! += quantity;
    this.#fillCount += 1;
    this.#journal.filled(order, execution, after, portfolio.cash);
    if (this.#optionalLimits !== undefined) this.#executed(order, execution, order.filled === 0);
    order.filled += quantity;
    if (order.filled >= order.quantity * (1 - 1e-12)) {
      order.status = 'filled';
      this.#filledOrders += 1;
    }
    if (this.#run!.onFill !== undefined) {
      const { instrument } = order;
      const units = sign * quantity;
      this.#fills.push(
        Object.freeze({ order: viewOf(order), instrument, quantity: units, price, fee }),
      );
    }
    if (quantity === closing && order.status === 'working') this.#end(order, 'canceled', denial!);
    if (order.ocoGroup !== 0) this.#reduceGroup(order, quantity);
    if (after === 0 || after * position < 0) this.#cancelExits(index, order);
    return after * sign > 0 ? this.#placeExits(order, Math.min(quantity, after * sign), price) : [];
  }

  /**
   * Limit that an accepted order breaks at its fill, because its size was unknown before or other
   * fills have changed the resulting position.
   */
  #denialAtFill(order: WorkingOrder, delta: number, price: number): OrderReason | undefined {
    const isDue = order.isCheckedAtFill && order.filled === 0;
    if (!isDue && !(this.#hasRisk && this.#exposure.goesFarther(order, delta))) return undefined;
    return this.#riskDenial(order, delta, price);
  }

  /**
   * Units of an order beyond its limits that may still be filled because they only reduce the
   * position.
   */
  #closingUnits(order: WorkingOrder, sign: number): number {
    if (order.isCheckedAtFill && order.filled === 0) return 0;
    return Math.max(0, -sign * this.#portfolio.positions[order.instrument.index]!);
  }

  /** Tells the controls that look back of a fill. */
  #executed(order: WorkingOrder, { instrument, price, time }: Booking, isFirst: boolean): void {
    const limits = this.#optionalLimits!;
    limits.priced(instrument, order.side, price, time);
    const count = isFirst ? limits.executed(instrument, order.side, time) : undefined;
    if (count === undefined) return;
    const { seconds } = this.#config.optionalLimits!.repeated_execution!;
    this.#journal.latched(time, order, count, seconds);
  }

  /** Limits wait for their price, so only the others slip. */
  #slip(order: WorkingOrder, reference: number, quantity: number, volume: number): number {
    if (order.type === 'limit' || order.type === 'stop_limit') return reference;
    const slippage = slippageOf(this.#config.slippage, quantity, volume);
    return reference * (order.side === 'buy' ? 1 + slippage : Math.max(0, 1 - slippage));
  }

  #placeExits(entry: WorkingOrder, quantity: number, price: number): readonly WorkingOrder[] {
    if (entry.takeProfit === undefined && entry.stopLoss === undefined) return [];
    const guards = entry.exits.filter(({ status }) => status === 'working');
    if (guards.length > 0) {
      for (const exit of guards) exit.quantity += quantity;
      return [];
    }
    this.#ocoCount -= 1;
    const long = entry.side === 'buy';
    const common = {
      instrument: entry.instrument,
      side: long ? 'sell' : 'buy',
      quantity,
      reduceOnly: true,
      // Negative numbers, so that no strategy's own group can be meant.
      ocoGroup: this.#ocoCount,
    } as const;
    const exits: WorkingOrder[] = [];
    if (entry.stopLoss !== undefined) {
      const stop = exitPrice(entry.stopLoss, price, long ? -1 : 1);
      exits.push(this.#newOrder({ ...common, type: 'stop', stop }, entry.id));
    }
    if (entry.takeProfit !== undefined) {
      const limit = exitPrice(entry.takeProfit, price, long ? 1 : -1);
      exits.push(this.#newOrder({ ...common, type: 'limit', limit }, entry.id));
    }
    entry.exits = exits;
    for (const exit of exits) {
      exit.session = Math.floor(this.#now / DAY);
      this.#accept(exit);
    }
    return exits;
  }

  #reduceGroup(order: WorkingOrder, quantity: number): void {
    for (const other of this.#working) {
      if (other === order || other.ocoGroup !== order.ocoGroup || other.status !== 'working') {
        continue;
      }
      if (order.status !== 'filled') other.quantity -= quantity;
      const isUsedUp = other.quantity - other.filled <= 1e-12 * quantity;
      if (order.status === 'filled' || isUsedUp) {
        this.#end(other, 'canceled', 'other_side_of_oco_filled');
      }
    }
  }

  /** Exits of a bracket have no purpose once the position they guard is gone. */
  #cancelExits(index: number, closedBy: WorkingOrder): void {
    for (const order of this.#working) {
      const guards = order.parent !== 0 && order.instrument.index === index && order !== closedBy;
      if (guards && order.status === 'working') this.#end(order, 'canceled', 'position_closed');
    }
  }

  #end(
    order: WorkingOrder,
    status: 'canceled' | 'expired' | 'rejected' | 'denied',
    reason: OrderReason,
    time = this.#now,
  ): void {
    order.status = status;
    order.reason = reason;
    if (status === 'canceled') this.#canceled += 1;
    else if (status === 'expired') this.#expired += 1;
    else {
      const counts = status === 'rejected' ? this.#rejected : this.#denied;
      counts[reason] = (counts[reason] ?? 0) + 1;
    }
    this.#journal.ended(`order.${status}`, time, order, reason);
  }

  #dropEnded(): void {
    let kept = 0;
    for (const order of this.#working) {
      if (order.status === 'working') this.#working[kept++] = order;
    }
    while (this.#working.length > kept) this.#working.pop();
  }
}

/** What follows an `await` would run when the engine is long past the bar. */
function refuseAsync(run: StrategyRun): void {
  for (const name of ['onBar', 'onFill'] as const) {
    if (Object.prototype.toString.call(run[name]) === '[object AsyncFunction]') {
      throw new TypeError(`${name} must not be async: a bar is over when it returns`);
    }
  }
}

function doubled(column: Float64Array): Float64Array {
  const longer = new Float64Array(Math.max(64, 2 * column.length));
  longer.set(column);
  return longer;
}

function exitPrice(exit: ExitPrice, entryPrice: number, direction: 1 | -1): number {
  return typeof exit === 'number' ? exit : entryPrice * (1 + direction * exit.percent);
}

function proposalOf(order: WorkingOrder, delta: number, price: number): Proposal {
  const side = delta < 0 ? 'sell' : 'buy';
  return { order, side, quantity: Math.abs(delta), price: askedPrice(order, price) };
}

/** The limit, or else the stop; `price` for an order that asks for none. */
function askedPrice({ limit, stop }: WorkingOrder, price: number): number {
  const asked = Number.isNaN(limit) ? stop : limit;
  return Number.isNaN(asked) ? price : asked;
}

function without(risk: RiskLimits, lifted: readonly OrderReason[]): RiskLimits {
  const names = Object.keys(risk) as (keyof RiskLimits)[];
  return Object.fromEntries(
    names.map((name) => [name, lifted.includes(name) ? Infinity : risk[name]]),
  ) as unknown as RiskLimits;
}

/** How far a price that was asked for lies from `price`, basis points; 0 when none was. */
function distanceBps(asked: number, price: number): number {
  return Number.isNaN(asked) ? 0 : (Math.abs(asked - price) / price) * 10_000;
}

function trailedStop(side: 'buy' | 'sell', trail: ExitPrice, best: number): number {
  const distance = typeof trail === 'number' ? trail : best * trail.percent;
  return side === 'sell' ? best - distance : best + distance;
}

/** A trailing stop follows a better price and never gives way; before its first price it is NaN. */
function ratchet(order: Order, price: number): number {
  const stop = trailedStop(order.side, order.trail!, price);
  const isBehind = order.side === 'sell' ? order.stop > stop : order.stop < stop;
  return isBehind ? order.stop : stop;
}
