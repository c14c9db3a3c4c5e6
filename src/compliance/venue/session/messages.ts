import type { OrderStatus, OrderTerms, Side } from './order.ts';
import type { Phase } from './phases.ts';

/**
 * What goes over the wire. Prices and quantities are whole numbers of the instrument's
 * `price_unit` and `quantity_unit`, times are milliseconds since the epoch. Fields that do not apply
 * are undefined, and absent from the JSON that is logged and hashed.
 */

/** What the members of a session ask of the venue; `seq` counts the session's messages from 1. */
export type ClientMessage =
  | Logon
  | { readonly type: 'logout'; readonly seq: number }
  | { readonly type: 'heartbeat'; readonly seq: number; readonly test_id?: string | undefined }
  | { readonly type: 'test_request'; readonly seq: number; readonly test_id: string }
  | ResendRequest
  | SequenceReset
  | NewOrder
  | AmendOrder
  | CancelOrder
  | MassCancel
  | {
      readonly type: 'order_status_request';
      readonly seq: number;
      readonly client_order_id: string;
    }
  | { readonly type: 'open_orders_request'; readonly seq: number; readonly request_id: string }
  | { readonly type: 'positions_request'; readonly seq: number; readonly request_id: string }
  | { readonly type: 'reference_request'; readonly seq: number; readonly request_id: string };

interface Repeatable {
  /** Said again with the number that it had, and perhaps known. */
  readonly possibly_duplicate?: true;
}

export interface Logon extends Repeatable {
  readonly type: 'logon';
  readonly seq: number;
  readonly session: string;
  readonly password: string;
  readonly cancel_on_disconnect: boolean;
  /** Both sides count from 1 again: what was missed is not said again, and has to be asked for. */
  readonly reset_sequences: boolean;
}

export interface ResendRequest {
  readonly type: 'resend_request';
  readonly seq: number;
  readonly from: number;
  readonly to: number;
}

/** In place of messages that are not said again: the next one is `next`. */
export interface SequenceReset extends Repeatable {
  readonly type: 'sequence_reset';
  readonly seq: number;
  readonly next: number;
}

export interface NewOrder extends OrderTerms, Repeatable {
  readonly type: 'new_order';
  readonly seq: number;
  /** Once in the life of the venue: also those of refused orders, amendments and cancels. */
  readonly client_order_id: string;
  readonly instrument: string;
}

/** Price, stop price and quantity are the new ones; absent, they stay. */
export interface AmendOrder extends Repeatable {
  readonly type: 'amend';
  readonly seq: number;
  /** What the order is called from now on. */
  readonly client_order_id: string;
  readonly orig_client_order_id: string;
  /** In all, what is filled included. */
  readonly quantity?: number;
  readonly price?: number;
  readonly stop_price?: number;
}

export interface CancelOrder extends Repeatable {
  readonly type: 'cancel';
  readonly seq: number;
  /** Of this request. */
  readonly client_order_id: string;
  readonly orig_client_order_id: string;
}

/** All orders of the session, or those of an instrument or a side. */
export interface MassCancel extends Repeatable {
  readonly type: 'mass_cancel';
  readonly seq: number;
  readonly client_order_id: string;
  readonly instrument?: string;
  readonly side?: Side;
}

/** Before the session puts its number to it. */
export type Unnumbered<T> = T extends unknown ? Omit<T, 'seq'> : never;

/** What the venue says to a session, numbered from 1. */
export type VenueMessage =
  | {
      readonly type: 'logon';
      readonly seq: number;
      readonly session: string;
      readonly heartbeat_ms: number;
    }
  | { readonly type: 'logout'; readonly seq: number; readonly reason: string }
  | { readonly type: 'heartbeat'; readonly seq: number; readonly test_id?: string | undefined }
  | { readonly type: 'test_request'; readonly seq: number; readonly test_id: string }
  | ResendRequest
  | SequenceReset
  | Execution
  | CancelReject
  | MassCancelReport
  | OpenOrders
  | Positions
  | ReferenceData;

export type ExecType =
  | 'new'
  | 'trade'
  | 'replaced'
  | 'canceled'
  | 'expired'
  | 'rejected'
  | 'triggered'
  | 'trade_bust'
  | 'trade_correct'
  /** Answers a question: nothing has happened. */
  | 'status';

/** What happened to an order, and how it is then. */
export interface Execution extends Repeatable {
  readonly type: 'execution';
  readonly seq: number;
  readonly exec_type: ExecType;
  /** Counts up; never twice, but for what is said again. */
  readonly exec_id: number;
  /** Of a bust or correction: the execution that it is about. */
  readonly ref_exec_id: number | undefined;
  /** 0 where the venue knows no such order. */
  readonly order_id: number;
  readonly client_order_id: string;
  readonly orig_client_order_id: string | undefined;
  readonly instrument: string;
  readonly side: Side;
  readonly status: OrderStatus | 'unknown';
  readonly quantity: number;
  readonly price: number | undefined;
  readonly stop_price: number | undefined;
  readonly filled: number;
  readonly leaves: number;
  /** Sum of price × quantity over the fills. */
  readonly value: number;
  /** Of a trade, or as it is corrected. */
  readonly trade_id: number | undefined;
  readonly last_price: number | undefined;
  readonly last_quantity: number | undefined;
  readonly is_maker: boolean | undefined;
  readonly reason: string | undefined;
  readonly time: number;
}

