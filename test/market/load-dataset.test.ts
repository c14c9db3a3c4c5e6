import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type ServiceError } from '../../src/base/errors.ts';
import { formatProblem } from '../../src/base/format-problem.ts';
import { importBars } from '../../src/market/catalogue.ts';
import { loadDataset, type Dataset, type LoadOptions } from '../../src/market/load-dataset.ts';
import { DAY } from '../../src/base/durations.ts';
import { rowsOf } from './bars.ts';
import { csv, useFiles } from './files.ts';

const files = useFiles();
const SP500 = join(import.meta.dirname, '../../examples/data/sp500-daily.csv');

const load = (source: string, options: Partial<LoadOptions> = {}): Promise<Dataset> =>
  loadDataset({ source, catalogueDir: files.path('catalogue'), ...options });

const HEADER = 'date,open,high,low,close,volume';

test('loads twenty years of the S&P 500 unchanged', async () => {
  const { bars, timeframe, gaps, dropped, hasVolume, notes } = await load(SP500);
  expect(bars.length).toBe(5105);
  expect(timeframe.name).toBe('1d');
  const rows = rowsOf(bars);
  const first = [Date.UTC(2000, 0, 3), 1469.25, 1478, 1438.359985, 1455.219971, 931800000];
  const last = [
    Date.UTC(2020, 3, 17),
    2842.429932,
    2879.219971,
    2830.879883,
    2874.560059,
    5792140000,
  ];
  expect([rows[0], rows.at(-1)]).toEqual([first, last]);
  expect(gaps).toMatchObject({ count: 0, missing: 0 });
  expect([dropped, hasVolume, notes]).toEqual([{}, true, []]);
});

test('reads times in the given format, with the date and the time in one column or two', async () => {
  const read = async (timeFormat: string, ...lines: readonly string[]) => {
    const { bars } = await load(await files.write('us.csv', csv(...lines)), { timeFormat });
    return rowsOf(bars).map(([time]) => new Date(time).toISOString());
  };
  const days = ['2020-03-04T00:00:00.000Z', '2020-03-05T00:00:00.000Z'];
  expect(await read('%m/%d/%Y', 'date,close', '3/4/2020,10', '03/05/2020,11')).toEqual(days);
  expect(await read('%Y%d%m', 'date,close', '20200403,10', '20200503,11')).toEqual(days);
  const minutes = ['2020-03-04T14:30:00.000Z', '2020-03-04T14:31:00.000Z'];
  const columns = ['date,time,close', '04.03.2020,14:30,10', '04.03.2020,14:31,11'];
  expect(await read('%d.%m.%Y %H:%M', ...columns)).toEqual(minutes);
  const offsets = ['time,close', '04.03.20 15:30 +0100,10', '04.03.20 14:31 +0000,11'];
  expect(await read('%d.%m.%y %H:%M %z', ...offsets)).toEqual(minutes);
});

test('rejects rows that do not match the format with row, text and format', async () => {
  const path = await files.write('us.csv', csv('date,close', '3/4/2020,10', '25/12/2020,11'));
  const error = await load(path, { timeFormat: '%m/%d/%Y' }).catch((thrown: unknown) => thrown);
  const { problems, remedy } = error as ServiceError;
  expect(problems.map(({ line, message }) => [line, message])).toEqual([
    [3, 'row 2: the time is missing or does not match %m/%d/%Y: "25/12/2020"'],
  ]);
  expect(remedy).toContain('data.time_format');
});

test('rejects a format with unknown specifiers', async () => {
  const path = await files.write('us.csv', csv('date,close', '3/4/2020,10'));
  await expect(load(path, { timeFormat: '%Q' })).rejects.toMatchObject({
    code: 'invalid_data',
    message: 'the time format %Q has unknown specifiers',
  });
});

test('resamples finer bars to the requested timeframe, with a note', async () => {
  const { bars, timeframe, notes } = await load(SP500, { timeframe: '1mo' });
  expect(timeframe.name).toBe('1mo');
  expect(bars.length).toBe(244);
  expect(rowsOf(bars)[1]![0]).toBe(Date.UTC(2000, 1, 1));
  expect(notes).toEqual(['5105 bars were resampled to 244 bars of 1mo.']);
});

