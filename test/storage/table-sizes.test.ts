import { expect, test } from 'vitest';
import { DAY } from '../../src/base/durations.ts';
import { openStorage } from '../../src/storage/storage.ts';
import { purgeSizeSamples, readSizes, sampleSizes } from '../../src/storage/table-sizes.ts';
import { mainlyOn, newDatabase } from './databases.ts';

const NOW = 400 * DAY;

test.each(mainlyOn('sqlite'))('the growth of a large table is measured on %s', async (kind) => {
  const database = await newDatabase(kind);
  const storage = await openStorage(database.location);
  const search = { search_id: 'one', digest: 'd', title: '', package: '1', created_by: 'test' };
  const times = { created_at: NOW, used_at: NOW, ended_count: 0, traceparent: null };
  await storage.write(async (tx) => {
    await tx
      .insertInto('searches')
      .values({ ...search, ...times })
      .execute();
  });
  const addMegabytes = (first: number): Promise<void> =>
    storage.write(async (tx) => {
      for (let place = first; place < first + 20; place += 1) {
        // Random, because PostgreSQL compresses long texts.
        const data = Buffer.from(crypto.getRandomValues(new Uint8Array(60_000))).toString('base64');
        const part = { search_id: 'one', digest: 'i', place, parts: 100, data };
        await tx.insertInto('search_inputs').values(part).execute();
      }
    });
  await addMegabytes(0);
  await sampleSizes(storage, NOW);
  expect(await readSizes(storage.read)).toMatchObject([
    { name: 'search_inputs', bytes_per_day: null },
  ]);
  await addMegabytes(20);
  await sampleSizes(storage, NOW + 2 * DAY);
  const [size] = await readSizes(storage.read);
  expect(size!.bytes).toBeGreaterThan(3_000_000);
  expect(size!.bytes_per_day! / (size!.bytes / 4)).toBeCloseTo(1, 1);

  await storage.write((tx) => purgeSizeSamples(tx, NOW + 500 * DAY));
  expect(await readSizes(storage.read)).toEqual([]);
  await storage.close();
  await database.remove();
});
