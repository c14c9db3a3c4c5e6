/** A larger difference between the clocks of two processes on one database means a wrong clock. */
export const CLOCK_TOLERANCE_MS = 5_000;
