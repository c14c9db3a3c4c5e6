import { BAR_COLUMNS, barsFromRows, type Bars } from '../../src/market/bars.ts';

export type Row = [
  time: number,
  open: number,
  high: number,
  low: number,
  close: number,
  volume: number,
];

export function rowsOf(bars: Bars): Row[] {
  return Array.from(
    { length: bars.length },
    (_, index) => BAR_COLUMNS.map((name) => bars[name][index]!) as Row,
  );
}

/** Bars with the same price at the given times. */
export function flatBars(times: readonly number[]): Bars {
  return barsFromRows(times.map((time) => [time, 1, 1, 1, 1, 1]));
}

/** `count` instants from `start`, `step` apart. */
export function instants(start: number, step: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => start + index * step);
}
