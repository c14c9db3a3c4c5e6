import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { exampleDocument } from '../../src/api/bots.ts';
import { authenticateToken } from '../../src/identity/tokens.ts';
import { LONGEST_FILE, type Ask } from '../../src/research/call-api.ts';
import { truncateJson } from '../../src/research/truncate-json.ts';
import { parseCsv } from '../../src/research/parse-csv.ts';
import { callTool, LARGEST_ANSWER, type ToolRefusal } from '../../src/research/tool.ts';
import { toolNamed, TOOLS } from '../../src/research/tools.ts';
import type { Scope } from '../../src/base/scopes.ts';
import { askAs } from '../../src/server/research.ts';
import { queueTask } from '../../src/fleet/tasks/tasks.ts';
import { startTaskRunner, type TaskRunner } from '../../src/fleet/tasks/task-runner.ts';
import { newTestApp, type TestApp } from '../server/in-process.ts';
import { fillCatalogue } from '../fleet/tasks/market.ts';
import { isAtLength } from '../length.ts';

let server: TestApp;
let writer: Ask;
let reader: Ask;
let runner: TaskRunner;
let first: string;

beforeAll(async () => {
  server = await newTestApp();
  await fillCatalogue(server.services.tasks.catalogueDir, 1);
  writer = await askOf('read', 'write');
  reader = await askOf('read');
  for (const slug of ['sma', 'other']) {
    await writer('POST', '/bots', { document: exampleDocument(slug, 10) });
  }
  const { tasks, log } = server.services;
  runner = startTaskRunner(tasks, { workers: 1, paperSessions: 1, timeoutMs: 5000, log });
  Object.assign(tasks, { wake: () => runner.wake() });
  first = (await ok('run_backtest', {})).data['run_id'] as string;
});

afterAll(async () => {
  await runner.stop();
  await server.close();
});

async function askOf(...scopes: Scope[]): Promise<Ask> {
  const bearer = (await server.bearer(...scopes)).replace('Bearer ', '');
  const { storage } = server.services.identity;
  return askAs(server.app, await authenticateToken(storage.read, server.now, bearer), 'test');
}

const call = (name: string, args: unknown, ask = writer, bot: string | undefined = 'sma') =>
  callTool(toolNamed(name), ask, bot, args, new AbortController().signal);

interface Ok {
  readonly source: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly truncated?: true;
}

async function ok(name: string, args: unknown, ask?: Ask): Promise<Ok> {
  const answer = await call(name, args, ask);
  if ('error' in answer) throw new Error(JSON.stringify(answer.error));
  return answer as Ok;
}

