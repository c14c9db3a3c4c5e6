import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { exampleDocument, type BotDetail } from '../../src/api/bots.ts';
import { type BotEvent } from '../../src/api/bot-state.ts';
import { readChangedSpec } from '../../src/bots/hosted.ts';
import { tick } from '../events/bots.ts';
import { appendEvents } from '../../src/events/append.ts';
import { newTestApp, type Answer, type TestApp } from './in-process.ts';

let server: TestApp;
let reader: string;
let writer: string;

beforeEach(async () => {
  server = await newTestApp();
  [reader, writer] = await Promise.all([server.bearer('read'), server.bearer('write')]);
});

afterEach(() => server.close());

const get = (path: string, headers: Record<string, string> = {}): Promise<Answer> =>
  server.send('GET', `/bots${path}`, { headers: { authorization: reader, ...headers } });

const send = (
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> =>
  server.send(method, `/bots${path}`, { headers: { authorization: writer, ...headers }, body });

const documentOf = (fast: number, slug = 'sma') => ({ document: exampleDocument(slug, fast) });
const ANY = { 'if-match': '*' };

async function newBot(slug = 'sma'): Promise<{ bot: BotDetail; etag: string }> {
  const { status, body, headers } = await send('POST', '', documentOf(10, slug));
  expect(status).toBe(201);
  return { bot: body as BotDetail, etag: headers.get('etag')! };
}

async function addTicks(bot_id: string, count: number): Promise<void> {
  const { storage } = server.services.identity;
  const events = Array.from({ length: count }, (_, i) => tick(i));
  await storage.write((tx) => appendEvents(tx, bot_id, server.now, events));
}

describe('a bot', () => {
  it('is rejected with hidden characters in its names, but keeps names that were stored earlier', async () => {
    const hidden = 'SMA \u202Ecrossover';
    const { document } = documentOf(10);
    const named = { ...document, metadata: { name: hidden, slug: 'sma' } };
    const refused = {
      status: 422,
      body: {
        errors: [
          {
            code: 'hidden_character',
            pointer: '/metadata/name',
            detail: 'must not contain the control or invisible character U+202E at position 5',
          },
        ],
      },
    };
    expect(await send('POST', '', { document: named })).toMatchObject(refused);
    await newBot();
    expect(await send('PUT', '/sma', { document: named }, ANY)).toMatchObject(refused);

    // Earlier versions stored such names.
    const { storage } = server.services.identity;
    const text = JSON.stringify(named);
    await storage.write((tx) => tx.updateTable('bot_versions').set({ document: text }).execute());
    await storage.write((tx) => tx.updateTable('bots').set({ name: hidden }).execute());
    expect((await get('/sma')).body).toMatchObject({ name: hidden, document: named });
    expect(readChangedSpec(named, {}).spec.metadata.name).toBe(hidden);
  });

  it('is created, shown by id and slug, and listed as a summary', async () => {
    const created = await send('POST', '', documentOf(10));
    expect(created).toMatchObject({ status: 201 });
    const bot = created.body as BotDetail;
    expect(bot).toEqual({
      id: expect.any(String),
      name: 'SMA crossover',
      slug: 'sma',
      kind: 'trading',
      status: 'draft',
      current_version: 1,
      document: exampleDocument('sma', 10),
      version_hash: createHash('sha256')
        .update(canonicalize(exampleDocument('sma', 10))!)
        .digest('hex'),
      created_at: '2026-01-02T03:04:05Z',
      updated_at: '2026-01-02T03:04:05Z',
      active_deployments: [],
      active_deployment_count: 0,
      halted: null,
    });
    expect(created.headers.get('location')).toBe(`/bots/${bot.id}`);
    for (const ref of ['sma', bot.id]) {
      const shown = await get(`/${ref}`);
      expect(shown).toMatchObject({ status: 200, body: bot });
      expect(shown.headers.get('etag')).toBe(created.headers.get('etag'));
    }
    const { id, name, slug, kind, status, current_version } = bot;
    expect((await get('')).body).toEqual({
      items: [{ id, name, slug, kind, status, current_version }],
      next_cursor: null,
    });
    expect((await get('?kind=research')).body).toMatchObject({ items: [] });
    expect((await get('?q=CROSS&status=draft')).body).toMatchObject({ items: [{ slug }] });
  });

  it('can be created from YAML text or from a document', async () => {
    const { bot } = await newBot();
    const yaml = `# mine\n${JSON.stringify(exampleDocument('text', 10))}`;
    const { body } = await send('POST', '', { yaml });
    expect(body).toMatchObject({ document: exampleDocument('text', 10), kind: bot.kind });
  });

  it('is not sent again to a caller with the current ETag', async () => {
    const { etag } = await newBot();
    for (const known of [etag, `"x", W/${etag}`, '*']) {
      const answer = await get('/sma', { 'if-none-match': known });
      expect(answer).toMatchObject({ status: 304, body: '' });
      expect(answer.headers.get('etag')).toBe(etag);
    }
    expect(await get('/sma', { 'if-none-match': '"x"' })).toMatchObject({ status: 200 });
  });

  it('is updated with a matching ETag, archived, and activated again', async () => {
    const { bot, etag } = await newBot();
    const same = await send('PUT', '/sma', documentOf(10), { 'if-match': etag });
    expect(same).toMatchObject({ status: 200, body: bot });
    expect(same.headers.get('etag')).toBe(etag);

    const changed = await send('PUT', '/sma', documentOf(11), { 'if-match': `"x", ${etag}` });
    expect(changed).toMatchObject({ status: 200, body: { id: bot.id, current_version: 2 } });
    const next = changed.headers.get('etag')!;
    for (const stale of [etag, `W/${next}`]) {
      expect(await send('PUT', '/sma', documentOf(12), { 'if-match': stale })).toMatchObject({
        status: 412,
        body: { code: 'stale', detail: expect.stringContaining(next) },
      });
    }
    expect(await send('DELETE', '/sma', undefined, { 'if-match': etag })).toMatchObject({
      status: 412,
    });
    for (const tag of [next, next]) {
      const archived = await send('DELETE', '/sma', undefined, { 'if-match': tag });
      expect(archived).toMatchObject({ status: 204, body: '' });
    }
    expect((await get('/sma')).body).toMatchObject({ status: 'archived' });
    expect((await send('PUT', '/sma', documentOf(11), ANY)).body).toMatchObject({
      status: 'active',
      current_version: 2,
    });
  });

  it('is not changed by a request without If-Match', async () => {
    await newBot();
    for (const answer of [
      await send('PUT', '/sma', documentOf(11)),
      await send('DELETE', '/sma'),
    ]) {
      expect(answer).toMatchObject({ status: 428, body: { code: 'precondition_required' } });
    }
  });

  it('has a unique slug', async () => {
    const { bot } = await newBot();
    await newBot('other');
    for (const answer of [
      await send('POST', '', documentOf(11)),
      await send('PUT', '/other', documentOf(11), ANY),
    ]) {
      expect(answer).toMatchObject({
        status: 409,
        body: { code: 'conflict', reason: 'slug_taken', detail: expect.stringContaining(bot.id) },
      });
    }
  });

  it('is updated by one of 50 concurrent requests, and the others fail', async () => {
    let { etag } = await newBot();
    for (const round of [2, 3]) {
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, i) => {
          const metadata = { name: `${round}-${i}`, slug: 'sma' };
          const document = { ...exampleDocument('sma', 10), metadata };
          return send('PUT', '/sma', { document }, { 'if-match': etag });
        }),
      );
      const won = answers.filter(({ status }) => status === 200);
      expect(won).toMatchObject([{ body: { current_version: round } }]);
      expect(answers.filter(({ status }) => status === 412)).toHaveLength(49);
      etag = won[0]!.headers.get('etag')!;
    }
  });
});

