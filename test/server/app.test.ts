import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Problem } from '../../src/api/http.ts';
import { ServiceError } from '../../src/base/errors.ts';
import type { Storage } from '../../src/storage/storage.ts';
import type { Db } from '../../src/storage/tables.ts';
import { createApp } from '../../src/server/app.ts';
import { newTestApp, type Answer, type TestApp } from './in-process.ts';

const CUSTOMERS = '/identity/customers';
const ACME = { customer_id: 'acme', name: 'Acme Trading' };

let test: TestApp;
let authorization: string;

beforeEach(async () => {
  test = await newTestApp();
  authorization = await test.bearer('license');
});

afterEach(() => test.close());

const post = (body: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
  test.send('POST', CUSTOMERS, { headers: { authorization, ...headers }, body });

const problemOf = ({ body }: Answer): Problem => body as Problem;

function storageWith(part: Partial<Storage>): Storage {
  return part as Storage;
}

describe('a response', () => {
  it('is never cached or interpreted as a page', async () => {
    const { headers } = await test.send('GET', '/healthz');
    expect(Object.fromEntries(headers)).toMatchObject({
      'cache-control': 'no-store',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'content-type': 'application/json',
      'referrer-policy': 'no-referrer',
      'service-name': 'service-local',
      'x-content-type-options': 'nosniff',
    });
  });

  it.each(['/healthz', '/nowhere', '/console/sign-in', '/identity/customers'])(
    'tells browsers to stay on TLS if the public URL has https: %s',
    async (path) => {
      const hsts = async () =>
        (await test.send('GET', path)).headers.get('strict-transport-security');
      expect(await hsts()).toBe('max-age=31536000');
    },
  );

  it('never mentions TLS if the public URL is http', async () => {
    const app = createApp({ ...test.services, origins: ['http://licenses.example'] });
    for (const path of ['/healthz', '/nowhere', '/console/sign-in']) {
      const answer = await app.request(`http://licenses.example${path}`);
      expect(answer.headers.get('strict-transport-security')).toBeNull();
    }
  });

  it('contains the request id, which is that of the caller if valid', async () => {
    const idOf = async (given: string): Promise<string | null> => {
      const headers = { 'x-request-id': given };
      return (await test.send('GET', '/healthz', { headers })).headers.get('x-request-id');
    };
    expect(await idOf('trace-1.2_3')).toBe('trace-1.2_3');
    expect(await idOf('two words')).toMatch(/^[0-9a-f-]{36}$/);
    expect(await idOf('x'.repeat(65))).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('to HEAD has no body', async () => {
    expect(await test.send('HEAD', '/healthz')).toMatchObject({ status: 200, body: '' });
  });
});

describe('an error response', () => {
  it('has the same form for all errors, and names the request in the log', async () => {
    const headers = { authorization, 'x-request-id': 'mine' };
    const answer = await test.send('GET', `${CUSTOMERS}/acme`, { headers });
    expect(answer.status).toBe(404);
    expect(answer.headers.get('content-type')).toBe('application/problem+json');
    expect(answer.body).toEqual({
      type: 'about:blank',
      title: 'Not Found',
      status: 404,
      code: 'not_found',
      detail: expect.stringContaining('acme'),
      remedy: expect.any(String),
      retryable: false,
      request_id: 'mine',
    });
    expect(JSON.parse(test.log.at(-1)!)).toMatchObject({
      level: 'info',
      request_id: 'mine',
      method: 'GET',
      path: '/identity/customers/acme',
      status: 404,
      code: 'not_found',
    });
  });

  it('reports an unknown path, or the methods of a known path', async () => {
    expect(await test.send('GET', '/nothing')).toMatchObject({
      status: 404,
      body: { code: 'not_found' },
    });
    const answer = await test.send('PUT', CUSTOMERS);
    expect(answer).toMatchObject({ status: 405, body: { code: 'method_not_allowed' } });
    expect(answer.headers.get('allow')).toBe('GET, HEAD, POST');
  });

  it('is logged as it was sent, and cannot forge log lines', async () => {
    await test.send('GET', '/x%0A11:40:00%20GET%20/y%C2%9B31m-----BEGIN%20PRIVATE%20KEY-----');
    expect(JSON.parse(test.log.at(-1)!)).toMatchObject({
      path: '/x%0A11:40:00%20GET%20/y%C2%9B31m-----BEGIN%20PRIVATE%20KEY-----',
      status: 404,
      code: 'not_found',
    });
  });

  it('lists only the first errors of an entirely wrong request', async () => {
    const body = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`field_${i}`, i]));
    const { status, body: told } = await test.send('POST', CUSTOMERS, {
      headers: { authorization },
      body,
    });
    expect(status).toBe(400);
    expect((told as { errors: unknown[] }).errors).toHaveLength(20);
  });

  it('rejects a body that is too large, whether or not its length is declared', async () => {
    const body = JSON.stringify({ name: 'x'.repeat(128 * 1024) });
    const json = { 'content-type': 'application/json' };
    const declared = { ...json, 'content-length': String(body.length) };
    const expected = { status: 413, body: { code: 'payload_too_large' } };
    expect(await post(body, declared)).toMatchObject(expected);
    expect(await post(body, json)).toMatchObject(expected);
    expect(await post(body.slice(0, 128 * 1024), json)).toMatchObject({ status: 400 });
  });

  it.each([
    ['a form', 'name=Acme', 'application/x-www-form-urlencoded'],
    ['text', '{"name":"Acme"}', 'text/plain'],
    ['bytes of no type', Buffer.from('{"name":"Acme"}'), undefined],
  ])('rejects %s instead of JSON', async (_, body, type) => {
    expect(await post(body, type === undefined ? {} : { 'content-type': type })).toMatchObject({
      status: 415,
      body: { code: 'unsupported_media_type' },
    });
  });

  it.each([
    ['cut off', '{"name":'],
    ['not UTF-8', Buffer.from([0x22, 0xff, 0x22])],
    ['after a byte order mark', '\uFEFF{"name":"Acme"}'],
    ['nothing', ''],
  ])('rejects JSON that is %s', async (_, body) => {
    const answer = await post(body, { 'content-type': 'application/json' });
    expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
  });

  it('rejects a body that ends early', async () => {
    const body = new ReadableStream({
      pull: (controller) => controller.error(Object.assign(new Error(), { code: 'ECONNRESET' })),
    });
    const headers = { authorization, 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body, duplex: 'half' as const };
    const answer = await test.app.request(CUSTOMERS, init);
    expect(await answer.json()).toMatchObject({ code: 'invalid_request', status: 400 });
  });

  it.each([
    ['{"customer_id": "acme", "name": "A", "customer_id": "other"}', '/customer_id'],
    [String.raw`{"customer_id": "acme", "name": "A", "n\u0061me": "B"}`, '/name'],
    [
      '{"customer_id": "acme", "name": "A", "extra": [{}, {"a/b": {"c~": 1, "c~": 1}}]}',
      '/extra/1/a~1b/c~0',
    ],
  ])('rejects a body with a duplicate field: %s', async (body, pointer) => {
    const headers = { 'content-type': 'application/json; charset=utf-8' };
    const answer = await post(body, headers);
    expect(answer).toMatchObject({
      status: 400,
      body: {
        code: 'invalid_request',
        detail: 'the body contains a field twice',
        errors: [{ code: 'duplicate_field', pointer, detail: 'is given twice' }],
      },
    });
    expect(answer.headers.get('content-type')).toBe('application/problem+json');
  });

  it.each([
    ['Ac\u202Eme', 'U+202E at position 3'],
    ['\uFEFFAcme', 'U+FEFF at position 1'],
    ['😀 Ac\u200Bme', 'U+200B at position 5'],
    ['Acme\n', 'U+000A at position 5'],
  ])('rejects a hidden character in a name: %j', async (name, what) => {
    expect(await post({ customer_id: 'acme', name })).toMatchObject({
      status: 400,
      body: {
        errors: [
          {
            code: 'invalid_value',
            pointer: '/name',
            detail: `must not contain the control or invisible character ${what}`,
          },
        ],
      },
    });
  });

  it.each(['می\u200Cخواهم', '👨\u200D👩\u200D👧', 'שלום'])('accepts the name %s', async (name) => {
    expect(await post({ customer_id: 'acme', name })).toMatchObject({
      status: 201,
      body: { name },
    });
  });

  it('rejects a body that is nested too deeply', async () => {
    const body = `{"name": ${'['.repeat(60_000)}${']'.repeat(60_000)}}`;
    expect(await post(body, { 'content-type': 'application/json' })).toMatchObject({
      status: 400,
      body: { errors: [{ code: 'nested_too_deep', pointer: `/name${'/0'.repeat(99)}` }] },
    });
  });

  it('lists every error in a body with its location', async () => {
    const answer = await post({ customer_id: 7, nmae: 'Acme', 'a/b': 1 });
    expect(problemOf(answer)).toMatchObject({
      status: 400,
      code: 'invalid_request',
      detail: 'the body of the request is invalid',
    });
    expect(problemOf(answer).errors).toEqual([
      { code: 'invalid_value', pointer: '/customer_id', detail: expect.any(String) },
      { code: 'missing_field', pointer: '/name', detail: expect.any(String) },
      {
        code: 'unknown_field',
        pointer: '/nmae',
        detail: 'is unknown; known: customer_id, name',
        suggestion: 'name',
      },
      {
        code: 'unknown_field',
        pointer: '/a~1b',
        detail: 'is unknown; known: customer_id, name',
      },
    ]);
  });

  it('reports invalid query and path parameters', async () => {
    const list = await test.send('GET', `${CUSTOMERS}?limit=0&curser=x`, {
      headers: { authorization },
    });
    expect(problemOf(list)).toMatchObject({
      status: 400,
      detail: 'the query of the request is invalid',
      errors: [
        { code: 'invalid_value', detail: expect.stringContaining('limit: ') },
        { code: 'unknown_field', suggestion: 'cursor' },
      ],
    });
    const one = await test.send('GET', `${CUSTOMERS}/${'x'.repeat(129)}`, {
      headers: { authorization },
    });
    expect(problemOf(one)).toMatchObject({
      status: 400,
      errors: [{ detail: 'customer_id: must be 1 to 128 visible ASCII characters' }],
    });
    expect(await test.send('GET', '/healthz?x=1')).toMatchObject({ status: 400 });
  });

  it('rejects missing, unknown and insufficient credentials', async () => {
    const get = (headers: Record<string, string>) => test.send('GET', CUSTOMERS, { headers });
    for (const credential of [{}, { authorization: 'Basic YTpi' }, { authorization: 'Bearer' }]) {
      const answer = await get(credential);
      expect(answer).toMatchObject({
        status: 401,
        body: { code: 'not_authenticated', reason: 'missing_token' },
      });
      expect(answer.headers.get('www-authenticate')).toBe('Bearer, DeviceProof');
    }
    expect(await get({ authorization: `${authorization}x` })).toMatchObject({
      status: 401,
      body: { code: 'not_authenticated', reason: 'unknown_token' },
    });
    expect(await get({ authorization: await test.bearer('admin') })).toMatchObject({
      status: 403,
      body: { code: 'not_allowed' },
    });
    expect(await get({ authorization: authorization.replace('Bearer', 'bearer') })).toMatchObject({
      status: 200,
    });
  });

  it('reports missing authorization before errors in the request', async () => {
    const answer = await test.send('POST', CUSTOMERS, { body: { nmae: 1 } });
    expect(answer).toMatchObject({ status: 401 });
  });

  it('for a database failure is retryable and reveals no details', async () => {
    await test.execute('alter table customers rename to gone');
    const answer = await post(ACME);
    expect(answer).toMatchObject({
      status: 503,
      body: { code: 'storage_unavailable', retryable: true },
    });
    expect(JSON.stringify(answer.body)).not.toContain('customers');
    expect(test.log.at(-1)).toContain('no such table: customers');
  });

  it('for a bug reveals no details, which are in the log', async () => {
    const broken = await newTestApp({
      storage: storageWith({
        read: {
          getExecutor() {
            throw new TypeError('getExecutor is a secret');
          },
        } as unknown as Db,
      }),
    });
    const headers = { authorization };
    const answer = await broken.send('GET', CUSTOMERS, { headers });
    expect(answer.body).toEqual({
      type: 'about:blank',
      title: 'Internal Server Error',
      status: 500,
      code: 'failure',
      detail: 'unexpected error in the server',
      remedy: 'Report the request_id to the operator of the server; the log has the details.',
      retryable: false,
      request_id: answer.headers.get('x-request-id'),
    });
    expect(JSON.parse(broken.log.at(-1)!)).toMatchObject({
      level: 'error',
      request_id: answer.headers.get('x-request-id'),
      err: expect.stringMatching(/^TypeError: getExecutor is a secret\n +at /),
    });
    await broken.close();
  });
});

