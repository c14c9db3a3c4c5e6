import { deserialize, serialize } from 'node:v8';
import { earlierParts, type EarlierBars, type EarlierPart } from '../../engine/earlier-bars.ts';
import { allocateBars, BAR_COLUMNS, type Bars } from '../../market/bars.ts';

interface EncodedPart extends Omit<EarlierPart, 'bars'> {
  readonly columns: readonly (readonly [symbol: string, columns: readonly Float64Array[]])[];
}

/** Encodes the bars before a run. V8 cannot serialize shared memory, so it gets copies of the columns. */
export function encodeWarmUp(symbols: readonly string[], earlier: EarlierBars): Uint8Array {
  const none = allocateBars(0);
  const instruments = symbols.map((symbol) => ({ symbol, bars: none, ...earlier.of(symbol) }));
  const parts = [...earlierParts(instruments)].map(({ bars, ...part }): EncodedPart => {
    const columns = Object.entries(bars).map(
      ([symbol, one]) => [symbol, copyColumns(one)] as const,
    );
    return { ...part, columns };
  });
  return serialize(parts);
}

function copyColumns(bars: Bars): Float64Array[] {
  return BAR_COLUMNS.map((name) => Float64Array.from(bars[name].subarray(0, bars.length)));
}

/** Decodes the output of `encodeWarmUp`. */
export function decodeWarmUp(bytes: Uint8Array): EarlierPart[] {
  return (deserialize(bytes) as readonly EncodedPart[]).map(({ columns, ...part }) => ({
    ...part,
    bars: Object.fromEntries(columns.map(([symbol, some]) => [symbol, barsOf(some)])),
  }));
}

function barsOf(columns: readonly Float64Array[]): Bars {
  const bars = allocateBars(columns[0]!.length);
  for (const [place, name] of BAR_COLUMNS.entries()) bars[name].set(columns[place]!);
  return bars;
}
