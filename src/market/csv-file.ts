import { createReadStream, statSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { ServiceError } from '../base/errors.ts';
import { quotePath } from './duckdb.ts';
import { findOverlongLine, OverlongLine, overlongLineOf } from './overlong-line.ts';

/** The form of a CSV file, detected from its first line that is not blank. */
export interface CsvFile {
  readonly path: string;
  readonly isGzipped: boolean;
  /** Columns without a name, or all without a header line, are named by position: `1`, `2`, … */
  readonly names: readonly string[];
  readonly hasHeader: boolean;
  /** Lines before the first row of data. */
  readonly skip: number;
  readonly delimiter: string;
  /** Rows that the size of the file suggests; far too few for an archive. */
  readonly estimatedRows: number;
}

const HEAD_BYTES = 65_536;

/** Unzips three times as fast as with Node's default of 16 KiB. */
const UNZIP_BYTES = 1_048_576;

/** @throws ServiceError `invalid_data` for a binary or empty file, or a damaged archive. */
export async function openCsv(path: string, isGzipped: boolean): Promise<CsvFile> {
  const head = await readHead(path, isGzipped);
  const overlong = isGzipped ? undefined : await findOverlongLine(path);
  if (overlong !== undefined) throw malformed(path, TOO_LONG, overlong);
  if (head.includes(0)) {
    throw new ServiceError('invalid_data', `${path} is neither CSV nor Parquet`, {
      remedy: 'Use a CSV file in UTF-8 (also gzipped) or a Parquet file; unpack other archives.',
    });
  }
  const lines = head
    .toString('utf8')
    .replace(/^\uFEFF/, '')
    .split(/\r\n|\n|\r/);
  const first = lines.findIndex((line) => line.trim() !== '');
  if (first === -1) {
    throw new ServiceError('invalid_data', `${path} is empty`, {
      remedy: 'Use a file with a header line and rows of bars.',
    });
  }
  const line = lines[first]!;
  const delimiter = delimiterOf(line);
  const fields = splitLine(line, delimiter);
  const hasHeader = !fields.some((field) => /^[-+]?\d*\.?\d+$/.test(field));
  return {
    path,
    isGzipped,
    names: fields.map((field, index) => (hasHeader && field) || String(index + 1)),
    hasHeader,
    skip: hasHeader ? first + 1 : first,
    delimiter,
    estimatedRows: Math.ceil((statSync(path).size / head.length) * lines.length),
  };
}

/**
 * Reads the first `HEAD_BYTES` of the text. Unpacks a whole archive to detect truncation: DuckDB reads
 * a truncated archive without an error, including a price that has lost its last digits.
 */
async function readHead(path: string, isGzipped: boolean): Promise<Buffer> {
  const head: Buffer[] = [];
  let bytes = 0;
  const text = isGzipped ? unzip(path) : createReadStream(path, { end: HEAD_BYTES - 1 });
  const lines = new OverlongLine();
  try {
    for await (const chunk of text as AsyncIterable<Buffer>) {
      if (lines.isFoundIn(chunk)) {
        throw malformed(path, TOO_LONG, await overlongLineOf(unzip(path)));
      }
      if (bytes < HEAD_BYTES) head.push(chunk);
      bytes += chunk.length;
    }
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    throw new ServiceError('invalid_data', `${path} is damaged: ${(error as Error).message}`, {
      remedy: 'Download or compress the file again.',
      cause: error,
    });
  }
  return Buffer.concat(head).subarray(0, HEAD_BYTES);
}

function unzip(path: string): Readable {
  const file = createReadStream(path, { highWaterMark: UNZIP_BYTES });
  const gunzip = createGunzip({ chunkSize: UNZIP_BYTES });
  file.on('error', (error) => gunzip.destroy(error));
  return file.pipe(gunzip);
}

const DELIMITERS = [',', ';', '\t', '|'] as const;

function delimiterOf(line: string): string {
  const counts = DELIMITERS.map((delimiter) => line.split(delimiter).length);
  return DELIMITERS[counts.indexOf(Math.max(...counts))]!;
}

function splitLine(line: string, delimiter: string): string[] {
  const fields = [''];
  let isQuoted = false;
  for (const character of line) {
    if (character === '"') isQuoted = !isQuoted;
    else if (character === delimiter && !isQuoted) fields.push('');
    else fields[fields.length - 1] += character;
  }
  return fields.map((field) => field.trim());
}

/** Enough for five numbers with one comma as a thousands separator each. */
const SPARE_COLUMNS = 5;

/**
 * SQL of the file as a table of texts `c0`, `c1`, … Untyped, so that an unreadable value invalidates
 * its row and not the file. Missing fields are NULL; surplus fields are in the `SPARE_COLUMNS` after
 * the others.
 */
export function csvTable({ path, isGzipped, names, skip, delimiter }: CsvFile): string {
  const columns = Array.from(
    { length: names.length + SPARE_COLUMNS },
    (_, i) => `c${i}: 'VARCHAR'`,
  );
  return (
    `read_csv(${quotePath(path)}, auto_detect = false, header = false, skip = ${skip}, ` +
    `columns = {${columns.join(', ')}}, delim = '${delimiter}', quote = '"', escape = '"', ` +
    `null_padding = true, hive_partitioning = false, compression = '${isGzipped ? 'gzip' : 'none'}')`
  );
}

/**
 * Explains DuckDB's error for a malformed file, because DuckDB suggests options that do not exist
 * here; `undefined` for other errors.
 */
export function malformedCsv(
  { path, names }: CsvFile,
  { message }: Error,
): ServiceError | undefined {
  const [, found] = /Expected Number of Columns: \d+ Found: (\d+)/.exec(message) ?? [];
  const faults: readonly (readonly [RegExp, string])[] = [
    [
      /Expected Number/,
      `the line has at least ${found} fields, the first line has ${names.length}`,
    ],
    [/unterminated quote/, 'a quote is not closed, or is inside a value'],
    [/not utf-8/, 'the text is not UTF-8'],
    [/line size/i, TOO_LONG],
    [
      /invalid state|quoted new lines/,
      'the file mixes two kinds of line endings, or has a line feed inside quotes',
    ],
  ];
  const fault = faults.find(([pattern]) => pattern.test(message));
  if (fault === undefined) return undefined;
  const [, line] = /CSV Error on Line: (\d+)/.exec(message) ?? [];
  return malformed(path, fault[1], line === undefined ? undefined : Number(line));
}

const TOO_LONG = 'the line is longer than 1 MiB: a line feed is missing, or a field is too long';

function malformed(path: string, message: string, line?: number): ServiceError {
  const place = { file: path, ...(line !== undefined && { line }) };
  return new ServiceError('invalid_data', `${path} is not well-formed CSV`, {
    problems: [{ code: 'malformed_csv', message, ...place }],
    remedy: 'Correct the file: use rows of equal length, one kind of line ending and UTF-8.',
  });
}

/** A data row as written in the file. */
export interface CsvRow {
  /** 1-based. */
  readonly line: number;
  readonly fields: readonly string[];
}

/** @param wanted numbers of data rows, 1-based */
export async function readRows(
  { path, isGzipped, skip, delimiter }: CsvFile,
  wanted: ReadonlySet<number>,
): Promise<ReadonlyMap<number, CsvRow>> {
  const last = Math.max(...wanted);
  const rows = new Map<number, CsvRow>();
  const input = isGzipped ? unzip(path) : createReadStream(path);
  let line = 0;
  let row = 0;
  for await (const text of createInterface({ input, crlfDelay: Infinity })) {
    line++;
    if (line <= skip || text === '') continue;
    row++;
    if (wanted.has(row)) rows.set(row, { line, fields: splitLine(text, delimiter) });
    if (row >= last) break;
  }
  input.destroy();
  return rows;
}
