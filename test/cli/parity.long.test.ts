import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { BotParity } from '../../src/api/replay.ts';
import type { Summary } from '../../src/backtest/summary.ts';
import type { Scope } from '../../src/base/scopes.ts';
import { newWorld, type World } from '../identity/people.ts';
import { tradingDocument } from '../fleet/parity/play.ts';
import { serveHere, type ServerHere } from '../server/running.ts';
import { fillCatalogue, replaceDays } from '../fleet/tasks/market.ts';
import { inProcess } from './in-process.ts';
import type { Result } from './service-local.ts';

let world: World;
let server: ServerHere;
let directory: string;
let token: string;

const catalogue = (): string => join(directory, 'catalogue');

beforeAll(async () => {
  world = await newWorld('sqlite');
  world.now = Date.now();
  directory = await mkdtemp(join(tmpdir(), 'service-local-parity-'));
  await fillCatalogue(catalogue(), 1);
  token = await tokenFor('read', 'write', 'trade');
  server = await serveHere(world.database, {
    SERVICE_LOCAL_CATALOGUE_DIR: catalogue(),
  });
  const file = join(directory, 'sma.json');
  await writeFile(file, JSON.stringify(tradingDocument('sma', 10)));
  await json('create', '-f', file);
});
afterAll(async () => {
  await server.stop();
  await world.close();
  await rm(directory, { recursive: true });
});

const tokenFor = async (...scopes: Scope[]): Promise<string> =>
  (await world.newPerson()).token(...scopes);

const bots = (words: readonly string[], secret = token): Promise<Result> =>
  inProcess(['bots', ...words], { env: { ...server.env, SERVICE_LOCAL_TOKEN: secret } });

async function json<T>(...words: string[]): Promise<T> {
  const { code, stdout, stderr } = await bots([...words, '--json']);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  return JSON.parse(stdout) as T;
}

async function jsonOfFailure<T>(...words: string[]): Promise<T> {
  const { code, stdout } = await bots([...words, '--json']);
  expect(code).toBe(1);
  return JSON.parse(stdout) as T;
}

test('a session within the data records the bars before it, and equals its backtest', async () => {
  const window = ['--from', '2000-03-20', '-p', 'fast=7'];
  const started = await bots(['paper', 'start', 'sma', '--speed', 'max', ...window, '--json']);
  const { run_id, hashes, window: run } = JSON.parse(started.stdout) as Summary;
  expect((await json<Summary>('backtest', 'sma', ...window)).hashes).toEqual(hashes);
  expect(await json<BotParity>('parity', 'sma', '--run', run_id)).toMatchObject({
    equal: true,
    bars: run.bars,
  });
  expect((await bots(['replay', 'sma', '--run', run_id])).stdout).toContain(
    `events hash ${hashes.events}`,
  );
});

test('a paper session equals its backtest until the data change', async () => {
  const paper = ['paper', 'start', 'sma', '--speed', 'max', '-p', 'fast=12', '--json'];
  const { run_id, hashes } = JSON.parse((await bots(paper)).stdout) as Summary;
  const equal = await json<BotParity>('parity', 'sma');
  expect(equal).toMatchObject({ run_id, equal: true, running: false, bars: 300 });
  const same = await bots(['parity', 'sma', '--run', run_id]);
  expect(same).toEqual({
    code: 0,
    stdout: `Equal: 300 bars, ${equal.events} order events\n`,
    stderr: '',
  });
  const again = await bots(['replay', 'sma', '--run', run_id]);
  expect(again).toMatchObject({ code: 0, stderr: '' });
  expect(again.stdout).toBe(
    `Equal to the recording: 300 bars, ${equal.events} order events; events hash ${hashes.events}\n`,
  );
  expect(await jsonOfFailure<BotParity>('parity', 'sma', '-p', 'fast=5')).toMatchObject({
    first_difference: { cause: 'params' },
  });

  const locked = ['backtest', 'sma', '-p', 'fast=12'];
  const backtest = await json<Summary>(...locked);
  expect(backtest.hashes.events).toBe(hashes.events);
  expect((await bots([...locked, '--verify-lock'])).stderr).toContain('the run matches the lock: ');
  await replaceDays(catalogue(), (rows) =>
    rows.map((row, at) => (at === 50 ? [...row.slice(0, 5), 999] : row) as typeof row),
  );
  const drifted = await bots([...locked, '--verify-lock']);
  expect(drifted).toMatchObject({ code: 6, stdout: '' });
  expect(drifted.stderr).toContain(
    `error lock_drift: the backtest differs from the lock of task ${backtest.run_id}: data of SPX: changed`,
  );
  const parted = await bots(['parity', 'sma']);
  expect(parted).toMatchObject({ code: 1 });
  expect(parted.stdout).toMatch(
    /^Equal until the first difference: 50 bars, \d+ order events\n\n +session +backtest\n(.+\n)+≠ +volume +1000 +999\n$/,
  );
  expect(parted.stderr).toContain(
    `session ${run_id} and its backtest differ at 2000-02-20T00:00:00.000Z: the bar of SPX differs: volume 1000 in the session, 999 in the catalogue`,
  );

  const condition = `run_id = '${run_id}' and kind = 'order.submitted'`;
  await world.database.execute(
    `update bot_events set payload = replace(payload, 'target', 'tarnished') || ' ' where ${condition}`,
  );
  const tampered = await bots(['replay', 'sma', '--run', run_id]);
  expect(tampered).toMatchObject({ code: 1, stdout: '' });
  expect(tampered.stderr).toMatch(/^error events_tampered: event \d+ of sma has been altered/);
});

test('rejects sessions that cannot be compared or replayed', async () => {
  const unknown = await bots(['parity', 'sma', '--run', 'none']);
  expect(unknown).toMatchObject({ code: 1, stdout: '' });
  expect(unknown.stderr).toMatch(/^error not_found: /);
  expect(await bots(['replay', 'none', '--run', 'none'])).toMatchObject({ code: 1 });
  expect(await bots(['replay', 'sma', '--run', 'x', '--until-seq', '1'])).toMatchObject({
    code: 2,
  });
  expect(await bots(['parity', 'sma'], await tokenFor('halt'))).toMatchObject({ code: 4 });
});
