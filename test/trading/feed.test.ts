import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { stepsOf } from '../../src/engine/steps.ts';
import type { Bars } from '../../src/market/bars.ts';
import { barsFromRows } from '../../src/market/bars.ts';
import { importBars } from '../../src/market/catalogue.ts';
import { findGaps } from '../../src/market/data-gaps.ts';
import { loadDataset } from '../../src/market/load-dataset.ts';
import { DAY, HOUR, MINUTE } from '../../src/base/durations.ts';
import { parseTimeframe } from '../../src/market/timeframe.ts';
import { Intake, type FeedItem } from '../../src/trading/feed.ts';
import { replayFeed, type Clock, type ReplayOptions } from '../../src/trading/replay-feed.ts';

const MONDAY = Date.UTC(2024, 0, 1);
const MINUTES = parseTimeframe('1m');
const CANDLE = { open: 1, high: 1, low: 1, close: 1, volume: 1 };

function barsAt(times: readonly number[]): Bars {
  return barsFromRows(times.map((time, i) => [time, i + 1, i + 1, i + 1, i + 1, 1]));
}

const minutes = (...at: readonly number[]): Bars => barsAt(at.map((one) => MONDAY + one * MINUTE));

/** Hours from 14:00 to 20:00 on the weekdays of six weeks. */
function tradingHours(): number[] {
  const weekdays = Array.from({ length: 42 }, (_, day) => day).filter((day) => day % 7 < 5);
  return weekdays.flatMap((day) =>
    Array.from({ length: 7 }, (_, hour) => MONDAY + day * DAY + (14 + hour) * HOUR),
  );
}

async function all(feed: AsyncIterable<FeedItem>): Promise<FeedItem[]> {
  const items: FeedItem[] = [];
  for await (const item of feed) items.push(item);
  return items;
}

/** Items other than bars. */
function observations(items: readonly FeedItem[]): unknown[] {
  return items.filter(({ kind }) => kind !== 'data.bars');
}

const iso = (ms: number): string => new Date(ms).toISOString();

describe('replayFeed', () => {
  it('yields the bars of catalogue datasets as steps, with gaps', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'service-local-feed-'));
    onTestFinished(() => rm(dir, { recursive: true }));
    const instruments = [];
    for (const [symbol, bars] of [
      ['A', minutes(0, 1, 3)],
      ['B', minutes(1, 2, 3)],
    ] as const) {
      const origin = { origin: 'a test', importedAt: iso(MONDAY) };
      await importBars(dir, bars, { symbol, timeframe: '1m', hasVolume: true, ...origin });
      const dataset = await loadDataset({ source: `catalog://${symbol}`, catalogueDir: dir });
      instruments.push({ symbol, bars: dataset.bars });
    }
    const items = await all(replayFeed({ instruments, timeframe: MINUTES, speed: 'max' }));
    const bar = (price: number) => ({
      ...CANDLE,
      open: price,
      high: price,
      low: price,
      close: price,
    });
    expect(items).toEqual([
      { kind: 'data.bars', step: { time: MONDAY, bars: { A: bar(1) } } },
      { kind: 'data.bars', step: { time: MONDAY + MINUTE, bars: { A: bar(2), B: bar(1) } } },
      { kind: 'data.bars', step: { time: MONDAY + 2 * MINUTE, bars: { B: bar(2) } } },
      {
        kind: 'data.gap',
        symbol: 'A',
        after: iso(MONDAY + MINUTE),
        before: iso(MONDAY + 3 * MINUTE),
        missing: 1,
      },
      { kind: 'data.bars', step: { time: MONDAY + 3 * MINUTE, bars: { A: bar(3), B: bar(3) } } },
    ]);
  });

  it('reports the same gaps as a data check: not nights, weekends or holidays', async () => {
    const timeframe = parseTimeframe('1h');
    const hole = (time: number): boolean =>
      // Two hours of a Wednesday, and a Thursday that is a holiday.
      [15, 16].some((hour) => time === MONDAY + 9 * DAY + hour * HOUR) ||
      Math.floor((time - MONDAY) / DAY) === 24;
    const bars = barsAt(tradingHours().filter((time) => !hole(time)));
    const items = await all(
      replayFeed({ instruments: [{ symbol: 'X', bars }], timeframe, speed: 'max' }),
    );
    expect(observations(items)).toEqual([
      {
        kind: 'data.gap',
        symbol: 'X',
        after: iso(MONDAY + 9 * DAY + 14 * HOUR),
        before: iso(MONDAY + 9 * DAY + 17 * HOUR),
        missing: 2,
      },
    ]);
    expect(findGaps(bars, timeframe)).toMatchObject({ count: 1, missing: 2, shortHoles: 1 });
  });

  it('continues after a given time with the same items as an uninterrupted replay', async () => {
    const instruments = [
      { symbol: 'A', bars: minutes(0, 1, 4, 5, 6) },
      { symbol: 'B', bars: minutes(0, 2, 3, 4, 7) },
    ];
    const options = { instruments, timeframe: MINUTES, speed: 'max' } as const;
    const whole = await all(replayFeed(options));
    for (const [index, item] of whole.entries()) {
      if (item.kind !== 'data.bars') continue;
      const rest = await all(replayFeed({ ...options, after: item.step.time }));
      expect(rest).toEqual(whole.slice(index + 1));
    }
  });

  it.each([0, -1, Number.NaN, Infinity])('rejects the speed %d', async (speed) => {
    const instruments = [{ symbol: 'X', bars: minutes(0) }];
    await expect(all(replayFeed({ instruments, timeframe: MINUTES, speed }))).rejects.toThrow(
      RangeError,
    );
  });
});

