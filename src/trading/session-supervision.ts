import type { Engine } from '../engine/engine.ts';
import type { Permit } from '../engine/risk/permits.ts';
import type { Thresholds } from '../engine/risk/firm-thresholds.ts';

/** Thresholds, permits and latches that administrators have set for a session. Plain JSON. */
export interface SessionSupervision {
  readonly thresholds: Thresholds;
  /** Permits that are open, as far as the server knows. */
  readonly permits: readonly TimedPermit[];
  /** Count of latches that administrators have lifted so far. */
  readonly latches_lifted: number;
  /** Epoch of the server's database; 1 by default. */
  readonly database_epoch?: number | undefined;
}

export interface TimedPermit extends Permit {
  /** Milliseconds since the Unix epoch. */
  readonly expires_at: number;
}

/**
 * Inputs by which administrators control a session. The payload of each event is the input without
 * its kind.
 */
export type SupervisionInput =
  /** Replaces all thresholds. */
  | { readonly kind: 'risk.thresholds_set'; readonly thresholds: Thresholds }
  | { readonly kind: 'risk.override_granted'; readonly permit: TimedPermit }
  /** The permit expired or was revoked. */
  | { readonly kind: 'risk.override_ended'; readonly override_id: string }
  /** Accepts orders again; `latches` is the count of latches lifted so far. */
  | { readonly kind: 'control.latch_lifted'; readonly latches: number }
  /**
   * A copy of the server's database was adopted: client order ids of new orders contain this epoch.
   */
  | { readonly kind: 'control.epoch_set'; readonly epoch: number };

export const SUPERVISION_KINDS = [
  'risk.thresholds_set',
  'risk.override_granted',
  'risk.override_ended',
  'control.latch_lifted',
  'control.epoch_set',
] as const satisfies readonly SupervisionInput['kind'][];

export function applySupervision(engine: Engine, input: SupervisionInput): void {
  if (input.kind === 'risk.thresholds_set') engine.setThresholds(input.thresholds);
  else if (input.kind === 'risk.override_granted') engine.risk.permits.grant(input.permit);
  else if (input.kind === 'risk.override_ended') engine.risk.permits.end(input.override_id);
  else if (input.kind === 'control.latch_lifted') engine.risk.reEnable();
}

/** State of supervision, as the session knows it. */
export interface SupervisedState {
  readonly thresholds: Thresholds;
  /** Ids of the open permits and of the used ones. */
  readonly open: readonly string[];
  readonly used: readonly string[];
  /** Counts of latches so far, and of those lifted. */
  readonly latches: number;
  readonly lifted: number;
  readonly epoch: number;
}

/**
 * Decides which inputs bring a session up to date with `supervision`, in this order.
 *
 * @param now ms since epoch; permits expire by it.
 */
export function decideSupervision(
  { thresholds, open, used, latches, lifted, epoch }: SupervisedState,
  supervision: SessionSupervision,
  now: number,
): SupervisionInput[] {
  const inputs: SupervisionInput[] = [];
  const { database_epoch = 1 } = supervision;
  if (database_epoch > epoch) inputs.push({ kind: 'control.epoch_set', epoch: database_epoch });
  if (JSON.stringify(thresholds) !== JSON.stringify(supervision.thresholds)) {
    inputs.push({ kind: 'risk.thresholds_set', thresholds: supervision.thresholds });
  }
  const good = supervision.permits.filter(({ expires_at }) => expires_at > now);
  for (const override_id of open) {
    const isGood = good.some((permit) => permit.override_id === override_id);
    if (!isGood) inputs.push({ kind: 'risk.override_ended', override_id });
  }
  for (const permit of good) {
    const isKnown = open.includes(permit.override_id) || used.includes(permit.override_id);
    if (!isKnown) inputs.push({ kind: 'risk.override_granted', permit });
  }
  // Lifting an earlier latch does not lift one that is newer.
  if (latches > lifted && supervision.latches_lifted >= latches) {
    inputs.push({ kind: 'control.latch_lifted', latches });
  }
  return inputs;
}
