import type { Level } from '../../base/charts/level.ts';
import type { PackedLevel } from './client/chart-data.ts';
import { packColumn } from './pack-column.ts';

export function packLevel({ candles, ranges, markers }: Level): PackedLevel {
  const { barsPerCandle, time, open, high, low, close, volume } = candles;
  return {
    barsPerCandle,
    columns: {
      time: packColumn(time.map((seconds, i) => toMilliseconds(seconds - (time[i - 1] ?? 0)))),
      open: packColumn(open),
      high: packColumn(high),
      low: packColumn(low),
      close: packColumn(close),
      volume: packColumn(volume),
    },
    ranges: ranges.map((line) => ({
      close: packColumn(line.close),
      ...(line.low && line.high && { low: packColumn(line.low), high: packColumn(line.high) }),
    })),
    markers,
  };
}

/** Rounds seconds, because a difference of large numbers has digits beyond the milliseconds. */
function toMilliseconds(seconds: number): number {
  return Math.round(seconds * 1000) / 1000;
}
