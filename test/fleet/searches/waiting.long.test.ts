import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openStorage, type Storage } from '../../../src/storage/storage.ts';
import { BASIC_ENV, BIN } from '../../cli/service-local.ts';
import { serveHere, type ServerHere } from '../../server/running.ts';
import { addTrader } from '../../server/trader.ts';
import { newDatabase, type TestDatabase } from '../../storage/databases.ts';

const SMA = join(import.meta.dirname, '../../../examples/sma-crossover.yaml');

let directory: string;
let database: TestDatabase;
let storage: Storage;
let server: ServerHere;
let token: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'service-local-waiting-'));
  database = await newDatabase('postgres');
  storage = await openStorage(database.location);
  token = (await addTrader(storage, Date.now())).slice('Bearer '.length);
  server = await serveHere(database, { SERVICE_LOCAL_SERVER_TASKS: 'false' });
});
afterAll(async () => {
  await server.stop();
  await storage.close();
  await database.remove();
  await rm(directory, { recursive: true });
});

test('a sweep warns that no worker runs, and ends once only another version could run it', async () => {
  const words = ['backtest', 'sweep', SMA, '-p', 'fast=5:15:5', '--on', 'server'];
  const child = spawn(process.execPath, [BIN, ...words, '--out', join(directory, 'out')], {
    env: {
      ...BASIC_ENV,
      HOME: directory,
      SERVICE_LOCAL_SERVER_URL: server.url,
      SERVICE_LOCAL_TOKEN: token,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const messages = text(child.stderr);
  let isUpgraded = false;
  child.stderr.on('data', (chunk: Buffer) => {
    if (isUpgraded || !chunk.toString().includes('no worker')) return;
    isUpgraded = true;
    void storage.write((tx) => tx.updateTable('searches').set({ package: '0.0.1' }).execute());
  });
  expect(await once(child, 'exit')).toEqual([6, null]);
  const shown = await messages;
  expect(shown).toMatch(
    /^warning: waiting to start 1 shard, since no worker of version \S+ runs; start one with `service-local worker`$/m,
  );
  expect(shown).toContain('error conflict: no worker has version 0.0.1 any longer');
  expect(await storage.read.selectFrom('searches').selectAll().execute()).toEqual([]);
});
