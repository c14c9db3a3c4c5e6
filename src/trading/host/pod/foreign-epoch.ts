import { epochOfClientId, type VenueReport } from '../../venue.ts';
import { epochOf } from './permission.ts';
import type { Runner } from './runner.ts';

type Placed = Pick<VenueReport, 'order' | 'client_order_id'>;

/**
 * Whether an order at the venue has a newer epoch than the session, which means that a copy of the
 * server's database was adopted and its runner trades. From then on this runner places no orders
 * and does not touch the other runner's.
 */
export function isOfNewerEpoch(runner: Runner, { order, client_order_id }: Placed): boolean {
  const epoch = epochOfClientId(runner.parts.config.deployment_id, client_order_id) ?? 0;
  if (epoch <= epochOf(runner)) return false;
  if (epoch > runner.foreignEpoch) {
    runner.foreignEpoch = epoch;
    runner.parts.log.error(
      `order ${client_order_id} at the venue has epoch ${epoch}, and this runner ${epochOf(runner)}: another runner trades for this deployment. This runner places no orders until \`service-local server adopt\` is run for its server`,
    );
    const payload = { order, client_order_id, epoch };
    runner.events.push({ kind: 'venue.foreign', occurred_at: Date.now(), payload });
    runner.server?.report();
  }
  return true;
}
