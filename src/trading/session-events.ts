/** Conversions between steps, inputs and progress of a session and events in the log of its bot. */
import type { OrderEvent } from '../engine/journal.ts';
import type { Step } from '../engine/steps.ts';
import type { NewEvent } from '../events/event.ts';
import type { DataEvent } from './feed.ts';
import { SUPERVISION_KINDS, type SupervisionInput } from './session-supervision.ts';
import type { SessionInput } from './session-input.ts';
import type { Progress } from '../events/session-state.ts';
import type { RecordedInput } from './recorded-inputs.ts';

export type SessionEvent = Pick<NewEvent, 'kind' | 'occurred_at' | 'payload'>;

/** The payload is the line of this event in `events.ndjson`. */
export function orderEvent(event: OrderEvent): SessionEvent {
  return { kind: event.kind, occurred_at: Date.parse(event.time), payload: event };
}

/** Order events, followed by the overrides that they used. */
export function progressEvents({ events, used = [], state }: Progress): SessionEvent[] {
  const at = state.time === null ? 0 : Date.parse(state.time);
  return [
    ...events.map(orderEvent),
    ...used.map((one) => ({ kind: OVERRIDE_USED, occurred_at: at, payload: { ...one } })),
  ];
}

export const OVERRIDE_USED = 'risk.override_used';

export function toSupervisionEvent(
  { kind, ...payload }: SupervisionInput,
  now: number,
): SessionEvent {
  return { kind, occurred_at: now, payload };
}

export function isSupervisionInput(input: SessionInput): input is SupervisionInput {
  return (SUPERVISION_KINDS as readonly string[]).includes(input.kind);
}

/**
 * Parses the payload of an event of one of `SUPERVISION_KINDS`.
 *
 * @param payload JSON.
 */
export function parseSupervisionInput(
  kind: SupervisionInput['kind'],
  payload: string,
): SupervisionInput {
  return { kind, ...(JSON.parse(payload) as object) } as SupervisionInput;
}

/** Parses a recorded input of a paper session. */
export function parseRecordedInput({ kind, payload }: RecordedInput): SessionInput {
  return kind === 'data.bars'
    ? { kind, step: stepOf(payload) }
    : parseSupervisionInput(kind, payload);
}

export function barsEvent({ time, bars }: Step): SessionEvent {
  const rows = Object.entries(bars).map(([symbol, { open: first, high, low, close, volume }]) => [
    symbol,
    [first, high, low, close, volume],
  ]);
  const payload = { time: new Date(time).toISOString(), bars: Object.fromEntries(rows) as object };
  return { kind: 'data.bars', occurred_at: time, payload };
}

/** Parses the payload of a `data.bars` event. */
export function stepOf(payload: string): Step {
  const { time, bars } = JSON.parse(payload) as {
    readonly time: string;
    readonly bars: Readonly<Record<string, readonly [number, number, number, number, number]>>;
  };
  const candles = Object.entries(bars).map(([symbol, [first, high, low, close, volume]]) => [
    symbol,
    { open: first, high, low, close, volume },
  ]);
  return { time: Date.parse(time), bars: Object.fromEntries(candles) as Step['bars'] };
}

export function dataEvent({ kind, ...payload }: DataEvent): SessionEvent {
  const time = 'time' in payload ? payload.time : payload.before;
  return { kind, occurred_at: Date.parse(time), payload };
}
