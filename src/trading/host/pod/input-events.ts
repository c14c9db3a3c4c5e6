/** What a session was told, as the events of its log have it. */
import {
  barsEvent,
  toSupervisionEvent,
  parseSupervisionInput,
  isSupervisionInput,
  stepOf,
  type SessionEvent,
} from '../../session-events.ts';
import { SUPERVISION_KINDS } from '../../session-supervision.ts';
import type { SessionInput } from '../../session-input.ts';
import type { DenyReason, VenueReport, VenueRules } from '../../venue.ts';

export const INPUT_KINDS = [
  'data.bars',
  'venue.terms',
  'venue.report',
  'control.denying',
  'control.halted',
  ...SUPERVISION_KINDS,
] as const satisfies readonly SessionInput['kind'][];

/** @param why what is to be known of a halt. */
export function inputEvent(
  input: SessionInput,
  now: number,
  why: Readonly<Record<string, string>> = {},
): SessionEvent {
  if (isSupervisionInput(input)) return toSupervisionEvent(input, now);
  if (input.kind === 'data.bars') return barsEvent(input.step);
  const { kind } = input;
  if (kind === 'venue.report') {
    return { kind, occurred_at: input.report.time, payload: { ...input.report } };
  }
  if (kind === 'venue.terms') return { kind, occurred_at: now, payload: { ...input.rules } };
  const payload = kind === 'control.denying' ? { reason: input.reason } : why;
  return { kind, occurred_at: now, payload };
}

/** The input that an event recorded. @param payload JSON. */
export function inputOf(kind: SessionInput['kind'], payload: string): SessionInput {
  if (kind === 'data.bars') return { kind, step: stepOf(payload) };
  if (kind === 'control.halted') return { kind };
  if (kind === 'venue.report') return { kind, report: JSON.parse(payload) as VenueReport };
  if (kind === 'venue.terms') return { kind, rules: JSON.parse(payload) as VenueRules };
  if (kind !== 'control.denying') return parseSupervisionInput(kind, payload);
  const { reason } = JSON.parse(payload) as { readonly reason: DenyReason | null };
  return { kind, reason };
}
