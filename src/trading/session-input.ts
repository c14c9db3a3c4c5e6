import type { Step } from '../engine/steps.ts';
import type { DenyReason } from '../engine/orders/order.ts';
import type { VenueReport, VenueRules } from '../engine/execution/venue-protocol.ts';
import type { SupervisionInput } from './session-supervision.ts';

/**
 * Inputs of a session, as its events record them. Together with the setup of the session and their
 * order, they decide its state completely.
 */
export type SessionInput =
  /** Calls `push`; the payload holds the step. */
  | { readonly kind: 'data.bars'; readonly step: Step }
  /** Calls `revise`; the payload holds the rules. */
  | { readonly kind: 'venue.terms'; readonly rules: VenueRules }
  /** Calls `report`; the payload is the report. */
  | { readonly kind: 'venue.report'; readonly report: VenueReport }
  /** Calls `deny`; the payload is `{reason}`. */
  | { readonly kind: 'control.denying'; readonly reason: DenyReason | null }
  /** Calls `halt`; the payload does not matter. */
  | { readonly kind: 'control.halted' }
  /** Calls `supervise`; the payload is the input without its kind. */
  | SupervisionInput;
