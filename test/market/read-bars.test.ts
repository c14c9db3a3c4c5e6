import { gzipSync } from 'node:zlib';
import { mkdir } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { ServiceError } from '../../src/base/errors.ts';
import { BAR_COLUMNS } from '../../src/market/bars.ts';
import { barsDigest } from '../../src/market/digest.ts';
import { readBars } from '../../src/market/read-bars.ts';
import { rowsOf, type Row } from './bars.ts';
import { csv, useFiles } from './files.ts';
import { isAtLength, some } from '../length.ts';

const files = useFiles();

const DAY_1 = Date.UTC(2020, 0, 1);
const DAY_2 = Date.UTC(2020, 0, 2);
const DAY_3 = Date.UTC(2020, 0, 3);

async function readText(text: string, options = {}): Promise<Row[]> {
  const path = await files.write('bars.csv', text);
  return rowsOf((await readBars(path, options)).bars);
}

async function times(...written: readonly string[]): Promise<number[]> {
  const table = await readText(csv('time,close', ...written.map((time) => `${time},10`)));
  return table.map((row) => row[0]);
}

async function refusal(work: Promise<unknown>): Promise<ServiceError> {
  const error = await work.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ServiceError);
  return error as ServiceError;
}

describe('the columns of a file', () => {
  const BAR = [DAY_1, 10, 12, 9, 11, 500];

  test.each(
    some(2, [
      'date,open,high,low,close,volume',
      'Date,Open,High,Low,Close,Volume',
      'TIMESTAMP,O,H,L,C,V',
      'open_time,Open,High,Low,Close,Vol.',
      '"Datetime","1. open","2. high","3. low","4. close","5. volume"',
      '<DATE>,<OPEN>,<HIGH>,<LOW>,<CLOSE>,<VOL>',
    ] as const),
  )('are known under the usual names: %s', async (header) => {
    expect(await readText(csv(header, '2020-01-01,10,12,9,11,500'))).toEqual([BAR]);
  });

  test.each(
    some(2, [
      [';', ''],
      ['\t', ''],
      ['|', ''],
      [',', '\uFEFF'],
    ] as const),
  )('may be separated by %j after %j', async (delimiter, mark) => {
    const lines = ['date,open,high,low,close,volume', '2020-01-01,10,12,9,11,500'];
    const text = mark + csv(...lines.map((line) => line.replaceAll(',', delimiter)));
    expect(await readText(text)).toEqual([BAR]);
  });

  test('may be in any order, beside others, after blank lines and with any line ending', async () => {
    const text =
      '\r\n\r\nvolume,adj close,close,low,high,open,date\r\n500,1,11,9,12,10,2020-01-01\r\n\r\n';
    expect(await readText(text)).toEqual([BAR]);
  });

  test('can be named in any case, and names take precedence over guesses', async () => {
    const text = csv('close,Px,day,o,h,l,date', '1,11,2020-01-01,10,12,9,1999-01-01');
    const columns = { close: 'px', time: 'day' };
    expect(await readText(text, { columns })).toEqual([[DAY_1, 10, 12, 9, 11, 0]]);
  });

  test('without a name are addressed by position', async () => {
    const text = csv(',close', '2020-01-01,11');
    expect((await refusal(readText(text))).remedy).toContain('"1", "close"');
    expect(await readText(text, { columns: { time: '1' } })).toEqual([[DAY_1, 11, 11, 11, 11, 0]]);
  });

  test('that are missing are all listed, with those present and the option to use', async () => {
    const path = await files.write('lacking.csv', csv('when,open,close,notional', '1,2,3,4'));
    const error = await refusal(readBars(path, { columns: { volume: 'size' } }));
    expect(error.code).toBe('invalid_data');
    expect(error.problems.map(({ message }) => message)).toEqual([
      'there is no column "size"',
      'no column looks like the time',
      'no column looks like the high',
      'no column looks like the low',
    ]);
    expect(error.remedy).toContain('"when", "open", "close", "notional"');
    expect(error.remedy).toContain('--columns volume=NAME,time=NAME,high=NAME,low=NAME');
  });

  test('with names that differ only in case are rejected', async () => {
    const error = await refusal(readText(csv('date,close,Close', '2020-01-01,1,2')));
    expect(error.problems[0]!.message).toBe(
      '"close" and "Close", columns 2 and 3, could each be the close',
    );
    const chosen = await readText(csv('date,close,Close', '2020-01-01,1,2'), {
      columns: { close: 'Close' },
    });
    expect(chosen[0]![4]).toBe(2);
  });

  test('with the same name are rejected, and can be addressed by position', async () => {
    const text = csv('date,close,close', '2020-01-01,1,2');
    const error = await refusal(readText(text));
    expect(error.remedy).toContain(
      'data.columns of the bot, or on the command line: --columns close=3.',
    );
    expect((await refusal(readText(text, { columns: { close: 'close' } }))).message).toContain(
      'cannot find the columns: close',
    );
    expect((await readText(text, { columns: { close: '3' } }))[0]![4]).toBe(2);
  });

  test('with closing prices only produce bars without range', async () => {
    const path = await files.write('nav.csv', csv('date,nav', '2020-01-01,11'));
    const file = await readBars(path);
    expect(rowsOf(file.bars)).toEqual([[DAY_1, 11, 11, 11, 11, 0]]);
    expect(file.layout).toMatchObject({ open: undefined, volume: undefined });
  });

  test('without a header are rejected, and can be named by position', async () => {
    const text = csv(
      '1577836800000,10,12,9,11,500,1577923199999',
      '1577923200000,11,13,10,12,600,1578009599999',
    );
    const error = await refusal(readText(text));
    expect(error.message).toContain('no header line');
    expect(error.remedy).toContain('--columns time=1,open=2,high=3,low=4,close=5,volume=6');
    const columns = { time: '1', open: '2', high: '3', low: '4', close: '5', volume: '6' };
    expect(await readText(text, { columns })).toEqual([BAR, [DAY_2, 11, 13, 10, 12, 600]]);
  });
});

