import { ServiceError } from '../../base/errors.ts';
import { readLink } from '../../events/read-events.ts';
import { seqAt } from '../../events/snapshot.ts';
import type { Db } from '../../storage/tables.ts';

export function formatInstant(ms: number): string {
  return new Date(ms).toISOString();
}

export function formatInstantOrNull(ms: number | null): string | null {
  return ms === null ? null : formatInstant(ms);
}

/** A calendar year, up to now if it is not over. */
export interface Period {
  readonly year: number;
  /** Milliseconds since the Unix epoch; `to` is exclusive. */
  readonly from: number;
  readonly to: number;
  readonly isOver: boolean;
}

/**
 * @param now milliseconds since the Unix epoch.
 * @throws ServiceError `invalid_request` for a year that has not begun.
 */
export function periodOf(year: number | undefined, now: number): Period {
  const asked = year ?? new Date(now).getUTCFullYear();
  const from = Date.UTC(asked, 0);
  const end = Date.UTC(asked + 1, 0);
  if (from > now) throw invalidField('/year', `the year ${asked} has not begun`);
  return { year: asked, from, to: Math.min(end, now + 1), isOver: end <= now };
}

export function invalidField(
  pointer: string,
  message: string,
  code = 'invalid_value',
): ServiceError {
  return new ServiceError('invalid_request', message, { problems: [{ code, message, pointer }] });
}

/** The events with `after_seq` < `seq` ≤ `through_seq`. */
export interface SeqRange {
  readonly after_seq: number;
  readonly through_seq: number;
}

/** Finds the events that were recorded in a period; recording times grow with `seq`. */
export async function rangeOf(
  db: Db,
  bot_id: string,
  { from, to }: Pick<Period, 'from' | 'to'>,
): Promise<SeqRange> {
  return {
    after_seq: await findLastSeq(db, bot_id, from),
    through_seq: await findLastSeq(db, bot_id, to),
  };
}

/** Returns the `seq` of the newest event recorded before `time` (ms since epoch); 0 without events. */
async function findLastSeq(db: Db, bot_id: string, time: number): Promise<number> {
  try {
    return (await seqAt(db, bot_id, { at: time - 1 })).seq;
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'not_found') return 0;
    throw error;
  }
}

/** Finds the last event of a range, whose hash fixes all earlier events; undefined without events. */
export async function findHead(db: Db, bot_id: string, { through_seq }: SeqRange) {
  return readLink(db, bot_id, through_seq);
}
