/** Indicators of a session that begin before its first step. */
import { describe, expect, it } from 'vitest';
import { Engine } from '../../src/engine/engine.ts';
import type { EngineInstrument } from '../../src/engine/engine-setup.ts';
import { ema } from '../../src/engine/indicators/ema.ts';
import { sma } from '../../src/engine/indicators/sma.ts';
import { obv } from '../../src/engine/indicators/obv.ts';
import { crossedAbove, crossedBelow } from '../../src/engine/series/condition.ts';
import { defineStrategy } from '../../src/engine/strategy.ts';
import { barsFromRows, sliceBars, type Bars } from '../../src/market/bars.ts';
import { resample } from '../../src/market/resample.ts';
import { parseTimeframe, type TimeframeName } from '../../src/market/timeframe.ts';
import { MOST_WARM_UP_BARS, type FeedItem } from '../../src/trading/feed.ts';
import { replayFeed } from '../../src/trading/replay-feed.ts';
import { EarlierBars } from '../../src/engine/earlier-bars.ts';
import { decodeWarmUp, encodeWarmUp } from '../../src/trading/sandbox/warm-up-codec.ts';
import { inputEvent, parseInput, type SessionInput } from '../../src/trading/session-events.ts';
import { TradingSession } from '../../src/trading/trading-session.ts';
import { seededRandom } from '../engine/indicator-contract.ts';
import { DAY, ENGINE_DEFAULTS, START } from '../engine/market.ts';
import { some } from '../length.ts';

/** A random walk in cents, as exchanges quote it. */
function walk(seed: number, count: number, stepMs: number): Bars {
  const random = seededRandom(seed);
  const cents = (price: number): number => Math.round(price * 100) / 100;
  let price = 40_000 + seed;
  const rows = Array.from({ length: count }, (_, index) => {
    const open = price;
    price = cents(price * (1 + 0.002 * (random() - 0.5)));
    const [high, low] = [Math.max(open, price) + 1, Math.min(open, price) - 1];
    const volume = Math.round(1e5 * random()) / 1e3;
    return [START + index * stepMs, open, cents(high), cents(low), price, volume] as const;
  });
  return barsFromRows(rows);
}

const trend = defineStrategy({
  name: 'trend',
  description: 'Follows short averages above or below a long one of days.',
  params: {},
  indicators: ({ instruments }) =>
    instruments.map((asset) => ({
      fast: sma(asset.close, 5),
      slow: sma(asset.close, 20),
      balance: obv(asset),
      long: ema(asset.on('1d').close, 200),
      week: ema(asset.on('1w').close, 2),
    })),
  create: ({ instruments, indicators, broker }) => ({
    onBar() {
      for (const [at, { fast, slow, long, week, balance }] of indicators.entries()) {
        const asset = instruments[at]!;
        const weight = (0.4 + (balance.value % 7) / 20) / instruments.length;
        if (crossedAbove(fast, slow) && asset.close > Math.min(long.value, week.value)) {
          broker.target(asset, weight);
        } else if (crossedBelow(fast, slow)) broker.target(asset, 0);
      }
    },
  }),
});

const setupOf = (timeframe: TimeframeName) => ({
  strategy: trend,
  params: {},
  config: { ...ENGINE_DEFAULTS, timeframe },
});

const linesOf = (events: Iterable<object>): string[] =>
  [...events].map((event) => JSON.stringify(event));

function cut(symbol: string, bars: Bars, from: number): EngineInstrument {
  const warmUp = sliceBars(bars, 0, from);
  return { symbol, bars: sliceBars(bars, from, bars.length), warmUp };
}

async function itemsOf(
  instruments: readonly EngineInstrument[],
  timeframe: TimeframeName,
): Promise<FeedItem[]> {
  const options = { instruments, timeframe: parseTimeframe(timeframe), speed: 'max' as const };
  return Array.fromAsync(replayFeed(options));
}

/** Recorded inputs, as they are read back. */
function readBack(items: readonly FeedItem[]): { inputs: SessionInput[]; sizes: number[] } {
  const sizes: number[] = [];
  const inputs = items.map((item) => {
    const { kind, payload } = inputEvent(item as SessionInput, 0);
    const text = JSON.stringify(payload);
    if (kind === 'data.warm_up') sizes.push(text.length);
    return parseInput(kind as SessionInput['kind'], text);
  });
  return { inputs, sizes };
}

