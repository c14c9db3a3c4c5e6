import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { csv, useFiles } from '../market/files.ts';
import { inProcess } from './in-process.ts';
import type { Result } from './service-local.ts';

const files = useFiles();
const SP500 = join(import.meta.dirname, '../../examples/data/sp500-daily.csv');

const data = (catalogue: string, ...args: readonly string[]): Promise<Result> =>
  inProcess(['data', ...args, '--catalogue-dir', files.path(catalogue)]);

test('imports and validates a file whose dates are not ISO', async () => {
  const path = await files.write('us.csv', csv('date,close', '3/4/2020,10', '03/05/2020,11'));
  const imported = await data('us', 'import', path, '--time-format', '%m/%d/%Y', '--json');
  expect(JSON.parse(imported.stdout)).toMatchObject({ from: '2020-03-04', to: '2020-03-05' });
  const bot = (format: string): string => `apiVersion: bots/v1
kind: Bot
metadata: { name: us, slug: us }
spec:
  kind: trading
  universe: { symbols: [US], currency: USD }
  data: { source: us.csv, timeframe: 1d${format} }
  strategy: { name: buy_and_hold }
`;
  const validated = async (format: string) =>
    (await inProcess(['validate', await files.write('us.yaml', bot(format))])).code;
  expect(await validated(', time_format: "%m/%d/%Y"')).toBe(0);
  expect(await validated(', time_format: "%d/%m/%y"')).toBe(3);
});

test('imports, lists, shows and verifies a file, which a bot can use as its source', async () => {
  const imported = await data('whole', 'import', SP500, '--symbol', 'SPX', '--json');
  expect(imported).toMatchObject({ code: 0, stderr: '' });
  const manifest = JSON.parse(imported.stdout);
  expect(manifest).toMatchObject({
    symbol: 'SPX',
    timeframe: '1d',
    rows: 5105,
    from: '2000-01-03',
    to: '2020-04-17',
    origin: SP500,
    dropped: {},
    gaps: { count: 0, missing: 0, short_holes: 185, listed: [] },
  });

  const listed = await data('whole', 'list');
  expect(listed.stdout).toMatch(/^symbol +timeframe +bars +from +to +imported from$/m);
  expect(listed.stdout).toMatch(/^SPX +1d +5,105 +2000-01-03 +2020-04-17 +\/.*sp500-daily.csv$/m);

  const shown = await data('whole', 'show', 'SPX', '--json');
  const { dropped: _, gaps: __, ...kept } = manifest;
  expect(JSON.parse(shown.stdout)).toEqual(kept);
  expect((await data('whole', 'show', 'SPX')).stdout).toContain(`sha256       ${manifest.sha256}`);

  const verified = await data('whole', 'verify');
  expect(verified).toMatchObject({ code: 0, stderr: '' });
  expect(verified.stdout).toMatch(/^SPX +intact$/m);
});

test('an import reports what it changed and what is missing', async () => {
  const days = Array.from({ length: 60 }, (_, day) => new Date(Date.UTC(2024, 0, 1 + day)));
  const rows = days.map((day) => `${day.toISOString().slice(0, 10)},10`);
  const text = csv('when,px', ...rows.slice(0, 30), rows[29]!, ...rows.slice(36));
  const path = await files.write('holed.csv', text);
  const options = ['--columns', 'time=when,close=px', '--repair', 'drop'];
  const { code, stdout, stderr } = await data('told', 'import', path, ...options);
  expect(code).toBe(0);
  expect(stderr.split('\n')).toEqual([
    'note: The data have closing prices only: open, high and low equal the close.',
    'note: The data have no volume: it is 0 in every bar.',
    'note: Skipped bad rows: 1 of 55.',
    '',
  ]);
  expect(stdout.split('\n').map((line) => line.trimEnd())).toEqual([
    'catalog://holed: 54 bars of 1d, 2024-01-01 to 2024-02-29',
    'rows skipped for duplicate_time: 1',
    'missing bars: 6, in gaps: 1',
    'after       before      missing',
    '2024-01-30  2024-02-06        6',
    '',
  ]);
});

test('stores longer bars than those of the file', async () => {
  const { stdout } = await data('longer', 'import', SP500, '--timeframe', '1w', '--json');
  expect(JSON.parse(stdout)).toMatchObject({ symbol: 'sp500-daily', timeframe: '1w', rows: 1059 });
});

