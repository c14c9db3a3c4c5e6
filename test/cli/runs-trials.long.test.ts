import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Task } from '../../src/api/tasks.ts';
import type { LedgerFault } from '../../src/backtest/ledger/ledger-entry.ts';
import type { TrialGroup } from '../../src/backtest/ledger/trial-groups.ts';
import type { Summary } from '../../src/backtest/summary.ts';
import type { WalkForwardDocument } from '../../src/backtest/windows/walk-forward-document.ts';
import { documentOn, fillCatalogue } from '../fleet/tasks/market.ts';
import { newWorld, type World } from '../identity/people.ts';
import { startServer, type RunningServer } from '../server/running.ts';
import { DATABASES } from '../storage/databases.ts';
import { inProcess } from './in-process.ts';
import type { Result } from './service-local.ts';

interface Listed {
  readonly head: string;
  readonly groups: readonly TrialGroup[];
  readonly faults: readonly LedgerFault[];
}

describe.each(DATABASES)('the trial ledger of a server on %s', (kind) => {
  let world: World;
  let server: RunningServer;
  let directory: string;
  let tokens: readonly string[];

  beforeAll(async () => {
    world = await newWorld(kind);
    world.now = Date.now();
    directory = await mkdtemp(join(tmpdir(), 'service-local-trials-'));
    await fillCatalogue(join(directory, 'catalogue'), 10);
    const tokenOf = async () => (await world.newPerson()).token('read', 'write');
    tokens = [await tokenOf(), await tokenOf()];
    server = await startServer(world.database, ['--catalogue-dir', join(directory, 'catalogue')]);
  });
  afterAll(async () => {
    await server.stop();
    await world.close();
    await rm(directory, { recursive: true });
  });

  const service = (words: readonly string[], token = tokens[0]!): Promise<Result> =>
    inProcess(words, { env: { ...server.env, SERVICE_LOCAL_TOKEN: token } });

  async function json<T>(words: readonly string[], token?: string): Promise<T> {
    const { code, stdout, stderr } = await service([...words, '--json'], token);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    return JSON.parse(stdout) as T;
  }
  const list = (): Promise<Listed> => json(['runs', 'trials', '--server', '--verify']);

  async function newBot(slug: string, data: object = {}): Promise<void> {
    const document = documentOn(slug, 'SPX', '1d');
    const spec = document['spec'] as { readonly data: object };
    const path = join(directory, `${slug}.json`);
    const bot = { ...document, spec: { ...spec, data: { ...spec.data, ...data } } };
    await writeFile(path, JSON.stringify(bot));
    await json(['bots', 'create', '-f', path]);
  }

  test('counts the backtests of all users, each once', async () => {
    await newBot('ours');
    const backtest = ['bots', 'backtest', 'ours', '-p'];
    const first = await json<Summary>([...backtest, 'fast=3']);
    expect(first.lock.trials?.count).toBe(0);
    expect(first.deflated_sharpe?.trials).toBe(1);
    await json(backtest.concat('fast=4'), tokens[1]);
    expect(await json<Summary>([...backtest, 'fast=3'], tokens[1])).toMatchObject({
      lock: { digest: first.lock.digest, trials: { count: 1 } },
      hashes: first.hashes,
    });
    const many = ['5', '6', '7', '5'].map((fast) =>
      json<Task>([...backtest, `fast=${fast}`, '--detach'], tokens[1]),
    );
    for (const { task_id } of await Promise.all(many)) {
      await json(['tasks', 'result', task_id, '--wait']);
    }
    const last = await json<Summary>([...backtest, 'fast=8']);
    expect(last.lock.trials).toMatchObject({ count: 5, sharpe_count: 5 });
    expect(last.deflated_sharpe?.probability).toBeGreaterThan(0);
    const { groups, faults } = await list();
    expect(groups).toMatchObject([{ family: 'sma_crossover', symbols: ['SPX'], trials: 6 }]);
    expect(faults).toEqual([]);
  });

  test('counts the searches whose trials run on its workers, and repeated trials once', async () => {
    const before = (await list()).groups.find(({ family }) => family === 'sma_crossover')!.trials;
    const catalogue = ['--catalogue-dir', join(directory, 'catalogue')];
    const sweep = async (values: string, out: string, token?: string): Promise<void> => {
      const words = ['backtest', 'sweep', join(directory, 'ours.json'), '-p', `fast=${values}`];
      const to = ['--out', join(directory, out), '--on', 'server'];
      await json([...words, ...catalogue, ...to], token);
    };
    // Backtests have counted 7 and 8.
    await sweep('7,8,9,10', 'first');
    const count = async (): Promise<number> => {
      const { groups, faults } = await list();
      expect(faults).toEqual([]);
      return groups.find(({ family }) => family === 'sma_crossover')!.trials;
    };
    expect(await count()).toBe(before + 2);
    await sweep('9,10,11', 'second', tokens[1]);
    expect(await count()).toBe(before + 3);
    const backtest = ['bots', 'backtest', 'ours', '-p'];
    const { lock } = await json<Summary>([...backtest, 'fast=10']);
    expect(lock.trials).toMatchObject({ count: before + 2, sharpe_count: before + 2 });
    expect(await count()).toBe(before + 3);
    const walk = ['backtest', 'walk-forward', join(directory, 'ours.json'), '-p', 'fast=4,5'];
    const spans = ['--train', '60d', '--test', '30d', '--on', 'server'];
    const out = ['--out', join(directory, 'walk')];
    const words = [...walk, ...catalogue, ...spans, ...out];
    const { windows } = await json<WalkForwardDocument>(words);
    expect(await count()).toBe(before + 3 + windows.length * 3);
  });

  test.each([
    ['an incomplete trial', Buffer.alloc(17)],
    ['an infinite Sharpe ratio', Buffer.from([...Buffer.alloc(14), 0xf0, 0x7f])],
  ])('rejects a report with %s', async (_name, packed) => {
    const scope = { family: 'sma_crossover', symbols: ['SPX'], bar_ms: 86_400_000 };
    const window = { from: '2000-01-03T00:00:00.000Z', to: '2000-09-01T00:00:00.000Z' };
    const trials = packed.toString('base64');
    const response = await fetch(`${server.env['SERVICE_LOCAL_SERVER_URL']}/trials`, {
      method: 'POST',
      headers: { authorization: `Bearer ${tokens[0]}`, 'content-type': 'application/json' },
      body: JSON.stringify({ lock: 'a'.repeat(64), ...scope, ...window, trials }),
    });
    expect(response.status).toBe(400);
    expect((await list()).faults).toEqual([]);
  });

  test('counts each opening of a holdout, which other backtests leave out', async () => {
    await newBot('kept', { holdout: '30d' });
    const kept = await json<Summary>(['bots', 'backtest', 'kept']);
    expect(kept.window.to).toBe('2000-09-26T00:00:00.000Z');
    expect(kept.holdout).toMatchObject({ period: '30d', is_open: false, opened: 0 });
    const open = ['bots', 'backtest', 'kept', '--open-holdout'];
    const opened = await json<Summary>(open);
    expect(opened.window.to).toBe('2000-10-26T00:00:00.000Z');
    expect(opened.holdout).toMatchObject({ is_open: true, opened: 1 });
    expect((await json<Summary>(open)).holdout).toMatchObject({ opened: 2 });
    expect((await list()).groups[0]).toMatchObject({ holdout_openings: 2 });

    const none = await service(['bots', 'backtest', 'ours', '--open-holdout']);
    expect(none.code).toBe(6);
    expect(none.stderr).toContain('declares no holdout');
  });

  test('names altered entries and notices that its end was cut off', async () => {
    const { head } = await list();
    const seq = Number(head.split(':')[0]);
    await world.database.execute('update trial_entries set sharpe = 9 where seq = 2');
    await world.database.execute(`delete from trial_entries where seq = ${seq}`);
    const { code, stdout, stderr } = await service(['runs', 'trials', '--server', '--verify']);
    expect(code).toBe(1);
    expect(stdout).toContain('entry 2 has been altered.');
    expect(stdout).toContain(`entry ${seq} is missing.`);
    expect(stderr).toContain('trials_tampered');
  });
});
