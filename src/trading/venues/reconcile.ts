import type { SessionState } from '../../events/session-state.ts';
import { orderOfClientId } from '../venue.ts';
import type { Venue, VenueOrderId, VenueReport } from '../venue.ts';

export interface OrderReconciliation {
  /** Reports to apply to the session, in the order of its orders. */
  readonly reports: readonly VenueReport[];
  /** Open orders of the deployment that the session does not know as working: cancel them. */
  readonly orphans: readonly VenueOrderId[];
}

/** A holding that is smaller at the venue than in the session. */
export interface Mismatch {
  readonly kind: 'position' | 'cash';
  /** Symbol of a position; absent for cash. */
  readonly symbol?: string;
  /** Holding in the session and at the venue: units, or account currency. */
  readonly expected: number;
  readonly held: number;
}

/**
 * Determines the state of the working orders after a restart. An order that the venue has never
 * seen is reported `canceled` with the reason `not_at_venue`, and is then never placed.
 *
 * @param now end time of such an order, ms since epoch.
 * @throws ServiceError `exchange_unavailable`; it is safe to retry.
 */
export async function reconcileOrders(
  venue: Venue,
  deploymentId: string,
  working: readonly VenueOrderId[],
  now: number,
): Promise<OrderReconciliation> {
  const open = await venue.openOrders();
  const reports: VenueReport[] = [];
  for (const order of working) {
    reports.push((await venue.find(order)) ?? notAtVenue(order, now));
  }
  const known = new Set(working.map(({ client_order_id: id }) => id));
  const orphans = open.flatMap(({ client_order_id, symbol }) => {
    const order = orderOfClientId(deploymentId, client_order_id);
    return order === undefined || known.has(client_order_id)
      ? []
      : [{ order, client_order_id, symbol }];
  });
  return { reports, orphans };
}

export const NOT_AT_VENUE = 'not_at_venue';

/**
 * Report for an order that the venue has never seen.
 *
 * @param time ms since epoch.
 */
export function notAtVenue({ order, client_order_id }: VenueOrderId, time: number): VenueReport {
  const nothing = { filled: 0, cost: 0, fee: 0, fee_units: 0 };
  const end = { time, reason: NOT_AT_VENUE };
  return { order, client_order_id, status: 'canceled', ...nothing, ...end };
}

/** Relative tolerance: cash is a sum of many rounded products. */
const TOLERANCE = 1e-9;

/**
 * Compares holdings at the venue with the session, to within one step. The account may hold more,
 * because it may have other uses. Reconcile orders first. A fill between the two steps appears as a
 * mismatch that disappears when both are repeated.
 *
 * @throws ServiceError `exchange_unavailable`
 */
export async function reconcileHoldings(
  venue: Venue,
  { positions, cash }: Pick<SessionState, 'positions' | 'cash'>,
): Promise<readonly Mismatch[]> {
  const { instruments } = await venue.rules();
  const account = await venue.account();
  const mismatches: Mismatch[] = Object.entries(positions).flatMap(([symbol, expected]) => {
    const held = account.balances[symbol] ?? 0;
    const step = instruments[symbol]?.step ?? 0;
    const isHeld = held >= expected - step - TOLERANCE * Math.abs(expected);
    return isHeld ? [] : [{ kind: 'position', symbol, expected, held }];
  });
  const steps = Object.values(instruments).map(({ step, tick }) => step * tick);
  const least = cash - Math.max(0, ...steps) - TOLERANCE * Math.abs(cash);
  if (account.cash < least) mismatches.push({ kind: 'cash', expected: cash, held: account.cash });
  return mismatches;
}