describe('a line that is too long', () => {
  const rows = Array.from({ length: 50 }, (_, day) => {
    const date = new Date(DAY_1 + day * 86_400_000).toISOString().slice(0, 10);
    return `${date},10,12,9,11,500`;
  });
  const header = 'date,open,high,low,close,volume';
  const long = (length: number): string => `${rows[0]},${'x'.repeat(length)}`;

  // DuckDB silently drops the last line of a file if it exceeds 32 MiB.
  test.each(
    some(1, [
      ['in the middle', [header, ...rows, long(3_000_000), ...rows], 52],
      ['after the header', [header, long(40_000_000)], 2],
      ['at the end, without a line feed', [header, ...rows, long(40_000_000)], 52],
      ['as the only one', [`${header},${'x'.repeat(3_000_000)}`], 1],
    ] as const),
  )('%s is rejected with its line number', async (name, lines, line) => {
    const problems = [
      expect.objectContaining({
        code: 'malformed_csv',
        line,
        message: expect.stringMatching(/^the line is longer than 1 MiB/) as string,
      }),
    ];
    const path = await files.write(`long ${name}.csv`, lines.join('\n'));
    await expect(readBars(path)).rejects.toMatchObject({ code: 'invalid_data', problems });
    const packed = await files.write(`long ${name}.csv.gz`, gzipSync(lines.join('\n')));
    await expect(readBars(packed)).rejects.toMatchObject({ code: 'invalid_data', problems });
  });
});

