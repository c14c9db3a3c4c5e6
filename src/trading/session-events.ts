/** Conversions between steps, inputs and progress of a session and events in the log of its bot. */
import type { EarlierPart } from '../engine/earlier-bars.ts';
import type { OrderEvent } from '../engine/journal.ts';
import type { DenyReason } from '../engine/orders/order.ts';
import type { VenueReport, VenueRules } from '../engine/execution/venue-protocol.ts';
import type { Step } from '../engine/steps.ts';
import { packColumns, unpackColumns } from '../base/packed-columns.ts';
import { allocateBars, BAR_COLUMNS, barsFromRows, type Bars } from '../market/bars.ts';
import type { NewEvent } from '../events/event.ts';
import { MOST_WARM_UP_BARS, type DataEvent } from './feed.ts';
import { SUPERVISION_KINDS, type SupervisionInput } from './session-supervision.ts';
import type { Progress, SessionState } from '../events/session-state.ts';

/**
 * Inputs of a session, as its events record them. Together with the setup of the session and their
 * order, they decide its state completely.
 */
export type SessionInput =
  /** Calls `push`; the payload holds the step. */
  | { readonly kind: 'data.bars'; readonly step: Step }
  /**
   * Calls `warmUp`. The payload holds the columns of the bars by symbol, as `packColumns` returns them. In
   * older events, it holds rows: `[time in ms, open, high, low, close, volume]`.
   */
  | ({ readonly kind: 'data.warm_up' } & EarlierPart)
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

export type SessionEvent = Pick<NewEvent, 'kind' | 'occurred_at' | 'payload'>;

/** Events of a session since its previous batch. */
export interface SessionBatch {
  /** Counts from 1 in each session. A batch is sent again if its write was not acknowledged. */
  readonly number: number;
  readonly events: readonly SessionEvent[];
  /** Time of the oldest event by the clock of its process, ms since the Unix epoch. */
  readonly made_at?: number | undefined;
  /** State after the batch. */
  readonly state: SessionState;
  /** Number of bar steps taken since the session started. */
  readonly steps: number;
}

/** The payload is the line of this event in `events.ndjson`. */
export function orderEvent(event: OrderEvent): SessionEvent {
  return { kind: event.kind, occurred_at: Date.parse(event.time), payload: event };
}

/** Order events, followed by the overrides that they used and the lines that the strategy logged. */
export function progressEvents({ events, used = [], log, state }: Progress): SessionEvent[] {
  const at = state.time === null ? 0 : Date.parse(state.time);
  return [
    ...events.map(orderEvent),
    ...used.map((one) => ({ kind: OVERRIDE_USED, occurred_at: at, payload: { ...one } })),
    ...(log === undefined ? [] : [{ kind: LOGGED, occurred_at: at, payload: { lines: log } }]),
  ];
}

export const OVERRIDE_USED = 'risk.override_used';

/** Kind of the event with the lines that a strategy logged at a bar: `{lines}`. */
export const LOGGED = 'strategy.log';

export const INPUT_KINDS = [
  'data.warm_up',
  'data.bars',
  'venue.terms',
  'venue.report',
  'control.denying',
  'control.halted',
  ...SUPERVISION_KINDS,
] as const satisfies readonly SessionInput['kind'][];

/**
 * The event that records an input.
 *
 * @param now time of an input without a time of its own, ms since epoch.
 * @param details who halted the session, and why.
 */
export function inputEvent(
  input: SessionInput,
  now: number,
  details: Readonly<Record<string, string>> = {},
): SessionEvent {
  if (input.kind === 'data.bars') return barsEvent(input.step);
  if (input.kind === 'data.warm_up') {
    const { kind, bars, timeframe, continues } = input;
    const columns = Object.entries(bars).map(([symbol, one]) => [symbol, packBars(one)]);
    const payload = {
      columns: Object.fromEntries(columns) as object,
      ...(timeframe !== undefined && { timeframe }),
      ...(continues === true && { continues }),
    };
    return { kind, occurred_at: now, payload };
  }
  if (input.kind === 'control.halted') {
    return { kind: input.kind, occurred_at: now, payload: details };
  }
  if (input.kind === 'venue.report') {
    return { kind: input.kind, occurred_at: input.report.time, payload: { ...input.report } };
  }
  if (input.kind === 'venue.terms') {
    return { kind: input.kind, occurred_at: now, payload: { ...input.rules } };
  }
  const { kind, ...payload } = input;
  return { kind, occurred_at: now, payload };
}

/** Parses the JSON payload of the event that recorded an input. */
export function parseInput<K extends SessionInput['kind']>(
  kind: K,
  payload: string,
): Extract<SessionInput, { readonly kind: K }> {
  const value = JSON.parse(payload) as object;
  const input =
    kind === 'data.bars'
      ? { kind, step: stepOf(payload) }
      : kind === 'data.warm_up'
        ? { kind, ...warmUpOf(payload) }
        : kind === 'venue.report'
          ? { kind, report: value }
          : kind === 'venue.terms'
            ? { kind, rules: value }
            : kind === 'control.halted'
              ? { kind }
              : { kind, ...value };
  return input as Extract<SessionInput, { readonly kind: K }>;
}

/** Parses the payload of a `data.warm_up` event. */
export function warmUpOf(payload: string): EarlierPart {
  const {
    columns = {},
    bars: rows = {},
    ...part
  } = JSON.parse(payload) as Pick<EarlierPart, 'timeframe' | 'continues'> & {
    readonly columns?: Readonly<Record<string, string>>;
    readonly bars?: Readonly<Record<string, Parameters<typeof barsFromRows>[0]>>;
  };
  const bars = [
    ...Object.entries(columns).map(([symbol, text]) => [symbol, unpackBars(text)]),
    ...Object.entries(rows).map(([symbol, some]) => [symbol, barsFromRows(some)]),
  ];
  return { ...part, bars: Object.fromEntries(bars) as EarlierPart['bars'] };
}

function packBars(bars: Bars): string {
  return packColumns(BAR_COLUMNS.map((name) => bars[name].subarray(0, bars.length)));
}

function unpackBars(text: string): Bars {
  const columns = unpackColumns(text, BAR_COLUMNS.length, MOST_WARM_UP_BARS);
  const bars = allocateBars(columns[0]!.length);
  BAR_COLUMNS.forEach((name, place) => bars[name].set(columns[place]!));
  return bars;
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
