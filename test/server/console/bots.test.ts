import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exampleDocument } from '../../../src/api/bots.ts';
import { startTaskRunner } from '../../../src/fleet/tasks/task-runner.ts';
import { makeSessions, type MadeSession } from '../../fleet/halts/sessions.ts';
import { newTestApp, type TestApp } from '../in-process.ts';
import { tradingDocument } from '../trader.ts';
import { fillCatalogue } from '../../fleet/tasks/market.ts';
import { newSignedIn, type Visitor } from './visitor.ts';

const HOSTILE = '<img src=x onerror=alert(1)> "\'&amp; ${7*7}';
const ESCAPED = '&lt;img src=x onerror=alert(1)&gt;';

let server: TestApp;
let visitor: Visitor;
let made: readonly MadeSession[];

beforeAll(async () => {
  server = await newTestApp();
  ({ visitor } = await newSignedIn(server));
});
afterAll(() => server.close());

async function show(path: string): Promise<string> {
  const { status, text } = await visitor.open(path);
  expect([path, status]).toEqual([path, 200]);
  expect(text).not.toMatch(/<img|undefined|NaN|\[object/);
  return text;
}

const create = async (document: object): Promise<void> => {
  const { status, text } = await visitor.fetch('POST', '/bots', { document });
  expect([status, status === 201 ? '' : text]).toEqual([201, '']);
};

const taskAt = (location: string | null): string => location!.split('/').at(-1)!;

describe('the console of an empty server', () => {
  test.each([
    ['/console/bots', 'service-local bots create'],
    ['/console/tasks', 'service-local bots backtest'],
    ['/console/halts', 'service-local bots halt'],
  ])('names the next command on %s', async (path, command) => {
    expect(await show(path)).toContain(command);
  });

  test.each(['/console/bots/none', '/console/bots/none/events', '/console/tasks/none'])(
    'answers 404 for %s',
    async (path) => {
      expect((await visitor.open(path)).status).toBe(404);
    },
  );
});

describe('the pages of bots', () => {
  beforeAll(async () => {
    await fillCatalogue(server.services.tasks.catalogueDir, 1);
    made = await makeSessions(server.services.tasks.storage, { count: 60 });
    const document = tradingDocument('hostile', 'SPX', '1d', 3);
    await create({ ...document, metadata: { name: HOSTILE, slug: 'hostile' } });
  });

  test('read a page of 50 bots in at most three requests', async () => {
    const before = server.log.length;
    const text = await show('/console/bots');
    // One request each for the page, its bots and the halts.
    expect(server.log.length - before).toBeLessThanOrEqual(3);
    expect(text.match(/<th scope="row"/g)).toHaveLength(50);
    const [, next] = /href="([^"]*cursor=[^"]*)"/.exec(text)!;
    expect(await show(next!.replaceAll('&amp;', '&'))).toContain(ESCAPED);
    const found = await show('/console/bots?q=onerror&status=draft');
    expect(found).toContain('/console/bots/hostile');
    expect(found).not.toContain('bot-1');
    expect(await show('/console/bots?q=nobody')).toContain('bots list --query');
  });

  test('show the account of a session and the initial data of the script', async () => {
    const text = await show('/console/bots/bot-1');
    for (const expected of ['100,321.25', '91,234.50', 'sell limit', '4,800.00', 'SPX']) {
      expect(text).toContain(expected);
    }
    expect(text).toContain(`&quot;session&quot;:&quot;${made[1]!.task_id}&quot;`);
    expect(await show('/console/bots/hostile')).toContain('bots paper start hostile');
  });

  test('show the other parts if thresholds and tasks cannot be read', async () => {
    for (const table of ['thresholds', 'tasks']) {
      await server.execute(`alter table ${table} rename to lost`);
      const text = await show('/console/bots/bot-1');
      await server.execute(`alter table lost rename to ${table}`);
      expect(text).toContain(`The ${table === 'tasks' ? 'session' : 'limits'} cannot be`);
      expect(text).toContain('Newest events');
      expect(text.includes('Working orders')).toBe(table === 'thresholds');
    }
    expect(server.log.join()).toContain('"part":"The session"');
  });

  test('show the state after any event, and events filtered by kind', async () => {
    const now = await show('/console/bots/bot-1/events');
    expect(now).toContain('100,321.25');
    const before = await show('/console/bots/bot-1/events?at_seq=2');
    expect(before).toContain('The state after event 2');
    expect(before).toContain('No paper session was running');
    expect(before).not.toContain('session.state');
    const some = await show('/console/bots/bot-1/events?show=runs&show=bot');
    expect(some).toContain('run.started');
    expect(some).not.toContain('>session.state<');
    expect(await show('/console/bots/hostile/events')).toContain(ESCAPED);
  });

  test('compare two versions', async () => {
    const document = exampleDocument('versions', 10);
    await create(document);
    const put = { document: exampleDocument('versions', 20) };
    await visitor.fetch('PUT', '/bots/versions', put, { 'if-match': '*' });
    const text = await show('/console/bots/versions/versions?from=1&to=2');
    expect(text).toContain('/spec/strategy/params/fast');
    expect(text).toMatch(/<del><code>10<\/code><\/del>[\s\S]*<ins><code>20<\/code><\/ins>/);
    expect((await visitor.open('/console/bots/versions/versions?from=1&to=9')).status).toBe(404);
  });

  test('start one session per form, and stop it', async () => {
    const form = { key: 'one', source: 'catalogue', speed: '60', to: '2000-05-01' };
    const path = '/console/bots/hostile/paper';
    expect(await show(path)).toContain(ESCAPED);
    expect((await visitor.submit(path, form)).location).toBe('/console/bots/hostile');
    await visitor.submit(path, form);
    const { text: tasks } = await visitor.fetch('GET', '/tasks?bot=hostile');
    const { items } = JSON.parse(tasks) as { items: { task_id: string; input: object }[] };
    expect(items).toMatchObject([{ input: { speed: 60, to: '2000-05-01' } }]);
    const stop = `/console/bots/hostile/paper/${items[0]!.task_id}/stop`;
    expect((await visitor.submit(stop)).location).toBe('/console/bots/hostile/runs');
    expect(await show('/console/bots/hostile/runs')).toContain('is stopping');
    expect(await show('/console/bots/hostile/runs')).toContain('canceled');
  });

  test('report a rejected start above the form and keep what was typed', async () => {
    const path = '/console/bots/hostile/backtest';
    const wrong = await visitor.submit(path, { key: 'two', params: `{"fast": "${HOSTILE}` });
    expect(wrong.status).toBe(400);
    expect(wrong.text).toContain('role="alert"');
    expect(wrong.text).toContain(ESCAPED);
    const unfit = await visitor.submit(path, { key: 'two', params: '{"nothing": 1}' });
    expect(unfit.status).toBe(422);
    expect(unfit.text).toContain('/params');
  });
});

describe('a backtest', () => {
  let task_id: string;
  beforeAll(async () => {
    const form = { key: 'three', to: '2000-09-30' };
    task_id = taskAt((await visitor.submit('/console/bots/hostile/backtest', form)).location);
    const { tasks, log } = server.services;
    const runner = startTaskRunner(tasks, { workers: 1, paperSessions: 0, timeoutMs: 5000, log });
    // The stream ends with the task.
    await visitor.fetch('GET', `/tasks/${task_id}/events`);
    await runner.stop();
  });

  test('has a page with its figures, findings, log and files', async () => {
    const text = await show(`/console/tasks/${task_id}`);
    for (const expected of ['Sharpe', 'trades.csv', 'data-status', 'attempt 1', 'success']) {
      expect(text).toContain(expected);
    }
    expect(text).toContain('sandbox="allow-scripts"');
    expect(await show('/console/bots/hostile')).toContain(`/console/tasks/${task_id}`);
  });

  test('has a report that runs in a sandbox with its own scripts only', async () => {
    const { status, headers, text } = await visitor.open(`/console/tasks/${task_id}/report`);
    expect(status).toBe(200);
    expect(text.includes('&#60;img src=x')).toBe(true);
    const policy = headers.get('content-security-policy')!;
    expect(policy).toMatch(
      /^default-src 'none'; script-src 'sha256-[^;]+; style-src 'sha256-[^;]+; base-uri 'none'; form-action 'none'; sandbox allow-scripts; frame-ancestors 'self'$/,
    );
    expect(policy).not.toMatch(/unsafe|allow-same-origin/);
  });

  test('runs no script of a foreign report', async () => {
    const { gzipSync } = await import('node:zlib');
    const page = `<meta http-equiv="Content-Security-Policy" content="default-src *"><script>alert(1)</script>`;
    const data = gzipSync(page).toString('base64');
    await server.execute(
      `update task_files set data = '${data}' where task_id = '${task_id}' and name = 'report.html'`,
    );
    const { headers } = await visitor.open(`/console/tasks/${task_id}/report`);
    expect(headers.get('content-security-policy')).toBe(
      "default-src 'none'; sandbox allow-scripts; frame-ancestors 'self'",
    );
  });

  test('can be canceled until it has ended', async () => {
    const { location } = await visitor.submit(`/console/tasks/${task_id}/cancel`);
    expect(await show(location!)).toContain('The task had already ended: success.');
    const form = { key: 'four' };
    const next = taskAt((await visitor.submit('/console/bots/hostile/backtest', form)).location);
    expect(await show('/console/tasks?status=queued')).toContain(next);
    await visitor.submit(`/console/tasks/${next}/cancel`);
    const text = await show(`/console/tasks/${next}`);
    expect(text).toContain('canceled');
    expect(text).toMatch(/<summary>backtest, requested by a-/);
    expect(text).not.toMatch(/<summary>[^<]*administrator:/);
  });

  test('shows the error of a failed run', async () => {
    const [one] = made;
    const error = JSON.stringify({ code: 'strategy_error', message: HOSTILE, remedy: 'mend it' });
    await server.execute(
      `update tasks set status = 'failed', worker_id = null, ended_at = 1, error = '${error.replaceAll("'", "''")}'
        where task_id = '${one!.task_id}'`,
    );
    await server.execute(
      `update bot_deployments set status = 'failed', ended_at = 1
        where deployment_id = '${one!.deployment_id}'`,
    );
    const text = await show(`/console/tasks/${one!.task_id}`);
    expect(text).toContain(ESCAPED);
    expect(text).toContain('strategy_error');
  });
});

describe('a halt', () => {
  const reason = HOSTILE;

  test('requires a reason to halt one bot and shows what was verified', async () => {
    const path = '/console/bots/bot-2/halt';
    expect(await show(path)).toContain('service-local bots halt bot-2');
    const none = await visitor.submit(path, { reason: '' });
    expect(none.status).toBe(400);
    expect(none.text).toContain('role="alert"');
    const { status, text } = await visitor.submit(path, { reason });
    expect(status).toBe(200);
    expect(text).toContain('bot-2 is halted');
    expect(text.match(/badge good">canceled/g)).toHaveLength(2);
    expect(text).toContain('verified');
    expect(text).toContain(ESCAPED);
  });

  test('is announced on every page until it is lifted', async () => {
    for (const path of ['/console/account', '/console/tasks', '/console/bots/bot-3']) {
      expect(await show(path)).toMatch(/<aside class="halted"[\s\S]*bot-2/);
    }
    expect(await show('/console/bots')).toContain('halted</span>');
    expect(await show('/console/bots/bot-2')).toMatch(
      /<code>bot-2<\/code>\s*<span class="badge bad">halted/,
    );
    expect(await show('/console/halts')).toContain('Resume bot-2…');
    expect((await visitor.submit('/console/bots/bot-3/resume', { reason })).status).toBe(409);
    const { location } = await visitor.submit('/console/bots/bot-2/resume', { reason });
    const text = await show(location!);
    expect(text).toContain('The halt of bot-2 is lifted');
    expect(text).not.toContain('<aside');
  });

  test('requires the typed word to halt all bots and marks what could not be verified', async () => {
    const path = '/console/halt-all';
    const wrong = await visitor.submit(path, { reason, confirm: 'halt' });
    expect(wrong.status).toBe(400);
    expect((await visitor.fetch('GET', '/halts')).text).toContain('"lifted_at":"');
    const countRunning = async () =>
      Number(/<strong>([\d,]+) sessions<\/strong>/.exec(await show(path))![1]!.replace(',', ''));
    const running = await countRunning();
    await server.execute(
      `update tasks set kind = 'production' where task_id = '${made[6]!.task_id}'`,
    );
    expect(await countRunning()).toBe(running);
    const kept = made[5]!.deployment_id;
    await server.execute(
      `create trigger keep before update on bot_deployments
        when old.deployment_id = '${kept}' begin select raise(ignore); end`,
    );
    const { status, text } = await visitor.submit(path, { reason, confirm: 'HALT' });
    expect(status).toBe(207);
    expect(text).toContain('is not verified');
    expect(text).toContain('deployment_not_halted');
    expect(text).toMatch(/<strong>All bots are halted<\/strong>/);
    const rejected = await visitor.submit('/console/bots/bot-7/paper', { key: 'five' });
    expect(rejected.status).toBeGreaterThanOrEqual(400);
    const early = await visitor.submit('/console/resume-all', { reason });
    expect(early.status).toBe(409);
    expect(early.text).toContain('service-local bots halt-all');
    await server.execute('drop trigger keep');
    expect((await visitor.submit(path, { reason, confirm: 'HALT' })).status).toBe(200);
    const { location } = await visitor.submit('/console/resume-all', { reason });
    expect(await show(location!)).toContain('Nothing was started.');
  });

  test('cannot be submitted from a foreign origin', async () => {
    const fields = { reason: 'x', confirm: 'HALT' };
    const foreign = await visitor.submit('/console/halt-all', fields, { origin: 'https://evil' });
    expect(foreign.status).toBe(403);
    const forged = await visitor.submit('/console/halt-all', { ...fields, csrf: 'no' });
    expect(forged.status).toBe(403);
    expect(await show('/console/halts')).not.toContain('<aside');
  });
});