test('notes a window that begins or ends inside a resampled bar', async () => {
  const notes = async (from: string, to: string): Promise<readonly string[]> =>
    (await load(SP500, { timeframe: '1w', from, to })).notes.slice(1);
  expect(await notes('2001-01-08', '2001-12-30')).toEqual([]);
  expect(await notes('2001-01-10', '2001-12-27')).toEqual([
    'The first bar of 1w is incomplete: the window begins inside it, at 2001-01-10.',
    'The last bar of 1w is incomplete: the window ends inside it, at 2001-12-27.',
  ]);
  expect((await load(SP500, { from: '2001-01-10T09:00Z' })).notes).toEqual([]);
});

test('a week is complete if the window contains its last session', async () => {
  const week = { timeframe: '1w', from: '2001-01-08', calendar: 'XNYS' } as const;
  const notes = async (to: string): Promise<readonly string[]> =>
    (await load(SP500, { ...week, to })).notes.slice(1);
  expect(await notes('2001-12-28')).toEqual([]);
  expect(await notes('2001-12-27')).toHaveLength(1);
});

test('bars outside of all sessions are an error in the window, and warm up nothing before it', async () => {
  const hour = (text: string): string => `${text}:00Z,1,1,1,1,1`;
  const sunday = ['2024-03-03T12', '2024-03-03T13', '2024-03-03T14'].map(hour);
  const monday = ['2024-03-04T15', '2024-03-04T16', '2024-03-04T17'].map(hour);
  const path = await files.write('hours.csv', csv(HEADER, ...sunday, ...monday));
  const daily = { timeframe: '1d', calendar: 'XNYS', warmUp: true } as const;
  const { bars, warmUp } = await load(path, { ...daily, from: '2024-03-04' });
  expect([bars.length, warmUp!.bars.length]).toEqual([1, 0]);
  await expect(load(path, { ...daily, to: '2024-03-03' })).rejects.toMatchObject({
    code: 'invalid_data',
    message: expect.stringContaining('no bar in a session of XNYS') as string,
  });
});

test.each(['1d', '1w'])(
  'bars of %s before the window begin with the years that the calendar covers',
  async (timeframe) => {
    const window = { from: '2012-01-01', calendar: 'XETR', warmUp: true } as const;
    const { warmUp } = await load(SP500, { ...window, timeframe });
    expect(warmUp!.bars.time[0]).toBe(Date.UTC(2010, 0, 4));
    expect(warmUp!.notes).toEqual([
      'Indicators do not use the bars before 2010, which the calendar XETR does not cover.',
    ]);
  },
);

test('rejects bars that are longer than the requested timeframe', async () => {
  await expect(load(SP500, { timeframe: '1h' })).rejects.toMatchObject({ code: 'invalid_data' });
});

test('the digest depends only on the bars', async () => {
  const window = { from: '2001-01-01', to: '2001-12-31' };
  const whole = await load(SP500);
  const year = await load(SP500, window);
  expect(year.bars.length).toBe(248);
  expect(year.digest).not.toBe(whole.digest);
  const rows = rowsOf(year.bars).map((row) => row.join(';'));
  const copy = await files.write('copy.csv', csv(HEADER.replaceAll(',', ';'), ...rows));
  expect((await load(copy)).digest).toBe(year.digest);
  expect((await load(copy, window)).digest).toBe(year.digest);
});

test('rejects bad data with the line and row of each defect, despite windows and blank lines', async () => {
  const path = await files.write(
    'bad.csv',
    csv(
      '',
      HEADER,
      '2019-12-31,0,0,0,0,0',
      '2020-01-01,10,12,9,11,5',
      '',
      '2020-01-02,10,8,9,11,5',
      'soon,10,12,9,11,5',
      '2020-01-01,10,12,9,11',
    ),
  );
  const error = (await load(path, { from: '2020-01-01' }).catch((e: unknown) => e)) as ServiceError;
  expect(error.code).toBe('invalid_data');
  expect(error.problems.map((problem) => formatProblem(problem).replace(path, 'bad.csv'))).toEqual([
    'bad.csv:6 high_below_low row 3: high 8 is below low 9',
    'bad.csv:7 unreadable_time row 4: the time is missing or cannot be read: "soon"',
    'bad.csv:8 backward_time row 5: 2020-01-01 is before 2020-01-02 of row 3',
    'bad.csv:8 unreadable_volume row 5: the volume is missing or not a number',
  ]);
});

