import { open } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { DuckDBConnection } from '@duckdb/node-api';
import { ServiceError } from '../base/errors.ts';
import { isSystemError } from '../base/system-errors.ts';
import { allocateBars, BAR_COLUMNS, extendBars, sliceBars, type Bars } from './bars.ts';
import { csvTable, malformedCsv, openCsv, type CsvFile } from './csv-file.ts';
import { CHUNK_ROWS, doublesOf, quoteName, quotePath, quoteText, withDuckDB } from './duckdb.ts';
import { findColumns, isAdjustedClose, type ColumnNames, type Layout } from './header.ts';
import { keepBars, type FileBars } from './rows.ts';
import {
  areNearEpoch,
  formatTime,
  numbersToTimes,
  parseWindow,
  rejectImplausible,
} from './bar-time.ts';

export interface ReadOptions {
  readonly columns?: ColumnNames | undefined;
  /** Format of times that are texts, as of `strptime`; ISO 8601 or numbers by default. */
  readonly timeFormat?: string | undefined;
  /** First and last instant to read, see `parseWindow`. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  /** Called with the rows read so far and in total, which is an estimate for CSV. */
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
}

/**
 * Unchecked bars in the order of the file; unreadable values are NaN. Rows with an unreadable time are
 * always included, because they may belong to the window.
 */
export interface BarFile extends FileBars {
  readonly path: string;
  /** Unchecked bars in the rows directly before the window. */
  readonly before: FileBars;
  /** Undefined for Parquet. */
  readonly csv: CsvFile | undefined;
  readonly layout: Layout;
  readonly timeFormat: string | undefined;
  readonly unused: readonly string[];
  /** Data rows (1-based) with more fields than the header has. */
  readonly tooLong: ReadonlySet<number>;
}

/**
 * Reads a CSV (also gzipped) or Parquet file. The content decides the format, not the name.
 *
 * @throws ServiceError `file_not_found`, or `invalid_data` if no bars can be read.
 */
export async function readBars(path: string, options: ReadOptions = {}): Promise<BarFile> {
  const window = parseWindow(options.from, options.to);
  const file = resolve(path);
  const format = await sniff(file);
  const csv = format === 'parquet' ? undefined : await openCsv(file, format === 'gzip');
  if (csv && !csv.hasHeader && options.columns === undefined) throw noHeader(csv);
  return withDuckDB(file, async (connection) => {
    try {
      const table = csv ? textTable(csv) : await parquetTable(connection, file);
      const layout = findColumns(table.names, options.columns ?? {}, file);
      const { bars, tooLong } = await readColumns(connection, table, layout, {
        path: file,
        timeFormat: options.timeFormat,
        onProgress: options.onProgress,
      });
      if (bars.length === 0) {
        throw new ServiceError('invalid_data', `${file} has no rows`, {
          remedy: 'Use a file with rows of bars below the header line.',
        });
      }
      const { time } = bars;
      const inFile = { bars, rowOf: (index: number) => index + 1 };
      const isWhole = options.from === undefined && options.to === undefined;
      const inWindow = isWhole
        ? inFile
        : keepBars(inFile, (index) => !(time[index]! < window.from || time[index]! >= window.to));
      if (inWindow.bars.length === 0) throw nothingInWindow(file, time, options);
      return {
        ...inWindow,
        path: file,
        before: { ...inFile, bars: rowsBefore(bars, inWindow, window.from) },
        csv,
        layout,
        timeFormat: options.timeFormat,
        unused: await unusedColumns(connection, table, layout),
        tooLong,
      };
    } catch (error) {
      if (error instanceof ServiceError || !(error instanceof Error)) throw error;
      throw (csv && malformedCsv(csv, error)) ?? unreadable(file, error);
    }
  });
}

/** Rows of times before the window; none unless all rows after them are in the window. */
function rowsBefore(bars: Bars, { bars: inWindow, rowOf }: FileBars, from: number): Bars {
  const first = rowOf(0) - 1;
  // If the rows of the window are not adjacent, moving them together has overwritten others.
  const isAdjacent = rowOf(inWindow.length - 1) - first === inWindow.length;
  const isBefore = bars.time.subarray(0, first).every((time) => time < from);
  return sliceBars(bars, 0, isAdjacent && isBefore ? first : 0);
}

