import type { EntryBars } from './clock.ts';
import type { IndicatorKind } from './computation.ts';
import { Series, stateOf, type Drawing } from './declared-series.ts';

/** An indicator that a strategy declared and returned, with its values in a run. */
export interface ReturnedIndicator {
  /** Such as `bollinger`. */
  readonly kind: string;
  /** Such as `bollinger(close,20,2)`. */
  readonly label: string;
  /** The lines that the strategy returned; at least one. */
  readonly lines: readonly ReturnedLine[];
  /** The instruments it depends on, by index. */
  readonly bars: ReadonlyMap<number, EntryBars>;
}

export interface ReturnedLine {
  /** Path in the result of `indicators`, such as `bands.upper`. */
  readonly name: string;
  /** Such as `upper`. */
  readonly line: string;
  /** See {@link Drawing}. */
  readonly scale: string;
  /** One value for each entry; NaN until the indicator is ready. */
  readonly values: Float64Array;
}

/** Returns the paths of all series in what `indicators` returned. */
export function namesOf(returned: unknown): ReadonlyMap<Series, string> {
  const names = new Map<Series, string>();
  const seen = new Set<unknown>();
  const visit = (value: unknown, path: string): void => {
    if (typeof value !== 'object' || value === null || seen.has(value)) return;
    seen.add(value);
    if (value instanceof Series) names.set(value, path);
    else {
      for (const [key, child] of Object.entries(value)) {
        visit(child, path === '' ? key : `${path}.${key}`);
      }
    }
  };
  visit(returned, '');
  return names;
}

/** @param owner such as `SPX.on('1d')`; empty for the bars of the only instrument */
export function drawColumn(name: string, owner: string): Drawing {
  const label = owner === '' ? name : `${owner}.${name}`;
  if (name === 'volume') return { owner, label, scale: 'volume' };
  return { owner, label, scale: name === 'time' ? 'none' : 'price' };
}

export function drawLine<L extends string>(
  { name, lines, scale }: Pick<IndicatorKind<never, unknown, L>, 'name' | 'lines' | 'scale'>,
  {
    line,
    key,
    inputs,
    params,
  }: {
    readonly line: L;
    readonly key: string;
    readonly inputs: readonly Series[];
    readonly params: readonly unknown[];
  },
): Drawing {
  const drawings = inputs.map((input) => stateOf(input).drawing);
  const owners = new Set(drawings.map(({ owner }) => owner));
  // `atr(14)` for several columns of an instrument, `sma(close,20)` for one.
  const isOfBars = drawings.length > 1 && owners.size === 1;
  const labels = isOfBars ? [...owners] : drawings.map(({ label }) => label);
  const owner = `${name}(${[...labels, ...params].filter((label) => label !== '').join()})`;
  const own = typeof scale === 'string' ? scale : scale[line];
  const ofInput = drawings[0]!.scale;
  const scales = {
    price: 'price',
    none: 'none',
    own: key,
    input: ofInput === 'none' ? key : ofInput,
  };
  return { owner, label: lines.length === 1 ? owner : `${owner}.${line}`, scale: scales[own] };
}