/** A clock that advances only during its waits. */
class MadeUpClock implements Clock {
  time = 5000;
  readonly waits: number[] = [];
  /** Called during the wait of this number. */
  readonly meanwhile: Record<number, () => void> = {};

  now(): number {
    return this.time;
  }

  async wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
    this.waits.push(ms);
    this.meanwhile[this.waits.length - 1]?.();
    signal?.throwIfAborted();
    this.time += ms;
  }
}

describe('pace of replayFeed', () => {
  const clock = () => new MadeUpClock();
  const replay = (options: Partial<ReplayOptions> & { bars?: Bars }): AsyncIterable<FeedItem> => {
    const { bars = minutes(0, 1, 2, 4), ...rest } = options;
    const instruments = [{ symbol: 'X', bars }];
    return replayFeed({ instruments, timeframe: MINUTES, speed: 60, ...rest });
  };
  /** Time of each step by the clock. */
  async function arrivals(
    feed: AsyncIterable<FeedItem>,
    time: MadeUpClock,
    slowness = 0,
  ): Promise<number[]> {
    const at: number[] = [];
    for await (const { kind } of feed) {
      if (kind !== 'data.bars') continue;
      at.push(time.now() - 5000);
      time.time += slowness;
    }
    return at;
  }

  it('spaces steps by the time between bars, divided by the speed', async () => {
    const time = clock();
    expect(await arrivals(replay({ clock: time }), time)).toEqual([0, 1000, 2000, 4000]);
    expect(time.waits).toEqual([1000, 1000, 2000]);
  });

  it('yields steps without a wait to a consumer that is late', async () => {
    const time = clock();
    expect(await arrivals(replay({ clock: time }), time, 1500)).toEqual([0, 1500, 3000, 4500]);
    expect(time.waits).toEqual([]);
  });

  it('yields to other work every 64 steps at full speed', async () => {
    const time = clock();
    const bars = barsAt(Array.from({ length: 200 }, (_, i) => MONDAY + i * MINUTE));
    const at = await arrivals(replay({ clock: time, bars, speed: 'max' }), time);
    expect(at).toEqual(Array.from({ length: 200 }, () => 0));
    expect(time.waits).toEqual([0, 0, 0]);
  });

  it('splits a wait that is longer than a timer allows', async () => {
    const time = clock();
    const bars = barsAt([MONDAY, MONDAY + 31 * DAY]);
    const feed = replay({ clock: time, bars, timeframe: parseTimeframe('1mo'), speed: 1 });
    expect(await arrivals(feed, time)).toEqual([0, 31 * DAY]);
    expect(Math.max(...time.waits)).toBe(HOUR);
  });

  it('throws the reason of its signal, before the first step or during a wait', async () => {
    const reason = new Error('enough');
    const early = AbortSignal.abort(reason);
    await expect(arrivals(replay({ clock: clock(), signal: early }), clock())).rejects.toBe(reason);
    const time = clock();
    const controller = new AbortController();
    time.meanwhile[1] = () => controller.abort(reason);
    const feed = replay({ clock: time, signal: controller.signal });
    await expect(arrivals(feed, time)).rejects.toBe(reason);
    expect(time.waits).toHaveLength(2);
  });

  it('uses the system clock by default and aborts its timers', async () => {
    const controller = new AbortController();
    const reason = new Error('enough');
    // Two steps of 10 ms each, and one that is never reached.
    const bars = minutes(0, 1, 2, 100_000);
    const feed = replay({ bars, speed: 6000, signal: controller.signal });
    let steps = 0;
    const end = async (): Promise<void> => {
      for await (const { kind } of feed) {
        if (kind === 'data.bars' && ++steps === 3) {
          setImmediate(() => controller.abort(reason));
        }
      }
    };
    await expect(end()).rejects.toBe(reason);
    expect(steps).toBe(3);
  });
});

describe('Intake', () => {
  it('reports late and duplicate bars, and counts a rejected bar as missing', () => {
    const instruments = ['A', 'B'].map((symbol) => ({ symbol, bars: minutes(0, 1, 2, 3) }));
    const intake = new Intake(instruments, MINUTES);
    const at = (minute: number, ...symbols: readonly string[]): FeedItem[] =>
      intake.take({
        time: MONDAY + minute * MINUTE,
        bars: Object.fromEntries(symbols.map((symbol) => [symbol, CANDLE])),
      });
    const refused = (symbol: string, minute: number, reason: string) => ({
      kind: 'data.refused',
      symbol,
      time: iso(MONDAY + minute * MINUTE),
      reason,
    });
    expect(at(0, 'A', 'B')).toMatchObject([{ kind: 'data.bars' }]);
    expect(at(1, 'A')).toMatchObject([{ kind: 'data.bars' }]);
    expect(at(1, 'A', 'B')).toEqual([refused('A', 1, 'duplicate'), refused('B', 1, 'late')]);
    expect(at(0, 'A', 'B')).toEqual([refused('A', 0, 'late'), refused('B', 0, 'duplicate')]);
    // A rejected bar counts as missing.
    expect(at(2, 'A', 'B')).toMatchObject([
      { kind: 'data.gap', symbol: 'B', missing: 1 },
      { kind: 'data.bars' },
    ]);
  });

  it('accepts all steps of a replay', () => {
    const instruments = [{ symbol: 'X', bars: barsAt(tradingHours()) }];
    const intake = new Intake(instruments, parseTimeframe('1h'));
    const items = [...stepsOf(instruments)].flatMap((step) => intake.take(step));
    expect(items.length).toBe(210);
    expect(observations(items)).toEqual([]);
  });
});
