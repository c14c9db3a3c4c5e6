import { strict as assert } from 'node:assert';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { ChatTurn } from '../../src/api/research.ts';
import type { SessionChart, SessionTrade } from '../../src/api/session-views.ts';
import type { TaskDetail } from '../../src/api/tasks.ts';
import { startTaskRunner, type TaskRunner } from '../../src/fleet/tasks/task-runner.ts';
import { fillCatalogue } from '../fleet/tasks/market.ts';
import { newTestApp, type Answer, type TestApp } from './in-process.ts';
import { tradingDocument } from './trader.ts';
import { isAtLength } from '../length.ts';

let server: TestApp;
let runner: TaskRunner;
let authorization: string;
let task_id: string;

/** Runs a session to its end, so that its result files state what the views must show. */
beforeAll(async () => {
  server = await newTestApp();
  authorization = await server.bearer('read', 'write', 'trade');
  const { tasks, log } = server.services;
  await fillCatalogue(tasks.catalogueDir, 1);
  runner = startTaskRunner(tasks, { workers: 1, paperSessions: 1, timeoutMs: 5000, log });
  Object.assign(tasks, { wake: runner.wake });
  await send('POST', '/bots', { document: tradingDocument('sma', 'SPX', '1d', 2) });
  const body = { speed: 'max', from: '2000-02-01', to: '2000-06-30' };
  const started = await send('POST', '/bots/sma/paper/start', body);
  ({ task_id } = started.body as TaskDetail);
  await succeeds(task_id);
}, 60_000);
afterAll(async () => {
  await runner.stop();
  await server.close();
});

function send(method: string, path: string, body?: unknown): Promise<Answer> {
  return server.send(method, path, { headers: { authorization }, body });
}

async function succeeds(task: string): Promise<void> {
  await vi.waitFor(
    async () => {
      const { body } = await send('GET', `/tasks/${task}`);
      assert.equal((body as TaskDetail).status, 'success');
    },
    { timeout: 30_000, interval: 50 },
  );
}

async function csvOf(name: string): Promise<Record<string, string>[]> {
  const answer = await server.app.request(`/tasks/${task_id}/files/${name}`, {
    headers: { authorization },
  });
  const [header, ...lines] = (await answer.text()).trim().split('\n');
  const columns = header!.split(',');
  return lines.map((line) =>
    Object.fromEntries(line.split(',').map((cell, at) => [columns[at]!, cell])),
  );
}

async function tradesOf(query: string): Promise<{
  readonly items: readonly SessionTrade[];
  readonly next_cursor: string | null;
  readonly count: number;
}> {
  const { status, body } = await send('GET', `/bots/sma/state/trades?${query}`);
  expect(status).toBe(200);
  return body as never;
}

async function chartOf(query = ''): Promise<SessionChart> {
  const { status, body } = await send('GET', `/bots/sma/state/chart?${query}`);
  expect(status).toBe(200);
  return body as SessionChart;
}

