import { seededRandom } from '../../src/engine/random.ts';
import { allocateBars } from '../../src/market/bars.ts';
import type { Bars } from '../../src/market/bars.ts';

const MINUTE = 60_000;

/** A seeded random walk in minute bars, so that every machine measures the same work. */
export function randomWalk(length: number, seed = 1): Bars {
  const random = seededRandom(seed);
  const bars = allocateBars(length);
  let price = 100;
  for (let i = 0; i < length; i += 1) {
    const open = price;
    const close = open * (1 + (random() - 0.4999) * 0.004);
    const spread = open * 0.001 * random();
    bars.time[i] = 1_000_000_000_000 + i * MINUTE;
    bars.open[i] = open;
    bars.high[i] = Math.max(open, close) + spread;
    bars.low[i] = Math.min(open, close) - spread;
    bars.close[i] = close;
    bars.volume[i] = 1000 + Math.floor(random() * 1000);
    price = close;
  }
  return bars;
}
