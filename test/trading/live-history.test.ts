import { describe, expect, test } from 'vitest';
import { parseTimeframe, type TimeframeName } from '../../src/market/timeframe.ts';
import { fetchHistory } from '../../src/trading/live-history.ts';

test('history ends at a gap of an exchange that repeats its last bar before the time asked for', async () => {
  const MINUTE = 60_000;
  const bars = [0, 1, 2].map((n) => ({
    time: n * MINUTE,
    open: 1,
    high: 2,
    low: 1,
    close: 2,
    volume: 3,
  }));
  let requests = 0;
  const history = async (_symbol: string, _timeframe: string, since: number) => {
    requests += 1;
    if (requests > 10) throw new RangeError('asked again and again');
    return bars.filter(({ time }) => time > since - MINUTE);
  };
  const [SPX] = await fetchHistory({
    exchange: { history, offers: () => true },
    symbols: ['SPX'],
    timeframe: parseTimeframe('1m'),
    wanted: { bars: 10, longer: {} },
    before: 10 * MINUTE,
  });
  expect([...SPX!.warmUp!.time]).toEqual(bars.map(({ time }) => time));
});

describe('longer bars before a session', () => {
  const before = Date.UTC(2026, 0, 7, 12);
  const wanted = { bars: 2, longer: { '1d': 3, '1w': 2 } };
  const asked: string[] = [];

  /** An exchange without the names in `lacks`, whose weeks begin on `weekday` days after Monday. */
  function exchangeWith(lacks: readonly string[], weekday = 0) {
    asked.length = 0;
    const price = { open: 1, high: 2, low: 1, close: 2, volume: 3 };
    return {
      offers: (name: string) => !lacks.includes(name),
      async history(_symbol: string, name: TimeframeName, since: number) {
        asked.push(name);
        const { ms } = parseTimeframe(name);
        const shift = name === '1w' ? Date.UTC(2026, 0, 5 + weekday) % ms : 0;
        const first = Math.ceil((since - shift) / ms) * ms + shift;
        return Array.from({ length: 500 }, (_, at) => ({ time: first + at * ms, ...price }));
      },
    };
  }

  const fetch = async (exchange: ReturnType<typeof exchangeWith>) => {
    const timeframe = parseTimeframe('1h');
    const [one] = await fetchHistory({ exchange, symbols: ['X'], timeframe, wanted, before });
    const { warmUp, longer } = one!;
    const begin = new Date(warmUp!.time[0]!).toISOString().slice(0, 13);
    return { begin, days: longer!['1d']?.length, weeks: longer!['1w']?.length };
  };

  test('come from the exchange, and its own bars begin where the last one ends', async () => {
    expect(await fetch(exchangeWith([]))).toEqual({ begin: '2026-01-05T00', days: 3, weeks: 2 });
    expect(new Set(asked)).toEqual(new Set(['1d', '1w', '1h']));
  });

  test('are formed by its own bars if the exchange has none, or begins them at other times', async () => {
    expect(await fetch(exchangeWith(['1d']))).toMatchObject({ days: undefined, weeks: 2 });
    expect(await fetch(exchangeWith([], 3))).toEqual({ begin: '2025-12-22T00', days: 3 });
  });
});
