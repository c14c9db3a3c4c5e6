import { strict as assert } from 'node:assert';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Answerer } from '../../../src/research/answering.ts';
import { NO_USAGE } from '../../../src/research/answering.ts';
import { pageOfSource } from '../../../src/server/console/chat-sources.ts';
import { startTaskRunner } from '../../../src/fleet/tasks/task-runner.ts';
import { fillCatalogue } from '../../fleet/tasks/market.ts';
import { researchDocument } from '../../research/talk.ts';
import { newTestApp, type TestApp } from '../in-process.ts';
import { tradingDocument } from '../trader.ts';
import { newSignedIn, type Visitor } from './visitor.ts';

const HOSTILE = '<img src=x onerror=alert(1)> [x](javascript:alert(1)) \u202e';
const ESCAPED = '&lt;img src=x onerror=alert(1)&gt;';

/** What the model does next; by default it repeats the question. */
let next: Answerer['answer'] | undefined;
const scripted: Answerer = {
  provider: 'openai_compatible',
  model: HOSTILE,
  is_language_model: true,
  async answer(question) {
    if (next !== undefined) return next(question);
    question.say(`You said: ${question.prompt}`);
    return { citations: [], usage: NO_USAGE, stopped_by: null };
  },
};

let server: TestApp;
let visitor: Visitor;

beforeAll(async () => {
  server = await newTestApp({}, undefined, scripted);
  await fillCatalogue(server.services.tasks.catalogueDir, 1);
  ({ visitor } = await newSignedIn(server));
  for (const document of [
    researchDocument(
      'talk',
      { agents: [{ role: 'critic', instructions: 'Doubt.' }] },
      HOSTILE.slice(0, 40),
    ),
    tradingDocument('trader', 'SPX', '1d', 3),
  ]) {
    const { status, text } = await visitor.fetch('POST', '/bots', { document });
    assert.equal(status, 201, text);
  }
});
afterAll(() => server.close());

