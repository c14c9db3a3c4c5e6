import { describe, expect, it } from 'vitest';
import { DAY } from '../../../src/base/durations.ts';
import { PermutedBars } from '../../../src/backtest/robustness/permuted-bars.ts';
import {
  BAR_COLUMNS,
  barsFromRows,
  followedBy,
  joinBars,
  sliceBars,
  type Bars,
} from '../../../src/market/bars.ts';
import { normals } from './noise.ts';

/** A random walk with gaps, at these days. */
function walk(seed: number, days: readonly number[]): Bars {
  const normal = normals(seed);
  let last = 100;
  return barsFromRows(
    days.map((day) => {
      const open = last * Math.exp(0.002 * normal());
      const close = open * Math.exp(0.01 * normal());
      const high = Math.max(open, close) * (1 + 0.004 * Math.abs(normal()));
      const low = Math.min(open, close) * (1 - 0.004 * Math.abs(normal()));
      last = close;
      return [day * DAY, open, high, low, close, Math.round(1000 * Math.abs(normal()))];
    }),
  );
}

const range = (count: number, from = 0): number[] =>
  Array.from({ length: count }, (_, i) => from + i);

/** The changes of bar `i`, to 9 digits. */
function changesAt({ open, high, low, close, volume }: Bars, i: number) {
  const round = (value: number): number => Number(value.toPrecision(9));
  return {
    gap: round(open[i]! / close[i - 1]!),
    body: [high[i]! / open[i]!, low[i]! / open[i]!, close[i]! / open[i]!, volume[i]!]
      .map(round)
      .join(),
  };
}

/** How often each value occurs. */
const counts = (values: Iterable<unknown>) =>
  new Map([...Map.groupBy(values, (value) => value)].map(([value, { length }]) => [value, length]));

const columnsOf = (bars: Bars): number[][] => BAR_COLUMNS.map((name) => [...bars[name]]);

describe('permuted bars', () => {
  const bars = walk(1, range(200));

  it('have the changes of the bars in another order, and their first and last prices', () => {
    const permuted = new PermutedBars([{ symbol: 'A', bars }], 7).permute(3)[0]!.bars;
    expect([...permuted.time]).toEqual([...bars.time]);
    for (const name of BAR_COLUMNS) expect(permuted[name][0]).toBe(bars[name][0]);
    expect(permuted.close.at(-1)! / bars.close.at(-1)!).toBeCloseTo(1, 10);
    const changes = (of: Bars) => range(199, 1).map((i) => changesAt(of, i));
    const [given, found] = [changes(bars), changes(permuted)];
    expect(counts(found.map(({ gap }) => gap))).toEqual(counts(given.map(({ gap }) => gap)));
    expect(counts(found.map(({ body }) => body))).toEqual(counts(given.map(({ body }) => body)));
    const moved = found.filter(({ body }, i) => body !== given[i]!.body);
    expect(moved.length).toBeGreaterThan(180);
    // Gaps and bodies have permutations of their own.
    const pairs = new Set(given.map(({ gap, body }) => `${gap} ${body}`));
    const kept = found.filter(({ gap, body }) => pairs.has(`${gap} ${body}`));
    expect(kept.length).toBeLessThan(10);
    for (let i = 0; i < permuted.length; i++) {
      const { open, high, low, close } = permuted;
      expect(high[i]).toBeGreaterThanOrEqual(Math.max(open[i]!, close[i]!));
      expect(low[i]).toBeLessThanOrEqual(Math.min(open[i]!, close[i]!));
    }
  });

  it('depend on the seed and the number alone, not on earlier permutations', () => {
    const one = new PermutedBars([{ symbol: 'A', bars }], 7);
    one.permute(8);
    const first = columnsOf(one.permute(9)[0]!.bars);
    const second = columnsOf(new PermutedBars([{ symbol: 'A', bars }], 7).permute(9)[0]!.bars);
    expect(first).toEqual(second);
    expect(columnsOf(one.permute(10)[0]!.bars)).not.toEqual(first);
    const other = new PermutedBars([{ symbol: 'A', bars }], 8);
    expect(columnsOf(other.permute(9)[0]!.bars)).not.toEqual(first);
  });

  it('keep the changes of several symbols at one time together, also around gaps', () => {
    const days = { A: range(120), B: range(120).filter((day) => day % 7 !== 0), C: range(60, 40) };
    const instruments = Object.entries(days).map(([symbol, own], i) => ({
      symbol,
      bars: walk(10 + i, own),
    }));
    const permuted = new PermutedBars(instruments, 7).permute(4);
    /** Time of the bar whose body each bar received. */
    const [a, b, c] = instruments.map(({ bars: given }, symbol) => {
      const found = permuted[symbol]!.bars;
      expect([...found.time]).toEqual([...given.time]);
      expect(found.close.at(-1)! / given.close.at(-1)!).toBeCloseTo(1, 10);
      const after = range(given.length - 1, 1);
      const timeOf = new Map(after.map((i) => [changesAt(given, i).body, given.time[i]!]));
      return new Map(after.map((i) => [found.time[i]!, timeOf.get(changesAt(found, i).body)!]));
    }) as [Map<number, number>, Map<number, number>, Map<number, number>];
    expect(counts(a.values())).toEqual(counts(a.keys()));
    for (const [time, source] of [...b, ...c]) expect(a.get(time) ?? source).toBe(source);
    expect([...a].filter(([time, source]) => time !== source).length).toBeGreaterThan(90);
  });

  it('follow the bars before the run, which stay', () => {
    const all = walk(2, range(90));
    // In other memory, so that permuting must put both into one column.
    const warmUp = joinBars(sliceBars(all, 0, 30));
    const given = { symbol: 'A', bars: sliceBars(all, 30, 90), warmUp };
    const found = new PermutedBars([given], 7).permute(1)[0]!;
    expect(columnsOf(found.warmUp!)).toEqual(columnsOf(warmUp));
    expect(followedBy(found.warmUp!, found.bars).close.buffer).toBe(found.bars.close.buffer);
    expect(found.bars.close[0]).toBe(all.close[30]);
  });

  it('need positive prices', () => {
    const bad = barsFromRows([
      [0, 1, 1, 1, 1, 1],
      [1, 1, 1, -1, 1, 1],
    ]);
    expect(() => new PermutedBars([{ symbol: 'OIL', bars: bad }], 7)).toThrow(
      'OIL has prices that are not positive',
    );
  });
});
