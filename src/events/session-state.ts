import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { OrderEvent } from '../engine/journal.ts';
import type { OrderType, TimeInForce } from '../engine/orders/order.ts';
import type { RiskState } from '../engine/risk/risk-state.ts';
import type { UsedPermit } from '../engine/risk/permits.ts';

/**
 * Only a `running` session takes bars. The others have ended: by a halt, by an error in the strategy,
 * or because the account lost all its equity.
 */
export type SessionStatus = 'running' | 'halted' | 'failed' | 'ruined';

/** The account after a step of its session; plain JSON. */
export interface SessionState {
  readonly status: SessionStatus;
  /** Opening time of the newest bars, RFC 3339 UTC; null before the first. */
  readonly time: string | null;
  /** Sequence number of the newest order event; 0 before the first. */
  readonly seq: number;
  /** Amounts in account currency; equity is valued at the newest closes. */
  readonly cash: number;
  readonly equity: number;
  /** Units held, by symbol; negative is short, flat instruments are absent. */
  readonly positions: Readonly<Record<string, number>>;
  /** Oldest first. */
  readonly working: readonly WorkingOrder[];
  /** Number of orders and cancels in the newest second of bar time; absent if there were none. */
  readonly messages?: number;
  /** Absent in sessions recorded by version 0.1.0. */
  readonly carry?: Carry;
}

/** State that a session needs to continue the account, besides cash and positions. */
export interface Carry {
  /** Valuation prices of positions, by symbol. */
  readonly marks: Readonly<Record<string, number>>;
  readonly risk: RiskState;
}

/** An order that may still be filled; fields are named as in `OrderEvent`. */
export interface WorkingOrder {
  readonly order: number;
  readonly symbol: string;
  readonly side: 'buy' | 'sell';
  readonly type: OrderType;
  readonly time_in_force: TimeInForce;
  /** Total units. An order with a target weight has none until its first fill. */
  readonly quantity?: number;
  readonly weight?: number;
  readonly limit?: number;
  /** For a trailing stop, its current level. */
  readonly stop?: number;
  readonly filled: number;
  /** Whether the stop price was reached. */
  readonly triggered: boolean;
  /** Present once the order was submitted to a venue; see `clientOrderId`. */
  readonly client_order_id?: string;
  /** Set while the venue has not confirmed a requested cancellation. */
  readonly pending_cancel?: true;
}

/** Order events of a step, a halt or a venue report, and the state after them. */
export interface Progress {
  readonly events: readonly OrderEvent[];
  readonly state: SessionState;
  /** Permits that these events used. */
  readonly used?: readonly UsedPermit[];
  /** Lines that the strategy logged; absent if it logged none. */
  readonly log?: readonly string[];
}

/**
 * SHA-256, in hex, of the canonical JSON (RFC 8785) of a state. It excludes `carry` and `messages`, which
 * follow from the hashed data and the order events, so that hashes recorded before they existed stay valid.
 */
export function stateHash({ carry: _carry, messages: _messages, ...state }: SessionState): string {
  return createHash('sha256').update(canonicalize(state)!).digest('hex');
}

/** Halts a session from its recorded state alone, when no process runs it or responds. */
export function closeSession(state: SessionState, status: 'halted'): Progress {
  const { working, seq } = state;
  return {
    events: working.map(({ order, symbol }, place) => ({
      seq: seq + 1 + place,
      // Orders come with bars, so there is a time wherever there are orders.
      time: state.time!,
      kind: 'order.canceled',
      order,
      symbol,
      reason: 'halted',
    })),
    state: {
      ...state,
      status: state.status === 'running' ? status : state.status,
      seq: seq + working.length,
      working: [],
    },
  };
}