async function show(path: string): Promise<string> {
  const { status, text } = await visitor.open(path);
  expect([path, status]).toEqual([path, 200]);
  expect(text).not.toMatch(/<img|undefined|NaN|\[object|\u202e/);
  return text;
}

const CHAT = '/console/bots/talk/chat';

/** Submits the form of the page. @returns the page with the answer. */
async function ask(prompt: string, fields: Readonly<Record<string, string>> = {}) {
  const { location, text } = await visitor.submit(CHAT, {
    key: randomUUID(),
    prompt,
    ...fields,
  });
  assert.ok(location !== null, text);
  return { path: location.replace(/#.*/, ''), text: await show(location.replace(/#.*/, '')) };
}

describe('the chat page of a bot', () => {
  test('answers a form, continues its conversation and lists it', async () => {
    const { path, text } = await ask('One');
    expect(text).toContain('You said: One');
    const session = new URL(path, 'http://x').searchParams.get('session')!;
    expect(text).toContain(`name="session" value="${session}"`);
    const { path: same, text: both } = await ask('Two', { session });
    expect(same).toBe(path);
    expect(both).toMatch(/You said: One[\s\S]*You said: Two/);
    expect(await show(CHAT)).toMatch(/href="[^"]*session=[^"]*"[^>]*>One<[\s\S]*2 questions/);
    expect(await show('/console/bots/talk')).toMatch(/answered: You said: Two[\s\S]*asked: Two/);
    const { text: other } = await ask('Three', { agent: 'critic' });
    expect(other).toContain(', critic');
    const { visitor: stranger } = await newSignedIn(server);
    const foreign = (await stranger.open(path)).text;
    expect(foreign).toContain('This conversation belongs to');
    expect(foreign).not.toContain('id="ask"');
  });

  test('keeps a refused question in the form', async () => {
    const { status, text } = await visitor.submit(CHAT, {
      key: 'refused',
      prompt: HOSTILE,
      agent: 'nobody',
    });
    expect([status, text.includes('role="alert" tabindex="-1"')]).toEqual([404, true]);
    expect(text).toMatch(/<textarea[^>]*>\n&lt;img src=x/);
  });

  test('is also beside the charts of a bot, with the same conversation', async () => {
    expect((await visitor.open(`${CHAT}?session=none`)).status).toBe(404);
    const page = await show('/console/bots/trader');
    expect(page).toContain('href="/console/bots/trader/chat"');
    expect(page).toMatch(/<details id="talk" class="talk" *>[\s\S]*id="ask"[^>]*data-name="talk"/);
    const { location } = await visitor.submit('/console/bots/trader/chat', {
      key: randomUUID(),
      prompt: 'Four',
    });
    const session = new URL(location!, 'http://x').searchParams.get('session')!;
    expect(await show(location!.replace(/#.*/, ''))).toContain(
      `href="/console/bots/trader?talk=${session}"`,
    );
    const open = await show(`/console/bots/trader?talk=${session}`);
    expect(open).toMatch(/<details id="talk" class="talk" open>[\s\S]*You said: Four/);
    expect(open).toContain(`name="session" value="${session}"`);
    expect(await show('/console/bots/trader?talk=none')).toContain(
      'The conversation cannot be shown',
    );
  });

  test('shows texts of a model as text, its proposal as differences, and its sources', async () => {
    let task_id = '';
    next = async (question) => {
      const asked = { params: { fast: 12 }, rationale: HOSTILE, wait_seconds: 0 };
      const made = await question.call('propose_version', asked);
      const { data } = made as { data: { proposal: { task: { task_id: string } } } };
      ({ task_id } = data.proposal.task);
      question.say(HOSTILE);
      const citations = [
        { figure: HOSTILE, value: 1.5, source: `/tasks/${task_id}/result#/returns/total` },
        { source: `/tasks/${task_id}/files/trades.csv#cell=3,2` },
        { source: 'https://elsewhere.example/x' },
        { source: 'javascript:alert(1)' },
      ];
      return { citations, usage: NO_USAGE, stopped_by: 'tokens' };
    };
    const { text } = await ask(HOSTILE);
    next = undefined;
    expect(text.split(ESCAPED).length).toBeGreaterThan(5);
    expect(text).toContain('[U+202E]');
    expect(text).toMatch(/<del><code>10<\/code><\/del>[\s\S]*<ins><code>12<\/code><\/ins>/);
    expect(text).toMatch(/<pre id="apply-[^>]*>service-local bots update talk --proposal [\w-]+</);
    expect(text).toContain('the limit on tokens was reached');
    const links = Array.from(text.matchAll(/<a class="source" href="([^"]*)"/g), ([, to]) => to!);
    const rows = `/console/tasks/${task_id}/rows/trades.csv`;
    const chart = `/console/tasks/${task_id}?row=3#report`;
    expect(links).toEqual([`/console/tasks/${task_id}`, chart]);

    const { tasks, log } = server.services;
    const runner = startTaskRunner(tasks, { workers: 1, paperSessions: 0, timeoutMs: 5000, log });
    await visitor.fetch('GET', `/tasks/${task_id}/events`);
    await runner.stop();
    const trade = await show(`${rows}?row=3`);
    expect(trade).toContain('Trade 2 of trades.csv');
    expect(trade).toContain(`href="${chart}"`);
    expect(trade).toMatch(/<tr[^>]*aria-current="true"[^>]*>\s*<th scope="row">2</);
    expect((await visitor.open(`${rows}?row=99999`)).status).toBe(404);
    const report = `/console/tasks/${task_id}/rows/report.html`;
    expect((await visitor.open(report)).status).toBe(404);

    const put = { document: researchDocument('talk') };
    await visitor.fetch('PUT', '/bots/talk', put, { 'if-match': '*' });
    expect(await show(CHAT)).toContain('can no longer be applied');
  });

  test('cancels a running answer', async () => {
    const asked = Promise.withResolvers<void>();
    next = async ({ signal, say }) => {
      say('So far');
      asked.resolve();
      await new Promise((resolve) => {
        signal.addEventListener('abort', resolve);
      });
      return { citations: [], usage: NO_USAGE, stopped_by: null };
    };
    const answering = visitor.submit(CHAT, { key: 'slow', prompt: 'Slow' });
    await asked.promise;
    const list = await show(CHAT);
    const [, session] = /session=([\w-]+)"[^>]*>Slow</.exec(list)!;
    expect(await show(`${CHAT}?session=${session}`)).toMatch(
      /data-running[\s\S]*Cancel the answer/,
    );
    const { location } = await visitor.submit(`${CHAT}/${session}/cancel`);
    expect(location).toBe(`${CHAT}?session=${session}`);
    expect(await show(location!)).toMatch(/So far[\s\S]*turn was canceled/);
    expect((await answering).text).toContain('The turn was canceled');
    next = undefined;
  });
});

describe('the page of a source', () => {
  test.each([
    ['/tasks/t1/result#/returns/total', '/console/tasks/t1'],
    ['/tasks/t1/files/equity.csv#cell=12,2', '/console/tasks/t1/rows/equity.csv?row=12#row'],
    ['/tasks/t1/files/report.html', '/console/tasks/t1'],
    ['/bots/b/state/events?after_seq=6&limit=1#/items/0/kind', '/console/bots/b/events?at_seq=7'],
    ['/bots/b/versions/2/diff?to=3', '/console/bots/b/versions?from=2&to=3#diff'],
    ['/bots/a%3Cb', '/console/bots/a%3Cb'],
    ['/halts', '/console/halts'],
    ['/data/datasets/SPX', undefined],
    ['//elsewhere.example/tasks/t1', undefined],
    ['/tasks/..%2f..', undefined],
    ['/tasks/%', undefined],
    ['javascript:alert(1)', undefined],
  ])('of %s is %s', (source, page) => {
    expect(pageOfSource(source)).toBe(page);
  });

  test('with times is the chart of the run, with the conversation beside that of a session', () => {
    const moment = { from: '2000-02-03T00:00:00Z', to: '2000-02-03T00:00:00Z' };
    const trade = { ...moment, to: '2000-02-09T00:00:00Z', symbol: 'SPX' };
    const at = '2000-02-03T00%3A00%3A00Z';
    expect([
      pageOfSource('/tasks/t1/files/equity.csv#cell=12,2', { times: moment }),
      pageOfSource('/tasks/t1/files/trades.csv#cell=3,2', { times: trade }),
      pageOfSource('/bots/b/state/chart?run_id=t2#/equity/equity/0', { times: moment, talk: 's' }),
      pageOfSource('/bots/b/state/trades?run_id=t2#cell=3,2', { times: trade, talk: 's' }),
    ]).toEqual([
      `/console/tasks/t1?at=${at}#report`,
      '/console/tasks/t1?row=3#report',
      `/console/bots/b?session=t2&at=${at}&talk=s#charts`,
      `/console/bots/b?session=t2&chart=SPX&at=${at}%2F2000-02-09T00%3A00%3A00Z&talk=s#charts`,
    ]);
  });
});
