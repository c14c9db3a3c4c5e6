import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { exampleDocument } from '../../../src/api/bots.ts';
import type { BotDetail } from '../../../src/api/bots.ts';
import { createApp } from '../../../src/server/app.ts';
import { startTaskRunner } from '../../../src/fleet/tasks/task-runner.ts';
import { allowedToTrade, documentOn, fillCatalogue } from '../../fleet/tasks/market.ts';
import { strategyThat } from '../../trading/sandbox/bundles.ts';
import { newTestApp, type TestApp } from '../in-process.ts';
import { newSignedIn, type Visitor } from './visitor.ts';
import { isAtLength } from '../../length.ts';

let server: TestApp;
let tasks: TestApp['services']['tasks'];
let visitor: Visitor;

beforeAll(async () => {
  const made = await newTestApp();
  tasks = { ...made.services.tasks, customCode: { memoryMb: 256, timeoutMs: 5000 } };
  server = Object.assign(made, { app: createApp({ ...made.services, tasks }) });
  await fillCatalogue(server.services.tasks.catalogueDir, 1);
  ({ visitor } = await newSignedIn(server));
});
afterAll(() => server.close());

const yaml = (slug: string, fast: number): string => stringify(exampleDocument(slug, fast));

async function readBot(slug: string): Promise<BotDetail> {
  return JSON.parse((await visitor.open(`/bots/${slug}`)).text) as BotDetail;
}

async function create(slug: string): Promise<string> {
  await visitor.submit('/console/bots/new', { action: 'create', spec: yaml(slug, 10), key: slug });
  return `/console/bots/${slug}/edit`;
}

describe('the page of a new bot', () => {
  test('contains a template, also one with code', async () => {
    expect((await visitor.open('/console/bots/new')).text).toContain('name: sma_crossover');
    const { text } = await visitor.open('/console/bots/new?template=module');
    expect(text).toContain('module: ./strategy.ts');
    expect(text).toMatch(/<textarea[^>]*data-language="typescript"[\s\S]*defineStrategy/);
  });

  test('creates the bot once, from text with the line ends of a browser', async () => {
    const spec = yaml('made', 10).replaceAll('\n', '\r\n');
    const form = { action: 'create', spec, key: 'one' };
    for (const _ of [1, 2]) {
      const { location } = await visitor.submit('/console/bots/new', form);
      expect(location).toBe('/console/bots/made/edit');
    }
    expect((await readBot('made')).document).toEqual(exampleDocument('made', 10));
  });

  test('keeps the typed text and lists problems with their lines', async () => {
    const spec = `${yaml('bad', 10)}# <b>mine</b>`.replace('fast:', 'fats:');
    for (const action of ['create', 'check']) {
      const { status, text } = await visitor.submit('/console/bots/new', {
        action,
        spec,
        key: 'b',
      });
      expect(status).toBe(action === 'create' ? 422 : 200);
      expect(text).toContain('# &lt;b&gt;mine&lt;/b&gt;');
      expect(text).toMatch(/line 1\d/i);
    }
    expect((await visitor.open('/bots/bad')).status).toBe(404);
  });

  test('refuses a slug that names a page', async () => {
    const form = { action: 'create', spec: yaml('new', 10), key: 'new' };
    expect((await visitor.submit('/console/bots/new', form)).text).toContain('choose another slug');
  });
});

describe('the page that edits a bot', () => {
  test('saves the text as the next version', async () => {
    const path = await create('saved');
    const form = { action: 'save', version: '1', spec: yaml('saved', 12) };
    expect((await visitor.submit(path, form)).location).toBe(path);
    expect(await readBot('saved')).toMatchObject({
      current_version: 2,
      document: exampleDocument('saved', 12),
    });
    expect((await visitor.open(path)).text).toContain('Version 2 is saved.');
  });

  test('keeps the text when someone else saved first, and shows what they changed', async () => {
    const path = await create('raced');
    const { person, visitor: other } = await newSignedIn(server);
    await other.submit(path, { action: 'save', version: '1', spec: yaml('raced', 15) });
    const form = { action: 'save', version: '1', spec: yaml('raced', 20) };
    const { status, text } = await visitor.submit(path, form);
    expect(status).toBe(412);
    expect(text).toContain(`${person.name.slice(1)} saved version 2 of raced`);
    expect(text).toMatch(/<del><code>10<\/code><\/del>[\s\S]*<ins><code>15<\/code><\/ins>/);
    expect(text).toContain('fast: 20');
    expect(text).toContain('name="version" value="2"');
    expect((await readBot('raced')).current_version).toBe(2);
    await visitor.submit(path, { ...form, version: '2' });
    expect((await readBot('raced')).document).toEqual(exampleDocument('raced', 20));
  });

  test('backtests the text without saving it', async () => {
    const path = await create('tried');
    const form = { version: '1', spec: yaml('tried', 14), key: 'try' };
    const { text } = await visitor.submit(path, { ...form, action: 'backtest' });
    const [, task] = /data-task="([^"]+)"\s+data-open/.exec(text)!;
    expect(JSON.parse((await visitor.open(`/tasks/${task}`)).text)).toMatchObject({
      version: 1,
      input: { patch: { spec: { strategy: { params: { fast: 14 } } } } },
    });
    // The backtest made the draft active, which does not count as a change by someone else.
    expect((await visitor.submit(path, { ...form, action: 'save' })).location).toBe(path);
    const wrong = { ...form, action: 'backtest', version: '2', spec: yaml('tried', -1) };
    expect((await visitor.submit(path, wrong)).text).toContain('has problems, so it cannot run');
  });

  test.runIf(isAtLength)(
    'saves code beside the spec, and backtests it without saving it',
    async () => {
      const { text } = await visitor.open('/console/bots/new?template=module');
      const spec = decode(/<textarea\s+id="spec"[^>]*>\n([\s\S]*?)<\/textarea/.exec(text)![1]!);
      const code = decode(/<textarea\s+id="code-0"[^>]*>\n([\s\S]*?)<\/textarea/.exec(text)![1]!);
      const form = { spec, file: 'strategy.ts', code, key: 'code' };
      const made = await visitor.submit('/console/bots/new', { ...form, action: 'create' });
      expect([made.status, made.location]).toEqual([303, '/console/bots/my-strategy/edit']);
      const changed = { ...form, code: `${code}// more\n`, version: '1', key: 'changed' };
      const path = made.location!;
      const tried = await visitor.submit(path, { ...changed, action: 'backtest' });
      expect(tried.text).toContain('// more');
      const [, task] = /data-task="([^"]+)"\s+data-open/.exec(tried.text)!;
      expect(JSON.parse((await visitor.open(`/tasks/${task}`)).text)).toMatchObject({
        version: 1,
        input: { bundle_hash: expect.stringMatching(/^[0-9a-f]{64}$/) },
      });
      expect((await readBot('my-strategy')).current_version).toBe(1);
      await visitor.submit(path, { ...changed, action: 'save' });
      const files = await visitor.open('/bots/my-strategy/versions/2/files');
      expect(JSON.parse(files.text)).toEqual({ files: { 'strategy.ts': `${code}// more\n` } });
    },
  );
});

