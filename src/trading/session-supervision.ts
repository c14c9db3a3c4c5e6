import type { Engine } from '../engine/engine.ts';
import type { Permit, Thresholds } from '../engine/risk/supervision.ts';

/** What people have settled for a session that goes on. Plain JSON. */
export interface SessionSupervision {
  readonly thresholds: Thresholds;
  /** Those that may still be used, as far as is known. */
  readonly permits: readonly TimedPermit[];
  /** How many of its latches people have lifted, ever. */
  readonly latches_lifted: number;
  /** Epoch of the server's database; 1 by default. */
  readonly database_epoch?: number | undefined;
}

export interface TimedPermit extends Permit {
  /** Milliseconds since the Unix epoch. */
  readonly expires_at: number;
}

/** Of what a session is told, that by which people control it; the payload of each is the rest. */
export type SupervisionInput =
  /** In place of those before. */
  | { readonly kind: 'risk.thresholds_set'; readonly thresholds: Thresholds }
  | { readonly kind: 'risk.override_granted'; readonly permit: TimedPermit }
  /** It was not used in time, or was taken back. */
  | { readonly kind: 'risk.override_ended'; readonly override_id: string }
  /** It takes orders again; `latches` of it are lifted by now. */
  | { readonly kind: 'control.latch_lifted'; readonly latches: number }
  /** A copy of the server's database was adopted: new orders have this epoch. */
  | { readonly kind: 'control.epoch_set'; readonly epoch: number };

export const SUPERVISION_KINDS = [
  'risk.thresholds_set',
  'risk.override_granted',
  'risk.override_ended',
  'control.latch_lifted',
  'control.epoch_set',
] as const satisfies readonly SupervisionInput['kind'][];

/** Has an engine heed it from now on. */
export function applySupervision(engine: Engine, input: SupervisionInput): void {
  if (input.kind === 'risk.thresholds_set') engine.setThresholds(input.thresholds);
  else if (input.kind === 'risk.override_granted') engine.grant(input.permit);
  else if (input.kind === 'risk.override_ended') engine.endPermit(input.override_id);
  else if (input.kind === 'control.latch_lifted') engine.reEnable();
}

/** As far as a session was told. */
export interface SupervisedState {
  readonly thresholds: Thresholds;
  /** Ids of permits that it holds, and of those that it has used. */
  readonly open: readonly string[];
  readonly used: readonly string[];
  /** How often it was latched, and how many of these were lifted. */
  readonly latches: number;
  readonly lifted: number;
  /** Epoch of the server's database. */
  readonly epoch: number;
}

/**
 * What a session is to be told, in this order, so that it is controlled as people have settled.
 *
 * @param now milliseconds since the Unix epoch, by which permits expire.
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
  // One that nobody has seen yet is not lifted by what was said of one before.
  if (latches > lifted && supervision.latches_lifted >= latches) {
    inputs.push({ kind: 'control.latch_lifted', latches });
  }
  return inputs;
}
