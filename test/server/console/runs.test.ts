import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTaskRunner } from '../../../src/fleet/tasks/task-runner.ts';
import { fillCatalogue } from '../../fleet/tasks/market.ts';
import { newTestApp, type TestApp } from '../in-process.ts';
import { tradingDocument } from '../trader.ts';
import { newSignedIn, type Visitor } from './visitor.ts';

const SLOW = [20, 40, 60] as const;

let server: TestApp;
let visitor: Visitor;
/** A backtest for each value of the parameter `slow`. */
let runs: readonly string[];
let canceled: string;

beforeAll(async () => {
  server = await newTestApp();
  ({ visitor } = await newSignedIn(server));
  const { tasks, log } = server.services;
  await fillCatalogue(tasks.catalogueDir, 1);
  const document = tradingDocument('trader', 'SPX', '1d', 3);
  await visitor.fetch('POST', '/bots', { document });
  const start = async (slow: number): Promise<string> => {
    const params = JSON.stringify({ slow });
    const form = { key: `slow-${slow}`, params };
    // Ids of the same time are in no order.
    server.now += 1000;
    const { location } = await visitor.submit('/console/bots/trader/backtest', form);
    return location!.split('/').at(-1)!;
  };
  const started: string[] = [];
  for (const slow of SLOW) started.push(await start(slow));
  canceled = await start(80);
  await visitor.submit(`/console/tasks/${canceled}/cancel`);
  const runner = startTaskRunner(tasks, { workers: 1, paperSessions: 0, timeoutMs: 5000, log });
  // The streams end with the tasks.
  for (const task_id of started) await visitor.fetch('GET', `/tasks/${task_id}/events`);
  await runner.stop();
  runs = started;
});
afterAll(() => server.close());

async function show(path: string): Promise<string> {
  const { status, text } = await visitor.open(path);
  expect([path, status]).toEqual([path, 200]);
  expect(text).not.toMatch(/undefined|NaN|\[object/);
  return text;
}

async function read<T>(path: string): Promise<T> {
  return JSON.parse((await visitor.fetch('GET', path)).text) as T;
}

const listed = (text: string): string[] =>
  [...text.matchAll(/id="run-([\w-]+)"/g)].map(([, task_id]) => task_id!);

/** Ids of the backtests, from the highest Sharpe ratio. */
async function bySharpe(): Promise<string[]> {
  const ratios = await Promise.all(
    runs.map(async (task_id) => {
      const { risk } = await read<{ risk: { sharpe: number } }>(`/tasks/${task_id}/result`);
      return { task_id, sharpe: risk.sharpe };
    }),
  );
  expect(new Set(ratios.map(({ sharpe }) => sharpe)).size).toBe(SLOW.length);
  return ratios.toSorted((a, b) => b.sharpe - a.sharpe).map(({ task_id }) => task_id);
}

describe('a page with runs', () => {
  test.each(['/console/tasks', '/console/bots/trader/runs'])(
    'sorts them by a figure and by time at %s',
    async (path) => {
      const best = await bySharpe();
      expect(listed(await show(`${path}?sort=sharpe`))).toEqual([...best, canceled]);
      expect(listed(await show(`${path}?sort=oldest`))).toEqual([...runs, canceled]);
      const newest = await show(path);
      expect(listed(newest)).toEqual([...runs, canceled].toReversed());
      expect(newest).toContain('?sort=sharpe"');
      expect(newest).toMatch(/aria-sort="descending"[^>]*><a[^>]*>Queued/);
    },
  );

  test.each(['/console/tasks', '/console/bots/trader/runs'])(
    'filters them by kind, status and time at %s',
    async (path) => {
      expect(listed(await show(`${path}?status=canceled`))).toEqual([canceled]);
      expect(await show(`${path}?kind=paper`)).toContain('No run matches the filter');
      const day = new Date(server.now).toISOString().slice(0, 10);
      const some = await show(`${path}?kind=backtest&since=${day}&until=${day}&status=success`);
      expect(listed(some)).toHaveLength(SLOW.length);
      // The links that sort keep the filter.
      expect(some).toContain(`?kind=backtest&amp;status=success&amp;since=${day}&amp;until=${day}`);
      expect(await show(`${path}?until=2001-01-01`)).toContain('No run matches the filter');
    },
  );

  test('offers to compare only finished backtests and paper sessions', async () => {
    const text = await show('/console/tasks');
    expect(text.match(/type="checkbox"/g)).toHaveLength(SLOW.length);
    expect(text).not.toContain(`value="${canceled}"`);
  });
});

describe('a comparison of runs', () => {
  interface Comparison {
    readonly runs: readonly { readonly run_id: string; readonly directory: string }[];
    readonly figures: readonly { readonly figure: string; readonly values: readonly number[] }[];
    readonly differences: readonly {
      readonly params: readonly object[];
      readonly trade: { readonly number: number } | null;
    }[];
  }

  test('has the figures of each run, what differs, and the first differing trade', async () => {
    const compared = await read<Comparison>(`/tasks/comparison?ids=${runs.join(',')}`);
    expect(compared.runs.map(({ directory }) => directory)).toEqual(runs);
    const sharpe = compared.figures.find(({ figure }) => figure === 'sharpe')!;
    for (const [place, task_id] of runs.entries()) {
      const { risk } = await read<{ risk: { sharpe: number } }>(`/tasks/${task_id}/result`);
      expect(sharpe.values[place]).toBe(risk.sharpe);
    }
    expect(compared.differences.map(({ params }) => params)).toEqual([
      [{ name: 'slow', first: 20, other: 40 }],
      [{ name: 'slow', first: 20, other: 60 }],
    ]);
    expect(compared.differences[0]!.trade!.number).toBeGreaterThan(0);
  });

  test('has a page with an address of its own that draws the curves in a sandbox', async () => {
    const query = `id=${runs[0]}&id=${runs[1]}`;
    const text = await show(`/console/tasks/compare?${query}`);
    expect(text).toContain('Comparison of 2 runs');
    for (const task_id of runs.slice(0, 2)) expect(text).toContain(`/console/tasks/${task_id}`);
    expect(text).toContain('slow 40');
    const report = await visitor.open(`/console/tasks/compare/report?${query}`);
    expect(report.text).toContain('A and B: what differs');
    expect(report.headers.get('content-security-policy')).toMatch(
      /script-src 'sha256-[^;]+;.*sandbox allow-scripts/,
    );
  });

  test('reports a selection that cannot be compared', async () => {
    const one = await visitor.open(`/console/tasks/compare?id=${runs[0]}&id=${runs[0]}`);
    expect([one.status, one.text.includes('1 runs are selected')]).toEqual([400, true]);
    const unfinished = await visitor.fetch('GET', `/tasks/comparison?ids=${runs[0]},${canceled}`);
    expect([unfinished.status, unfinished.text]).toEqual([
      409,
      expect.stringContaining('no_result'),
    ]);
    const none = await visitor.fetch('GET', `/tasks/comparison?ids=${runs[0]},none`);
    expect(none.status).toBe(404);
  });
});
