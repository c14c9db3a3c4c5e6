import { cp, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exampleDocument } from '../../../src/api/bots.ts';
import { NO_RISK_LIMITS } from '../../../src/engine/config.ts';
import { barsFromRows } from '../../../src/market/bars.ts';
import { importBars } from '../../../src/market/catalogue.ts';

const START = Date.UTC(2000, 0, 1);
const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

const OPTIONS = { hasVolume: true, origin: 'made up', importedAt: '2026-01-02T03:04:05Z' };

/** Time, open, high, low, close, volume. */
type Row = Parameters<typeof barsFromRows>[0][number];

/** Directories of filled catalogues, keyed by the number of bars of `LONG`. */
const filled = new Map<number, Promise<string>>();

/**
 * Fills a catalogue with daily bars of `SPX`, `TWO` and `THREE`, and with many one-minute bars of `LONG`.
 * Each process imports them once and copies them afterwards, which takes a tenth of the time.
 */
export async function fillCatalogue(dir: string, minutes: number): Promise<void> {
  if (!filled.has(minutes)) filled.set(minutes, importAll(minutes));
  await cp(await filled.get(minutes)!, dir, { recursive: true });
}

async function importAll(minutes: number): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'service-local-catalogue-'));
  const imports = [
    ['SPX', '1d', wavesOf(300, DAY_MS)],
    ['TWO', '1d', wavesOf(300, DAY_MS, 40)],
    ['THREE', '1d', wavesOf(300, DAY_MS, 90)],
    ['LONG', '1m', wavesOf(minutes, MINUTE_MS)],
  ] as const;
  for (const [symbol, timeframe, rows] of imports) {
    await importBars(dir, barsFromRows(rows), { ...OPTIONS, symbol, timeframe });
  }
  return dir;
}

/** Replaces the bars of `SPX`, as `data import --replace` does. */
export async function replaceDays(dir: string, change: (rows: Row[]) => Row[]): Promise<void> {
  const bars = barsFromRows(change(wavesOf(300, DAY_MS)));
  await importBars(dir, bars, { ...OPTIONS, symbol: 'SPX', timeframe: '1d', replace: true });
}

function wavesOf(count: number, stepMs: number, shift = 0): Row[] {
  return Array.from({ length: count }, (_, i) => {
    const price = (at: number): number =>
      100 + 20 * Math.sin((at + shift) / 17) + 5 * Math.sin((at + 3 * shift) / 3);
    const [open, close] = [price(i), price(i + 1)];
    const time = START + i * stepMs;
    return [time, open, Math.max(open, close) + 1, Math.min(open, close) - 1, close, 1000] as const;
  });
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

/** A bot that may trade with a built-in strategy, on as many of `SPX`, `TWO` and `THREE` as it takes. */
export function tradingDocument(
  slug: string,
  strategy: string,
  params: Readonly<Record<string, number>>,
): ReturnType<typeof exampleDocument> {
  const count = MARKETS[strategy] ?? 1;
  const symbols = ['SPX', 'TWO', 'THREE'].slice(0, count);
  const document = exampleDocument(slug, 10);
  const addresses = symbols.map((symbol) => [symbol, `catalog://${symbol}`] as const);
  const source =
    count === 1 ? { source: addresses[0]![1] } : { sources: Object.fromEntries(addresses) };
  return allowedToTrade({
    ...document,
    spec: {
      kind: 'trading',
      universe: { symbols, currency: 'USD' },
      data: { ...source, timeframe: '1d' },
      strategy: { name: strategy, params },
      engine: { account: { model: 'margin', initial: 0.5, maintenance: 0.25 } },
    },
  });
}

/** The bot with every limit of its risk stated. */
export function allowedToTrade<D extends Readonly<Record<string, unknown>>>(document: D): D {
  const limits = Object.keys(NO_RISK_LIMITS).map((name) => [name, { unlimited: 'it is a test' }]);
  const risk: unknown = Object.fromEntries(limits);
  return { ...document, spec: { ...(document['spec'] as object), risk } };
}

const MARKETS: Readonly<Record<string, number>> = { momentum_rotation: 3, pairs_reversion: 2 };
