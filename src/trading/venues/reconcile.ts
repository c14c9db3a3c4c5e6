import type { SessionState } from '../../events/session-state.ts';
import { orderOfClientId } from '../venue.ts';
import type { Venue, VenueOrderId, VenueReport } from '../venue.ts';

export interface OrderReconciliation {
  /** To be told to the session, in the order of its orders. */
  readonly reports: readonly VenueReport[];
  /** Open orders of the deployment of which the session does not know that they work: to be canceled. */
  readonly orphans: readonly VenueOrderId[];
}

/** What the venue holds less of than the session says. */
export interface Mismatch {
  readonly kind: 'position' | 'cash';
  /** Of a position. */
  readonly symbol?: string;
  /** Units, or account currency: by the session, and by the venue. */
  readonly expected: number;
  readonly held: number;
}

/**
 * What became of a session's working orders while nobody looked. One that the venue has never seen is
 * reported `canceled` with the reason `not_at_venue`: it is not placed any more.
 *
 * @param now ms since the epoch, when that one has ended.
 * @throws ServiceError `exchange_unavailable`; asking again is safe.
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

/** Of an order that the venue has never seen. @param time ms since the epoch. */
export function notAtVenue({ order, client_order_id }: VenueOrderId, time: number): VenueReport {
  const nothing = { filled: 0, cost: 0, fee: 0, fee_units: 0 };
  const end = { time, reason: NOT_AT_VENUE };
  return { order, client_order_id, status: 'canceled', ...nothing, ...end };
}

/** Cash is the sum of many products, none of them exact. */
const TOLERANCE = 1e-9;

/**
 * Whether the holdings at the venue match the session that it has, to within one step. That the account has
 * more is nobody's business: it may be used for other things as well. To be asked once the session
 * was told what became of its orders; what is filled between the two shows here as a mismatch, which
 * is gone when both are asked again.
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