test('names the format of times, not the column, if no time can be read', async () => {
  const path = await files.write(
    'us.csv',
    csv(HEADER, '12/30/2020,10,12,9,11,5', '12/31/2020,10,12,9,11,5'),
  );
  const error = (await load(path).catch((e: unknown) => e)) as ServiceError;
  expect(formatProblem(error.problems[0]!)).toContain(
    'row 1: the time is missing or cannot be read: "12/30/2020"',
  );
  expect(error.remedy).toContain('Write times as 2020-04-17');
  expect(error.remedy).toContain('change the format of the times');
  expect(error.remedy).not.toContain('--columns');
});

test('lists every row with too many fields, and can drop them', async () => {
  const path = await files.write(
    'ragged.csv',
    csv(
      HEADER,
      '2020-01-01,10,12,9,11,5,',
      '2020-01-02,"1,000",12,9,11,5',
      '2020-01-03,1,000.5,1,200,900,1,100,1,000',
      '2020-01-04,10,12,9,11,5,6',
      '2020-01-05,10,12,9,11,5',
      '2020-01-06,10,12,9,11,5',
      '2020-01-07,10,12,9,11,5',
    ),
  );
  const error = (await load(path).catch((e: unknown) => e)) as ServiceError;
  expect(error.problems.map((problem) => formatProblem(problem).replace(path, ''))).toEqual([
    ':3 unreadable_price row 2: open missing or not a number: "1,000"',
    ':4 too_many_fields row 3: the row has more fields than the header',
    ':5 too_many_fields row 4: the row has more fields than the header',
  ]);
  const { bars, dropped } = await load(path, { repair: 'drop' });
  expect(bars.length).toBe(4);
  expect(dropped).toEqual({ unreadable_price: 1, too_many_fields: 2 });
});

test('notes unused columns, and how to use an adjusted close', async () => {
  const notes = async (header: string, ...rows: string[]): Promise<readonly string[]> =>
    (await load(await files.write('unused.csv', csv(header, ...rows)), { timeframe: '1d' })).notes;
  const yahoo = 'Date,Open,High,Low,Close,Adj Close,Volume';
  expect(await notes(yahoo, '2020-01-01,10,12,9,11,5.5,100')).toEqual([
    'Unused columns: "Adj Close".',
    'To trade at adjusted prices, set data.columns of the bot, or use --columns ' +
      'open="Adj Close",high="Adj Close",low="Adj Close",close="Adj Close" on the command line.',
  ]);
  expect(await notes(yahoo, '2020-01-01,10,12,9,11,11,100')).toEqual([]);
  expect(await notes('time,foo_o,foo_h,foo_l,close', '2020-01-01,1,1,1,1')).toEqual([
    'The data have closing prices only: open, high and low equal the close.',
    'Unused columns: "foo_o", "foo_h", "foo_l".',
    'The data have no volume: it is 0 in every bar.',
  ]);
  expect(await notes('time,close,adjusted_close', '2020-01-01,2,1')).toContain(
    'To trade at adjusted prices, set data.columns of the bot, or use --columns close="adjusted_close" ' +
      'on the command line.',
  );
});

test('repair drops the bad rows and counts them', async () => {
  const path = await files.write(
    'repair.csv',
    csv(
      HEADER,
      '2020-01-01,10,12,9,11,5',
      '2020-01-02,10,12,9,11,5',
      '2020-01-02,10,12,9,9,5',
      '2020-01-03,-1,12,9,9,-5',
      '2020-01-04,10,12,9,11,5',
    ),
  );
  const { bars, dropped, notes } = await load(path, { repair: 'drop' });
  const start = Date.UTC(2020, 0, 1);
  expect([...bars.time]).toEqual([start, start + DAY, start + 3 * DAY]);
  expect(dropped).toEqual({ duplicate_time: 1, price_not_positive: 1, negative_volume: 1 });
  expect(notes).toEqual(['Skipped bad rows: 2 of 5.']);
});

