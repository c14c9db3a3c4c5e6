import { BAR_COLUMNS, sliceBars, type Bars } from './bars.ts';

/** Bars with the row numbers of their file, for error messages. */
export interface FileBars {
  readonly bars: Bars;
  /** Data row of bar `index`, 1-based, without the header. */
  readonly rowOf: (index: number) => number;
}

/**
 * Returns the bars for which `keep` is true. Unless they are adjacent, overwrites the given columns,
 * because a copy would double the memory of a long history.
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
