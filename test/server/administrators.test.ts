import { GENESIS } from '../../src/base/hash-chain.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AuditEntry } from '../../src/api/administrators.ts';
import { verifyAudit } from '../../src/identity/audit.ts';
import { addToken } from '../../src/identity/tokens.ts';
import type { Scope } from '../../src/base/scopes.ts';
import { newPerson, PASSWORD, type Person } from '../identity/people.ts';
import { newTestApp, type Answer, type TestApp } from './in-process.ts';

let app: TestApp;
beforeAll(async () => {
  app = await newTestApp();
});
afterAll(() => app.close());

const person = (): Promise<Person> => newPerson(app.services.identity, (ms) => (app.now += ms));
const logIn = ({ name, nextCode }: Person, wrong: object = {}): Promise<Answer> =>
  app.send('POST', '/identity/tokens', {
    body: {
      administrator: name,
      password: PASSWORD,
      code: nextCode(),
      label: 'CI',
      scopes: ['license'],
      ...wrong,
    },
  });
const as = async ({ id }: Person, ...scopes: Scope[]): Promise<{ authorization: string }> => {
  const terms = { label: 'test', scopes, expires_in_seconds: 3600 };
  const { token } = await app.services.identity.storage.write((tx) =>
    addToken(tx, app.now, 'operator', id, terms),
  );
  return { authorization: `Bearer ${token}` };
};

describe('a login', () => {
  test('returns a working token once, valid for 30 days', async () => {
    const ada = await person();
    const { status, headers, body } = await logIn(ada, { scopes: ['admin'] });
    expect(status).toBe(201);
    expect(headers.get('cache-control')).toBe('no-store');
    const { token, ...state } = body as { token: string; expires_at: string };
    expect(Date.parse(state.expires_at)).toBe(app.now + 30 * 86_400_000);
    const authorization = `Bearer ${token}`;
    const list = await app.send('GET', '/identity/tokens', { headers: { authorization } });
    expect(list.status).toBe(200);
    const { items } = list.body as { items: object[] };
    expect(items).toContainEqual(state);
    expect(JSON.stringify(items)).not.toContain(token.slice(-43));
  });

  test('with wrong credentials fails with 401 and then 429 without details, and logs no secret', async () => {
    const ada = await person();
    const password = 'this is not the password';
    const problem = {
      code: 'not_authenticated',
      reason: 'wrong_credentials',
      detail: 'name, password or code is wrong',
      retryable: false,
    };
    for (let i = 0; i < 5; i++) {
      expect(await logIn(ada, { password })).toMatchObject({ status: 401, body: problem });
    }
    const { status, headers, body } = await logIn(ada);
    expect(status).toBe(429);
    // Each of the six attempts had a new code.
    expect(headers.get('retry-after')).toBe(String(15 * 60 - 5 * 30));
    expect(body).toMatchObject({ code: 'rate_limited', retryable: true });
    expect(app.log.join('\n')).toContain('wrong_credentials');
    expect(app.log.join('\n')).not.toContain(password);
  });

  test.each([
    [{ scopes: [] }, '/scopes'],
    [{ scopes: ['root'] }, '/scopes/0'],
    [{ label: '' }, '/label'],
    [{ label: 'a\nb' }, '/label'],
    [{ expires_in_seconds: 366 * 86_400 }, '/expires_in_seconds'],
    [{ password: '' }, '/password'],
    [{ code: 123456 }, '/code'],
    [{ user: 'ada' }, '/user'],
  ])('with %j is rejected', async (wrong, pointer) => {
    const answer = await logIn(await person(), wrong);
    expect(answer).toMatchObject({
      status: 400,
      body: { code: 'invalid_request', errors: [{ pointer }] },
    });
  });
});

test('a token of any scope can list and revoke tokens of its owner, and finds no others', async () => {
  const [ada, bob] = [await person(), await person()];
  const headers = await as(ada, 'read');
  const bobs = (await logIn(bob)).body as { token_id: string; token: string };
  const { body } = await app.send('GET', '/identity/tokens', { headers });
  expect(body).toMatchObject({ items: [{ administrator: ada.name }], next_cursor: null });
  const end = (id: string, by: object): Promise<Answer> =>
    app.send('DELETE', `/identity/tokens/${id}`, { headers: { ...by } });
  expect(await end(bobs.token_id, headers)).toMatchObject({ status: 404 });
  const own = { authorization: `Bearer ${bobs.token}` };
  expect(await end(bobs.token_id, own)).toMatchObject({
    status: 200,
    body: { token_id: bobs.token_id, revoked_at: expect.stringMatching(/Z$/) as string },
  });
  expect(await end(bobs.token_id, own)).toMatchObject({
    status: 401,
    body: { code: 'not_authenticated', reason: 'revoked_token' },
  });
});

