/**
 * Maximum difference between the clocks of processes on one database, ms. Beyond it, one of them is
 * wrong.
 */
export const CLOCK_TOLERANCE_MS = 5_000;
