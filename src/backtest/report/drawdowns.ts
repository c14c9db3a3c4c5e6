/** A time below a former peak; times in ms since the epoch. */
export interface DrawdownPeriod {
  /** The peak, or the first step if equity fell below the starting cash at once. */
  readonly start: number;
  readonly trough: number;
  /** First step at or above the peak; undefined if equity did not recover. */
  readonly recovery: number | undefined;
  /** `lowest equity ÷ peak − 1`, between −1 and 0. */
  readonly depth: number;
}

/** The deepest periods below a former peak, the deepest first. */
export function worstDrawdowns(
  time: Float64Array,
  drawdown: Float64Array,
  count: number,
): DrawdownPeriod[] {
  const periods: DrawdownPeriod[] = [];
  for (let step = 0; step < drawdown.length; step += 1) {
    if (drawdown[step]! >= 0) continue;
    const start = Math.max(0, step - 1);
    let trough = step;
    for (; step < drawdown.length && drawdown[step]! < 0; step += 1) {
      if (drawdown[step]! < drawdown[trough]!) trough = step;
    }
    periods.push({
      start: time[start]!,
      trough: time[trough]!,
      recovery: step < time.length ? time[step] : undefined,
      depth: Math.max(-1, drawdown[trough]!),
    });
    if (periods.length > 4 * count) keepDeepest(periods, count);
  }
  keepDeepest(periods, count);
  return periods;
}

function keepDeepest(periods: DrawdownPeriod[], count: number): void {
  periods.sort((a, b) => a.depth - b.depth);
  periods.length = Math.min(periods.length, count);
}
