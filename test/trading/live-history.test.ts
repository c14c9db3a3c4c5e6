import { expect, test } from 'vitest';
import { parseTimeframe } from '../../src/market/timeframe.ts';
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
  const { SPX } = await fetchHistory({
    exchange: { history },
    symbols: ['SPX'],
    timeframe: parseTimeframe('1m'),
    count: 10,
    before: 10 * MINUTE,
  });
  expect([...SPX!.time]).toEqual(bars.map(({ time }) => time));
});