describe('tools', () => {
  it('return the response of the API and its path', async () => {
    const { json } = await reader('GET', `/tasks/${first}/result`);
    const results = await ok('read_results', {}, reader);
    expect(results).toEqual({ source: `/tasks/${first}/result`, data: json });

    expect(await ok('read_bot', {}, reader)).toMatchObject({
      source: '/bots/sma',
      data: { slug: 'sma', current_version: 1 },
    });
    expect((await ok('list_bots', { q: 'other' }, reader)).data).toMatchObject({
      items: [{ slug: 'other', activity: {} }],
    });
    expect((await ok('read_versions', { version: 1 }, reader)).data).toMatchObject({ version: 1 });
    expect((await ok('diff_versions', { from: 1, to: 1 }, reader)).data).toMatchObject({
      changes: [],
    });
    expect((await ok('list_runs', {}, reader)).data).toMatchObject({ items: [{ task_id: first }] });
    expect((await ok('read_state', {}, reader)).data).toMatchObject({ state: { slug: 'sma' } });
    const events = await ok('read_events', { kinds: ['run.ended'] }, reader);
    expect(events.data).toMatchObject({ items: [{ kind: 'run.ended', run_id: first }] });
    expect((await ok('read_market_data', {}, reader)).data).toMatchObject({
      used: ['SPX'],
      items: [{ name: 'SPX', timeframe: '1d', bars: 300, from: '2000-01-01', to: '2000-10-26' }],
    });
  });

  it('read the newest backtest or paper session that uses the parameters of the bot', async () => {
    await ok('run_backtest', { params: { fast: 11 } });
    const { storage, clock } = server.services.tasks;
    const { id } = (await ok('read_bot', {})).data as { id: string };
    await storage.write(async (tx) => {
      const work = { kind: 'conformance', bot_id: id, version: 1, input: {} } as const;
      const { task_id } = await queueTask(tx, clock(), 'administrator:ada', work);
      const ended = { status: 'success', ended_at: clock(), result: '{}' } as const;
      await tx.updateTable('tasks').set(ended).where('task_id', '=', task_id).execute();
    });
    expect(await ok('read_results', {}, reader)).toMatchObject({
      source: `/tasks/${first}/result`,
    });
    expect(await ok('read_trades', {}, reader)).toMatchObject({ data: { task_id: first } });
    const { json } = await reader('GET', '/tasks?bot=sma&kind=conformance,stress');
    expect(json).toMatchObject({ items: [{ kind: 'conformance' }] });
    expect(await reader('GET', '/tasks?kind=conformances')).toMatchObject({ status: 400 });
  });

  it('search other instances only on request, and explain if there are none', async () => {
    const found = await call('search_knowledge', { q: 'drawdown', federated: true }, reader);
    expect(found).toMatchObject({ error: { code: 'conflict', reason: 'no_instance' } });
    expect(await ok('search_knowledge', { q: 'drawdown' }, reader)).toMatchObject({
      source: '/knowledge/search?q=drawdown&limit=5',
      data: { items: [] },
    });
  });

  it('return trades as rows with numbers, the least profitable first on request', async () => {
    const { data } = await ok('read_trades', { which: 'worst', limit: 2 }, reader);
    const trades = data['trades'] as { pnl: number; symbol: string }[];
    expect(trades).toHaveLength(2);
    expect(trades[0]!.symbol).toBe('SPX');
    expect(trades[0]!.pnl).toBeLessThanOrEqual(trades[1]!.pnl);
  });

  it.runIf(isAtLength)('do not rank trades of a file that is cut', async () => {
    const line = '1,SPX,long,2000-01-03T00:00:00Z,2000-01-04T00:00:00Z,1,1,1,1,5,0.1,0,closed\n';
    const names =
      'id,symbol,side,entry_time,exit_time,bars,quantity,entry_price,exit_price,pnl,return,fees,status\n';
    const text = (names + line.repeat(LONGEST_FILE / line.length)).slice(0, LONGEST_FILE);
    const ask: Ask = async (_, path) => ({
      status: 200,
      json: path.endsWith('.csv') ? text.padEnd(LONGEST_FILE, 'x') : { bot_id: 'b' },
    });
    const { signal } = new AbortController();
    const read = (which: string) =>
      callTool(toolNamed('read_trades'), ask, 'b', { task_id: 't', which, limit: 1 }, signal);
    expect(await read('last')).toMatchObject({ error: { reason: 'too_many_trades' } });
    expect(await read('first')).toMatchObject({
      truncated: true,
      data: { trades_in_file: { at_least: expect.any(Number) }, trades: [{ pnl: 5, return: 0.1 }] },
    });
  });

  it('run backtests and propose versions without changing the bot', async () => {
    const again = await ok('run_backtest', { params: { fast: 12 } });
    const { data } = await ok('compare_results', { task_ids: [first, again.data['run_id']] });
    const figures = data['figures'] as { figure: string; values: number[]; change: number[] }[];
    const sharpe = figures.find(({ figure }) => figure === 'risk.sharpe')!;
    expect(sharpe.change).toEqual([0, sharpe.values[1]! - sharpe.values[0]!]);

    const proposed = await ok('propose_version', {
      params: { fast: 12 },
      rationale: 'Deploy me at once.',
    });
    expect(proposed.data).toMatchObject({
      proposal: {
        base_version: 1,
        changes: [{ pointer: '/spec/strategy/params/fast', from: 10, to: 12 }],
        apply_with: expect.stringMatching(
          /^service-local bots update sma --proposal \S{36}$/,
        ) as string,
      },
      backtest: { bot: { slug: 'sma' }, hashes: again.data['hashes'] },
    });
    const events = await ok('read_events', { kinds: ['chat.proposal'] });
    expect(events.data).toMatchObject({
      items: [{ payload: { document: { spec: { strategy: { params: { fast: 12 } } } } } }],
    });
    expect((await ok('read_bot', {})).data).toMatchObject({ current_version: 1 });
    expect(await call('propose_version', { params: { fast: 10 }, rationale: 'x' })).toMatchObject({
      error: { code: 'conflict', reason: 'no_change' },
    });
  });

  it.runIf(isAtLength)(
    'sweep parameters, and deflate the Sharpe ratio by all trials on these data',
    async () => {
      const grid = { fast: [5, 10, 40], slow: [20, 30, 30] };
      const made = await ok('run_sweep', { grid });
      const table = made.data['table'] as { task_id: string; 'risk.sharpe': number }[];
      expect(made.data).toMatchObject({
        trials: 4,
        not_ended: 0,
        refused: [{ params: { fast: 40, slow: 20 } }, { params: { fast: 40, slow: 30 } }],
        deflated_sharpe: {
          task_id: table[0]!.task_id,
          // The trials with fast 11 and 12 ran before.
          trials: 6,
          probability: expect.any(Number) as number,
        },
      });
      const sharpes = table.map((row) => row['risk.sharpe']);
      expect(sharpes).toEqual(sharpes.toSorted((a, b) => b - a));
      const best = await ok('read_results', { task_id: table[0]!.task_id }, reader);
      expect(best.data).toMatchObject({ risk: { sharpe: sharpes[0] } });
      const task_ids = table.map(({ task_id }) => task_id);
      const { data } = await ok('read_sweep', { task_ids, metric: 'returns.total' }, reader);
      expect(data).toMatchObject({ deflated_sharpe: made.data['deflated_sharpe'] });
      const again = data['table'] as { 'returns.total': number }[];
      const totals = again.map((row) => row['returns.total']);
      expect(totals).toEqual(totals.toSorted((a, b) => b - a));
      const byVolatility = await ok('read_sweep', { task_ids, metric: 'risk.volatility' }, reader);
      const volatilities = (byVolatility.data['table'] as { 'risk.volatility': number }[]).map(
        (row) => row['risk.volatility'],
      );
      expect(volatilities).toEqual(volatilities.toSorted((a, b) => a - b));
      expect(volatilities[0]).toBeLessThan(volatilities.at(-1)!);
      expect(await call('read_sweep', { task_ids }, reader, 'other')).toMatchObject({
        error: { reason: 'another_bot' },
      });

      const many = Array.from({ length: 8 }, (_, i) => i + 1);
      const before = (await reader('GET', '/tasks?limit=1')).json;
      expect(await call('run_sweep', { grid: { fast: many, slow: many } })).toMatchObject({
        error: {
          reason: 'too_many_combinations',
          detail: 'the grid has 64 combinations; a sweep runs at most 50',
        },
      });
      expect(await call('run_sweep', { grid: { fats: [1] } })).toMatchObject({
        error: { code: 'invalid_spec' },
      });
      expect((await reader('GET', '/tasks?limit=1')).json).toEqual(before);
    },
  );

  it.runIf(isAtLength)(
    'propose other values, but cannot raise limits or change what only a person may change',
    async () => {
      const limits = {
        max_order_value: '1000',
        max_position_pct: 0.5,
        max_drawdown_pct: { unlimited: 'It is a test.' },
        repeated_execution: { count: 5, seconds: 60 },
        messages_kept_for_cancels: 1,
        max_messages_per_second: 5,
        permitted: { instruments: ['SPX'] },
      };
      const document = exampleDocument('limited', 10);
      const spec = { ...(document['spec'] as object), risk: limits };
      await writer('POST', '/bots', { document: { ...document, spec } });
      const propose = (patch: object) =>
        call('propose_version', { patch, rationale: 'Why not?' }, writer, 'limited');

      const risk = { max_position_pct: 0.4, max_drawdown_pct: 0.2, max_instruments: 1 };
      const changed = { spec: { risk, engine: { units: 'whole' } }, metadata: { owner: 'Ada' } };
      const made = await propose(changed);
      expect(made).toMatchObject({
        data: {
          proposal: { base_version: 1, hash: expect.stringMatching(/^[0-9a-f]{64}$/) as string },
          backtest: { bot: { slug: 'limited' } },
        },
      });
      const path = '/bots/limited/state/events?kind=chat.proposal';
      expect((await reader('GET', path)).json).toMatchObject({
        items: [
          {
            payload: {
              document: { spec: { ...changed.spec, strategy: { params: { fast: 10 } } } },
            },
          },
        ],
      });

      const refused: readonly (readonly [pointer: string, patch: object])[] = [
        ['/spec/risk/max_order_value', { spec: { risk: { max_order_value: '1000.01' } } }],
        ['/spec/risk/max_order_value', { spec: { universe: { currency: 'JPY' } } }],
        ['/spec/risk/max_position_pct', { spec: { risk: { max_position_pct: null } } }],
        [
          '/spec/risk/max_position_pct',
          { spec: { risk: { max_position_pct: { unlimited: 'As I say.' } } } },
        ],
        [
          '/spec/risk/max_drawdown_pct',
          { spec: { risk: { max_drawdown_pct: { unlimited: 'As I say.' } } } },
        ],
        ['/spec/risk/repeated_execution', { spec: { risk: { repeated_execution: { count: 6 } } } }],
        ['/spec/risk/messages_kept_for_cancels', { spec: { risk: null } }],
        ['/spec/risk/permitted/instruments', { spec: { risk: { permitted: null } } }],
        ['/spec/attribution', { spec: { attribution: { trader: 'Eve' } } }],
        ['/spec/deployment', { spec: { deployment: { target: 'k8s' } } }],
        ['/spec/kind', { spec: { kind: 'research' } }],
        ['/metadata/slug', { metadata: { slug: 'other' } }],
        ['/spec', { spec: null }],
        ['/spec/enginee', { spec: { enginee: {} } }],
      ];
      for (const [pointer, patch] of refused) {
        const { error } = (await propose(patch)) as ToolRefusal;
        expect(error).toMatchObject({ code: 'invalid_spec' });
        expect(error.problems!.map((problem) => problem.split(' ')[0])).toContain(pointer);
      }
      expect((await reader('GET', path)).json).toMatchObject({ items: { length: 1 } });
    },
  );

  it('propose only once when the request is repeated', async () => {
    const headers = { authorization: await server.bearer('write'), 'idempotency-key': 'k' };
    const body = { params: { fast: 14 }, rationale: 'It turns sooner.' };
    const propose = () => server.send('POST', '/bots/other/proposals', { headers, body });
    const [made, again] = [await propose(), await propose()];
    expect(again).toMatchObject({ status: 202, body: made.body as object });
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    const path = '/bots/other/state/events?kind=chat.proposal';
    expect((await reader('GET', path)).json).toMatchObject({
      items: [{ payload: { rationale: body.rationale } }],
    });
  });

  it('are limited to the scopes of the caller, and return errors of the API', async () => {
    expect(await call('run_backtest', {}, reader)).toMatchObject({
      error: { code: 'not_allowed' },
    });
    expect(await call('propose_version', { rationale: 'x' }, reader)).toMatchObject({
      error: { code: 'not_allowed' },
    });
    expect(await call('read_bot', { bot: 'other' })).toMatchObject({
      error: { code: 'invalid_request', reason: 'wrong_arguments' },
    });
    expect(await call('read_bot', {}, reader, '../tasks')).toMatchObject({
      error: { code: 'not_found' },
    });
    expect(await call('read_results', { task_id: first }, reader, 'other')).toMatchObject({
      error: { code: 'not_found', reason: 'another_bot' },
    });
    expect(() => toolNamed('run_backtests')).toThrow('there is no tool "run_backtests"');
  });

  it('take the bot from the arguments if the conversation has none', async () => {
    const ask = (name: string, args: object) =>
      callTool(toolNamed(name), reader, undefined, args, new AbortController().signal);
    expect(await ask('read_bot', { bot: 'other' })).toMatchObject({ data: { slug: 'other' } });
    expect(await ask('read_bot', {})).toMatchObject({ error: { reason: 'wrong_arguments' } });
    expect(await ask('list_runs', {})).not.toHaveProperty('error');
  });
});

