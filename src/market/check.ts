import { ServiceError, type Problem } from '../errors.ts';
import type { Bars } from './bars.ts';
import type { FileBars } from './rows.ts';
import { formatTime } from './time.ts';

/** Everything for which a row of prices is refused. */
type DefectCode =
  | 'unreadable_time'
  | 'duplicate_time'
  | 'backward_time'
  | 'forward_time'
  | 'unreadable_price'
  | 'price_not_positive'
  | 'high_below_low'
  | 'open_outside_range'
  | 'close_outside_range'
  | 'unreadable_volume'
  | 'negative_volume';

/** How many rows have each defect; a row may have several. */
export type DefectCounts = { readonly [K in DefectCode]?: number };

interface Defect {
  readonly code: DefectCode;
  /** Data row of the file, 1-based. */
  readonly row: number;
  readonly message: string;
}

export interface CheckReport {
  /** Rows looked at. */
  readonly rows: number;
  readonly badRows: number;
  readonly counts: DefectCounts;
  /** The first of each kind, at most `LISTED` of it, in the order of the file. */
  readonly defects: readonly Defect[];
  readonly isBad: (index: number) => boolean;
}

const LISTED = 20;

const PRICES = ['open', 'high', 'low', 'close'] as const;

/** Computed columns such as adjusted prices carry rounding noise of this relative size. */
const TOLERANCE = 1e-9;

/**
 * Looks for every kind of bad data at once. Of times that are out of order as few as possible are
 * to blame: one row from the future is, and not all that follow it. Prices of zero and below are
 * refused although a few markets had them: neither a return nor a size in units means anything there.
 */
export function checkBars({ bars, rowOf }: FileBars): CheckReport {
  const { length, time, open, high, low, close, volume } = bars;
  const counts: { [K in DefectCode]?: number } = {};
  const defects: Defect[] = [];
  const bad = new Uint8Array(length);
  const report = (index: number, code: DefectCode, describe: () => string): void => {
    bad[index] = 1;
    const count = (counts[code] ?? 0) + 1;
    counts[code] = count;
    if (count <= LISTED) defects.push({ code, row: rowOf(index), message: describe() });
  };

  const checkPrices = (index: number): void => {
    const o = open[index]!;
    const h = high[index]!;
    const l = low[index]!;
    const c = close[index]!;
    if (!(Number.isFinite(o) && Number.isFinite(h) && Number.isFinite(l) && Number.isFinite(c))) {
      const names = (): string => offenders(bars, index, (price) => !Number.isFinite(price));
      report(index, 'unreadable_price', () => `${names()} missing or not a number`);
    } else if (o <= 0 || h <= 0 || l <= 0 || c <= 0) {
      const names = (): string => offenders(bars, index, (price) => price <= 0);
      report(index, 'price_not_positive', () => `${names()} zero or negative`);
    } else if (h < l) {
      report(index, 'high_below_low', () => `high ${h} is below low ${l}`);
    } else {
      const floor = l * (1 - TOLERANCE);
      const ceiling = h * (1 + TOLERANCE);
      const range = (): string => `is outside low ${l} to high ${h}`;
      if (o < floor || o > ceiling) {
        report(index, 'open_outside_range', () => `open ${o} ${range()}`);
      }
      if (c < floor || c > ceiling) {
        report(index, 'close_outside_range', () => `close ${c} ${range()}`);
      }
    }
  };

  const isInOrder = timesInOrder(time);
  const rowAt = (index: number): string => `${formatTime(time[index]!)} of row ${rowOf(index)}`;
  const nextInOrder = (index: number): number => {
    let next = index + 1;
    while (!isInOrder(next)) next++;
    return next;
  };
  let latest = -1;
  const checkTime = (index: number): void => {
    const t = time[index]!;
    const before = latest === -1 ? -Infinity : time[latest]!;
    if (isInOrder(index)) {
      latest = index;
    } else if (Number.isNaN(t)) {
      report(index, 'unreadable_time', () => 'the time is missing or cannot be read');
    } else if (t > before) {
      const describe = (): string => `${formatTime(t)} lies after ${rowAt(nextInOrder(index))}`;
      report(index, 'forward_time', describe);
    } else if (t < before) {
      report(index, 'backward_time', () => `${formatTime(t)} lies before ${rowAt(latest)}`);
    } else {
      report(index, 'duplicate_time', () => `${formatTime(t)} is the time of row ${rowOf(latest)}`);
    }
  };

  for (let index = 0; index < length; index++) {
    checkTime(index);
    checkPrices(index);
    const units = volume[index]!;
    if (!Number.isFinite(units)) {
      report(index, 'unreadable_volume', () => 'the volume is missing or not a number');
    } else if (units < 0) {
      report(index, 'negative_volume', () => `volume ${units} is negative`);
    }
  }
  const badRows = bad.reduce((sum, flag) => sum + flag, 0);
  return { rows: length, badRows, counts, defects, isBad: (index) => bad[index] === 1 };
}

