/**
 * RFC 3339 in UTC and whole seconds: `2026-01-02T03:04:05Z`. Excludes the year 0, which the calendars
 * of some languages do not have.
 */
const FORM = /^(?!0000)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;

/** Returns milliseconds since the Unix epoch; undefined for another form or a day that does not exist. */
export function parseTime(text: string): number | undefined {
  if (!FORM.test(text)) return undefined;
  const ms = Date.parse(text);
  // `Date.parse` accepts hour 24 as hour 0 of the next day, and in some engines 30 February.
  return Number.isFinite(ms) && formatTime(ms) === text ? ms : undefined;
}

export function isTime(value: unknown): boolean {
  return typeof value === 'string' && parseTime(value) !== undefined;
}

/**
 * @param ms milliseconds since the Unix epoch, rounded down to whole seconds.
 * @throws RangeError for a time outside the range of `Date`.
 */
export function formatTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, -'.000Z'.length)}Z`;
}