async function sniff(path: string): Promise<'parquet' | 'gzip' | 'text'> {
  try {
    const handle = await open(path);
    try {
      const { buffer } = await handle.read(Buffer.alloc(4), 0, 4, 0);
      if (buffer.toString('latin1') === 'PAR1') return 'parquet';
      return buffer[0] === 0x1f && buffer[1] === 0x8b ? 'gzip' : 'text';
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw unopened(path, error);
  }
}

function unopened(path: string, cause: unknown): ServiceError {
  const [message, remedy] = isSystemError(cause, 'ENOENT', 'ENOTDIR')
    ? [`no such file: ${path}`, 'Check the path.']
    : isSystemError(cause, 'EISDIR')
      ? [`${path} is a directory`, 'Name a CSV or Parquet file in it.']
      : [`${path} cannot be read: ${(cause as Error).message}`, 'Check its permissions.'];
  return new ServiceError('file_not_found', message, { remedy, cause });
}

interface Table {
  readonly from: string;
  /** Number of rows, estimated for CSV. */
  readonly rows: number;
  /** Capacity as a multiple of `rows`. */
  readonly room: number;
  readonly names: readonly string[];
  /** SQL expression of each column. */
  readonly columns: readonly string[];
  /** SQL expression of a column of dates or timestamps; undefined for texts and numbers. */
  readonly instant: (position: number) => string | undefined;
  /** SQL condition for a row with more fields than columns; undefined if there can be none. */
  readonly isTooLong?: string;
}

function textTable(csv: CsvFile): Table {
  return {
    from: csvTable(csv),
    rows: csv.estimatedRows,
    room: 1.25,
    names: csv.names,
    columns: csv.names.map((_, position) => `c${position}`),
    instant: () => undefined,
    isTooLong: `c${csv.names.length} IS NOT NULL`,
  };
}

async function parquetTable(connection: DuckDBConnection, path: string): Promise<Table> {
  // With hive partitioning, a folder named `date=2020` would become a column.
  const from = `read_parquet(${quotePath(path)}, hive_partitioning = false)`;
  const description = await connection.runAndReadAll(`DESCRIBE SELECT * FROM ${from}`);
  const [names, types] = description.getColumns() as [string[], string[]];
  const count = await connection.runAndReadAll(`SELECT count(*)::DOUBLE FROM ${from}`);
  return {
    from,
    rows: count.value(0, 0) as number,
    room: 1,
    names,
    columns: names.map(quoteName),
    instant: (position) => {
      const column = quoteName(names[position]!);
      // The cast would look up the time zone of each value.
      if (types[position] === 'TIMESTAMP WITH TIME ZONE') return column;
      return /^(DATE|TIMESTAMP)/.test(types[position]!) ? `${column}::TIMESTAMP` : undefined;
    },
  };
}

async function readColumns(
  connection: DuckDBConnection,
  table: Table,
  layout: Layout,
  { path, timeFormat, onProgress }: Pick<BarFile, 'path'> & ReadOptions,
): Promise<Pick<BarFile, 'bars' | 'tooLong'>> {
  const time = await timeExpression(connection, table, layout, timeFormat);
  const number = (position: number | undefined): string =>
    position === undefined ? '0' : `TRY_CAST(${table.columns[position]} AS DOUBLE)`;
  const { close } = layout;
  const { open: first = close, high = close, low = close } = layout;
  const numbers = [first, high, low, close, layout.volume].map(number);
  const expressions = [time.sql, ...numbers, table.isTooLong ?? []].flat();
  const doubles = expressions.map((value) => `coalesce((${value})::DOUBLE, 'NaN'::DOUBLE)`);
  const result = await connection.stream(`SELECT ${doubles.join(', ')} FROM ${table.from}`);

  const tooLong = new Set<number>();
  let columns = allocateBars(Math.max(Math.ceil(table.room * table.rows), 2 * CHUNK_ROWS));
  onProgress?.(0, table.rows);
  let filled = 0;
  for (let chunk = await result.fetchChunk(); chunk?.rowCount; chunk = await result.fetchChunk()) {
    if (filled + chunk.rowCount > columns.length) columns = extendBars(columns, 1.5);
    for (const [position, name] of BAR_COLUMNS.entries()) {
      columns[name].set(doublesOf(chunk, position), filled);
    }
    if (table.isTooLong !== undefined) {
      const isTooLong = doublesOf(chunk, BAR_COLUMNS.length);
      for (let row = 0; row < isTooLong.length; row++) {
        if (isTooLong[row] === 1) tooLong.add(filled + row + 1);
      }
    }
    filled += chunk.rowCount;
    onProgress?.(filled, Math.max(filled, table.rows));
  }
  const bars = sliceBars(columns, 0, filled);
  if (time.isNumber) {
    if (areNearEpoch(bars.time)) throw noTimes(path, bars.time);
    numbersToTimes(bars.time);
  }
  rejectImplausible(bars.time);
  return { bars, tooLong };
}

/** An adjusted close that equals the close everywhere does not count as unused. */
async function unusedColumns(
  connection: DuckDBConnection,
  { from, names, columns }: Table,
  layout: Layout,
): Promise<string[]> {
  const used = new Set(Object.values(layout).flat());
  const adjusted = names.findIndex((name, at) => !used.has(at) && isAdjustedClose(name));
  if (adjusted !== -1) {
    const differs = await connection.runAndReadAll(
      `SELECT count(*) > 0 FROM ${from} WHERE ` +
        `${columns[adjusted]}::VARCHAR IS DISTINCT FROM ${columns[layout.close]}::VARCHAR`,
    );
    if (differs.value(0, 0) === false) used.add(adjusted);
  }
  return names.filter((_, position) => !used.has(position));
}

interface TimeExpression {
  /** Milliseconds since the epoch, or a number of unknown unit if `isNumber`. NULL if unreadable. */
  readonly sql: string;
  readonly isNumber: boolean;
}

async function timeExpression(
  connection: DuckDBConnection,
  { from, columns, instant: instantOf }: Table,
  { time: [day, clock] }: Layout,
  timeFormat: string | undefined,
): Promise<TimeExpression> {
  const milliseconds = (instant: string): string =>
    `CASE WHEN isfinite(${instant}) THEN epoch_ms(${instant})::DOUBLE END`;
  const dated = clock === undefined ? instantOf(day) : undefined;
  if (dated !== undefined) return { sql: milliseconds(dated), isNumber: false };
  const text =
    clock === undefined
      ? `${columns[day]}::VARCHAR`
      : `(${columns[day]}::VARCHAR || ' ' || ${columns[clock]}::VARCHAR)`;
  if (timeFormat !== undefined) {
    const format = quoteText(timeFormat);
    await checkTimeFormat(connection, timeFormat);
    return { sql: milliseconds(`try_strptime(trim(${text}), ${format})`), isNumber: false };
  }
  const sample = await connection.runAndReadAll(
    `SELECT 2 * count(TRY_CAST(t AS DOUBLE)) > count(t) FROM (SELECT ${text} AS t FROM ${from} LIMIT 1000)`,
  );
  if (sample.value(0, 0) === true) return { sql: `TRY_CAST(${text} AS DOUBLE)`, isNumber: true };
  // ISO 8601 allows times without seconds; DuckDB does not if an offset follows.
  const withSeconds = `regexp_replace(${text}, '([T ]\\d\\d:\\d\\d)(Z|[-+]\\d\\d:?\\d\\d)$', '\\1:00\\2')`;
  // A cast to TIMESTAMP would ignore the offset.
  const instant = `coalesce(TRY_CAST(${text} AS TIMESTAMPTZ), TRY_CAST(${withSeconds} AS TIMESTAMPTZ))`;
  return { sql: milliseconds(instant), isNumber: false };
}

/** @throws ServiceError `invalid_data` for a format with unknown specifiers. */
async function checkTimeFormat(connection: DuckDBConnection, timeFormat: string): Promise<void> {
  try {
    await connection.run(`SELECT try_strptime('', ${quoteText(timeFormat)})`);
  } catch (cause) {
    throw new ServiceError('invalid_data', `the time format ${timeFormat} has unknown specifiers`, {
      remedy: 'Write it as for strptime, such as %m/%d/%Y or %d.%m.%Y %H:%M.',
      cause,
    });
  }
}

function noHeader({ path, names }: CsvFile): ServiceError {
  const positions = BAR_COLUMNS.slice(0, names.length).map((name, i) => `${name}=${i + 1}`);
  return new ServiceError('invalid_data', `${path} has no header line that names its columns`, {
    remedy:
      `Add one as the first line, such as ${BAR_COLUMNS.join(',')}; ` +
      `or give the position of each column in data.columns of the bot, ` +
      `or on the command line: --columns ${positions.join(',')}.`,
  });
}

function nothingInWindow(path: string, time: Float64Array, options: ReadOptions): ServiceError {
  const [first, last] = [formatTime(time.at(0)!), formatTime(time.at(-1)!)];
  const window = [options.from && `from ${options.from}`, options.to && `to ${options.to}`];
  return new ServiceError(
    'invalid_data',
    `${path} has no rows ${window.filter(Boolean).join(' ')}: it begins at ${first} and ends at ${last}`,
    { remedy: 'Choose a window inside the data.' },
  );
}

function noTimes(path: string, numbers: Float64Array): ServiceError {
  const number = numbers.find((value) => !Number.isNaN(value))!;
  return new ServiceError(
    'invalid_data',
    `the times of ${path} are numbers such as ${number}, which as times since 1970 are all before 1973`,
    {
      remedy:
        'Write dates such as 2020-04-17 (a spreadsheet that counts days can format them so), or ' +
        'seconds or milliseconds since 1970; or name another column in data.columns.time of the ' +
        'bot, or on the command line: --columns time=NAME.',
    },
  );
}

function unreadable(path: string, error: Error): ServiceError {
  const [reason] = error.message.split('\n', 1);
  return new ServiceError('invalid_data', `${path} cannot be read: ${reason}`, {
    remedy: /Out of Memory/.test(error.message)
      ? 'Export the file again with smaller row groups.'
      : 'Download or export the file again.',
    cause: error,
  });
}