describe('the exit code', () => {
  test('is 3 for bad data, with the place of each problem', async () => {
    const path = await files.write('bad.csv', csv('date,close', '2024-01-01,1', '2024-01-02,0'));
    const { code, stdout, stderr } = await data('codes', 'import', path);
    expect([code, stdout]).toEqual([3, '']);
    expect(stderr).toBe(
      `error invalid_data: ${path} has 1 bad of 2 rows: 1 price_not_positive\n` +
        `  ${path}:3 price_not_positive row 2: open, high, low, close zero or negative\n` +
        '→ Correct these rows, or leave them out with data.repair: drop in the bot, ' +
        'or --repair drop on the command line.\n',
    );
  });

  test('is 3 for data that --repair drop does not accept, with the reason', async () => {
    const path = await files.write('worse.csv', csv('date,close', '2024-01-01,0', '2024-01-02,0'));
    const { code, stderr } = await data('codes', 'import', path, '--repair', 'drop');
    expect(code).toBe(3);
    expect(stderr).toContain(
      'More than half of the rows are bad, so the repair "drop" is rejected',
    );
  });

  test('is 3 for a missing file or dataset', async () => {
    expect(await data('codes', 'import', 'absent.csv')).toMatchObject({ code: 3 });
    expect(await data('codes', 'show', 'SPX')).toMatchObject({ code: 3 });
    expect(await data('codes', 'verify', 'SPX')).toMatchObject({ code: 3 });
  });

  test('is 6 for a name in use without --replace', async () => {
    const args = ['import', SP500, '--symbol', 'X'];
    expect(await data('taken', ...args)).toMatchObject({ code: 0 });
    expect(await data('taken', ...args)).toMatchObject({ code: 6 });
    expect(await data('taken', ...args, '--replace')).toMatchObject({ code: 0 });
  });

  test('is 6 for a name in use and 3 for an invalid name, before the file is read', async () => {
    await data('early', 'import', SP500, '--symbol', 'X');
    expect(await data('early', 'import', 'absent.csv', '--symbol', 'X')).toMatchObject({ code: 6 });
    const { code, stderr } = await data('early', 'import', 'absent.csv', '--symbol', 'a b');
    expect(code).toBe(3);
    expect(stderr).toContain('"a b" is not a valid name of a dataset');
  });

  test.each([
    ['--columns', 'foo=bar'],
    ['--columns', 'time'],
    ['--timeframe', '7m'],
    ['--repair', 'guess'],
  ])('2 for %s %s', async (option, value) => {
    const { code, stderr } = await data('codes', 'import', SP500, option, value);
    expect(code).toBe(2);
    expect(stderr).toContain(option);
  });

  test('is 3 if a dataset has changed since its import; the others are still verified', async () => {
    await data('damaged', 'import', SP500, '--symbol', 'GOOD');
    await mkdir(files.path('damaged/BAD'));
    await writeFile(files.path('damaged/BAD/manifest.json'), '{}');
    const { code, stdout, stderr } = await data('damaged', 'verify', '--json');
    expect(code).toBe(3);
    const { datasets } = JSON.parse(stdout);
    expect(datasets.map(({ symbol, sound }: Record<string, unknown>) => [symbol, sound])).toEqual([
      ['BAD', false],
      ['GOOD', true],
    ]);
    expect(stderr).toContain('1 of 2 datasets');
    const listed = await data('damaged', 'list');
    expect(listed.code).toBe(0);
    expect(listed.stdout).toMatch(/^BAD .*is not a valid manifest of BAD$/m);
    expect(listed.stdout).toMatch(/^GOOD +1d/m);
  });
});

test('listing an empty catalogue prints how to fill it', async () => {
  expect((await data('none', 'list')).stdout).toContain('service-local data import FILE');
  expect(JSON.parse((await data('none', 'list', '--json')).stdout).datasets).toEqual([]);
  expect(await data('none', 'verify')).toMatchObject({ code: 0 });
});

test('reports a catalogue that cannot be written as an error, not a bug, with a remedy that names the option', async () => {
  await files.write('a-file', 'not a directory');
  const rejected = await data('a-file/below', 'import', SP500, '--symbol', 'SPX', '--json');
  expect(rejected.code).toBe(1);
  expect(JSON.parse(rejected.stdout)).toMatchObject({
    error: {
      code: 'output_not_writable',
      message: expect.stringContaining('cannot write into') as string,
      remedy: 'Make the catalogue writable, or choose another with --catalogue-dir.',
    },
  });
});
