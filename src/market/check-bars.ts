import { ServiceError, type Problem } from '../base/errors.ts';
import type { BarColumn, Bars } from './bars.ts';
import type { CsvRow } from './csv-file.ts';
import type { BarFile } from './read-bars.ts';
import type { FileBars } from './rows.ts';
import { formatTime } from './bar-time.ts';

type DefectCode =
  | 'too_many_fields'
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

/** Number of rows with each defect; a row may have several. */
export type DefectCounts = { readonly [K in DefectCode]?: number };

interface Defect {
  readonly code: DefectCode;
  /** Data row of the file, 1-based. */
  readonly row: number;
  readonly message: string;
  /** Columns whose value is not a time or a number. */
  readonly unreadable?: readonly BarColumn[];
}

export interface CheckReport {
  readonly rows: number;
  readonly badRows: number;
  readonly counts: DefectCounts;
  /** The first `LISTED` defects of each kind, in the order of the file. */
  readonly defects: readonly Defect[];
  readonly isBad: (index: number) => boolean;
}

const LISTED = 20;

/** Maximum number of listed defects with the same message. */
const ALIKE = 3;

const PRICES = ['open', 'high', 'low', 'close'] as const;

/** Relative rounding error of computed columns such as adjusted prices. */
const TOLERANCE = 1e-9;

/**
 * Checks bars for every kind of defect. Reports as few times as possible as out of order: one row from
 * the future, not all rows after it. Rejects zero and negative prices, although a few markets had
 * them, because returns and position sizes are undefined at such prices.
 *
 * @param tooLong data rows with more fields than columns, whose values may be in the wrong columns
 */
export function checkBars(
  { bars, rowOf, timeFormat }: FileBars & Pick<Partial<BarFile>, 'timeFormat'>,
  tooLong: ReadonlySet<number> = new Set(),
): CheckReport {
  if (tooLong.size === 0 && areSound(bars)) {
    return { rows: bars.length, badRows: 0, counts: {}, defects: [], isBad: () => false };
  }
  const { length, time, open, high, low, close, volume } = bars;
  const counts: { [K in DefectCode]?: number } = {};
  const defects: Defect[] = [];
  const bad = new Uint8Array(length);
  let badRows = 0;
  const report = (
    index: number,
    code: DefectCode,
    describe: () => string,
    unreadable?: readonly BarColumn[],
  ): void => {
    if (bad[index] === 0) badRows++;
    bad[index] = 1;
    const count = (counts[code] ?? 0) + 1;
    counts[code] = count;
    if (count <= LISTED) {
      const defect = { code, row: rowOf(index), message: describe() };
      defects.push(unreadable === undefined ? defect : { ...defect, unreadable });
    }
  };

  const checkPrices = (index: number): void => {
    const o = open[index]!;
    const h = high[index]!;
    const l = low[index]!;
    const c = close[index]!;
    if (!(Number.isFinite(o) && Number.isFinite(h) && Number.isFinite(l) && Number.isFinite(c))) {
      const names = offenders(bars, index, (price) => !Number.isFinite(price));
      const describe = (): string => `${names.join(', ')} missing or not a number`;
      report(index, 'unreadable_price', describe, names);
    } else if (o <= 0 || h <= 0 || l <= 0 || c <= 0) {
      const names = (): string => offenders(bars, index, (price) => price <= 0).join(', ');
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
      const describe = (): string =>
        timeFormat === undefined
          ? 'the time is missing or cannot be read'
          : `the time is missing or does not match ${timeFormat}`;
      report(index, 'unreadable_time', describe, ['time']);
    } else if (t > before) {
      const describe = (): string => `${formatTime(t)} is after ${rowAt(nextInOrder(index))}`;
      report(index, 'forward_time', describe);
    } else if (t < before) {
      report(index, 'backward_time', () => `${formatTime(t)} is before ${rowAt(latest)}`);
    } else {
      report(index, 'duplicate_time', () => `${formatTime(t)} is the time of row ${rowOf(latest)}`);
    }
  };

  for (let index = 0; index < length; index++) {
    checkTime(index);
    if (tooLong.size > 0 && tooLong.has(rowOf(index))) {
      report(index, 'too_many_fields', () => 'the row has more fields than the header');
      continue;
    }
    checkPrices(index);
    const units = volume[index]!;
    if (!Number.isFinite(units)) {
      report(index, 'unreadable_volume', () => 'the volume is missing or not a number', ['volume']);
    } else if (units < 0) {
      report(index, 'negative_volume', () => `volume ${units} is negative`);
    }
  }
  return { rows: length, badRows, counts, defects, isBad: (index) => bad[index] === 1 };
}