test('any token can show itself, whatever its scopes', async () => {
  const ada = await person();
  const headers = await as(ada, 'halt');
  const own = await app.send('GET', '/identity/token', { headers });
  const list = await app.send('GET', '/identity/tokens', { headers });
  expect(own).toMatchObject({ status: 200, body: { administrator: ada.name, scopes: ['halt'] } });
  expect((list.body as { items: object[] }).items).toEqual([own.body]);
  expect(await app.send('GET', '/identity/token')).toMatchObject({
    status: 401,
    body: { reason: 'missing_token' },
  });
});

const request = { action: 'identity.license.revoke', target: 'deployment:acme-tokyo' };
const stepUp = (headers: Record<string, string>, body: object): Promise<Answer> =>
  app.send('POST', '/identity/step-ups', { headers, body: { ...request, ...body } });

describe('a step-up', () => {
  test('is granted for a code and is valid for five minutes', async () => {
    const ada = await person();
    const headers = await as(ada, 'license');
    const { status, body } = await stepUp(headers, { code: ada.nextCode() });
    expect(status).toBe(201);
    expect(body).toEqual({
      step_up_token: expect.stringMatching(/^sls_/) as string,
      expires_at: new Date(app.now + 300_000).toISOString().replace('.000Z', 'Z'),
    });
  });

  test('requires the scope license, a correct code and a known action', async () => {
    const ada = await person();
    const unscoped = await stepUp(await as(ada, 'admin'), { code: ada.nextCode() });
    expect(unscoped).toMatchObject({ status: 403, body: { code: 'not_allowed' } });
    const headers = await as(ada, 'license');
    const wrong = await stepUp(headers, { code: 'no code' });
    expect(wrong).toMatchObject({ status: 401, body: { reason: 'wrong_code' } });
    const unknown = await stepUp(headers, { code: ada.nextCode(), action: 'identity.burn' });
    expect(unknown).toMatchObject({ status: 400, body: { errors: [{ pointer: '/action' }] } });
  });
});

describe('the audit log', () => {
  test('is read in pages, each with the head, and its hashes can be verified from the responses', async () => {
    const ada = await person();
    const headers = await as(ada, 'admin');
    await stepUp(await as(ada, 'license'), { code: ada.nextCode() });
    const names = new Set<string | null>();
    let last = GENESIS;
    let cursor: string | null = '0';
    while (cursor !== null) {
      const path = `/identity/audit?after_seq=${cursor}&limit=3`;
      const { status, body } = await app.send('GET', path, { headers });
      expect(status).toBe(200);
      const page = body as { items: AuditEntry[]; next_cursor: string | null; head: typeof last };
      expect(page.items.length).toBeLessThanOrEqual(3);
      const next = verifyAudit(last, page.items);
      for (const { actor, actor_name } of page.items) {
        if (actor === `administrator:${ada.id}`) names.add(actor_name);
      }
      expect(next).not.toHaveProperty('fault');
      last = next as typeof last;
      cursor = page.next_cursor;
      if (cursor === null) expect(page.head).toEqual(last);
    }
    expect(last.seq).toBeGreaterThan(3);
    expect([...names]).toEqual([ada.name]);
  });

  test('requires the scope admin', async () => {
    const headers = await as(await person(), 'read', 'write', 'trade', 'halt', 'license');
    expect(await app.send('GET', '/identity/audit', { headers })).toMatchObject({ status: 403 });
    expect(await app.send('GET', '/identity/audit')).toMatchObject({ status: 401 });
  });

  test.each(['after_seq=-1', 'after_seq=x', 'limit=0', 'limit=1001', 'cursor=1'])(
    'rejects the query %s',
    async (query) => {
      const headers = await as(await person(), 'admin');
      const answer = await app.send('GET', `/identity/audit?${query}`, { headers });
      expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
    },
  );
});
