import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTaskRunner, type TaskRunner } from '../../../src/fleet/tasks/task-runner.ts';
import { documentOn, fillCatalogue } from '../../fleet/tasks/market.ts';
import { newTestApp, type TestApp } from '../in-process.ts';
import { tradingDocument } from '../trader.ts';
import { newSignedIn, type Visitor } from './visitor.ts';
import { isAtLength } from '../../length.ts';

let server: TestApp;
let visitor: Visitor;
let runner: TaskRunner;

beforeAll(async () => {
  server = await newTestApp();
  ({ visitor } = await newSignedIn(server));
  const { tasks, log } = server.services;
  await fillCatalogue(tasks.catalogueDir, 100_000);
  await visitor.fetch('POST', '/bots', { document: tradingDocument('trader', 'SPX', '1d', 3) });
  await visitor.fetch('POST', '/bots', { document: documentOn('long', 'LONG', '1m') });
  runner = startTaskRunner(tasks, { workers: 1, paperSessions: 0, timeoutMs: 5000, log });
  Object.assign(tasks, { wake: () => runner.wake() });
});
afterAll(async () => {
  await runner.stop();
  await server.close();
});

async function start(bot: string, fields: Readonly<Record<string, string>>): Promise<string> {
  const key = JSON.stringify([bot, fields]).replace(/[^\w]/g, '-');
  const { location, text } = await visitor.submit(`/console/bots/${bot}/analyses`, {
    key: key.slice(0, 60),
    ...fields,
  });
  expect([location, location === null ? text : '']).toEqual([
    expect.stringContaining('/console/tasks/'),
    '',
  ]);
  return location!.split('/').at(-1)!;
}

/** The stream of a task ends with it. */
const ended = (task_id: string) => visitor.fetch('GET', `/tasks/${task_id}/events`);

async function read<T>(path: string): Promise<T> {
  const { status, text } = await visitor.fetch('GET', path);
  expect([path, status, status === 200 ? '' : text]).toEqual([path, 200, '']);
  return JSON.parse(text) as T;
}

interface Sweep {
  readonly trials: { readonly total: number; readonly done: number };
  readonly best: { readonly params: object; readonly metrics: { readonly sharpe: number } };
  readonly lock: { readonly trials: { readonly count: number } };
}

const countTrials = async (): Promise<number> => {
  const { items } = await read<{ items: { kind: string; count: number }[] }>('/trials');
  return items.reduce((sum, { count }) => sum + count, 0);
};

describe('a search of parameters in the console', () => {
  test.runIf(isAtLength)(
    'is a sweep with the figures of the same backtests, counted in the ledger once',
    async () => {
      const fields = {
        kind: 'sweep',
        parameters: 'fast=5,10\nslow=20:40:10',
        objectives: 'sharpe',
      };
      const task_id = await start('trader', fields);
      await ended(task_id);
      // Submitting the form again starts no second search.
      expect(await start('trader', fields)).toBe(task_id);
      const { trials, best, lock } = await read<Sweep>(`/tasks/${task_id}/result`);
      expect(trials).toMatchObject({ total: 6, done: 6 });
      expect(lock.trials.count).toBe(0);
      expect(await countTrials()).toBe(6);
      const backtest = JSON.stringify(best.params);
      const form = { key: 'the-best', params: backtest };
      const { location } = await visitor.submit('/console/bots/trader/backtest', form);
      const run = location!.split('/').at(-1)!;
      await ended(run);
      const { risk } = await read<{ risk: { sharpe: number } }>(`/tasks/${run}/result`);
      expect(best.metrics.sharpe).toBe(risk.sharpe);
      const again = await start('trader', { ...fields, trials: '' });
      await ended(again);
      // Neither the sweep before, with the same trials, nor the backtest of its best one is earlier.
      expect((await read<Sweep>(`/tasks/${again}/result`)).lock.trials.count).toBe(0);
      expect(await countTrials()).toBe(6);
      const { files } = await read<{ files: string[] }>(`/tasks/${task_id}/files`);
      expect(files).toEqual(['report.html', 'sweep.json', 'trials.csv']);
      const report = await visitor.open(`/console/tasks/${task_id}/report`);
      for (const part of ['Map of the parameters', 'Parallel coordinates']) {
        expect(report.text).toContain(part);
      }
      const { text } = await visitor.open(`/console/tasks/${task_id}`);
      expect(text).toContain('Sweep of');
      expect(text).toContain(`/console/tasks/${task_id}/report`);
    },
  );

  test.runIf(isAtLength)(
    'is a walk-forward analysis or a robustness test with their reports',
    async () => {
      const parameters = 'fast=5,10\nslow=20';
      const windows = { kind: 'walk_forward', parameters, train: '3mo', test: '1mo' };
      const walk = await start('trader', windows);
      const robust = await start('trader', { kind: 'robustness', parameters, permutations: '19' });
      await ended(walk);
      await ended(robust);
      const { windows: walked } = await read<{ windows: object[] }>(`/tasks/${walk}/result`);
      expect(walked.length).toBeGreaterThan(3);
      expect(await read<object>(`/tasks/${robust}/result`)).toMatchObject({
        schema: 'service-local/robustness/v1',
      });
      for (const task_id of [walk, robust]) {
        const { status } = await visitor.open(`/console/tasks/${task_id}/report`);
        expect(status).toBe(200);
      }
      // Only figures out of sample are listed beside those of backtests.
      const { items } = await read<{ items: { kind: string; result_summary: object }[] }>(
        '/tasks?kind=walk_forward,robustness&sort=oldest',
      );
      const metrics = expect.objectContaining({ sharpe: expect.any(Number) });
      expect(items.find(({ kind }) => kind === 'walk_forward')!.result_summary).toMatchObject({
        metrics,
      });
      expect(items.find(({ kind }) => kind === 'robustness')!.result_summary).not.toHaveProperty(
        'metrics',
      );
    },
  );

  test.runIf(isAtLength)('is canceled while it runs', async () => {
    const task_id = await start('long', { kind: 'sweep', parameters: 'fast=2:40\nslow=50:400:1' });
    await expect
      .poll(async () => (await read<{ status: string }>(`/tasks/${task_id}`)).status)
      .toBe('running');
    await visitor.submit(`/console/tasks/${task_id}/cancel`);
    await ended(task_id);
    expect(await read<object>(`/tasks/${task_id}`)).toMatchObject({ status: 'canceled' });
    expect(await read<object>(`/tasks/${task_id}/files`)).toEqual({ files: [] });
  });

  test('reports what it cannot search above the form, and keeps what was typed', async () => {
    const wrong = { kind: 'walk_forward', parameters: 'fast=5,10', train: '3 moons', test: '1mo' };
    for (const [fields, problem] of [
      [{ kind: 'sweep', parameters: '' }, 'names no parameter'],
      [{ kind: 'sweep', parameters: 'speed=1,2' }, 'speed'],
      [wrong, '3 moons'],
    ] as const) {
      const { status, text } = await visitor.submit('/console/bots/trader/analyses', {
        key: 'wrong',
        ...fields,
      });
      expect([status, text.includes('role="alert"'), text.includes(problem)]).toEqual([
        400,
        true,
        true,
      ]);
    }
  });
});
