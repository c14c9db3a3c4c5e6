import { BAR_COLUMNS, sliceBars, type Bars } from './bars.ts';

/** Bars together with where in their file they stood, so that any fault can be pointed at. */
export interface FileBars {
  readonly bars: Bars;
  /** The data row (1-based, header not counted) that bar `index` was read from. */
  readonly rowOf: (index: number) => number;
}

/**
 * The bars for which `keep` holds. Unless they lie side by side they are moved together inside the
 * columns of `file`, whose bars are lost by that: a second set of columns would double the memory
 * of a long history.
 */
export function keepBars({ bars, rowOf }: FileBars, keep: (index: number) => boolean): FileBars {
  let first = 0;
  let end = 0;
  let count = 0;
  for (let index = 0; index < bars.length; index++) {
    if (!keep(index)) continue;
    if (count === 0) first = index;
    end = index + 1;
    count++;
  }
  if (count === end - first) {
    return { bars: sliceBars(bars, first, end), rowOf: (index) => rowOf(index + first) };
  }
  const rows = new Uint32Array(count);
  let target = 0;
  for (let index = first; index < end; index++) {
    if (!keep(index)) continue;
    rows[target] = rowOf(index);
    for (const name of BAR_COLUMNS) bars[name][target] = bars[name][index]!;
    target++;
  }
  return { bars: sliceBars(bars, 0, count), rowOf: (index) => rows[index]! };
}