/** Whether no bar has a defect. Much faster than the search for defects, and the usual case. */
function areSound({ length, time, open, high, low, close, volume }: Bars): boolean {
  let before = -Infinity;
  for (let index = 0; index < length; index++) {
    const t = time[index]!;
    const o = open[index]!;
    const h = high[index]!;
    const l = low[index]!;
    const c = close[index]!;
    const units = volume[index]!;
    // Each comparison with NaN is false, so missing values are defects, too.
    const isOrdered = t > before;
    const isInRange =
      o >= l * (1 - TOLERANCE) &&
      o <= h * (1 + TOLERANCE) &&
      c >= l * (1 - TOLERANCE) &&
      c <= h * (1 + TOLERANCE);
    const isFinite = o < Infinity && h < Infinity && c < Infinity && units < Infinity;
    const isPositive = o > 0 && l > 0 && c > 0 && units >= 0;
    if (!(isOrdered && isInRange && isFinite && isPositive && h >= l)) return false;
    before = t;
  }
  return true;
}

/**
 * Finds the longest rising series of times, without NaN. Of several series of the same length, it
 * takes the one with the earliest rows.
 */
function timesInOrder(time: Float64Array): (index: number) => boolean {
  if (time.every((t, index) => t > (index === 0 ? -Infinity : time[index - 1]!))) return () => true;
  // Going backwards, `counts[row]` is the length of the longest rising series that begins at the row,
  // and `starts[n]` the latest time at which a series of n + 1 rows can begin; `starts` is falling.
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

function offenders(
  bars: Bars,
  index: number,
  isBad: (price: number) => boolean,
): readonly BarColumn[] {
  return PRICES.filter((name) => isBad(bars[name][index]!));
}

/**
 * Describes bad data in an error, with the problems grouped by kind.
 *
 * @param texts the rows of the listed defects as written in the file; empty for Parquet
 */
export function badDataError(
  { path, layout, timeFormat }: Pick<BarFile, 'path' | 'layout' | 'timeFormat'>,
  report: CheckReport,
  texts: ReadonlyMap<number, CsvRow>,
): ServiceError {
  const { rows, badRows, counts, defects } = report;
  const written = ({ row, unreadable = [] }: Defect): string =>
    unreadable
      .map((column) => [layout[column] ?? []].flat().map((at) => texts.get(row)?.fields[at] ?? ''))
      .map((fields) => fields.join(' ').trim())
      .filter((text) => text !== '')
      .map((text) => JSON.stringify(text))
      .join(', ');
  const problems = Object.entries(counts).flatMap(([code, count]): Problem[] => {
    const alike = new Map<string, number>();
    const listed = defects.filter((defect) => {
      if (defect.code !== code) return false;
      const before = alike.get(defect.message) ?? 0;
      alike.set(defect.message, before + 1);
      return before < ALIKE;
    });
    const shown = listed.map((defect) => {
      const { row } = defect;
      const message = [`row ${row}`, defect.message, written(defect)].filter(Boolean).join(': ');
      const line = texts.get(row)?.line;
      return { code, message, file: path, ...(line && { line }) };
    });
    const rest = count - listed.length;
    return rest === 0 ? shown : [...shown, { code, message: `and ${rest} more rows`, file: path }];
  });
  const kinds = Object.entries(counts).map(([code, count]) => `${count} ${code}`);
  return new ServiceError(
    'invalid_data',
    `${path} has ${badRows} bad of ${rows} rows: ${kinds.join(', ')}`,
    { problems, remedy: remedyFor(report, timeFormat) },
  );
}

/** Whether at most half of the rows are bad: otherwise the file is probably misread. */
export function canDrop({ rows, badRows }: CheckReport): boolean {
  return 2 * badRows <= rows;
}

const FORMS = {
  time:
    'Write times as 2020-04-17, 20200417, 2020/04/17 or 2020-04-17T14:30:00Z, or as seconds or ' +
    'milliseconds since 1970. Other formats, such as %m/%d/%Y, need data.time_format in the bot, or ' +
    '--time-format of `data import`.',
  timeFormat: 'Correct data.time_format of the bot, or --time-format.',
  number: 'Write numbers as 1100.50, with a decimal point and no thousands separators.',
};

function remedyFor(report: CheckReport, timeFormat: string | undefined): string {
  const { counts } = report;
  return [
    ...(counts.unreadable_time ? [timeFormat === undefined ? FORMS.time : FORMS.timeFormat] : []),
    ...(counts.unreadable_price || counts.unreadable_volume ? [FORMS.number] : []),
    rowsRemedy(report),
  ].join(' ');
}

function rowsRemedy(report: CheckReport): string {
  if (canDrop(report)) {
    return (
      'Correct these rows, or leave them out with data.repair: drop in the bot, ' +
      'or --repair drop on the command line.'
    );
  }
  const { rows, counts, badRows } = report;
  if (2 * (counts.backward_time ?? 0) > rows) return 'Sort the file oldest first.';
  const rejected = 'More than half of the rows are bad, so the repair "drop" is rejected';
  // A column whose prices are readable is not misnamed; only its dates are in another format.
  return counts.unreadable_time === badRows && Object.keys(counts).length === 1
    ? `${rejected}: change the format of the times.`
    : `${rejected}: correct the file, or name its columns in data.columns of the bot, ` +
        'or with --columns on the command line.';
}