/** Of a cancel or an amendment: the order is as it was. */
export interface CancelReject extends Repeatable {
  readonly type: 'cancel_reject';
  readonly seq: number;
  readonly client_order_id: string;
  readonly orig_client_order_id: string;
  readonly request: 'cancel' | 'amend';
  readonly status: OrderStatus | 'unknown';
  readonly reason: RejectReason;
  readonly time: number;
}

/** Behind the executions of what it canceled. */
export interface MassCancelReport extends Repeatable {
  readonly type: 'mass_cancel_report';
  readonly seq: number;
  readonly client_order_id: string;
  readonly canceled: number;
  /** By client order id; what it did not reach. */
  readonly survivors: readonly string[];
  readonly reason: RejectReason | undefined;
  readonly time: number;
}

export interface OpenOrders extends Repeatable {
  readonly type: 'open_orders';
  readonly seq: number;
  readonly request_id: string;
  readonly orders: readonly { readonly client_order_id: string; readonly instrument: string }[];
}

/** What the account holds, by the venue. */
export interface Positions extends Repeatable {
  readonly type: 'positions';
  readonly seq: number;
  readonly request_id: string;
  /** Currency. */
  readonly cash: number;
  /** By instrument; in its quantity unit. */
  readonly positions: Readonly<Record<string, number>>;
}

export interface ReferenceData extends Repeatable {
  readonly type: 'reference_data';
  readonly seq: number;
  /** Empty where terms have changed unasked. */
  readonly request_id: string;
  /** Counts up with each change. */
  readonly version: number;
  readonly instruments: readonly ReferenceTerms[];
}

/** What an instrument's orders have to keep to. */
export interface ReferenceTerms {
  readonly instrument: string;
  /** Currency; what prices are whole numbers of. It never changes. */
  readonly price_unit: number;
  /** Units of the instrument; what quantities are whole numbers of. It never changes. */
  readonly quantity_unit: number;
  /** Prices are multiples of it, in price units. */
  readonly tick: number;
  /** Quantities are multiples of it, in quantity units. */
  readonly lot: number;
  /** In quantity units. */
  readonly max_quantity: number;
  /** How far from the reference price an order may be, as a share of it; Infinity for no bound. */
  readonly band: number;
  /** How far from it trades may be without an auction, as a share of it. */
  readonly corridor: number;
}

export type RejectReason =
  | 'unknown_instrument'
  | 'phase'
  | 'tick'
  | 'lot'
  | 'max_quantity'
  | 'price_band'
  | 'order_type'
  | 'expired'
  | 'duplicate_client_order_id'
  | 'post_only_would_cross'
  | 'throttled'
  | 'unknown_order'
  | 'too_late'
  | 'quantity_below_filled';

/** Public market data; `seq` counts over all instruments of a venue, from 1. */
export type FeedMessage =
  | BookUpdate
  | TradeUpdate
  | {
      readonly type: 'trade_bust';
      readonly seq: number;
      readonly time: number;
      readonly instrument: string;
      readonly trade_id: number;
    }
  | {
      readonly type: 'status';
      readonly seq: number;
      readonly time: number;
      readonly instrument: string;
      readonly phase: Phase;
    }
  | {
      /** What a call would come to; no trade. Without a price, nobody meets. */
      readonly type: 'indicative';
      readonly seq: number;
      readonly time: number;
      readonly instrument: string;
      readonly price: number | undefined;
      readonly quantity: number;
      readonly surplus: number;
    }
  | ({
      readonly type: 'reference';
      readonly seq: number;
      readonly time: number;
      readonly version: number;
      readonly is_deleted: boolean;
    } & ReferenceTerms)
  | { readonly type: 'heartbeat'; readonly seq: number; readonly time: number }
  | {
      readonly type: 'checksum';
      readonly seq: number;
      readonly time: number;
      readonly instrument: string;
      readonly checksum: number;
    };

/** What a price level comes to; gone where the quantity is 0. */
export interface BookUpdate {
  readonly type: 'book';
  readonly seq: number;
  readonly time: number;
  readonly instrument: string;
  readonly side: Side;
  /** Absent of orders at any price, which wait for an auction. */
  readonly price: number | undefined;
  readonly quantity: number;
  readonly orders: number;
}

export interface TradeUpdate {
  readonly type: 'trade';
  readonly seq: number;
  readonly time: number;
  readonly instrument: string;
  readonly trade_id: number;
  readonly price: number;
  readonly quantity: number;
}

/** Price, and what waits there; best first. */
export type LevelView = readonly [price: number | undefined, quantity: number, orders: number];

/** The book of an instrument as the feed's messages up to `seq` make it. */
export interface Snapshot {
  readonly type: 'snapshot';
  readonly seq: number;
  readonly time: number;
  readonly instrument: string;
  readonly phase: Phase;
  readonly last: number | undefined;
  readonly bids: readonly LevelView[];
  readonly asks: readonly LevelView[];
  readonly checksum: number;
}

/** Bytes of which nobody knows whether they are a message: cut off, or of a later version. */
export interface RawMessage {
  readonly type: 'raw';
  readonly text: string;
}