describe('the time of a bar', () => {
  test.each(
    some(2, [
      ['seconds', ['1577836800', '1577923200']],
      ['milliseconds', ['1577836800000', '1577923200000']],
      ['microseconds', ['1577836800000000', '1577923200000000']],
      ['nanoseconds', ['1577836800000000000', '1577923200000000000']],
      ['fractions of seconds', ['1577836800.0', '1.5779232e9']],
      ['basic dates', ['20200101', '20200102']],
      ['dates', ['2020-01-01', '2020-01-02']],
      ['dates with slashes', ['2020/01/01', '2020/1/2']],
      ['date-times', ['2020-01-01 00:00:00', '2020-01-02T00:00']],
      ['date-times in UTC', ['2020-01-01T00:00:00Z', '2020-01-02T00:00Z']],
      ['date-times with an offset', ['2020-01-01T02:00:00+02:00', '2020-01-01 19:00:00-05']],
      ['a day and a clock without seconds', ['2020-01-01T05:30+05:30', '2020-01-01T14:00-1000']],
    ] as const),
  )('is read from %s', async (_, written) => {
    expect(await times(...written)).toEqual([DAY_1, DAY_2]);
  });

  test('keeps its milliseconds', async () => {
    const expected = [DAY_1 + 1, DAY_1 + 250];
    expect(await times('2020-01-01T00:00:00.001Z', '2020-01-01 00:00:00.250')).toEqual(expected);
    expect(await times('1577836800001000', '1577836800250000')).toEqual(expected);
    expect(await times('1577836800001000000', '1577836800250000000')).toEqual(expected);
  });

  test('can be before 1970, in seconds and dates', async () => {
    const day = Date.UTC(1927, 11, 30);
    expect(await times(String(day / 1000), '0')).toEqual([day, 0]);
    expect(await times('1927-12-30')).toEqual([day]);
  });

  test('may be split into a day and a time of day', async () => {
    const text = csv('Date,Time,Close', '2020-01-01,09:30,10', '2020-01-01,09:31:30,11');
    const at = DAY_1 + 9.5 * 3_600_000;
    expect((await readText(text)).map(([time]) => time)).toEqual([at, at + 90_000]);
  });

  test.each(
    some(2, [
      ['a date that does not exist', '2020-01-01', '2020-02-30'],
      ['a day-first date', '2020-01-01', '13/01/2020'],
      ['a year of two digits', '2020-01-01', '20-01-02'],
      ['a number in another unit', '1577836800000', '1577923200'],
      ['a text among numbers', '1577836800', '2020-01-02'],
      ['a number among texts', '2020-01-01', '1577923200'],
      ['infinity', '2020-01-01', 'infinity'],
      ['a number beyond all markets', '1577836800', '99999999999'],
      ['a basic date that does not exist', '20200101', '20200230'],
      ['empty', '2020-01-01', ''],
    ] as const),
  )('is NaN if it is %s', async (_, good, bad) => {
    expect(await times(good, good, bad)).toEqual([DAY_1, DAY_1, NaN]);
  });

  test.each(
    some(2, [
      ['day numbers of a spreadsheet', ['43831', '43832.5']],
      ['years', ['2019', '2020']],
      ['months', ['202001', '202002']],
      ['row numbers', ['1', '2', '']],
    ] as const),
  )('is not read from %s', async (_, written) => {
    const error = await refusal(times(...written));
    expect(error.code).toBe('invalid_data');
    expect(error.message).toContain(`numbers such as ${written[0]}`);
    expect(error.remedy).toContain('2020-04-17');
  });

  test('is NaN where a file changes from milliseconds to microseconds', async () => {
    const [before, after] = ['1577836800000', '1577923200000000'];
    expect(await times(before, after, after)).toEqual([NaN, DAY_2, DAY_2]);
  });
});

describe('values that are not numbers', () => {
  test('become NaN without an effect on other rows', async () => {
    const text = csv(
      'date,open,high,low,close,volume',
      '2020-01-01,null,12,9,"1,234",500',
      '2020-01-02,10,12,9,11',
      '2020-01-03,10,12,9,11,500',
    );
    expect(await readText(text)).toEqual([
      [DAY_1, NaN, 12, 9, NaN, 500],
      [DAY_2, 10, 12, 9, 11, NaN],
      [DAY_3, 10, 12, 9, 11, 500],
    ]);
  });
});

