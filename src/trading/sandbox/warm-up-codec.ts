import { deserialize, serialize } from 'node:v8';
import { allocateBars, BAR_COLUMNS, type Bars } from '../../market/bars.ts';

/** Encodes bars by symbol. V8 cannot serialize shared memory, so it gets copies of the columns. */
export function encodeWarmUp(
  symbols: readonly string[],
  bars: Readonly<Record<string, Bars>>,
): Uint8Array {
  const columns = symbols.map((symbol) =>
    Object.hasOwn(bars, symbol)
      ? BAR_COLUMNS.map((name) => Float64Array.from(bars[symbol]![name]))
      : [],
  );
  return serialize(columns);
}

/** Decodes the output of `encodeWarmUp`. */
export function decodeWarmUp(
  symbols: readonly string[],
  bytes: Uint8Array,
): Readonly<Record<string, Bars>> {
  const columns = deserialize(bytes) as readonly (readonly Float64Array[])[];
  const entries = symbols.flatMap((symbol, index) => {
    const [time] = columns[index]!;
    if (time === undefined) return [];
    const bars = allocateBars(time.length);
    for (const [place, name] of BAR_COLUMNS.entries()) bars[name].set(columns[index]![place]!);
    return [[symbol, bars] as const];
  });
  return Object.fromEntries(entries);
}