describe('the chart of a session', () => {
  it('has the recorded bars and the equity of the result at each of them', async () => {
    const { candles, equity, symbols, run_id } = await chartOf();
    const rows = await csvOf('equity.csv');
    expect({ symbols, run_id }).toEqual({ symbols: ['SPX'], run_id: task_id });
    expect(candles.time).toHaveLength(rows.length);
    expect(equity.time.map((time) => new Date(time * 1000).toISOString().slice(0, 10))).toEqual(
      rows.map(({ time }) => time!.slice(0, 10)),
    );
    for (const [at, row] of rows.entries()) {
      expect(equity.equity[at]).toBeCloseTo(Number(row['equity']), 6);
      expect(equity.drawdown[at]).toBeCloseTo(Number(row['drawdown']), 9);
    }
  });

  it('has the declared indicators, whose first values use the bars before the session', async () => {
    const { candles, indicators, lines } = await chartOf();
    expect(indicators.map(({ label }) => label)).toEqual(['sma(close, 2)', 'sma(close, 3)']);
    const { close } = candles;
    for (let at = 2; at < close.length; at += 1) {
      expect(lines[0]![at]).toBeCloseTo((close[at]! + close[at - 1]!) / 2, 9);
      expect(lines[1]![at]).toBeCloseTo((close[at]! + close[at - 1]! + close[at - 2]!) / 3, 9);
    }
    expect(lines[1]![0]).not.toBeNull();
  });

  it('continues after a given time', async () => {
    const whole = await chartOf();
    const part = await chartOf('after=2000-06-01T00:00:00Z');
    const start = whole.candles.time.findIndex((time) => time > Date.UTC(2000, 5, 1) / 1000);
    expect(start).toBeGreaterThan(0);
    expect(part.candles.close).toEqual(whole.candles.close.slice(start));
    expect(part.lines).toEqual(whole.lines.map((line) => line.slice(start)));
    expect(part.equity.equity).toEqual(whole.equity.equity.slice(start));
  });

  it('is not found for another instrument or session', async () => {
    expect((await send('GET', '/bots/sma/state/chart?symbol=DAX')).status).toBe(404);
    expect((await send('GET', '/bots/sma/state/chart?run_id=none')).status).toBe(404);
  });
});

describe('the trades of a session', () => {
  it('are those of its result', async () => {
    const { items, count } = await tradesOf('sort=entry_time&order=asc&limit=1000');
    const rows = (await csvOf('trades.csv')).toSorted((a, b) => Number(a['id']) - Number(b['id']));
    expect(rows.length).toBeGreaterThan(5);
    expect(count).toBe(rows.length);
    for (const [at, row] of rows.entries()) {
      const trade = items[at]!;
      expect([trade.id, trade.side, trade.status, trade.symbol]).toEqual([
        Number(row['id']),
        row['side'],
        row['status'],
        row['symbol'],
      ]);
      expect(Date.parse(trade.entry_time)).toBe(Date.parse(row['entry_time']!));
      for (const name of ['pnl', 'return', 'entry_price', 'exit_price', 'quantity'] as const) {
        expect(trade[name]).toBeCloseTo(Number(row[name]), 8);
      }
    }
  });

  it('are sorted, filtered, and returned in pages without gaps', async () => {
    const all = await tradesOf('sort=pnl&order=desc&limit=1000');
    const profits = all.items.map(({ pnl }) => pnl);
    expect(profits).toEqual(profits.toSorted((a, b) => b - a));
    const counts: Record<string, number> = {};
    for (const outcome of ['gain', 'loss', 'open']) {
      const { items, count } = await tradesOf(`outcome=${outcome}&limit=1000`);
      counts[outcome] = count;
      expect(items.every(({ status }) => (status === 'open') === (outcome === 'open'))).toBe(true);
      if (outcome !== 'open')
        expect(items.every(({ pnl }) => pnl > 0 === (outcome === 'gain'))).toBe(true);
    }
    expect(counts['gain']! + counts['loss']! + counts['open']!).toBe(all.count);
    expect(counts['gain']).toBeGreaterThan(0);
    expect((await tradesOf('side=short')).count).toBe(0);

    const found: number[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const more = cursor === '' ? '' : `&cursor=${cursor}`;
      const page = await tradesOf(`sort=pnl&order=desc&limit=2${more}`);
      found.push(...page.items.map(({ id }) => id));
      cursor = page.next_cursor;
    }
    expect(found).toEqual(all.items.map(({ id }) => id));
  });

  it('are exported as CSV with the same filter', async () => {
    const gains = await tradesOf('outcome=gain&limit=1000');
    const answer = await server.app.request('/bots/sma/state/trades?format=csv&outcome=gain', {
      headers: { authorization },
    });
    expect(answer.headers.get('content-type')).toContain('text/csv');
    const lines = (await answer.text()).trim().split('\n');
    expect(lines[0]).toMatch(/^id,symbol,side,entry_time,exit_time,quantity,/);
    expect(lines.slice(1).map((line) => Number(line.split(',')[0]))).toEqual(
      gains.items.map(({ id }) => id),
    );
  });

  it('are booked once, however often they are read', async () => {
    const before = await tradesOf('limit=1000');
    expect(before.count).toBeGreaterThan(5);
    await server.execute('alter table bot_events rename to whole_events');
    await server.execute(
      "create table bot_events as select * from whole_events where kind not like 'order.%'",
    );
    try {
      expect(await tradesOf('limit=1000')).toEqual(before);
    } finally {
      await server.execute('drop table bot_events');
      await server.execute('alter table whole_events rename to bot_events');
    }
  });
});

