import type { Facts, SessionLife } from './session-life.ts';
import type { DenyReason } from '../engine/orders/order.ts';

/** Why new orders must be denied now; null if they may be placed. */
export function denialReason(life: SessionLife, facts: Facts): DenyReason | null {
  const { ending, holdings, foreignEpoch } = life;
  if (ending !== undefined) return ending.outcome === 'finished' ? life.denying : 'stopping';
  if (foreignEpoch > (facts.session?.supervised.epoch ?? 1)) return 'superseded';
  if (holdings.isLatched || holdings.mismatches.length > 0) return 'reconcile_mismatch';
  if (!facts.isLicensed) return 'license_invalid';
  if (!facts.isClaimFresh) return 'control_unreachable';
  return life.isStale ? 'stale_data' : null;
}

/** Whether a recorded order may be sent to the venue now. */
export function mayPlace(life: SessionLife, facts: Facts): boolean {
  // Until the orders are reconciled, an earlier process may have placed them.
  const isReconciled = life.stage === 'connecting' || life.stage === 'trading';
  const isAllowed = life.claim !== 'fenced' && !life.isBroken && life.ending === undefined;
  return isReconciled && isAllowed && denialReason(life, facts) === null;
}
