import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createApp } from '../../../src/server/app.ts';
import { newTestApp, type TestApp } from '../in-process.ts';
import { COOKIE, newSignedIn, newVisitor, type Visitor } from './visitor.ts';

let server: TestApp;
let visitor: Visitor;
let name: string;
beforeAll(async () => {
  server = await newTestApp();
  const signedIn = await newSignedIn(server);
  ({ visitor } = signedIn);
  ({ name } = signedIn.person);
});
afterAll(() => server.close());

test('pages may not load foreign content, be cached, or be framed', async () => {
  const { headers, text } = await visitor.open('/console/account');
  expect(Object.fromEntries(headers)).toMatchObject({
    'cache-control': 'no-store',
    'content-security-policy':
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'referrer-policy': 'same-origin',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
  });
  expect(text).not.toMatch(/<style|\sstyle=|\son\w+=|<script(?! src="\/console\/assets\/)/i);
  expect(text).not.toMatch(/\s(src|href|action)="(?!\/|#)/);
  expect(text).not.toContain(visitor.cookies.get(COOKIE));
});

test('assets are cached forever under URLs that contain their hash', async () => {
  const { text } = await visitor.open('/console/account');
  const urls = [...text.matchAll(/(?:src|href)="(\/console\/assets\/[^"]+)"/g)].map(
    ([, url]) => url!,
  );
  expect(urls).toHaveLength(10);
  let bytes = text.length;
  for (const url of urls) {
    const { status, headers, text: asset } = await newVisitor(server).open(url);
    bytes += asset.length;
    expect({ status, cache: headers.get('cache-control') }).toEqual({
      status: 200,
      cache: 'public, max-age=31536000, immutable',
    });
  }
  expect(bytes).toBeLessThan(150 * 1024);
  expect((await visitor.open('/console/assets/0/style.css')).status).toBe(404);
});

describe('a state-changing request', () => {
  const PATH = '/console/account/sessions/end-all';

  test.each([
    ['no CSRF token', { csrf: '' }, {}, 403],
    ['a wrong CSRF token', { csrf: 'A'.repeat(43) }, {}, 403],
    ['a foreign origin', {}, { origin: 'https://evil.example' }, 403],
    ['a hidden origin', {}, { origin: 'null' }, 403],
    ['a foreign site', {}, { 'sec-fetch-site': 'cross-site' }, 403],
    ['another host of the same site', {}, { 'sec-fetch-site': 'same-site' }, 403],
    ['a multipart form', {}, { 'content-type': 'multipart/form-data; boundary=a' }, 415],
    ['a text body', {}, { 'content-type': 'text/plain' }, 415],
  ])('with %s is rejected', async (_, fields, headers, status) => {
    expect(await visitor.submit(PATH, fields, headers)).toMatchObject({ status });
    expect((await visitor.open('/console/account')).status).toBe(200);
  });

  test('from a script must pass the same checks', async () => {
    const end = (headers: Record<string, string>): ReturnType<Visitor['fetch']> =>
      visitor.fetch('DELETE', '/identity/sessions', undefined, headers);
    expect(await end({ 'service-csrf': '' })).toMatchObject({ status: 403 });
    expect(await end({ origin: 'https://evil.example' })).toMatchObject({ status: 403 });
    const read = await visitor.fetch('GET', '/identity/account', undefined, {
      'sec-fetch-site': 'cross-site',
    });
    expect(read.status).toBe(403);
    expect((await visitor.fetch('GET', '/identity/account')).text).toContain(name);
  });

  test('to sign in is rejected from a foreign origin', async () => {
    const stranger = newVisitor(server);
    const origin = 'https://evil.example';
    expect(await stranger.submit('/console/sign-in', {}, { origin })).toMatchObject({
      status: 403,
    });
    const options = stranger.fetch('POST', '/console/sign-in/options', {}, { origin });
    expect(await options).toMatchObject({ status: 403 });
  });
});

test('stored markup is displayed as text', async () => {
  const hostile = `<img src=x onerror=alert(1)>"'&</title><script>`;
  const { visitor: other } = await newSignedIn(server);
  await server.execute(
    `update sessions set user_agent = '${hostile.replaceAll("'", "''")}', address = '<b>'`,
  );
  const { text } = await other.open('/console/account');
  expect(text).not.toMatch(/<img|<b>|<script>/);
  expect(text).toContain('&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;&lt;/title&gt;');
  const missing = await other.open('/console/account/passkeys/%3Cscript%3E');
  expect(missing.status).toBe(404);
  expect(missing.text).not.toContain('<script>');
});

test('stored hidden characters are displayed as their codes', async () => {
  const { visitor: other } = await newSignedIn(server);
  await server.execute(`update sessions set user_agent = 'Fire\u202Exof\u202C\u200B'`);
  const { text } = await other.open('/console/account');
  expect(text).toContain('Fire[U+202E]xof');
  expect(text).not.toMatch(/[\u202E\u202C\u200B]/);
});

test('bodies that no page sends are rejected with status 400', async () => {
  for (const body of [null, 'a', {}, { action: 'constructor', target: 'a' }]) {
    const options = await visitor.fetch('POST', '/console/step-up/options', body);
    expect(options.status).toBe(400);
  }
  const target = ['administrator:a'];
  const action = 'identity.passkey.add';
  const options = visitor.fetch('POST', '/console/step-up/options', { action, target });
  expect(await options).toMatchObject({ status: 400 });
  for (const key of ['a\r\nService-Step-Up: b', '€', '\u0000']) {
    const fields = { key, customer_id: 'a', customer_name: 'A' };
    const sent = await visitor.submit('/identity/license/customers', fields);
    expect(sent.status).toBe(400);
  }
});

test('a page shows no message that another host has set', async () => {
  visitor.cookies.set('service-local-message', 'Call%20evil');
  const { text } = await visitor.open('/console/account');
  expect(text).not.toContain('Call evil');
  visitor.cookies.delete('service-local-message');
  const fields = { key: 'b', customer_id: 'b', customer_name: 'B' };
  expect((await visitor.submit('/identity/license/customers', fields)).status).toBe(303);
  expect([...visitor.cookies.keys()]).toEqual([COOKIE, '__Host-service-local-message']);
  expect((await visitor.open('/identity/license/customers')).text).toContain('is registered.');
  expect([...visitor.cookies.keys()]).toEqual([COOKIE]);
});

test('a failure is a page for a browser and a problem document for a program', async () => {
  const page = await visitor.open('/console/nothing');
  expect(page).toMatchObject({ status: 404 });
  expect(page.text).toMatch(/<h1>Not found<\/h1>/);
  expect(page.text).toContain('aria-label="Main"');
  const problem = await visitor.fetch('GET', '/console/nothing');
  expect(problem.headers.get('content-type')).toBe('application/problem+json');
  const stranger = await newVisitor(server).open('/console/nothing');
  expect(stranger).toMatchObject({ status: 404 });
  expect(stranger.text).not.toContain('aria-label="Main"');
});

describe('a login session', () => {
  test('can use the kill switch while the queue of writes is full', async () => {
    const { visitor: other } = await newSignedIn(server);
    const csrf = await other.csrf();
    const { storage } = server.services.identity;
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const first = storage.write(async () => {
      begin();
      await released;
    });
    await begun;
    const rest = Array.from({ length: 6000 }, () => storage.write(async () => {}));
    const settled = Promise.allSettled(rest);
    server.now += 120_000;
    const halted = other.submit('/console/halt-all', { csrf, reason: 'a', confirm: 'HALT' });
    // Give the queue time to reject the writes that exceed its capacity.
    for (let i = 0; i < 3; i++) await newVisitor(server).open('/console/sign-in');
    release();
    expect((await settled).some(({ status }) => status === 'rejected')).toBe(true);
    expect((await halted).status).toBe(200);
    await first;
    await other.submit('/console/resume-all', { reason: 'b' });
  });

  test('ends after two hours without use', async () => {
    const { visitor: other } = await newSignedIn(server);
    server.now += 7_199_000;
    expect((await other.open('/console/account')).status).toBe(200);
    server.now += 7_199_000;
    expect((await other.open('/console/account')).status).toBe(200);
    server.now += 7_200_000;
    expect((await other.open('/console/account')).status).toBe(303);
  });

  test('ends after twelve hours in spite of use', async () => {
    const { visitor: other } = await newSignedIn(server);
    for (let hour = 1; hour < 12; hour++) {
      server.now += 3_600_000;
      expect((await other.open('/console/account')).status).toBe(200);
    }
    server.now += 3_600_000;
    expect((await other.open('/console/account')).status).toBe(303);
  });

  test('is listed and ended by its owner and by administrators who may see all sessions', async () => {
    const [one, two] = [await newSignedIn(server), await newSignedIn(server)];
    const list = async (
      who: Visitor,
      query = '',
    ): Promise<{ session_id: string; current: boolean }[]> => {
      const { text } = await who.fetch('GET', `/identity/sessions${query}`);
      return (JSON.parse(text) as { items: { session_id: string; current: boolean }[] }).items;
    };
    const own = `?administrator_id=${one.person.id}`;
    const [session] = await list(one.visitor, own);
    expect(session).toMatchObject({ administrator: one.person.name, current: true });
    expect(await list(two.visitor, own)).toMatchObject([{ current: false }]);

    const authorization = await server.bearer('license');
    const path = `/identity/sessions/${session!.session_id}`;
    const answer = await server.send('DELETE', path, { headers: { authorization } });
    expect(answer.status).toBe(404);
    const unseen = await server.send('GET', '/identity/sessions', { headers: { authorization } });
    expect(unseen.body).toMatchObject({ items: [] });

    expect((await two.visitor.fetch('DELETE', path)).status).toBe(200);
    expect((await one.visitor.open('/console/account')).status).toBe(303);
    const out = await two.visitor.submit('/console/sign-out');
    expect(out).toMatchObject({ status: 303, location: '/console/sign-in' });
    expect(two.visitor.cookies.size).toBe(0);
  });
});

test('over plain HTTP the cookie has no __Host- prefix', async () => {
  const app = createApp({ ...server.services, origins: ['http://127.0.0.1:8787'] });
  const { visitor: other } = await newSignedIn(server);
  const secret = other.cookies.get(COOKIE);
  const open = async (cookie: string): Promise<number> => {
    const headers = { accept: 'text/html', cookie: `${cookie}=${secret}` };
    return (await app.request('http://127.0.0.1:8787/console/account', { headers })).status;
  };
  expect(await open('service-local')).toBe(200);
  expect(await open(COOKIE)).toBe(303);
});
