import { MINUTE } from '../../base/durations.ts';
import { barsFromRows } from '../../market/bars.ts';
import { resample } from '../../market/resample.ts';
import type { Timeframe } from '../../market/timeframe.ts';
import type { Trade } from './matching.ts';

/** Open, high, low, close and volume as decimal text; tests may store malformed text. */
export type Kline = readonly [
  open: string,
  high: string,
  low: string,
  close: string,
  volume: string,
];

/** Bars of one minute by instrument, as exchanges make them of their trades. */
export class Klines {
  /** By instrument and opening time, ms since the epoch; oldest first. */
  readonly #bars = new Map<string, Map<number, Kline>>();

  /** Opening times with their bars, oldest first; one-minute bars by default. */
  of(id: string, interval?: Timeframe): readonly (readonly [time: number, kline: Kline])[] {
    const minutes = [...(this.#bars.get(id) ?? [])].sort(([a], [b]) => a - b);
    if (interval === undefined || interval.ms === MINUTE) return minutes;
    const rows = minutes.map(([time, [open, high, low, close, volume]]) => {
      const numbers = [open, high, low, close, volume].map(Number);
      return [time, ...numbers] as unknown as Parameters<typeof barsFromRows>[0][number];
    });
    const { length, time, ...columns } = resample(barsFromRows(rows), interval);
    const { open, high, low, close, volume } = columns;
    return Array.from({ length }, (_, at) => {
      const values = [open, high, low, close, volume].map((column) => decimalText(column[at]!));
      return [time[at]!, values as unknown as Kline];
    });
  }

  keep(id: string, time: number, kline: Kline): void {
    const bars = this.#bars.get(id) ?? new Map<number, Kline>();
    this.#bars.set(id, bars.set(time, kline));
  }

  /** @returns opening time of the bar that contains the trade. */
  count({ listing, time, price: units, quantity }: Trade): number {
    const { priceUnit, quantityUnit } = listing.setup;
    const opened = Math.floor(time / MINUTE) * MINUTE;
    const price = units * priceUnit;
    const known = this.#bars.get(listing.id)?.get(opened)?.map(Number);
    const [open, high, low, , volume] = known ?? [price, price, price, price, 0];
    const values = [
      open!,
      Math.max(high!, price),
      Math.min(low!, price),
      price,
      volume! + quantity * quantityUnit,
    ];
    this.keep(listing.id, opened, values.map(decimalText) as unknown as Kline);
    return opened;
  }

  /** Starts the bar of this time without a trade, as exchanges do for idle instruments. */
  start(id: string, time: number): number | undefined {
    const last = this.of(id).at(-1);
    if (last === undefined) return undefined;
    const opened = Math.floor(time / MINUTE) * MINUTE;
    const [, [, , , close]] = last;
    this.keep(id, opened, [close, close, close, close, '0']);
    return opened;
  }
}

/** Decimal text without an exponent and without the rounding error of binary arithmetic. */
export function decimalText(value: number): string {
  return value.toFixed(9).replace(/\.?0+$/, '');
}