test.runIf(isAtLength)(
  'the pages of a failed backtest show the first lines that its strategy logged',
  async () => {
    const document = documentOn('fails', 'SPX', '1d');
    const spec = { ...(document['spec'] as object), strategy: { module: './own.ts' } };
    const onBar = `const { count } = instruments[0];
    for (let i = 0; i < 15; i++) log('<b>bar ' + count);
    if (count === 15) throw new Error('end');`;
    const files = { 'own.ts': strategyThat(onBar) };
    await visitor.fetch('POST', '/bots', { document: { ...document, spec }, files });
    const { text } = await visitor.fetch('POST', '/bots/fails/backtest', {});
    const { task_id } = JSON.parse(text) as { readonly task_id: string };
    const { log } = server.services;
    const runner = startTaskRunner(tasks, { workers: 1, paperSessions: 0, timeoutMs: 5000, log });
    // The stream ends with the task.
    await visitor.fetch('GET', `/tasks/${task_id}/events`);
    await runner.stop();
    const kept = await visitor.open(`/tasks/${task_id}/files`);
    expect(JSON.parse(kept.text)).toEqual({ files: ['log.txt'] });
    const all = (await visitor.open(`/tasks/${task_id}/files/log.txt`)).text.split('\n');
    expect(all).toHaveLength(15 * 15 + 1);
    expect(all.at(-2)).toBe('2000-01-15T00:00:00Z <b>bar 15');
    const page = (await visitor.open(`/console/tasks/${task_id}`)).text;
    expect(page.match(/2000-01-\d\dT00:00:00Z &lt;b&gt;bar \d+/g)).toHaveLength(200);
    expect(page).toContain('The first 200 lines.');
    const editor = await visitor.open(`/console/bots/fails/edit?task=${task_id}`);
    expect(editor.text).toContain('2000-01-14T00:00:00Z &lt;b&gt;bar 14');
  },
);

test.runIf(isAtLength)(
  'the page of a bot shows what the strategy of its session logs',
  async () => {
    const document = documentOn('logs', 'SPX', '1d');
    const spec = { ...(document['spec'] as object), strategy: { module: './own.ts' } };
    const files = { 'own.ts': strategyThat("log('<b>bar ' + instruments[0].count);") };
    const body = { document: allowedToTrade({ ...document, spec }), files };
    await visitor.fetch('POST', '/bots', body);
    const start = { speed: 'max', to: '2000-01-03' };
    const { text } = await visitor.fetch('POST', '/bots/logs/paper/start', start);
    const { task_id } = JSON.parse(text) as { readonly task_id: string };
    const { log } = server.services;
    const runner = startTaskRunner(tasks, { workers: 1, paperSessions: 1, timeoutMs: 5000, log });
    // The stream ends with the task.
    await visitor.fetch('GET', `/tasks/${task_id}/events`);
    await runner.stop();
    const kinds = 'data.bars,session.state,strategy.log';
    const events = await visitor.open(`/bots/logs/state/events?kind=${kinds}&after_seq=0`);
    const { items } = JSON.parse(events.text) as { readonly items: readonly { kind: string }[] };
    // The state follows the bars, since a pair of both is stored packed.
    expect(items.slice(-3).map(({ kind }) => kind)).toEqual(kinds.split(','));
    const page = (await visitor.open('/console/bots/logs')).text;
    const rows = [
      ...page.matchAll(/<th scope="row">([\d-]+)<\/th>\s*<td>&lt;b&gt;(bar \d)<\/td>/g),
    ];
    expect(rows.map(([, day, line]) => [day, line])).toEqual([
      ['2000-01-03', 'bar 3'],
      ['2000-01-02', 'bar 2'],
      ['2000-01-01', 'bar 1'],
    ]);
  },
);

function decode(text: string): string {
  const entities = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'", '&amp;': '&' };
  return text.replaceAll(/&(?:lt|gt|quot|amp|#39);/g, (one) => entities[one as '&lt;']);
}
