import type { Instrument } from './instrument.ts';
import type { Order, OrderRequest } from './orders/order.ts';
import { resolveParams, type Params, type ParamValues } from './params.ts';
import type { Condition } from './series/condition.ts';
import type { BarSeries } from './series/declared-series.ts';

/** A fill, for the strategy. */
export interface Fill {
  readonly order: Order;
  readonly instrument: Instrument;
  /** Units; positive bought, negative sold. */
  readonly quantity: number;
  /** Price per unit, slippage included. */
  readonly price: number;
  /** Account currency. */
  readonly fee: number;
}

/** The account of a strategy, and its orders. */
export interface Broker {
  /** Account currency. */
  readonly cash: number;
  /** Cash plus all positions at their last close. */
  readonly equity: number;
  /** Units held; negative is short, 0 is flat. */
  position(instrument: Instrument): number;
  /** Mean entry price of the open position; NaN when flat. */
  entryPrice(instrument: Instrument): number;
  /**
   * Places an order, which works from the next bar on. `status` shows at once whether a risk limit
   * denied it.
   *
   * @throws RangeError for an invalid request, such as a negative quantity or a missing price.
   */
  order(request: OrderRequest): Order;
  /**
   * Market order that takes the position to `weight` of equity (1 all in, 0 flat, −1 all short).
   * The quantity is fixed when it fills (at a venue: when it is sent), and limited to what the
   * account can afford, fees included. It replaces an earlier working target of the instrument.
   */
  target(instrument: Instrument, weight: number): Order;
  /** At a venue, the order works until the venue confirms, and may be filled before. */
  cancel(order: Pick<Order, 'id'>): void;
  /** Working orders, oldest first. */
  working(instrument?: Instrument): readonly Order[];
}

/** What a strategy receives for one run. */
export interface StrategyContext<P extends Params = Params, I = unknown> {
  readonly params: ParamValues<P>;
  /** In the order of the spec's `universe.symbols`. */
  readonly instruments: readonly [Instrument, ...Instrument[]];
  /** The result of `indicators`. */
  readonly indicators: I;
  readonly broker: Broker;
  /** Uniform in [0, 1), seeded by `engine.seed`. Any other randomness makes a run unrepeatable. */
  random(): number;
  /**
   * Adds a line with the time of the bar to the log of the run, and changes nothing else. A backtest
   * writes the log to `log.txt`, and a session to the events of its bot. The log keeps at most 400
   * characters of a line, 20 lines of a bar and 20,000 lines of a backtest, and marks what it cuts.
   */
  readonly log: (message: string) => void;
}

/** A strategy in one run. */
export interface StrategyRun {
  /** Called once per step, after the step's fills, when every instrument shows its newest bar. */
  onBar(): void;
  /** Called for each fill, before `onBar` of the same step; at a venue, of the next one. */
  onFill?(fill: Fill): void;
}

/** Inputs of the indicators of a strategy. */
export interface IndicatorContext<P extends Params = Params> {
  readonly params: ParamValues<P>;
  /** The bars of each instrument, in the order of the spec's `universe.symbols`. */
  readonly instruments: readonly [BarSeries, ...BarSeries[]];
}

/** Declaration of a strategy; see `defineStrategy`. */
export interface Strategy<P extends Params = Params, I = unknown> {
  /** Lower-case words joined by underscores. */
  readonly name: string;
  readonly description: string;
  readonly params: P;
  /** How many instruments it needs; any number of at least one when absent. */
  readonly instruments?: { readonly min: number; readonly max: number };
  /** The outputs of models that it reads by `Instrument.signal`; a spec without them is invalid. */
  readonly signals?: readonly string[];
  /** Sells short, and so needs a margin account. */
  readonly shorts?: boolean;
  /** Returns what is wrong with a combination of parameters that are each valid alone. */
  check?(params: ParamValues<P>): string | undefined;
  /**
   * Declares the indicators of a run, for example `sma(asset.close, params.fast)`. Returns them in
   * arrays and objects of any shape, which `wakeOn` and `create` receive.
   */
  indicators?(context: IndicatorContext<P>): I;
  /**
   * Returns the condition under which `onBar` is called. It is also called after every event of the
   * account, such as a fill, the end of an order, a margin call or a latch. By default it is called
   * in every step.
   */
  wakeOn?(indicators: I, params: ParamValues<P>): Condition;
  create(context: StrategyContext<P, I>): StrategyRun;
}

/**
 * Infers the types of a strategy's parameters from their declaration, and freezes it. All runs share
 * one definition, so the state of a run belongs in `create`.
 */
export function defineStrategy<const P extends Params, I>(
  strategy: Strategy<P, I>,
): Strategy<P, I> {
  Object.freeze(strategy.params);
  return Object.freeze(strategy);
}

/** The reason for which a module's default export is not a strategy; undefined if it is one. */
export function strategyFault(exported: unknown): string | undefined {
  if (typeof exported !== 'object' || exported === null) return 'has no strategy as default export';
  const { name, description, params, create, instruments, signals } = exported as Partial<Strategy>;
  if (typeof name !== 'string' || !/^[a-z0-9]+(_[a-z0-9]+)*$/.test(name)) {
    return 'the name of its strategy must be lower-case words joined by underscores';
  }
  if (typeof description !== 'string') return `strategy ${name} has no description`;
  if (typeof create !== 'function') return `strategy ${name} has no function create`;
  for (const optional of ['indicators', 'wakeOn'] as const) {
    const method = (exported as Partial<Strategy>)[optional];
    if (method !== undefined && typeof method !== 'function') {
      return `${optional} of strategy ${name} is not a function`;
    }
  }
  if (typeof params !== 'object' || params === null) return `strategy ${name} has no params`;
  const odd = Object.entries(params).find(([, param]) => !isParam(param));
  if (odd) return `parameter ${odd[0]} is not made by integer(), number(), choice() or flag()`;
  const wrong = resolveParams(params, {}).problems[0];
  if (wrong) return `the default of parameter ${wrong.key} ${wrong.message}`;
  if (instruments !== undefined && !(instruments.min >= 1 && instruments.max >= instruments.min)) {
    return `strategy ${name} needs instruments.min of at least 1 and at most instruments.max`;
  }
  const isNames = Array.isArray(signals) && signals.every((signal) => typeof signal === 'string');
  if (signals !== undefined && !isNames) return `strategy ${name} has signals that are no names`;
  return undefined;
}

function isParam(param: unknown): boolean {
  const { kind, choices } = (param ?? {}) as { kind?: unknown; choices?: unknown };
  if (kind === 'choice') return Array.isArray(choices);
  return kind === 'integer' || kind === 'number' || kind === 'flag';
}
