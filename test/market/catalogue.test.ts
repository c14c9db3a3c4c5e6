import { readFileSync } from 'node:fs';
import fs, {
  appendFile,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { BAR_COLUMNS, barsFromRows, type Bars } from '../../src/market/bars.ts';
import {
  datasetNames,
  importBars,
  readManifest,
  resolveDataset,
  verifyDataset,
  type ImportOptions,
} from '../../src/market/catalogue.ts';
import { barsDigest } from '../../src/market/digest.ts';
import { readBars } from '../../src/market/read-bars.ts';
import { DAY } from '../../src/base/durations.ts';
import { writeParquet } from '../../src/market/write.ts';
import { rowsOf } from './bars.ts';
import { useFiles } from './files.ts';
import { isAtLength } from '../length.ts';
import { replace } from '../replace.ts';

const files = useFiles();
let dir: string;
let round = 0;
beforeEach(() => {
  dir = files.path(`catalogue-${round++}`);
});

const START = Date.UTC(2020, 0, 1);
const BARS = barsFromRows([
  [START, 10, 12, 9, 11, 500],
  [START + DAY, 11, 13.1, 10.000000001, 12, 0.1 + 0.2],
]);
const OPTIONS: ImportOptions = {
  symbol: 'SPX',
  timeframe: '1d',
  hasVolume: true,
  origin: '/data/spx.csv',
  importedAt: '2024-05-06T07:08:09Z',
};

const add = (options: Partial<ImportOptions> = {}, bars: Bars = BARS) =>
  importBars(dir, bars, { ...OPTIONS, ...options });

test('a dataset is stored as Parquet with a manifest, and is read back unchanged', async () => {
  const manifest = await add();
  expect(manifest).toEqual({
    schema: 'service-local/dataset/v1',
    symbol: 'SPX',
    timeframe: '1d',
    rows: 2,
    from: '2020-01-01',
    to: '2020-01-02',
    sha256: barsDigest(BARS),
    origin: '/data/spx.csv',
    imported_at: '2024-05-06T07:08:09Z',
    columns: ['time', 'open', 'high', 'low', 'close', 'volume'],
  });
  expect(await readdir(dir)).toEqual(['SPX']);
  expect((await readdir(join(dir, 'SPX'))).toSorted()).toEqual(['1d.parquet', 'manifest.json']);
  expect(await readManifest(dir, 'SPX')).toEqual(manifest);
  const found = await resolveDataset(dir, 'catalog://SPX');
  expect(found?.manifest).toEqual(manifest);
  expect(rowsOf((await readBars(found!.path)).bars)).toEqual(rowsOf(BARS));
  expect(await verifyDataset(dir, 'SPX')).toEqual([]);
});

test('the path of a file does not resolve to a dataset', async () => {
  expect(await resolveDataset(dir, './SPX.csv')).toBeUndefined();
});

test('names are sorted, and a missing catalogue is empty', async () => {
  expect(await datasetNames(dir)).toEqual([]);
  for (const symbol of ['MSFT', 'BTC-USD', '^GSPC']) await add({ symbol });
  await mkdir(join(dir, '.import-interrupted'));
  await writeFile(join(dir, 'notes.txt'), 'mine');
  expect(await datasetNames(dir)).toEqual(['BTC-USD', 'MSFT', '^GSPC']);
});

test.runIf(isAtLength)('keeps the order of rows that span several chunks', async () => {
  const rows = Array.from(
    { length: 300_000 },
    (_, i) => [START + i * 60_000, 1, 1, 1, 1, i] as const,
  );
  const bars = barsFromRows(rows);
  await writeParquet(files.path('many.parquet'), bars, BAR_COLUMNS);
  expect(barsDigest((await readBars(files.path('many.parquet'))).bars)).toBe(barsDigest(bars));
});

describe('a name of a dataset', () => {
  const unusable = ['', '.', '..', '../SPX', 'a/b', 'a\\b', '.hidden', 'a b', 'x'.repeat(65)];
  test.each(unusable.concat('-rf', '=A', '__proto__', 'constructor', 'prototype'))(
    '%j is rejected',
    async (symbol) => {
      const expected = expect.objectContaining({ code: 'invalid_data' });
      await expect(add({ symbol })).rejects.toEqual(expected);
      await expect(readManifest(dir, symbol)).rejects.toEqual(expected);
      await expect(resolveDataset(dir, `catalog://${symbol}`)).rejects.toEqual(expected);
      await expect(readdir(dir)).rejects.toMatchObject({ code: 'ENOENT' });
    },
  );

  test('that is in use is a conflict and changes nothing, except with replace', async () => {
    await add();
    const other = barsFromRows([[START, 1, 1, 1, 1, 1]]);
    await expect(add({ timeframe: '1w' }, other)).rejects.toMatchObject({ code: 'conflict' });
    expect(await verifyDataset(dir, 'SPX')).toEqual([]);
    expect((await readManifest(dir, 'SPX')).rows).toBe(2);

    await add({ timeframe: '1w', replace: true }, other);
    expect(await verifyDataset(dir, 'SPX')).toEqual([]);
    expect((await readManifest(dir, 'SPX')).timeframe).toBe('1w');
    expect((await readdir(join(dir, 'SPX'))).toSorted()).toEqual(['1w.parquet', 'manifest.json']);
    expect(await readdir(dir)).toEqual(['SPX']);
  });

  test('that several imports use at once gets the complete dataset of one of them', async () => {
    const attempts = [1, 2, 3, 4].map((price) =>
      add({ origin: String(price) }, barsFromRows([[START, price, price, price, price, 0]])),
    );
    const outcomes = await Promise.allSettled(attempts);
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const lost = outcomes.flatMap((o) => (o.status === 'rejected' ? [o.reason.code] : []));
    expect(lost).toEqual(['conflict', 'conflict', 'conflict']);
    expect(await verifyDataset(dir, 'SPX')).toEqual([]);
    expect(await readdir(dir)).toEqual(['SPX']);
  });

  test('that does not exist is rejected with the names that do', async () => {
    await expect(readManifest(dir, 'SPX')).rejects.toMatchObject({
      code: 'file_not_found',
      remedy: expect.stringContaining('data import'),
    });
    await add({ symbol: 'MSFT' });
    await expect(readManifest(dir, 'SPX')).rejects.toMatchObject({
      remedy: 'Choose one of: MSFT.',
    });
  });
});

describe('a dataset that is being replaced', () => {
  const other = barsFromRows([[START, 1, 1, 1, 1, 1]]);

  /** Leaves the files of an import that was killed after it moved the old dataset away. */
  async function killed(age: number): Promise<string> {
    const staging = join(dir, '.import-killed');
    await mkdir(join(staging, 'old'), { recursive: true });
    await mkdir(join(staging, 'new'));
    await rename(join(dir, 'SPX'), join(staging, 'old/SPX'));
    const then = Date.now() / 1000 - age;
    await utimes(staging, then, then);
    return staging;
  }

  test('stays if the new one cannot be written', async () => {
    await add();
    const broken = Object.assign(new Error('EIO: rename'), { code: 'EIO', syscall: 'rename' });
    const { rename: really } = fs;
    const restore = replace(fs, {
      rename: (from, to) =>
        String(from).endsWith('new') ? Promise.reject(broken) : really(from, to),
    });
    onTestFinished(restore);
    await expect(add({ replace: true }, other)).rejects.toMatchObject({ cause: broken });
    restore();
    expect((await readManifest(dir, 'SPX')).rows).toBe(2);
    expect(await verifyDataset(dir, 'SPX')).toEqual([]);
    expect(await readdir(dir)).toEqual(['SPX']);
  });

  test.each([
    ['listed', async () => expect(await datasetNames(dir)).toEqual(['SPX'])],
    ['read', async () => expect((await readManifest(dir, 'SPX')).rows).toBe(2)],
    ['verified', async () => expect(await verifyDataset(dir, 'SPX')).toEqual([])],
    ['imported', () => expect(add()).rejects.toMatchObject({ code: 'conflict' })],
  ])('by a killed import is restored when datasets are %s', async (_, look) => {
    await add();
    await killed(1);
    await look();
    expect(await verifyDataset(dir, 'SPX')).toEqual([]);
  });

  test('is not restored over its successor', async () => {
    await add();
    const staging = await killed(1);
    await writeParquet(join(staging, 'new/1d.parquet'), other, BAR_COLUMNS);
    await rename(join(staging, 'new'), join(dir, 'SPX'));
    expect(await datasetNames(dir)).toEqual(['SPX']);
    expect(await readdir(join(dir, 'SPX'))).toEqual(['1d.parquet']);
  });

  test('leaves no other files once the import can no longer be running', async () => {
    await add();
    await killed(3500);
    await datasetNames(dir);
    expect((await readdir(dir)).toSorted()).toEqual(['.import-killed', 'SPX']);
    await rm(join(dir, '.import-killed'), { recursive: true });
    await killed(3700);
    await datasetNames(dir);
    expect(await readdir(dir)).toEqual(['SPX']);
  });
});

test('the manifest does not list a volume that the imported file lacked', async () => {
  const { columns } = await add({ hasVolume: false });
  expect(columns).toEqual(['time', 'open', 'high', 'low', 'close']);
});

describe('verification', () => {
  const codes = async (): Promise<string[]> =>
    (await verifyDataset(dir, 'SPX')).map(({ code }) => code);

  test('finds bars that differ from the imported ones', async () => {
    await add();
    const changed = rowsOf(BARS);
    changed[1]![4] += 0.01;
    await writeParquet(join(dir, 'SPX/1d.parquet'), barsFromRows(changed), BAR_COLUMNS);
    expect(await codes()).toEqual(['digest_differs']);
  });

  test('finds bars with impossible prices', async () => {
    await add({}, barsFromRows([...rowsOf(BARS), [START, 10, 9, 12, 11, -1]]));
    expect(await codes()).toEqual(['backward_time', 'high_below_low', 'negative_volume']);
  });

  test('finds a damaged or missing file', async () => {
    await add();
    const path = join(dir, 'SPX/1d.parquet');
    await writeFile(path, (await readFile(path)).subarray(0, 100));
    expect(await codes()).toEqual(['invalid_data']);
    await rm(path);
    expect(await codes()).toEqual(['file_not_found']);
  });

  test('fails for a name without a dataset', async () => {
    await expect(verifyDataset(dir, 'SPX')).rejects.toMatchObject({ code: 'file_not_found' });
  });

  test('finds a manifest that is damaged or belongs to another dataset', async () => {
    await add();
    const path = join(dir, 'SPX/manifest.json');
    const manifest = readFileSync(path, 'utf8');
    await writeFile(path, manifest.replace('"SPX"', '"MSFT"'));
    expect(await codes()).toEqual(['invalid_data']);
    await writeFile(path, manifest);
    await appendFile(path, '}');
    expect(await codes()).toEqual(['invalid_data']);
  });
});