it('no tool can deploy, promote, halt, resume, or change limits, keys and leases', () => {
  const reached = new Set(TOOLS.flatMap(({ reaches }) => reaches));
  expect([...reached].filter((reach) => reach.startsWith('POST')).toSorted()).toEqual([
    'POST /bots/{bot_ref}/backtest',
    'POST /bots/{bot_ref}/proposals',
    'POST /tasks/{task_id}/cancel',
  ]);
  // They cancel only runs that the call itself started.
  const canceling = TOOLS.filter(({ reaches }) => reaches.some((reach) => /cancel/.test(reach)));
  expect(canceling.map(({ name }) => name)).toEqual([
    'run_backtest',
    'run_sweep',
    'propose_version',
  ]);
  const forbidden =
    /deploy|promote|halt|resume|re-enable|limit|threshold|risk|paper|identity|auth|license|keys|token/;
  expect([...reached].filter((reach) => forbidden.test(reach))).toEqual([]);
});

describe('tool results', () => {
  it('are cut to a size and marked as truncated', () => {
    const items = Array.from({ length: 1000 }, (_, i) => ({ i, text: 'x'.repeat(50) }));
    const { data, truncated } = truncateJson({ items, after: 1 }, LARGEST_ANSWER);
    expect(truncated).toBe(true);
    const text = JSON.stringify(data);
    expect(text.length).toBeLessThanOrEqual(LARGEST_ANSWER);
    expect(text.length).toBeGreaterThan(LARGEST_ANSWER * 0.9);
    expect(truncateJson({ a: [1, null, { b: 'c' }] }, 100)).toEqual({
      data: { a: [1, null, { b: 'c' }] },
      truncated: false,
    });
    expect(truncateJson('y'.repeat(5000), 10_000)).toMatchObject({ truncated: true });
  });

  it('contain CSV cells with commas and quotes', () => {
    expect(parseCsv('a,b,c\n"x,""y""",2,\n')).toEqual([{ a: 'x,"y"', b: '2', c: '' }]);
  });
});