describe('a window', () => {
  const text = csv(
    'date,close',
    '2020-01-01,1',
    '2020-01-02 00:00,2',
    '2020-01-02 23:59:59,3',
    'never,4',
    '2020-01-03,5',
  );
  const window = async (from?: string, to?: string): Promise<[number, number][]> => {
    const file = await readBars(await files.write('window.csv', text), { from, to });
    return Array.from({ length: file.bars.length }, (_, i) => [file.rowOf(i), file.bars.close[i]!]);
  };

  test('includes both days completely, and keeps the row numbers of the file', async () => {
    const second = [
      [2, 2],
      [3, 3],
      [4, 4],
    ];
    expect(await window('2020-01-02', '2020-01-02')).toEqual(second);
    expect(await window('2020-01-02')).toEqual([...second, [5, 5]]);
    expect(await window(undefined, '2020-01-01')).toEqual([
      [1, 1],
      [4, 4],
    ]);
    expect(await window('2020-01-02T00:00:01Z', '2020-01-02T23:59:59Z')).toEqual([
      [3, 3],
      [4, 4],
    ]);
  });

  test('outside the data is rejected with the extent of the data', async () => {
    const path = await files.write('days.csv', csv('date,close', '2020-01-01,1', '2020-01-03,2'));
    const error = await refusal(readBars(path, { from: '2020-01-02', to: '2020-01-02' }));
    expect(error.message).toBe(
      `${path} has no rows from 2020-01-02 to 2020-01-02: it begins at 2020-01-01 and ends at 2020-01-03`,
    );
  });

  test.each(
    some(2, [
      ['2020-02-30', undefined],
      ['01/02/2020', undefined],
      [undefined, 'yesterday'],
      ['2020-01-03', '2020-01-02'],
    ] as const),
  )('from %s to %s is rejected', async (from, to) => {
    expect((await refusal(readBars(files.path('any.csv'), { from, to }))).code).toBe(
      'invalid_data',
    );
  });
});

describe('the format of a file', () => {
  const TEXT = csv(
    'date,open,high,low,close,volume',
    '2020-01-01,10,12,9,11,500',
    '2020-01-02,11,13,10,12,600',
  );

  test('is gzipped CSV by its content, whatever its name', async () => {
    const plain = await readBars(await files.write('plain.csv', TEXT));
    for (const name of ['bars.csv.gz', 'odd name.txt']) {
      const packed = await readBars(await files.write(name, gzipSync(TEXT)));
      expect(barsDigest(packed.bars)).toBe(barsDigest(plain.bars));
    }
  });

  test.each(
    some(2, [
      "DATE '2020-01-01'",
      "TIMESTAMP '2020-01-01'",
      "TIMESTAMP_S '2020-01-01'",
      "TIMESTAMP_MS '2020-01-01'",
      "TIMESTAMP_NS '2020-01-01'",
      "TIMESTAMPTZ '2020-01-01 02:00:00+02'",
      '1577836800::INT',
      '1577836800000::BIGINT',
      '1577836800000000000::BIGINT',
      "'2020-01-01T00:00:00Z'",
    ] as const),
  )('can be Parquet with numbers of any type and times such as %s', async (time) => {
    const path = await files.parquet(
      'typed.parquet',
      `SELECT ${time} AS "Time", 10::DECIMAL(9, 2) AS open, 12::FLOAT AS high, 9::INT AS low,
              11::DOUBLE AS close, 5::BIGINT AS volume`,
    );
    expect(rowsOf((await readBars(path)).bars)).toEqual([[DAY_1, 10, 12, 9, 11, 5]]);
  });

  test('does not interpret SQL or shell syntax in names', async () => {
    const column = `a"b'c; DROP`;
    const name = `it's [a-z]*?{x,y} "b".parquet`;
    await files.parquet('its a.parquet', `SELECT DATE '1999-01-01' AS time, 1 AS close`);
    const path = await files.parquet(
      name,
      `SELECT DATE '2020-01-01' AS time, 11 AS "${column.replaceAll('"', '""')}"`,
    );
    const { bars } = await readBars(path, { columns: { close: column } });
    expect(rowsOf(bars)).toEqual([[DAY_1, 11, 11, 11, 11, 0]]);
  });

  test.runIf(isAtLength)('does not turn a folder named like a column into one', async () => {
    await mkdir(files.path('close=7'));
    await files.parquet('close=7/bars.parquet', `SELECT DATE '2020-01-01' AS time, 11 AS px`);
    await files.write('close=7/bars.csv', csv('time,px', '2020-01-01,11'));
    for (const name of ['bars.parquet', 'bars.csv']) {
      const { bars } = await readBars(files.path(`close=7/${name}`), { columns: { close: 'px' } });
      expect(rowsOf(bars)).toEqual([[DAY_1, 11, 11, 11, 11, 0]]);
    }
  });

  test('does not expand a path that looks like a pattern', async () => {
    await files.write('ax.csv', csv('date,close', '1999-01-01,1'));
    const path = await files.write('a[x].csv', csv('date,close', '2020-01-01,11'));
    expect(rowsOf((await readBars(path)).bars)).toEqual([[DAY_1, 11, 11, 11, 11, 0]]);
    expect((await refusal(readBars(files.path('a?.csv')))).code).toBe('file_not_found');
  });
});

