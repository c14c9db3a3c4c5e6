/// <reference lib="dom" />
import type { PackedColumn } from '../pack-column.ts';
import type { Level } from '../../../base/charts/level.ts';
import type { PackedLevel, PriceChart } from './chart-data.ts';

/** Inverse of `packColumn`. */
export function unpackColumn({ digits, length, text }: PackedColumn): (number | null)[] {
  const bytes = atob(text);
  const values: (number | null)[] = [];
  const scale = 10 ** digits;
  let at = 0;
  const next = (): number => {
    let number = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = bytes.charCodeAt(at++);
      number += (byte % 128) * factor;
      if (byte < 128) return number;
    }
  };
  let whole = 0;
  while (values.length < length) {
    const code = next() - 1;
    if (code === -1) values.push(null);
    else if (code === 0) {
      for (let zeros = next(); zeros >= 0; zeros -= 1) values.push(whole / scale);
    } else {
      whole += code % 2 === 0 ? code / 2 : -(code + 1) / 2;
      values.push(whole / scale);
    }
  }
  return values;
}

/** Decodes a level of detail. */
export function unpackLevel({ barsPerCandle, columns, ranges, markers }: PackedLevel): Level {
  const numbers = (column: PackedColumn): number[] => unpackColumn(column) as number[];
  let time = 0;
  return {
    candles: {
      barsPerCandle,
      time: numbers(columns.time).map((difference) => {
        // Milliseconds are exact.
        time = Math.round((time + difference) * 1000) / 1000;
        return time;
      }),
      open: numbers(columns.open),
      high: numbers(columns.high),
      low: numbers(columns.low),
      close: numbers(columns.close),
      volume: numbers(columns.volume),
    },
    ranges: ranges.map(({ close, low, high }) => ({
      close: unpackColumn(close),
      ...(low && high && { low: unpackColumn(low), high: unpackColumn(high) }),
    })),
    markers,
  };
}

/** Divides the single bars at the gaps between their stretches. */
export function divideLevel(
  { candles, ranges, markers }: Level,
  lengths: readonly number[],
): Level[] {
  let from = 0;
  return lengths.map((length) => {
    const [first, end] = [from, from + length];
    from = end;
    const cut = <T>(column: readonly T[]): readonly T[] => column.slice(first, end);
    const { time, open, high, low, close, volume } = candles;
    return {
      candles: {
        barsPerCandle: 1,
        time: cut(time),
        open: cut(open),
        high: cut(high),
        low: cut(low),
        close: cut(close),
        volume: cut(volume),
      },
      ranges: ranges.map((line) => ({ close: cut(line.close) })),
      markers: markers
        .filter(([candle]) => candle >= first && candle < end)
        .map(([candle, ...rest]) => [candle - first, ...rest] as const),
    };
  });
}

/** Decodes the levels of detail of an instrument. */
export function unpackLevels({ overview, single }: PriceChart) {
  return {
    overview: unpackLevel(overview),
    /** Stretches of single bars, in order of time. */
    stretches:
      single === undefined
        ? []
        : divideLevel(
            unpackLevel(single.level),
            single.stretches.map(({ from, to }) => to - from),
          ),
  };
}
