import { afterEach, beforeEach, expect, test } from 'vitest';
import { newTestApp, type Answer, type TestApp } from './in-process.ts';
import { isAtLength } from '../length.ts';

let server: TestApp;
let authorization: string;

beforeEach(async () => {
  server = await newTestApp();
  authorization = await server.bearer('read', 'write');
});

afterEach(() => server.close());

const send = (
  method: string,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> =>
  server.send(method, `/knowledge/${path}`, { headers: { authorization, ...headers }, body });

const risk = { name: 'notes/risk.md', text: '# Risk\n\nThe drawdown has a limit.\n' };

test('adds, lists, shows, finds and removes a document', async () => {
  const { status, body } = await send('POST', 'documents', risk);
  const document = body as { document_id: string };
  expect([status, document]).toMatchObject([
    201,
    {
      name: 'notes/risk.md',
      title: 'Risk',
      revision: 1,
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
      bytes: risk.text.length,
      lines: 4,
      passages: 1,
      added_at: '2026-01-02T03:04:05Z',
      added_by: expect.stringMatching(/^administrator:/) as string,
      added_by_name: expect.any(String) as string,
    },
  ]);
  const listed = { items: [document], next_cursor: null };
  expect(await send('GET', 'documents')).toMatchObject({ status: 200, body: listed });
  expect((await send('GET', 'documents?name=other.md')).body).toMatchObject({ items: [] });
  const path = `documents/${document.document_id}`;
  expect((await send('GET', path)).body).toEqual({ ...document, text: risk.text });
  expect((await send('GET', 'search?q=drawdown')).body).toEqual({
    items: [
      {
        document_id: document.document_id,
        document: 'notes/risk.md',
        passage_id: `${document.document_id}:1`,
        heading: ['Risk'],
        lines: { from: 1, to: 3 },
        text: '# Risk\n\nThe drawdown has a limit.',
        score: expect.any(Number) as number,
        instance: null,
      },
    ],
    instances: [],
  });
  expect((await send('DELETE', path)).status).toBe(204);
  expect((await send('DELETE', path)).body).toMatchObject({ status: 404, code: 'not_found' });
  expect((await send('GET', 'search?q=drawdown')).body).toEqual({ items: [], instances: [] });
});

test('rejects a different text with a used name, or replaces the old text completely', async () => {
  const first = await send('POST', 'documents', risk);
  expect((await send('POST', 'documents', risk)).body).toEqual(first.body);
  const other = { ...risk, text: 'Nobody trades on Sundays.' };
  expect((await send('POST', 'documents', other)).body).toMatchObject({
    status: 409,
    reason: 'name_taken',
  });
  const replaced = await send('POST', 'documents', { ...other, replace: true });
  expect(replaced).toMatchObject({ status: 201, body: { revision: 2, title: 'notes/risk.md' } });
  const passages = server.services.identity.storage.read.selectFrom('knowledge_passages');
  expect(await passages.select('text').execute()).toEqual([{ text: other.text }]);
});

test('adds a document once for each Idempotency-Key', async () => {
  const key = { 'idempotency-key': 'a' };
  const first = await send('POST', 'documents', risk, key);
  await send('DELETE', `documents/${(first.body as { document_id: string }).document_id}`);
  const again = await send('POST', 'documents', risk, key);
  expect([again.body, again.headers.get('idempotency-replayed')]).toEqual([first.body, 'true']);
  expect((await send('GET', 'documents')).body).toMatchObject({ items: [] });
  const passages = server.services.identity.storage.read.selectFrom('knowledge_passages');
  expect(await passages.selectAll().execute()).toEqual([]);
});

const paragraph = `${'The quick brown fox jumps over the lazy dog. '.repeat(40)}\n\n`;
const text = paragraph.repeat((5 * 1024 * 1024) / paragraph.length);

test.runIf(isAtLength)('a text of 5 MB is taken', async () => {
  const added = await send('POST', 'documents', { name: 'fox.txt', text });
  expect(added).toMatchObject({ status: 201, body: { bytes: text.length } });
  expect((await send('GET', 'search?q=fox&limit=2')).body).toMatchObject({
    items: [{ lines: { from: 1, to: 1 } }, { lines: { from: 3, to: 3 } }],
  });
});

test('rejects a text over the limit, and any text from an unauthenticated caller', async () => {
  const larger = { name: 'larger.txt', text: text + paragraph.repeat(2) };
  expect((await send('POST', 'documents', larger)).body).toMatchObject({
    status: 413,
    code: 'payload_too_large',
  });
  const stranger = { authorization: await server.bearer('read') };
  expect((await send('POST', 'documents', larger, stranger)).body).toMatchObject({ status: 403 });
});

test.each([
  ['a name with a line feed', { name: 'a\nb' }],
  ['no name', { name: '' }],
  ['a NUL', { text: 'a\0b' }],
  ['half a character', { text: '\uD800' }],
])('%s is rejected', async (_, change) => {
  const { body } = await send('POST', 'documents', { ...risk, ...change });
  expect(body).toMatchObject({ status: 400, code: 'invalid_request' });
});
