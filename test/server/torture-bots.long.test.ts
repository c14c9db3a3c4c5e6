import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { newDatabase } from '../storage/databases.ts';
import { fillCatalogue } from '../fleet/tasks/market.ts';
import { tortureBots } from './torture-bots.ts';

it('a killed server loses no bot data that it acknowledged', async () => {
  const database = await newDatabase('sqlite');
  const catalogueDir = await mkdtemp(join(tmpdir(), 'service-local-torture-test-'));
  try {
    await fillCatalogue(catalogueDir, 400);
    const plan = { rounds: 1, servers: 1, workers: 0, seed: 4, catalogueDir };
    const { acknowledged, sessionsCompared, killed } = await tortureBots(database, plan);
    expect(acknowledged.create).toBeGreaterThan(0);
    expect(sessionsCompared).toBeGreaterThan(0);
    expect(killed).toBeGreaterThan(0);
  } finally {
    await rm(catalogueDir, { recursive: true });
    await database.remove();
  }
});
