import { createHash } from 'node:crypto';
import type { VenueOrder, VenueReport, VenueRules } from '../engine/venue.ts';

export type {
  DenyReason,
  MarketPhase,
  VenueOrder,
  VenueReport,
  VenueRules,
} from '../engine/venue.ts';

/** An order of which a venue is asked. */
export type VenueOrderId = Pick<VenueOrder, 'order' | 'client_order_id' | 'symbol'>;

/** What the venue holds for the account; what is bound in orders included. */
export interface VenueAccount {
  /** Units, by symbol of the universe; those it holds nothing of may be absent. */
  readonly balances: Readonly<Record<string, number>>;
  /** Account currency. */
  readonly cash: number;
}

/**
 * Where orders are worked. Every method throws ServiceError `exchange_unavailable` when the outcome
 * is unknown, and may be called again.
 */
export interface Venue {
  readonly name: string;
  rules(): Promise<VenueRules>;
  /**
   * What the venue says of the order; one that it refuses is a report `rejected`. Placing the same
   * `client_order_id` again never makes a second order.
   */
  place(order: VenueOrder): Promise<VenueReport>;
  /**
   * What the order is then: it may have been filled before. It waits for nothing else that is asked,
   * and one that is still being placed is not sent any more.
   */
  cancel(order: VenueOrderId): Promise<VenueReport>;
  /** Undefined: the venue has never seen it, and placing it from now on does nothing. */
  find(order: VenueOrderId): Promise<VenueReport | undefined>;
  /**
   * Open orders of this deployment (by the prefix of `client_order_id`) in the universe, whether or
   * not the session knows of them.
   */
  openOrders(): Promise<readonly Pick<VenueOrder, 'client_order_id' | 'symbol'>[]>;
  account(): Promise<VenueAccount>;
  /**
   * What happens to orders of this deployment, as it happens; a connection that was lost is made anew
   * and what it missed asked for. Ends with `signal`.
   */
  reports(signal: AbortSignal): AsyncIterable<VenueReport>;
  /**
   * Its rules once they are other than those that it has told before, and at first; what instruments
   * are doing is among them. Ends with `signal`.
   */
  terms(signal: AbortSignal): AsyncIterable<VenueRules>;
  close(): Promise<void>;
}

/**
 * The name under which a venue knows an order, the same whenever it is placed:
 * `sl<10 characters of the deployment's hash>-<order number>`, at most 32 of [a-z0-9-]. From the
 * second epoch of the server's database on, `e<epoch in base 36>` stands before the hyphen.
 */
export function clientOrderId(deploymentId: string, order: number, epoch = 1): string {
  const mark = epoch === 1 ? '' : `e${epoch.toString(36)}`;
  return `${prefixOf(deploymentId)}${mark}-${order}`;
}

/** Undefined: no order of this deployment is called so. */
export function orderOfClientId(deploymentId: string, clientId: string): number | undefined {
  return partsOf(deploymentId, clientId)?.order;
}

/** The epoch in which an order of this deployment was placed; undefined for any other order. */
export function epochOfClientId(deploymentId: string, clientId: string): number | undefined {
  return partsOf(deploymentId, clientId)?.epoch;
}

/** Epoch mark and order number, which follow the prefix. */
const MARK_AND_NUMBER = /^(?:e([1-9a-z][\da-z]{0,2}))?-([1-9]\d{0,14})$/;

function partsOf(deploymentId: string, clientId: string) {
  const prefix = prefixOf(deploymentId);
  if (!clientId.startsWith(prefix)) return undefined;
  const found = MARK_AND_NUMBER.exec(clientId.slice(prefix.length));
  if (found === null) return undefined;
  const [, mark = '1', number] = found;
  return { epoch: Number.parseInt(mark, 36), order: Number(number) };
}

/** A process trades for one deployment, and asks for each order that works at each step. */
let latest = { deploymentId: '', prefix: '' };

function prefixOf(deploymentId: string): string {
  if (latest.deploymentId !== deploymentId) latest = { deploymentId, prefix: hashed(deploymentId) };
  return latest.prefix;
}

function hashed(deploymentId: string): string {
  const hex = createHash('sha256').update(deploymentId).digest('hex');
  // Ten characters of base 32 are the first 50 bits of it.
  const bits = Math.floor(Number.parseInt(hex.slice(0, 13), 16) / 4);
  return `sl${bits.toString(32).padStart(10, '0')}`;
}
