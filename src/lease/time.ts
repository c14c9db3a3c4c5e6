/**
 * RFC 3339 in UTC and whole seconds, the one form in which times are signed: `2026-01-02T03:04:05Z`.
 * The year 0 does not exist in the calendars of some languages.
 */
const FORM = /^(?!0000)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;

/** Milliseconds since the Unix epoch; `undefined` for another form or a day that does not exist. */
export function parseTime(text: string): number | undefined {
  if (!FORM.test(text)) return undefined;
  const ms = Date.parse(text);
  // `Date` takes hour 24 of one day for hour 0 of the next; some engines take 30 February too.
  return Number.isFinite(ms) && formatTime(ms) === text ? ms : undefined;
}

/** Whether `parseTime` accepts it. */
export function isTime(value: unknown): boolean {
  return typeof value === 'string' && parseTime(value) !== undefined;
}

/**
 * @param ms milliseconds since the Unix epoch; what is beyond the last whole second is dropped.
 * @throws RangeError for a time out of the range of `Date`.
 */
export function formatTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, -'.000Z'.length)}Z`;
}
