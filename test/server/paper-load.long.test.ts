import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { fillCatalogue } from '../fleet/tasks/market.ts';
import { TEMPORARY } from '../scratch.ts';
import { newDatabase } from '../storage/databases.ts';
import { findOverload, runPaperLoad } from './paper-load.ts';

test('a few sessions record each bar once, and on time', async () => {
  const catalogueDir = await mkdtemp(join(TEMPORARY, 'service-local-paper-load-'));
  await fillCatalogue(catalogueDir, 5000);
  const database = await newDatabase('postgres');
  const plan = { sessions: 6, speed: 60, seconds: 10, workers: 2, catalogueDir };
  const report = await runPaperLoad(database, plan);
  expect(report).toMatchObject({ sessions: 6, due: 10 });
  expect(report.fewest).toBeGreaterThanOrEqual(8);
  expect(report.bars).toBeLessThanOrEqual(66);
  expect(findOverload(report)).toEqual([]);
  await database.remove();
  await rm(catalogueDir, { recursive: true });
});

test('missing bars, late bars and growing memory count as too much load', () => {
  const lag = { median: 0, p99: 0.5, worst: 3 };
  const memory = [100, 200, 210, 205, 200, 215, 205, 210, 205, 210].map((mib) => [mib]);
  const good = { due: 600, fewest: 598, lag, memory, seconds: 600 };
  expect(findOverload(good)).toEqual([]);
  expect(findOverload({ ...good, fewest: 597 })).toHaveLength(1);
  expect(findOverload({ ...good, lag: { ...lag, p99: 1 } })).toHaveLength(1);
  const grown = memory.map(([mib], sample) => [mib! + 10 * sample]);
  expect(findOverload({ ...good, memory: grown })).toEqual([
    'the memory of worker 1 grew from 251 to 288 MiB',
  ]);
});
