import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { exampleDocument } from '../../src/api/bots.ts';
import type { Halt, HaltReport } from '../../src/api/halts.ts';
import { makeSessions } from '../fleet/halts/sessions.ts';
import { newTestApp, type Answer, type TestApp } from './in-process.ts';

let server: TestApp;
let tokens: Record<'read' | 'write' | 'trade' | 'halt', string>;

beforeEach(async () => {
  server = await newTestApp();
  const [read, write, trade, halt] = await Promise.all([
    server.bearer('read'),
    server.bearer('write'),
    server.bearer('trade'),
    server.bearer('halt'),
  ]);
  tokens = { read, write, trade, halt };
});

afterEach(() => server.close());

const send = (method: string, path: string, who: keyof typeof tokens, body?: unknown) =>
  server.send(method, path, { headers: { authorization: tokens[who] }, body });

const because = (reason: string) => ({ reason });

const halts = async (): Promise<readonly Halt[]> => {
  const { body } = await send('GET', '/halts', 'read');
  return (body as { readonly items: readonly Halt[] }).items;
};

describe('a halt', () => {
  it('needs only the scope halt for one bot, and returns what was verified', async () => {
    const [mine] = await makeSessions(server.services.tasks.storage, { count: 1 });
    const halted = await send('POST', '/bots/bot-0/halt', 'halt', because('it buys too much'));
    const orders = [3, 4].map((order) => ({ order, symbol: 'SPX', verified: true }));
    expect(halted).toMatchObject({
      status: 200,
      body: {
        scope: 'bot',
        bot_id: mine!.bot_id,
        reason: 'it buys too much',
        requested_by: expect.stringMatching(/^administrator:/) as string,
        requested_at: '2026-01-02T03:04:05Z',
        verified: true,
        deployments: [{ ...mine, target: 'paper', status: 'halted', faults: [], orders }],
      },
    });
    const { halt_id } = halted.body as HaltReport;
    expect(await halts()).toMatchObject([{ halt_id, lifted_at: null, deployments: 1 }]);
    expect((await send('GET', '/halts', 'halt')).body).toEqual({
      items: await halts(),
      next_cursor: null,
    });
    const snapshot = await send('GET', '/bots/bot-0/state/snapshot', 'read');
    const state = { sessions: {}, halted: { halt_id, reason: 'it buys too much' } };
    expect(snapshot.body).toMatchObject({ state });
    const at = '2026-01-02T03:04:05Z';
    expect((await send('GET', '/bots/bot-0', 'read')).body).toMatchObject({
      halted: { halt_id, scope: 'bot', at, reason: 'it buys too much' },
    });

    const path = `/tasks/${mine!.task_id}`;
    expect((await send('GET', path, 'read')).body).toMatchObject({
      status: 'canceled',
      ended_by_halt: { halt_id, scope: 'bot', at, reason: 'it buys too much' },
    });
    expect((await send('GET', '/tasks?status=canceled', 'read')).body).toMatchObject({
      items: [{ task_id: mine!.task_id, halted: true }],
    });
    const ended = await send('GET', '/tasks?status=halted', 'read');
    expect(ended.body).toMatchObject({ items: [{ task_id: mine!.task_id }] });
    expect(await send('GET', `${path}/result`, 'read')).toMatchObject({
      status: 409,
      body: {
        reason: 'no_result',
        detail: expect.stringMatching(
          /: administrator:\S+ halted the bot at .*: it buys/,
        ) as string,
      },
    });

    const again = await send('POST', '/bots/bot-0/halt', 'halt', because('again'));
    expect(again).toMatchObject({ status: 200, body: { halt_id, verified: true } });
    const resumed = await send('POST', '/bots/bot-0/resume', 'trade', because('mended'));
    expect(resumed).toMatchObject({
      status: 200,
      body: { halt_id, lifted_at: '2026-01-02T03:04:05Z', lift_reason: 'mended' },
    });
    const after = await send('GET', '/bots/bot-0/state/snapshot', 'read');
    expect(after.body).toMatchObject({ state: { halted: null } });
  });

  it('accepts a reason with an invisible character', async () => {
    await makeSessions(server.services.tasks.storage, { count: 1 });
    const reason = 'drawdown\u200B above 5 %';
    const halted = await send('POST', '/bots/bot-0/halt', 'halt', because(reason));
    expect(halted).toMatchObject({ status: 200, body: { reason } });
  });

  it('prevents an individual bot from being resumed while all bots are halted', async () => {
    await makeSessions(server.services.tasks.storage, { count: 2 });
    const all = await send('POST', '/bots/halt-all', 'halt', because('the feed is wrong'));
    expect(all).toMatchObject({ status: 200, body: { scope: 'all', bot_id: null } });
    expect((all.body as HaltReport).deployments).toHaveLength(2);
    const refused = await send('POST', '/bots/bot-0/resume', 'trade', because('mended'));
    expect(refused).toMatchObject({
      status: 409,
      body: { code: 'conflict', reason: 'halted', remedy: expect.stringContaining('resume-all') },
    });
    expect(await send('POST', '/bots/resume-all', 'trade', because('right'))).toMatchObject({
      status: 200,
      body: { deployments: 2 },
    });
    const none = await send('POST', '/bots/resume-all', 'trade', because('right'));
    expect(none).toMatchObject({ status: 409, body: { reason: 'not_halted' } });
  });

  it('returns 207 with the unverified parts if the halt cannot be verified', async () => {
    const [kept] = await makeSessions(server.services.tasks.storage, { count: 2 });
    await server.execute(
      `create trigger keep before update on bot_deployments
        when old.deployment_id = '${kept!.deployment_id}' begin select raise(ignore); end`,
    );
    const halted = await send('POST', '/bots/halt-all', 'halt', because('the feed is wrong'));
    expect(halted).toMatchObject({ status: 207, body: { verified: false, in_force: true } });
    const { deployments } = halted.body as HaltReport;
    expect(deployments.filter(({ verified }) => !verified)).toMatchObject([
      { ...kept, status: 'running', faults: ['deployment_not_halted'] },
    ]);
  });
});