const WARM_UPS = [
  { name: '40 symbols', symbols: 40, timeframe: '4h', each: 6 },
  { name: 'an average of 200 days over bars of a minute', symbols: 1, timeframe: '1m', each: 1440 },
] as const;

describe.each(some(1, WARM_UPS))('$name', ({ symbols, timeframe, each }) => {
  const { ms } = parseTimeframe(timeframe);
  const days = 215;
  const instruments = Array.from({ length: symbols }, (_, at) =>
    cut(`S${at}`, walk(at + 1, days * each + 300, ms), days * each - 7),
  );

  it('gives a session the events of a backtest, also after restarts', async () => {
    const backtest = new Engine({ ...setupOf(timeframe), instruments });
    while (backtest.advance(500));
    const lines = linesOf(backtest.result().journal.events());
    expect(lines.length).toBeGreaterThan(10);

    const setup = { ...setupOf(timeframe), symbols: instruments.map(({ symbol }) => symbol) };
    const items = await itemsOf(instruments, timeframe);
    const { inputs, sizes } = readBack(items);
    const { warmUp } = instruments[0]!;
    expect(sizes).toHaveLength(symbols * Math.ceil(warmUp!.length / MOST_WARM_UP_BARS));
    expect(Math.max(...sizes)).toBeLessThan(128 * 1024);
    const bytes = sizes.reduce((sum, size) => sum + size, 0);
    expect(bytes / (symbols * warmUp!.length)).toBeLessThan(26);

    // Killed within the bars before the first step, and again later.
    const begun = inputs.slice(0, Math.ceil(sizes.length / 2));
    const session = await TradingSession.resume({ ...setup, timeoutMs: Infinity }, begun);
    const kept = [...begun];
    for (const input of inputs.slice(0, sizes.length + 100)) {
      session.take(input);
      kept.push(input);
    }
    const next = await TradingSession.resume({ ...setup, timeoutMs: Infinity }, kept);
    for (const input of inputs.slice(sizes.length + 100)) next.take(input);
    expect(linesOf(next.events())).toEqual(lines);
  });
});

describe('complete bars of longer timeframes before a run', () => {
  const bars = walk(9, 24 * 260, DAY / 24);
  const whole = cut('X', bars, 24 * 250 + 5);
  const longer = Object.fromEntries(
    (['1d', '1w'] as const).map((name) => {
      const all = resample(whole.warmUp!, parseTimeframe(name));
      // The bars before the run do not contain all of the last one.
      return [name, sliceBars(all, 0, all.length - 1)];
    }),
  );
  const run = (instrument: EngineInstrument): Engine => {
    const engine = new Engine({ ...setupOf('1h'), instruments: [instrument] });
    while (engine.advance(100));
    return engine;
  };
  const eventsOf = (instrument: EngineInstrument): string[] =>
    linesOf(run(instrument).result().journal.events());

  it('replace those that the bars before the run form, and can be sent to another process', async () => {
    const lines = eventsOf(whole);
    expect(lines.length).toBeGreaterThan(5);
    expect(eventsOf({ ...whole, longer })).toEqual(lines);
    const [earlier, received] = [new EarlierBars(), new EarlierBars()];
    for (const item of await itemsOf([{ ...whole, longer }], '1h')) {
      if (item.kind === 'data.warm_up') earlier.add(item);
    }
    for (const part of decodeWarmUp(encodeWarmUp(['X'], earlier))) received.add(part);
    expect(eventsOf({ ...whole, ...received.of('X') })).toEqual(lines);
  });

  it('are followed by the bars of the run in the middle of a day and a week', () => {
    // Six days of its own, which contain the beginning of its week.
    const warmUp = sliceBars(whole.warmUp!, whole.warmUp!.length - 24 * 6, whole.warmUp!.length);
    const valuesOf = (instrument: EngineInstrument) => {
      const lines = run(instrument)
        .indicators()
        .filter(({ label }) => label.includes("on('"))
        .flatMap((indicator) => indicator.lines);
      return lines.map(({ name, values }) => [name, ...values]);
    };
    const values = valuesOf({ ...whole, warmUp, longer });
    expect(values.map(([name]) => name)).toEqual(['0.long', '0.week']);
    expect(values).toEqual(valuesOf(whole));
  });
});