describe('versions', () => {
  it('are listed newest first, shown, and compared', async () => {
    const { bot } = await newBot();
    await send('PUT', '/sma', documentOf(11), ANY);
    const { body } = await get('/sma/versions');
    expect(body).toEqual({
      items: [2, 1].map((version) => ({
        version,
        hash: expect.stringMatching(/^[0-9a-f]{64}$/),
        bundle_hash: null,
        created_at: '2026-01-02T03:04:05Z',
        created_by: expect.stringMatching(/^administrator:/),
        created_by_name: expect.any(String) as string,
      })),
      next_cursor: null,
    });
    expect((await get('/sma/versions/1')).body).toMatchObject({
      version: 1,
      hash: bot.version_hash,
      document: bot.document,
    });
    expect((await get('/sma/versions/1/diff?to=2')).body).toEqual({
      from_version: 1,
      to_version: 2,
      changes: [{ pointer: '/spec/strategy/params/fast', kind: 'changed', from: 10, to: 11 }],
      files: [],
    });
    for (const path of ['/sma/versions/3', '/sma/versions/1/diff?to=3']) {
      expect(await get(path)).toMatchObject({ status: 404, body: { code: 'not_found' } });
    }
  });
});

describe('the state and events of a bot', () => {
  it('reflect its history at any moment', async () => {
    await newBot();
    server.now += 60_000;
    await send('PUT', '/sma', documentOf(11), ANY);
    const snapshot = async (query: string): Promise<unknown> =>
      (await get(`/sma/state/snapshot${query}`)).body;
    const now = await snapshot('');
    expect(now).toMatchObject({ seq: 3, head_seq: 3, state: { version: 2, slug: 'sma' } });
    const { state, state_hash } = now as { state: object; state_hash: string };
    expect(createHash('sha256').update(canonicalize(state)!).digest('hex')).toBe(state_hash);
    expect(await snapshot('?at_seq=2')).toMatchObject({ seq: 2, state: { version: 1 } });
    expect(await snapshot('?at=2026-01-02T03:04:30Z')).toMatchObject({ seq: 2, head_seq: 3 });
    for (const query of ['?at_seq=4', '?at=2026-01-01T00:00:00Z']) {
      expect(await snapshot(query)).toMatchObject({ code: 'not_found' });
    }
    const replay = async (body: object): Promise<unknown> =>
      (await server.send('POST', '/bots/sma/replay', { headers: { authorization: reader }, body }))
        .body;
    expect(await replay({})).toMatchObject({ seq: 3, state, state_hash, verified: true });
    expect(await replay({ until: '2026-01-02T03:04:30Z' })).toMatchObject({ seq: 2 });
    await server.execute("update bot_events set payload = '{}' where seq = 2");
    expect(await replay({ until_seq: 3 })).toMatchObject({
      seq: 1,
      state: { version: 0 },
      verified: false,
      fault: { seq: 2, fault: 'altered' },
    });
  });

  it('are read in pages without gaps or duplicates', async () => {
    const { bot } = await newBot();
    await addTicks(bot.id, 5);
    const seqs: number[] = [];
    let after = 0;
    for (let page = 0; page < 3; page += 1) {
      const { body } = await get(`/sma/state/events?limit=3&after_seq=${after}`);
      const { items, next_after_seq, head_seq } = body as {
        items: BotEvent[];
        next_after_seq: number;
        head_seq: number;
      };
      expect(head_seq).toBe(7);
      seqs.push(...items.map(({ seq }) => seq));
      after = next_after_seq;
    }
    expect(seqs).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect((await get('/sma/state/events?limit=1')).body).toMatchObject({
      items: [
        {
          bot_id: bot.id,
          seq: 1,
          kind: 'bot.created',
          run_id: null,
          occurred_at: '2026-01-02T03:04:05Z',
          payload: { slug: 'sma' },
          prev_hash: '0'.repeat(64),
        },
      ],
    });
    const kinds = 'kind=version.created,bot.created';
    expect((await get(`/sma/state/events?${kinds}&after_seq=1`)).body).toMatchObject({
      items: [{ seq: 2 }],
      next_after_seq: 7,
    });
    // All kinds in the range were read, although the page ended before.
    expect((await get('/sma/state/events?kind=tick&limit=2')).body).toMatchObject({
      items: [{ seq: 3 }, { seq: 4 }],
      next_after_seq: 4,
    });
    expect((await get('/sma/state/events?kind=tick&until_seq=2')).body).toMatchObject({
      items: [],
      next_after_seq: 2,
    });
    expect((await get('/sma/state/events?after_seq=9')).body).toMatchObject({
      items: [],
      next_after_seq: 9,
    });
    const lastOf = async (query: string): Promise<number[]> => {
      const { body } = await get(`/sma/state/events?last=true&${query}`);
      return (body as { items: BotEvent[] }).items.map(({ seq }) => seq);
    };
    expect(await lastOf('limit=3')).toEqual([5, 6, 7]);
    expect(await lastOf('limit=3&until_seq=4&after_seq=2')).toEqual([3, 4]);
    expect(await lastOf('limit=2&kind=tick,bot.created&until_seq=4')).toEqual([3, 4]);
    expect(await lastOf('limit=3&after_seq=9')).toEqual([]);
  });

  it('can be followed from any event until the server stops', async () => {
    const { bot } = await newBot();
    const follow = async (query: string, headers = {}): Promise<ReadableStreamDefaultReader> => {
      const answer = await server.app.request(`/bots/sma/state/events/stream${query}`, {
        headers: { authorization: reader, ...headers },
      });
      expect(answer.headers.get('content-type')).toBe('text/event-stream');
      return answer.body!.getReader();
    };
    const all = await follow('');
    const some = await follow('?kind=tick&after_seq=1', { 'last-event-id': '3' });
    const read = async (from: ReadableStreamDefaultReader): Promise<string> =>
      Buffer.from((await from.read()).value ?? '').toString();
    const told = (text: string): [id: string, event: BotEvent][] =>
      Array.from(text.matchAll(/id: (\d+)\ndata: (.+)\n\n/g), ([, id, data]) => [
        id!,
        JSON.parse(data!) as BotEvent,
      ]);

    expect(await read(all)).toBe(': \n\n');
    const { body } = await get('/sma/state/events');
    const { items } = body as { items: BotEvent[] };
    expect(told(await read(all))).toEqual(items.map((event) => [String(event.seq), event]));
    expect(await read(some)).toBe(': \n\n');
    await addTicks(bot.id, 2);
    expect(told(await read(all)).map(([id]) => id)).toEqual(['3', '4']);
    expect(told(await read(some))).toMatchObject([['4', { kind: 'tick', payload: { n: 1 } }]]);

    const rest = [all.read(), some.read()];
    server.stop();
    for (const one of await Promise.all(rest)) expect(one.done).toBe(true);
  });
});