describe('a request to halt or resume', () => {
  const OPERATIONS = [
    ['POST', '/bots/sma/halt', 'halt'],
    ['POST', '/bots/halt-all', 'halt'],
    ['POST', '/bots/sma/resume', 'trade'],
    ['POST', '/bots/sma/re-enable', 'trade'],
    ['POST', '/bots/resume-all', 'trade'],
    ['GET', '/halts', 'read'],
  ] as const;

  it('requires its scope, and has no effect without', async () => {
    await send('POST', '/bots', 'write', { document: exampleDocument('sma', 10) });
    const others = {
      halt: await server.bearer('read', 'write', 'trade', 'license', 'admin'),
      trade: await server.bearer('read', 'write', 'halt', 'license', 'admin'),
      read: await server.bearer('write', 'trade', 'license', 'admin'),
    };
    for (const [method, path, scope] of OPERATIONS) {
      const body = method === 'POST' ? because('no') : undefined;
      const headers = { authorization: others[scope] };
      const refused: Answer = await server.send(method, path, { headers, body });
      expect([path, refused.status]).toEqual([path, 403]);
      expect((await server.send(method, path, { body })).status).toBe(401);
    }
    expect(await halts()).toEqual([]);
  });

  it('requires a reason and an existing bot', async () => {
    for (const [method, path, scope] of OPERATIONS.slice(0, 4)) {
      for (const body of [{}, because(''), because('x'.repeat(501)), { reason: 'x', more: 1 }]) {
        const answer = await send(method, path, scope, body);
        expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
      }
    }
    for (const [path, scope] of [
      ['/bots/nobody/halt', 'halt'],
      ['/bots/nobody/resume', 'trade'],
      ['/bots/nobody/re-enable', 'trade'],
    ] as const) {
      const answer = await send('POST', path, scope, because('x'));
      expect(answer).toMatchObject({ status: 404, body: { code: 'not_found' } });
    }
    expect(await halts()).toEqual([]);
  });
});