test('repair drops one row from the future, not all rows after it', async () => {
  const day = (index: number): string =>
    new Date(index === 60 ? Date.UTC(2030, 0, 1) : Date.UTC(2020, 0, 1 + index)).toISOString();
  const rows = Array.from({ length: 100 }, (_, index) => `${day(index)},1`);
  const path = await files.write('future.csv', csv('time,close', ...rows));
  const { bars, dropped } = await load(path, { repair: 'drop' });
  expect(dropped).toEqual({ forward_time: 1 });
  expect(bars.length).toBe(99);
});

test('repair does not drop most of a file', async () => {
  const days = ['2020-01-04', '2020-01-03', '2020-01-02', '2020-01-01'];
  const path = await files.write('newest.csv', csv('date,close', ...days.map((day) => `${day},1`)));
  await expect(load(path, { repair: 'drop' })).rejects.toMatchObject({
    message: expect.stringContaining('3 bad of 4 rows'),
    remedy: expect.stringContaining('oldest first'),
  });
});

test('notes a missing volume and missing open, high and low', async () => {
  const path = await files.write('nav.csv', csv('date,nav', '2020-01-01,1', '2020-01-02,2'));
  expect((await load(path)).notes).toEqual([
    'The data have closing prices only: open, high and low equal the close.',
    'The data have no volume: it is 0 in every bar.',
  ]);
});

test('counts gaps before resampling', async () => {
  const minutes = Array.from({ length: 4 * 1440 }, (_, i) => `${1_600_000_020 + i * 60},1`);
  const path = await files.write('minutes.csv', csv('ts,close', ...minutes.toSpliced(2000, 30)));
  const { gaps, sourceBars, bars } = await load(path, { timeframe: '1d' });
  expect([gaps.missing, sourceBars]).toEqual([30, 4 * 1440 - 30]);
  expect(bars.length).toBe(5);
});

test('resamples prices at irregular times', async () => {
  const times = Array.from({ length: 100 }, (_, i) => 1_600_000_000 + i * 97 + i * i);
  const path = await files.write('ticks.csv', csv('ts,price', ...times.map((time) => `${time},1`)));
  const { bars, sourceBars } = await load(path, { timeframe: '1h' });
  expect(sourceBars).toBe(bars.length);
  const hours = new Set(times.map((time) => Math.floor(time / 3600) * 3_600_000));
  expect([...bars.time]).toEqual([...hours]);
  await expect(load(path)).rejects.toMatchObject({ code: 'invalid_data' });
});

test('accepts a Friday and a Monday as two daily bars', async () => {
  const path = await files.write('two.csv', csv('date,close', '2024-01-05,1', '2024-01-08,2'));
  const { bars, timeframe } = await load(path, { timeframe: '1d' });
  expect(timeframe.name).toBe('1d');
  expect([...bars.time]).toEqual([Date.UTC(2024, 0, 5), Date.UTC(2024, 0, 8)]);
});

test('a single bar has the given timeframe', async () => {
  const path = await files.write('one.csv', csv('date,close', '2020-01-01,1'));
  await expect(load(path)).rejects.toMatchObject({ code: 'invalid_data' });
  expect((await load(path, { timeframe: '4h' })).timeframe.name).toBe('4h');
});

test('loads a dataset of the catalogue', async () => {
  const { bars, digest } = await load(SP500);
  await importBars(files.path('catalogue'), bars, {
    symbol: 'SPX',
    timeframe: '1d',
    hasVolume: false,
    origin: SP500,
    importedAt: '2024-05-06T07:08:09Z',
  });
  const dataset = await load('catalog://SPX');
  expect(dataset).toMatchObject({ digest, hasVolume: false });
  expect((await load('catalog://SPX', { timeframe: '1w' })).bars.length).toBe(1059);
  await expect(load('catalog://GSPC')).rejects.toMatchObject({
    code: 'file_not_found',
    remedy: 'Choose one of: SPX.',
  });
});
