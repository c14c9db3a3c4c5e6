/**
 * How far the clocks of processes on one database may be apart, in milliseconds. Beyond it, one of
 * them is wrong.
 */
export const CLOCK_TOLERANCE_MS = 5_000;