/**
 * Which times make up the longest series that only rises, without NaN; the earliest rows where
 * several are as long.
 */
function timesInOrder(time: Float64Array): (index: number) => boolean {
  if (time.every((t, index) => t > (index === 0 ? -Infinity : time[index - 1]!))) return () => true;
  // From the end: how many times a rising series that begins at a row can have, and for each such
  // number the latest time to begin one at. Those fall as the number grows.
  const counts = new Uint32Array(time.length);
  const starts: number[] = [];
  for (let index = time.length - 1; index >= 0; index--) {
    const t = time[index]!;
    if (Number.isNaN(t)) continue;
    let longest = starts.length;
    if (starts.at(-1)! <= t) {
      let [from, to] = [0, starts.length - 1];
      while (from < to) {
        const middle = (from + to) >> 1;
        if (starts[middle]! > t) from = middle + 1;
        else to = middle;
      }
      longest = from;
    }
    starts[longest] = t;
    counts[index] = longest + 1;
  }
  const kept = new Uint8Array(time.length);
  let wanted = starts.length;
  let before = -Infinity;
  for (const [index, t] of time.entries()) {
    if (counts[index] !== wanted || !(t > before)) continue;
    kept[index] = 1;
    before = t;
    wanted--;
  }
  return (index) => kept[index] === 1;
}

/** The columns whose price satisfies `isBad`, by name. */
function offenders(bars: Bars, index: number, isBad: (price: number) => boolean): string {
  return PRICES.filter((name) => isBad(bars[name][index]!)).join(', ');
}

/**
 * The refusal of bad data, with its problems listed by kind.
 * @param lines the line of each listed row, where the file has lines.
 */
export function badDataError(
  path: string,
  report: CheckReport,
  lines: ReadonlyMap<number, number>,
): ServiceError {
  const { rows, badRows, counts, defects } = report;
  const problems = Object.entries(counts).flatMap(([code, count]): Problem[] => {
    const listed = defects.filter((defect) => defect.code === code);
    const shown = listed.map(({ row, message }) => {
      const line = lines.get(row);
      return { code, message: `row ${row}: ${message}`, file: path, ...(line && { line }) };
    });
    const rest = count - listed.length;
    return rest === 0 ? shown : [...shown, { code, message: `and ${rest} more rows`, file: path }];
  });
  const kinds = Object.entries(counts).map(([code, count]) => `${count} ${code}`);
  return new ServiceError(
    'invalid_data',
    `${path} has ${badRows} bad of ${rows} rows: ${kinds.join(', ')}`,
    { problems, remedy: remedyFor(report) },
  );
}

/** Dropping most of a file repairs nothing: it is not what it was taken for. */
export function canDrop({ rows, badRows }: CheckReport): boolean {
  return 2 * badRows <= rows;
}

function remedyFor(report: CheckReport): string {
  if (canDrop(report)) {
    return 'Correct these rows, or leave them out with --repair drop (data.repair: drop).';
  }
  return 2 * (report.counts.backward_time ?? 0) > report.rows
    ? 'Sort the file oldest first.'
    : 'Correct the file, or say which column is which; too much of it is bad to be left out.';
}
