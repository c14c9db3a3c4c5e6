import type { Drawdown } from './equity-curve.ts';
import type { JournalRows } from './journal.ts';
import type { Trade, TradeOutcomes } from './round-trip.ts';
import type { LogLine } from './strategy-log.ts';

/** Counts over all orders of the run. An order may be filled in several parts and still counts once. */
export interface OrderCounts {
  readonly submitted: number;
  readonly filled: number;
  readonly fills: number;
  readonly canceled: number;
  readonly expired: number;
  /** Still working at the end. */
  readonly working: number;
  /** Rejected at the fill or by the venue, by reason: `insufficient_funds`, `post_only_would_cross`, … */
  readonly rejected: Readonly<Record<string, number>>;
  /** Denied before submission or at the first fill, by reason. */
  readonly denied: Readonly<Record<string, number>>;
  /**
   * Ended by a limit or threshold after they had been accepted, by reason: `price_collar_bps`, … They
   * also count as canceled, or as expired if a venue reports them so.
   */
  readonly limited: Readonly<Record<string, number>>;
}

/** Targets that were filled with less because their weight exceeds the leverage of the account. */
export interface CappedTargets {
  readonly count: number;
  /** Time of the first fill, ms; undefined without one. */
  readonly since: number | undefined;
}

/** Result of a run. Step `i` is the i-th distinct bar time over all instruments. */
export interface RunResult {
  readonly steps: number;
  /** Milliseconds since the epoch, UTC, one per step. */
  readonly time: Float64Array;
  /** Cash plus positions marked to the close, one per step, after the step's fills. */
  readonly equity: Float64Array;
  readonly drawdown: Drawdown;
  readonly initialCash: number;
  readonly cash: number;
  /** Units held at the end, by symbol; flat instruments are absent. */
  readonly positions: Readonly<Record<string, number>>;
  /** Closed trades in order of exit. */
  readonly trades: readonly Trade[];
  readonly tradeOutcomes: TradeOutcomes;
  /** Positions still open at the end, marked to the last close. */
  readonly openTrades: readonly Trade[];
  readonly orders: OrderCounts;
  /** Account currency, summed over all fills; both are costs, as positive numbers. */
  readonly fees: number;
  readonly slippage: number;
  /** The part of `fees` that belongs to no trade, such as a fee for an unfilled order. */
  readonly otherFees: number;
  /** Σ quantity × price over all fills, account currency. */
  readonly tradedNotional: number;
  /** Steps at whose close any position was held. */
  readonly stepsInMarket: number;
  /** Bars in which several orders could have been filled and the pessimistic order was assumed. */
  readonly ambiguousBars: number;
  readonly marginCalls: number;
  readonly cappedTargets: CappedTargets;
  /** The step at which equity reached zero or below and the run stopped. */
  readonly ruinedAt: number | undefined;
  /** Every order event, in order. */
  readonly journal: JournalRows;
  /** Lines that the strategy logged, unless the setup drops them or `takeLog` has returned them. */
  readonly log?: readonly LogLine[] | undefined;
}