describe('a stream of events', () => {
  afterEach(() => vi.useRealTimers());

  it('sends a comment every 15 seconds until the token is no longer valid', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    await newBot();
    const answer = await server.app.request('/bots/sma/state/events/stream?after_seq=2', {
      headers: { authorization: reader },
    });
    const stream = answer.body!.getReader();
    const next = async (): Promise<string | undefined> => {
      const { value } = await stream.read();
      return value && Buffer.from(value).toString();
    };
    expect(await next()).toBe(': \n\n');
    vi.advanceTimersByTime(15_000);
    expect(await next()).toBe(': \n\n');
    await server.execute('update api_tokens set revoked_at = 1');
    vi.advanceTimersByTime(15_000);
    expect(await next()).toBeUndefined();
  });
});

describe('a request about a bot', () => {
  const OPERATIONS = [
    ['GET', '', 'read'],
    ['POST', '', 'write'],
    ['GET', '/sma', 'read'],
    ['PUT', '/sma', 'write'],
    ['DELETE', '/sma', 'write'],
    ['GET', '/sma/versions', 'read'],
    ['GET', '/sma/versions/1', 'read'],
    ['GET', '/sma/versions/1/diff?to=1', 'read'],
    ['GET', '/sma/state/snapshot', 'read'],
    ['GET', '/sma/state/events', 'read'],
    ['GET', '/sma/state/events/stream', 'read'],
    ['POST', '/sma/replay', 'read'],
  ] as const;

  it('requires the scope of its operation', async () => {
    await newBot();
    const others = {
      read: await server.bearer('write', 'trade', 'halt', 'license', 'admin'),
      write: await server.bearer('read', 'trade', 'halt', 'license', 'admin'),
    };
    for (const [method, path, scope] of OPERATIONS) {
      const refused = await server.send(method, `/bots${path}`, {
        headers: { authorization: others[scope] },
      });
      expect([path, refused.status, refused.body]).toMatchObject([
        path,
        403,
        { code: 'not_allowed' },
      ]);
      expect((await server.send(method, `/bots${path}`)).status).toBe(401);
    }
  });

  it('fails with not_found for a bot that does not exist', async () => {
    const both = await server.bearer('read', 'write');
    const unknown = '0198c0de-0000-7000-8000-000000000000';
    for (const [method, path] of OPERATIONS.filter(([, one]) => one !== '')) {
      for (const ref of ['nobody', unknown]) {
        const body = method === 'PUT' ? documentOf(1) : method === 'POST' ? {} : undefined;
        const answer = await server.send(method, `/bots${path.replace('sma', ref)}`, {
          headers: { authorization: both, ...ANY },
          body,
        });
        expect([method, path, answer.status, answer.body]).toMatchObject([
          method,
          path,
          404,
          { code: 'not_found', detail: expect.stringContaining(`"${ref}"`) },
        ]);
      }
    }
  });

  it('with an unusable spec reports all errors and their locations', async () => {
    await newBot();
    const { document } = documentOf(10);
    const wrong = {
      document: {
        ...document,
        spec: {
          ...(document['spec'] as object),
          data: { source: './spx.csv', timeframe: '1d' },
          strategy: { name: 'sma_crosover' },
        },
      },
    };
    for (const answer of [await send('POST', '', wrong), await send('PUT', '/sma', wrong, ANY)]) {
      expect(answer).toMatchObject({ status: 422, body: { code: 'invalid_spec' } });
      expect((answer.body as { errors: unknown }).errors).toEqual([
        {
          code: 'data_not_hosted',
          pointer: '/spec/data/source',
          detail: expect.stringContaining('service-local data import'),
        },
        {
          code: 'unknown_strategy',
          pointer: '/spec/strategy/name',
          detail: expect.any(String),
          suggestion: 'sma_crossover',
        },
      ]);
    }
    expect((await get('/sma/versions')).body).toMatchObject({ items: [{ version: 1 }] });
  });

  it.each([
    ['POST', '', {}],
    ['POST', '', { document: 'x' }],
    ['POST', '', { ...documentOf(1), yaml: 'x' }],
    ['PUT', '/sma', { documnt: {} }],
    ['POST', '/sma/replay', { until_seq: 1, until: '2026-01-02T03:04:05Z' }],
    ['POST', '/sma/replay', { until_seq: 0 }],
    ['GET', '?status=gone', undefined],
    ['GET', '?limit=1001', undefined],
    ['GET', '?cursor=x', undefined],
    ['GET', '/sma/versions/0', undefined],
    ['GET', '/sma/versions/1/diff', undefined],
    ['GET', '/sma/state/snapshot?at_seq=1&at=2026-01-02T03:04:05Z', undefined],
    ['GET', '/sma/state/snapshot?at=yesterday', undefined],
    ['GET', '/sma/state/events?after_seq=-1', undefined],
    ['GET', '/sma/state/events?kind=Bot', undefined],
    ['GET', '/sma/state/events/stream?limit=1', undefined],
  ])('%s %s %j is refused', async (method, path, body) => {
    const authorization = await server.bearer('read', 'write');
    const init = { headers: { authorization, ...ANY }, body };
    expect(await server.send(method, `/bots${path}`, init)).toMatchObject({
      status: 400,
      body: { code: 'invalid_request' },
    });
  });
});