describe('a file without bars is rejected', () => {
  test.each<[string, string | Uint8Array, RegExp]>([
    ['if it is empty', '', /is empty/],
    ['if it has only blank lines', '\n \n', /is empty/],
    ['if it has only a header', 'date,close\n', /has no rows/],
    [
      'if it is a picture',
      Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0, 0, 0, 13),
      /neither CSV nor Parquet/,
    ],
    [
      'if it is truncated Parquet',
      Buffer.from('PAR1 and then nothing'),
      /cannot be read: .*magic bytes/,
    ],
    [
      'if it is truncated gzip',
      gzipSync(csv('date,close', '2020-01-01,1234.5')).subarray(0, 40),
      /is damaged/,
    ],
  ])('a file is rejected %s', async (_, content, message) => {
    const error = await refusal(readBars(await files.write('none', content)));
    expect(error.code).toBe('invalid_data');
    expect(error.message).toMatch(message);
  });

  test('a file is rejected if it does not exist or is a directory', async () => {
    await mkdir(files.path('folder'));
    for (const name of ['absent.csv', 'folder', 'folder/absent.csv']) {
      const error = await refusal(readBars(files.path(name)));
      expect(error.code).toBe('file_not_found');
      expect(error.message).toContain(name);
    }
  });

  test.each(
    some(2, [
      [
        'if a line has far too many fields',
        `2020-01-02${',1'.repeat(9)}`,
        /at least 8 fields, the first line has 2/,
      ],
      ['if a quote is not closed', '2020-01-02,"1', /quote/],
      ['if it mixes line endings', '2020-01-02,1\r', /line endings/],
      ['if it is not UTF-8', '2020-01-02,1\u00e9', /UTF-8/],
    ] as const),
  )('a file is rejected %s', async (_, line, message) => {
    const text = csv('date,close', '2020-01-01,1', '', line, '2020-01-03,1');
    const encoding = message.source.includes('UTF') ? 'latin1' : 'utf8';
    const error = await refusal(
      readBars(await files.write('malformed.csv', Buffer.from(text, encoding))),
    );
    expect(error.code).toBe('invalid_data');
    expect(error.problems[0]).toMatchObject({
      code: 'malformed_csv',
      message: expect.stringMatching(message),
    });
  });
});

test.runIf(isAtLength)(
  'CSV, an archive of it and Parquet that several threads read give the same bars in the same order',
  async () => {
    // Three row groups of a Parquet file.
    const count = 300_000;
    const query = `
    SELECT 946684800000 + i * 60000 AS time, 100 + i % 7 AS open, 110 + i % 5 AS high,
           90 - i % 3 AS low, 100 - i % 11 / 4 AS close, i AS volume
    FROM range(${count}) AS t(i)`;
    const parquet = await readBars(await files.parquet('many.parquet', query));
    const lines = rowsOf(parquet.bars).map((row) => row.join(','));
    const content = `${BAR_COLUMNS.join(',')}\n${lines.join('\n')}`;
    const text = await readBars(await files.write('many.csv', content));
    expect(text.bars.length).toBe(count);
    expect(text.bars.volume.every((value, index) => value === index)).toBe(true);
    expect(barsDigest(text.bars)).toBe(barsDigest(parquet.bars));
    // The size of an archive suggests too few rows.
    const packed = await readBars(await files.write('many.csv.gz', gzipSync(content)));
    expect(barsDigest(packed.bars)).toBe(barsDigest(parquet.bars));
  },
);
