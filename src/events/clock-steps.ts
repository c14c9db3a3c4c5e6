import { sql } from 'kysely';
import { CLOCK_TOLERANCE_MS } from '../storage/clock-tolerance.ts';
import { prepareQuery } from '../storage/prepare-query.ts';
import { archivedTimeError, readArchivedState } from './archive/archived-events.ts';
import type { Db } from '../storage/tables.ts';
import type { NewEvent } from './event.ts';

/**
 * Event kind that records that the clock was set back: the following events carry earlier times.
 */
export const CLOCK_SET_BACK = 'clock.set_back';

interface Before {
  readonly seq: number;
  readonly recorded_at: number;
}

/**
 * Recording time of events that follow `before`: never earlier than `before`, unless `before` is
 * ahead by more than `CLOCK_TOLERANCE_MS`. A time that was far ahead does not affect later events.
 */
export function recordingTime(before: Before, now: number): number {
  return isClockSetBack(before, now) ? now : Math.max(now, before.recorded_at);
}

export function isClockSetBack({ seq, recorded_at }: Before, now: number): boolean {
  return seq > 0 && now < recorded_at - CLOCK_TOLERANCE_MS;
}

/** The events that record the step; append them before the events with the earlier time. */
export function clockSetBackEvents(before: Before, now: number, version: number): NewEvent[] {
  const skew_ms = before.recorded_at - now;
  const previous_recorded_at = new Date(before.recorded_at).toISOString();
  const event_seq = before.seq + 1;
  const alert = { control: 'clock_skew', severity: 'critical', event_seq, count: 1, latency_ms: 0 };
  return [
    {
      kind: CLOCK_SET_BACK,
      version,
      occurred_at: now,
      payload: { previous_seq: before.seq, previous_recorded_at, skew_ms },
    },
    { kind: 'alert.raised', version, occurred_at: now, payload: alert },
  ];
}

export interface PlaceInTime {
  /** Last event recorded by the given time; 0 if none exists. */
  readonly seq: number;
  /**
   * Events whose times do not show whether they were recorded by that time; undefined if there are
   * none.
   */
  readonly in_doubt: SeqSpan | undefined;
}

/** A range of events in a log, both ends included. */
export interface SeqSpan {
  readonly first_seq: number;
  readonly last_seq: number;
}

/**
 * Finds the last event recorded by a given time. The order in the log is certain, whatever the
 * times are, so an event counts as recorded no later than the events after it. In doubt are events
 * with times in the future, up to the next event with a past time, and events with times earlier
 * than those before them, since either clock may have been wrong.
 *
 * @param at milliseconds since the Unix epoch.
 * @param now the reader's clock; a later time was written with a fast clock.
 * @throws ServiceError `archived` if that event is archived and not the last one that is.
 */
export async function placeAt(
  db: Db,
  bot_id: string,
  { at, now = Infinity }: { readonly at: number; readonly now?: number },
  head_seq: number,
): Promise<PlaceInTime> {
  if (at >= now) return { seq: head_seq, in_doubt: undefined };
  const archived = await readArchivedState(db, bot_id);
  const archived_seq = archived?.seq ?? 0;
  const spans = await orderedSpans(db, bot_id, { first_seq: archived_seq + 1, last_seq: head_seq });
  const future = now + CLOCK_TOLERANCE_MS;
  let seq = archived_seq;
  let certain: number | undefined;
  let ahead: SeqSpan | undefined;
  for (const span of spans) {
    const { last, next } = await findLast(db, bot_id, span, at);
    if (last >= span.first_seq) {
      seq = last;
      ahead = undefined;
    }
    if (next === undefined || certain !== undefined) continue;
    if (next <= future) certain = last;
    else ahead = { first_seq: ahead?.first_seq ?? last + 1, last_seq: span.last_seq };
  }
  if (archived !== undefined && seq === archived_seq && at < archived.last_recorded_at) {
    throw await archivedTimeError(db, bot_id, at);
  }
  const isAhead = certain === undefined || certain >= seq;
  return { seq, in_doubt: isAhead ? ahead : { first_seq: certain! + 1, last_seq: seq } };
}

/** Splits a range into ranges in which times never go back. */
async function orderedSpans(
  db: Db,
  bot_id: string,
  { first_seq, last_seq }: SeqSpan,
): Promise<SeqSpan[]> {
  const steps = await selectSteps(db, { bot_id, first_seq, last_seq });
  const starts = [first_seq, ...steps.map(({ seq }) => seq)];
  return starts.map((start, i) => ({
    first_seq: start,
    last_seq: (starts[i + 1] ?? last_seq + 1) - 1,
  }));
}

const selectSteps = prepareQuery(
  (db, { bot_id, first_seq, last_seq }: SeqSpan & { readonly bot_id: string }) =>
    db
      .selectFrom('bot_events')
      .select('seq')
      .where('bot_id', '=', bot_id)
      .where('kind', '=', CLOCK_SET_BACK)
      .where('seq', '>', first_seq)
      .where('seq', '<=', last_seq)
      .orderBy('seq'),
);

/**
 * Binary search for the last event of a span that was recorded by a given time; returns the event
 * before the span if no event was. `next` is the time of the following event in the span.
 */
async function findLast(
  db: Db,
  bot_id: string,
  { first_seq, last_seq }: SeqSpan,
  at: number,
): Promise<{ readonly last: number; readonly next: number | undefined }> {
  let last = first_seq - 1;
  let above = last_seq + 1;
  let next: number | undefined;
  while (above - last > 1) {
    const seq = Math.floor((last + above) / 2);
    const [event] = [
      ...(await selectTime(db, { bot_id, seq })),
      ...(await selectPackedTime(db, { bot_id, seq })),
    ];
    if (event !== undefined && event.recorded_at <= at) last = seq;
    else {
      above = seq;
      next = event?.recorded_at;
    }
  }
  return { last, next };
}

const selectTime = prepareQuery((db, { bot_id, seq }: { bot_id: string; seq: number }) =>
  db
    .selectFrom('bot_events')
    .select('recorded_at')
    .where('bot_id', '=', bot_id)
    .where('seq', '=', seq),
);

/** The first packed row that ends at an event or later. */
const selectPackedTime = prepareQuery((db, { bot_id, seq }: { bot_id: string; seq: number }) =>
  db
    .selectFrom('bot_numbers')
    .innerJoin('packed_bars', 'packed_bars.bot_no', 'bot_numbers.bot_no')
    .select('packed_bars.recorded_at')
    .where('bot_id', '=', bot_id)
    .where('seq', '>=', seq)
    .where((eb) => eb(sql<number>`seq`, '<=', sql<number>`${seq} + 1`))
    .orderBy('seq')
    .limit(1),
);
