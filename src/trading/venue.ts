import { createHash } from 'node:crypto';
import type { VenueOrder, VenueReport, VenueRules } from '../engine/execution/venue-protocol.ts';

export type {
  MarketPhase,
  VenueOrder,
  VenueReport,
  VenueRules,
} from '../engine/execution/venue-protocol.ts';

export type VenueOrderId = Pick<VenueOrder, 'order' | 'client_order_id' | 'symbol'>;

/** Holdings at the venue, including amounts reserved by open orders. */
export interface VenueAccount {
  /** Units by symbol of the universe; symbols without holdings may be absent. */
  readonly balances: Readonly<Record<string, number>>;
  readonly cash: number;
}

/**
 * A market that executes orders. Every method throws ServiceError `exchange_unavailable` if the
 * outcome is unknown, and may then be called again.
 */
export interface Venue {
  readonly name: string;
  rules(): Promise<VenueRules>;
  /**
   * Places an order and reports its state; a rejected order is a report with the status `rejected`.
   * Placing the same `client_order_id` again never creates a second order.
   */
  place(order: VenueOrder): Promise<VenueReport>;
  /**
   * Cancels an order and reports its state; it may have been filled before. Does not wait for other
   * requests. An order that is still being placed is then not sent.
   */
  cancel(order: VenueOrderId): Promise<VenueReport>;
  /**
   * Returns undefined if the venue has never seen the order. Placing it afterwards then does
   * nothing.
   */
  find(order: VenueOrderId): Promise<VenueReport | undefined>;
  /**
   * Open orders of this deployment in the universe, found by the prefix of `client_order_id`,
   * including orders that the session does not know.
   */
  openOrders(): Promise<readonly Pick<VenueOrder, 'client_order_id' | 'symbol'>[]>;
  account(): Promise<VenueAccount>;
  /**
   * Yields changes of orders of this deployment. Reconnects after a disconnect and fetches what it
   * missed. Ends with `signal`.
   */
  reports(signal: AbortSignal): AsyncIterable<VenueReport>;
  /**
   * Yields the current rules, including market phases, and then every change of them. Ends with
   * `signal`.
   */
  terms(signal: AbortSignal): AsyncIterable<VenueRules>;
  close(): Promise<void>;
}

/**
 * Client order id of an order, the same each time it is placed: `sl<10 characters of the
 * deployment's hash>-<order number>`, at most 32 characters of [a-z0-9-]. From the second epoch of
 * the server's database on, `e<epoch in base 36>` precedes the hyphen.
 */
export function clientOrderId(deploymentId: string, order: number, epoch = 1): string {
  const mark = epoch === 1 ? '' : `e${epoch.toString(36)}`;
  return `${prefixOf(deploymentId)}${mark}-${order}`;
}

/** Returns undefined for an id of another deployment. */
export function orderOfClientId(deploymentId: string, clientId: string): number | undefined {
  return partsOf(deploymentId, clientId)?.order;
}

/** Returns the epoch in which the order was placed; undefined for an id of another deployment. */
export function epochOfClientId(deploymentId: string, clientId: string): number | undefined {
  return partsOf(deploymentId, clientId)?.epoch;
}

/** Optional epoch and order number, which follow the prefix. */
const MARK_AND_NUMBER = /^(?:e([1-9a-z][\da-z]{0,2}))?-([1-9]\d{0,14})$/;

function partsOf(deploymentId: string, clientId: string) {
  const prefix = prefixOf(deploymentId);
  if (!clientId.startsWith(prefix)) return undefined;
  const found = MARK_AND_NUMBER.exec(clientId.slice(prefix.length));
  if (found === null) return undefined;
  const [, mark = '1', number] = found;
  return { epoch: Number.parseInt(mark, 36), order: Number(number) };
}

/**
 * Caches the prefix: a process trades for one deployment and needs it for each working order at
 * each step.
 */
let latest = { deploymentId: '', prefix: '' };

function prefixOf(deploymentId: string): string {
  if (latest.deploymentId !== deploymentId) latest = { deploymentId, prefix: hashed(deploymentId) };
  return latest.prefix;
}

function hashed(deploymentId: string): string {
  const hex = createHash('sha256').update(deploymentId).digest('hex');
  // Ten characters of base 32 hold the first 50 bits of the hash.
  const bits = Math.floor(Number.parseInt(hex.slice(0, 13), 16) / 4);
  return `sl${bits.toString(32).padStart(10, '0')}`;
}
