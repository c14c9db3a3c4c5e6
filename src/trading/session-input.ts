import type { Step } from '../engine/steps.ts';
import type { DenyReason, VenueReport, VenueRules } from '../engine/venue.ts';
import type { SupervisionInput } from './session-supervision.ts';

/**
 * What a session was told, each as the event of its kind records it. In the order in which they were
 * told, and with the session's setup, they are all that decides what a session is.
 */
export type SessionInput =
  /** `push`; its payload holds the step. */
  | { readonly kind: 'data.bars'; readonly step: Step }
  /** `VenueSession.revise`; its payload holds the rules. */
  | { readonly kind: 'venue.terms'; readonly rules: VenueRules }
  /** `VenueSession.report`; its payload is the report. */
  | { readonly kind: 'venue.report'; readonly report: VenueReport }
  /** `deny`; its payload is `{reason}`. */
  | { readonly kind: 'control.denying'; readonly reason: DenyReason | null }
  /** `halt`; whatever its payload says. */
  | { readonly kind: 'control.halted' }
  /** `supervise`; its payload is the rest of it. */
  | SupervisionInput;
