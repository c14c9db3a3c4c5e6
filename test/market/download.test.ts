import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { DAY, HOUR } from '../../src/base/durations.ts';
import { downloadBars, type TimedBar } from '../../src/market/download.ts';
import { parseTimeframe } from '../../src/market/timeframe.ts';
import { useFiles } from './files.ts';

const files = useFiles();
const FROM = Date.UTC(2024, 0, 1);

const bar = (time: number): TimedBar => ({ time, open: 2, high: 3, low: 1, close: 2, volume: 0.1 });

const options = (symbol: string, timeframe: string, to: number) => ({
  symbol,
  origin: 'somewhere',
  timeframe: parseTimeframe(timeframe),
  from: FROM,
  to,
  importedAt: '2024-02-01T00:00:00.000Z',
});

test('keeps the first of duplicate bars, and no bars before the start', async () => {
  const times = [FROM - HOUR, FROM, FROM, FROM + HOUR, FROM + 2 * HOUR];
  const read = async (since: number) => (since === FROM ? times.map(bar) : []);
  const result = await downloadBars(
    files.path('twice'),
    { read, size: 1000 },
    options('X', '1h', FROM + 3 * HOUR),
  );
  expect(result).toMatchObject({ added: 3, duplicates: 1, manifest: { rows: 3 } });
});

test('continues after pages without bars, such as those before a listing', async () => {
  const asked: number[] = [];
  const read = async (since: number) => {
    asked.push(Math.floor((since - FROM) / HOUR));
    return since >= FROM + 48 * HOUR ? [bar(FROM + 50 * HOUR)] : [];
  };
  const pages = { read, size: 24 };
  const result = await downloadBars(
    files.path('late'),
    pages,
    options('X', '1h', FROM + 51 * HOUR),
  );
  expect(asked).toEqual([0, 24, 48, 50]);
  expect(result.manifest).toMatchObject({ rows: 1, from: '2024-01-03T02:00:00Z' });
});

test('stores no bar of a month that is not over', async () => {
  const months = [FROM, Date.UTC(2024, 1, 1), Date.UTC(2024, 2, 1)];
  const read = async (since: number) => months.filter((time) => time >= since).map(bar);
  const pages = { read, size: 12 };
  const result = await downloadBars(
    files.path('months'),
    pages,
    options('X', '1mo', Date.UTC(2024, 2, 1) + 30 * DAY),
  );
  expect(result.manifest).toMatchObject({ rows: 2, to: '2024-02-01' });
});

test('stores no dataset if there are no bars', async () => {
  const pages = { read: async () => [], size: 1000 };
  await expect(
    downloadBars(files.path('none'), pages, options('X', '1d', FROM + 5 * DAY)),
  ).rejects.toMatchObject({ code: 'file_not_found' });
});

test('stores no bar twice after a process was killed between storing and cleaning up', async () => {
  const dir = files.path('killed');
  const kept = files.path('kept');
  let until = 3;
  const read = async (since: number) => {
    const times = Array.from({ length: until }, (_, hour) => FROM + hour * HOUR);
    return times.filter((time) => time >= since).map(bar);
  };
  const download = () =>
    downloadBars(dir, { read, size: 1000 }, options('X', '1h', FROM + until * HOUR));
  const partial = join(dir, '.download-X');
  const interrupted = downloadBars(
    dir,
    { read, size: 1000 },
    {
      ...options('X', '1h', FROM + until * HOUR),
      onProgress() {
        throw new Error('interrupted');
      },
    },
  );
  await expect(interrupted).rejects.toThrow('interrupted');
  await cp(partial, kept, { recursive: true });
  await download();
  await cp(kept, partial, { recursive: true });
  expect(await download()).toMatchObject({ added: 0, manifest: { rows: 3 } });
  await cp(kept, partial, { recursive: true });
  until = 5;
  expect(await download()).toMatchObject({ added: 2, manifest: { rows: 5 } });
});
