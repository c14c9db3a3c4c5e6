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

describe('the trades of a run', () => {
  const download = async (query: string): Promise<string[][]> => {
    const { status, headers, text } = await visitor.open(
      `/console/tasks/${runs[0]}/trades.csv${query}`,
    );
    expect([status, headers.get('content-disposition')]).toEqual([
      200,
      expect.stringMatching(/^attachment; filename="trades-\w+\.csv"$/),
    ]);
    const lines = text.trimEnd().split('\n');
    expect(lines[0]).toMatch(/^id,symbol,side,/);
    return lines.slice(1).map((line) => line.split(','));
  };
  const PNL = 9;

  test('are those of trades.csv, as a page and as a file', async () => {
    const { text } = await visitor.fetch('GET', `/tasks/${runs[0]}/files/trades.csv`);
    const file = await visitor.open(`/console/tasks/${runs[0]}/trades.csv`);
    expect(file.text).toBe(text);
    const page = await show(`/console/tasks/${runs[0]}/trades`);
    const count = text.trimEnd().split('\n').length - 1;
    expect(count).toBeGreaterThan(3);
    expect(page.match(/<th scope="row"/g)).toHaveLength(count);
  });

  test('are filtered and ordered by the query of the page, also in the file', async () => {
    const all = await download('');
    const losing = all.filter((cells) => Number(cells[PNL]) < 0 && cells.at(-1) === 'closed');
    const query = '?result=losing&sort=pnl';
    const ordered = losing.toSorted((a, b) => Number(a[PNL]) - Number(b[PNL]));
    expect(losing.length).toBeGreaterThan(0);
    expect(await download(query)).toEqual(ordered);
    const page = await show(`/console/tasks/${runs[0]}/trades${query}`);
    expect(page).toContain(`${losing.length} of ${all.length}`);
    expect(page).toContain(`/trades.csv?result=losing&amp;sort=pnl"`);
    expect(page).toContain('aria-sort="ascending"');
    const day = all[1]![3]!.slice(0, 10);
    expect(await download(`?since=${day}&until=${day}&side=long`)).toEqual([all[1]]);
    expect(await download('?side=short')).toEqual([]);
    expect(await show(`/console/tasks/${runs[0]}/trades?side=short`)).toContain('No trade matches');
  });

  test('beyond 2,000 are shown on pages of 100', async () => {
    const { gzipSync } = await import('node:zlib');
    const cells = 'SPX,long,2000-01-03T00:00:00Z,2000-01-04T00:00:00Z,1,1,100,101,1,0.01,0,closed';
    const header =
      'id,symbol,side,entry_time,exit_time,bars,quantity,entry_price,exit_price,pnl,return,fees,status';
    const lines = Array.from({ length: 2345 }, (_, i) => `${i + 1},${cells}`);
    const data = gzipSync([header, ...lines, ''].join('\n')).toString('base64');
    await server.execute(
      `update task_files set data = '${data}' where task_id = '${runs[2]}' and name = 'trades.csv'`,
    );
    const last = await show(`/console/tasks/${runs[2]}/trades?sort=id&page=24`);
    expect(last.match(/<th scope="row"/g)).toHaveLength(45);
    expect(last).toContain('Page 24 of 24');
    expect(last).toContain('>2345</a');
  });

  test('have a page of the run whose report shows them on the chart', async () => {
    const [first] = await download('');
    const text = await show(`/console/tasks/${runs[0]}?row=2`);
    expect(text).toContain('The chart shows trade 1.');
    const [, fragment] = /src="[^"]*\/report#trade=([^"]+)"/.exec(text)!;
    const [id, symbol, entered] = JSON.parse(decodeURIComponent(fragment!)) as unknown[];
    expect([id, symbol, entered]).toEqual([1, 'SPX', Date.parse(first![3]!) / 1000]);
  });
});
