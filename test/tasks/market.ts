import { exampleDocument } from '../../src/api/bots.ts';
import { barsFromRows, type Bars } from '../../src/market/bars.ts';
import { importBars } from '../../src/market/catalogue.ts';

const START = Date.UTC(2000, 0, 1);
const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

/** Puts `SPX`, days, and `LONG`, so many minutes that they take a while, into a catalogue. */
export async function fillCatalogue(dir: string, minutes: number): Promise<void> {
  const options = { hasVolume: true, origin: 'made up', importedAt: '2026-01-02T03:04:05Z' };
  const imports = [
    ['SPX', '1d', wavesOf(300, DAY_MS)],
    ['LONG', '1m', wavesOf(minutes, MINUTE_MS)],
  ] as const;
  for (const [symbol, timeframe, bars] of imports) {
    await importBars(dir, bars, { ...options, symbol, timeframe });
  }
}

function wavesOf(count: number, stepMs: number): Bars {
  return barsFromRows(
    Array.from({ length: count }, (_, i) => {
      const price = (at: number): number => 100 + 20 * Math.sin(at / 17) + 5 * Math.sin(at / 3);
      const [open, close] = [price(i), price(i + 1)];
      const time = START + i * stepMs;
      return [
        time,
        open,
        Math.max(open, close) + 1,
        Math.min(open, close) - 1,
        close,
        1000,
      ] as const;
    }),
  );
}

/** A bot on a dataset of a catalogue. */
export function documentOn(
  slug: string,
  symbol: string,
  timeframe: '1d' | '1m',
): ReturnType<typeof exampleDocument> {
  const document = exampleDocument(slug, 10);
  const data = { source: `catalog://${symbol}`, timeframe };
  const universe = { symbols: [symbol], currency: 'USD' };
  return { ...document, spec: { ...(document['spec'] as object), universe, data } };
}
