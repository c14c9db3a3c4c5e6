/** Durations in milliseconds. This module imports nothing: strategies get it without Node's types. */
export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