describe('a request that takes too long', () => {
  it('receives a response while its work continues', async () => {
    const check = (): Promise<never> => new Promise(() => {});
    const hanging = await newTestApp({ storage: storageWith({ check }) });
    const answer = await createApp(hanging.services, 50).request('/readyz');
    expect(answer.status).toBe(503);
    expect(answer.headers.get('retry-after')).toBe('5');
    expect(await answer.json()).toMatchObject({
      code: 'overloaded',
      detail: 'the request took longer than 0.05 seconds',
      retryable: true,
    });
    await hanging.close();
  });
});

describe('readiness', () => {
  it('is degraded without a signing key, and does not reveal its path', async () => {
    const signer = new ServiceError('license_lease_unavailable', '/etc/keys/lease.pem: gone', {
      reason: 'unreadable_key',
    });
    const degraded = await newTestApp({ signer });
    expect(await degraded.send('GET', '/readyz')).toMatchObject({
      status: 200,
      body: {
        status: 'degraded',
        missing: [
          { part: 'signing_key', detail: 'no leases are issued', reason: 'unreadable_key' },
        ],
      },
    });
    await degraded.close();
  });

  it('is unavailable without a database, while the process is healthy', async () => {
    const storage = storageWith({ check: () => Promise.reject(new Error('gone')) });
    const unready = await newTestApp({ storage });
    expect(await unready.send('GET', '/readyz')).toMatchObject({
      status: 503,
      body: { status: 'unavailable', missing: [{ part: 'storage' }] },
    });
    expect(await unready.send('GET', '/healthz')).toMatchObject({ status: 200 });
    await unready.close();
  });
});
