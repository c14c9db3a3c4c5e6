import type { Level, PackedLevel } from './client/chart-data.ts';
import { packColumn } from './pack-column.ts';

export function packLevel({ candles, ranges, markers }: Level): PackedLevel {
  const { barsPerCandle, time, open, high, low, close, volume } = candles;
  return {
    barsPerCandle,
    columns: {
      time: packColumn(time.map((seconds, i) => seconds - (time[i - 1] ?? 0))),
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
