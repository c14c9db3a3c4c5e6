import { ServiceError } from '../base/errors.ts';
import { BAR_COLUMNS, type BarColumn } from './bars.ts';

/** Name or 1-based position in the file of each column, for headers that `findColumns` cannot guess. */
export type ColumnNames = { readonly [K in BarColumn]?: string | undefined };

/** Positions in the file's list of columns. */
export interface Layout {
  /** Two columns if the day and the time of day are separate. */
  readonly time: readonly [number] | readonly [day: number, clock: number];
  /** `open`, `high` and `low` are all undefined in a file with closing prices only. */
  readonly open: number | undefined;
  readonly high: number | undefined;
  readonly low: number | undefined;
  readonly close: number;
  readonly volume: number | undefined;
}

/** Usual header names after `normalize`; the first one that occurs in the file is used. */
const SPELLINGS: { readonly [K in BarColumn]: readonly string[] } = {
  time: [
    // A complete instant comes before its parts, and opening times before any others.
    'timestamp',
    'datetime',
    'opentime',
    'windowstart',
    'time',
    'date',
    'day',
    'unix',
    'unixtime',
    'epoch',
    'ts',
    't',
  ],
  open: ['open', 'openprice', 'o'],
  high: ['high', 'highprice', 'h'],
  low: ['low', 'lowprice', 'l'],
  close: ['close', 'closeprice', 'price', 'last', 'nav', 'c'],
  volume: ['volume', 'vol', 'v'],
};

/** Makes `1. Open`, `<OPEN>` and `open` equal, and also `Open Time` and `open_time`. */
const normalize = (name: string): string => name.toLowerCase().replaceAll(/[^\p{Letter}]/gu, '');

interface Fault {
  readonly column: BarColumn;
  readonly message: string;
  /** The value to suggest for the column: `NAME`, or a position if several columns have the name. */
  readonly written: string;
}

/**
 * Finds the columns by the given names, or else by the usual spellings. A `date` column beside a `time`
 * column is read as day and time of day.
 *
 * @param names the file's columns in order
 * @param file its name, for errors
 * @throws ServiceError `invalid_data` with every column that is missing or ambiguous.
 */
export function findColumns(names: readonly string[], given: ColumnNames, file: string): Layout {
  const normalized = names.map(normalize);
  const found: { [K in BarColumn]?: number } = {};
  const faults: Fault[] = [];
  for (const column of BAR_COLUMNS) {
    const name = given[column];
    const candidates =
      name === undefined ? guess(normalized, SPELLINGS[column]) : positionsOf(names, name);
    if (candidates.length === 1) {
      found[column] = candidates[0]!;
    } else if (candidates.length > 1) {
      const list = candidates.map((position) => JSON.stringify(names[position])).join(' and ');
      const positions = candidates.map((position) => position + 1);
      faults.push({
        column,
        message: `${list}, columns ${positions.join(' and ')}, could each be the ${column}`,
        written: String(positions.at(-1)),
      });
    } else if (name !== undefined) {
      faults.push({
        column,
        message: `there is no column ${JSON.stringify(name)}`,
        written: 'NAME',
      });
    }
  }
  const isKnown = (column: BarColumn): boolean =>
    found[column] !== undefined || faults.some((fault) => fault.column === column);
  const required = (['open', 'high', 'low'] as const).some(isKnown)
    ? (['time', 'open', 'high', 'low', 'close'] as const)
    : (['time', 'close'] as const);
  for (const column of required) {
    if (!isKnown(column))
      faults.push({ column, message: `no column looks like the ${column}`, written: 'NAME' });
  }
  const { time, open, high, low, close, volume } = found;
  if (faults.length > 0 || time === undefined || close === undefined) {
    throw columnsError(names, faults, file);
  }
  const day = normalized.indexOf('date');
  const isSplit = given.time === undefined && normalized[time] === 'time' && day !== -1;
  return { time: isSplit ? [day, time] : [time], open, high, low, close, volume };
}

/** Whether a column holds closing prices adjusted for splits and dividends. */
export function isAdjustedClose(name: string): boolean {
  return /^adj(usted)?close|^closeadj/.test(normalize(name));
}

/** Returns every position of the first spelling that occurs. */
function guess(normalized: readonly string[], spellings: readonly string[]): readonly number[] {
  const spelling = spellings.find((candidate) => normalized.includes(candidate));
  return [...normalized.keys()].filter((position) => normalized[position] === spelling);
}

function positionsOf(names: readonly string[], name: string): readonly number[] {
  const positions = [...names.keys()];
  const exact = positions.filter((position) => names[position] === name);
  if (exact.length > 0) return exact;
  const alike = positions.filter(
    (position) => names[position]!.toLowerCase() === name.toLowerCase(),
  );
  return alike.length > 0 ? alike : positions.filter((position) => String(position + 1) === name);
}

function columnsError(
  names: readonly string[],
  faults: readonly Fault[],
  file: string,
): ServiceError {
  const columns = faults.map(({ column }) => column);
  return new ServiceError(
    'invalid_data',
    `${file}: cannot find the columns: ${columns.join(', ')}`,
    {
      problems: faults.map(({ message }) => ({ code: 'column_missing', message, file })),
      remedy:
        `The columns are ${names.map((name) => JSON.stringify(name)).join(', ')}. Name them in ` +
        'data.columns of the bot, or on the command line: ' +
        `--columns ${faults.map(({ column, written }) => `${column}=${written}`).join(',')}.`,
    },
  );
}
