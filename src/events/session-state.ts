import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { OrderEvent } from '../engine/journal.ts';
import type { OrderType, TimeInForce } from '../engine/orders.ts';
import type { RiskState } from '../engine/venue.ts';
import type { UsedPermit } from '../engine/risk/supervision.ts';

/**
 * Only a `running` session takes bars; the others have ended: by a halt, by a fault of the strategy,
 * or by losing the account.
 */
export type SessionStatus = 'running' | 'halted' | 'failed' | 'ruined';

/** An account as its session leaves it after a step. Plain JSON. */
export interface SessionState {
  readonly status: SessionStatus;
  /** Opening instant of the newest bars, RFC 3339 UTC; null before the first. */
  readonly time: string | null;
  /** Number of the newest order event; 0 before the first. */
  readonly seq: number;
  /** Account currency; equity at the newest closes. */
  readonly cash: number;
  readonly equity: number;
  /** Units held, by symbol; negative is short, flat instruments are absent. */
  readonly positions: Readonly<Record<string, number>>;
  /** Oldest first. */
  readonly working: readonly WorkingOrder[];
  /** Absent in sessions recorded by version 0.1.0. */
  readonly carry?: Carry;
}

/** State that a session needs to continue the account, besides cash and positions. */
export interface Carry {
  /** The prices at which positions are valued, by symbol. */
  readonly marks: Readonly<Record<string, number>>;
  readonly risk: RiskState;
}

/** An order that may still be filled; names as in `OrderEvent`. */
export interface WorkingOrder {
  readonly order: number;
  readonly symbol: string;
  readonly side: 'buy' | 'sell';
  readonly type: OrderType;
  readonly time_in_force: TimeInForce;
  /** Units in all; a target has a weight until its first fill decides them. */
  readonly quantity?: number;
  readonly weight?: number;
  readonly limit?: number;
  /** Of a trailing stop: where it stands now. */
  readonly stop?: number;
  /** Units filled so far. */
  readonly filled: number;
  /** Whether its stop was reached. */
  readonly triggered: boolean;
  /** Of one that a venue was handed; see `clientOrderId`. */
  readonly client_order_id?: string;
  /** The venue was asked to cancel it, and has not said that it did. */
  readonly pending_cancel?: true;
}

/** What a step, a halt or a venue's report brought: its order events, and the state after them. */
export interface Progress {
  readonly events: readonly OrderEvent[];
  readonly state: SessionState;
  /** Permits that it used up, where it did. */
  readonly used?: readonly UsedPermit[];
}

/**
 * SHA-256 of the canonical JSON (RFC 8785) of a state, in hex. `carry` is left out: it follows from
 * the hashed data, and the hashes of states without it must stay valid.
 */
export function stateHash({ carry: _carry, ...state }: SessionState): string {
  return createHash('sha256').update(canonicalize(state)!).digest('hex');
}

/**
 * What `Session.halt` does, by the state alone: for whoever halts a session that does not answer, or
 * that nobody runs.
 */
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