describe.runIf(isAtLength)('a chat about a session that runs', () => {
  const BOT = '/bots/running';
  const ask = async (prompt: string): Promise<ChatTurn> => {
    const { status, body } = await send('POST', `${BOT}/chat`, { prompt });
    expect([prompt, status]).toEqual([prompt, 200]);
    return body as ChatTurn;
  };
  let session: string;
  beforeAll(async () => {
    await send('POST', '/bots', { document: tradingDocument('running', 'SPX', '1d', 2) });
    const backtest = await send('POST', `${BOT}/backtest`, {});
    await succeeds((backtest.body as TaskDetail).task_id);
    const body = { speed: 20 * 86_400, from: '2000-02-01' };
    const started = await send('POST', `${BOT}/paper/start`, body);
    ({ task_id: session } = started.body as TaskDetail);
    await vi.waitFor(
      async () => {
        const query = `run_id=${session}&outcome=gain`;
        const { body: found } = await send('GET', `${BOT}/state/trades?${query}`);
        assert.ok((found as { readonly count: number }).count > 1);
      },
      { timeout: 30_000, interval: 50 },
    );
  }, 60_000);
  afterAll(() => send('POST', `${BOT}/paper/stop/${session}`));

  it('answers from its trades, and cites them with their times', async () => {
    const turn = await ask('What was the first trade?');
    const query = `run_id=${session}&sort=entry_time&order=asc&limit=1`;
    const { body } = await send('GET', `${BOT}/state/trades?${query}`);
    const [trade] = (body as { readonly items: readonly SessionTrade[] }).items;
    expect(turn.answer).toContain(`in the paper session ${session}`);
    expect(turn.answer).toContain(trade!.entry_time.slice(0, 10));
    const cited = turn.citations.find(({ figure }) => figure === 'trade 1 pnl')!;
    expect(cited.value).toBe(trade!.pnl);
    const { from, to, symbol } = cited.times!;
    expect([Date.parse(from), Date.parse(to), symbol]).toEqual([
      Date.parse(trade!.entry_time),
      Date.parse(trade!.exit_time),
      'SPX',
    ]);
  });

  it('answers from its equity, and cites points that the path still returns', async () => {
    const { answer, citations } = await ask('What was the return from 2000-02-03 to 2000-02-07?');
    const [before, end] = citations;
    expect(end!.times?.from).toBe('2000-02-07T00:00:00.000Z');
    for (const { source, value } of [before!, end!]) {
      const [path, pointer] = source.split('#/equity/equity/') as [string, string];
      const { body } = await send('GET', path);
      expect((body as SessionChart).equity.equity[Number(pointer)]).toBe(value);
    }
    const percent = (100 * (Number(end!.value) / Number(before!.value) - 1)).toFixed(2);
    expect(answer.replaceAll('−', '-')).toContain(`: ${percent}%`);
  });

  it('is about a backtest if the question says so, and refuses what needs a run', async () => {
    const named = (text: string): string => /in the (backtest|paper session)/.exec(text)?.[1] ?? '';
    expect(named((await ask('What was the return of the backtest?')).answer)).toBe('backtest');
    expect(named((await ask('What is the return?')).answer)).toBe('paper session');
    expect((await ask('What is the Sharpe ratio?')).answer).toMatch(/^I cannot answer this: /);
    const { answer } = await ask('What if fast was 5?');
    expect(answer).toContain('running is a trading bot, and a chat about it only reads');
  });
});
