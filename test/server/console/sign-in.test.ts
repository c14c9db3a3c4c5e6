import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newPerson, type Person } from '../../identity/people.ts';
import { newTestApp, PUBLIC_URL, type TestApp } from '../in-process.ts';
import { COOKIE, newSignedIn, newVisitor } from './visitor.ts';

let server: TestApp;
beforeAll(async () => {
  server = await newTestApp();
});
afterAll(() => server.close());

const person = (): Promise<Person> =>
  newPerson(server.services.identity, (ms) => (server.now += ms));

describe('signing in', () => {
  test('returns to the page that was requested', async () => {
    const ada = await person();
    const visitor = newVisitor(server);
    const { status, location } = await visitor.open('/console/account?a=1');
    expect({ status, location }).toEqual({
      status: 303,
      location: '/console/sign-in?next=%2Fconsole%2Faccount%3Fa%3D1',
    });
    const form = await visitor.open(location!);
    expect(form.text).toContain('name="next" value="/console/account?a=1"');
    expect(await visitor.signIn(ada, '/console/account?a=1')).toMatchObject({
      status: 303,
      location: '/console/account?a=1',
    });
    expect((await visitor.open('/console/account')).text).toContain(ada.name);
    expect((await visitor.open('/console/sign-in')).location).toBe('/console');
    expect((await visitor.open('/console')).status).toBe(200);
  });

  test('sets a cookie that is HttpOnly, Secure and SameSite=Strict', async () => {
    const visitor = newVisitor(server);
    const { headers } = await visitor.signIn(await person());
    expect(headers.getSetCookie()).toEqual([
      expect.stringMatching(
        /^__Host-service-local=[\w-]{43}; Max-Age=43200; Path=\/; HttpOnly; Secure; SameSite=Strict$/,
      ),
    ]);
  });

  test('rejects a planted session cookie and ends the previous session', async () => {
    const { person: ada, visitor } = await newSignedIn(server);
    const before = visitor.cookies.get(COOKIE)!;
    await visitor.signIn(ada);
    const after = visitor.cookies.get(COOKIE)!;
    expect(after).not.toBe(before);
    visitor.cookies.set(COOKIE, before);
    expect((await visitor.open('/console/account')).location).toContain('/console/sign-in');

    const planted = newVisitor(server);
    planted.cookies.set(COOKIE, 'A'.repeat(43));
    await planted.signIn(ada);
    expect(planted.cookies.get(COOKIE)).toMatch(/^(?!A{43})[\w-]{43}$/);
  });
});

test.each([
  ['https://evil.example/', '/console'],
  ['//evil.example/console', '/console'],
  ['/\\evil.example/console', '/console'],
  ['\\\\evil.example', '/console'],
  ['/console/../../evil', '/console'],
  ['/console/\t/evil.example', '/console//evil.example'],
  ['javascript:alert(1)', '/console'],
  ['console/bots', '/console'],
  ['/tasks', '/console'],
  ['/console/sign-in?next=/console/sign-in', '/console'],
  [
    '/console/bots/a%2f..%2fb?x=%0d%0aSet-Cookie:a',
    '/console/bots/a%2f..%2fb?x=%0d%0aSet-Cookie:a',
  ],
  ['/identity/license/leases?q=1', '/identity/license/leases?q=1'],
])('signing in with next=%s stays on this server', async (next, location) => {
  const { visitor } = await newSignedIn(server);
  const answer = await visitor.open(`/console/sign-in?${new URLSearchParams({ next })}`);
  expect(answer).toMatchObject({ status: 303, location });
});

test('requests from foreign origins do not count as failed tries', async () => {
  const other = await newTestApp();
  try {
    const tryFrom = async (path: string, origin: string): Promise<number> => {
      const headers = { 'content-type': 'application/json', origin };
      const init = { method: 'POST', body: '{}', headers };
      const env = { incoming: { socket: { remoteAddress: '192.0.2.8' } } };
      return (await other.app.request(PUBLIC_URL + path, init, env)).status;
    };
    for (let i = 0; i < 20; i++) {
      for (const path of ['/identity/tokens', '/console/sign-in']) {
        expect(await tryFrom(path, 'https://evil.example')).toBe(403);
      }
    }
    expect(await tryFrom('/identity/tokens', PUBLIC_URL)).toBe(400);
  } finally {
    await other.close();
  }
});

describe('a wrong name, password or code', () => {
  const credentials = { name: 'nobody', password: 'this is not it', code: '123456' };

  test('is reported on the page, which keeps only the typed name', async () => {
    const visitor = newVisitor(server);
    const name = '"><script>alert(1)</script>';
    const answer = await visitor.submit('/console/sign-in', { ...credentials, name });
    expect(answer.status).toBe(401);
    expect(answer.text).toContain('Name, password or code is wrong.');
    expect(answer.text).toContain('value="&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"');
    expect(answer.text).not.toContain(credentials.password);
    expect(visitor.cookies.size).toBe(0);
    expect(server.log.join('\n')).not.toContain(credentials.password);
  });

  test('is limited per network of the client and not per name', async () => {
    const other = await newTestApp();
    try {
      const tryFrom = (address: string, forwarded?: string): Promise<Response> | Response =>
        other.app.request(
          `${PUBLIC_URL}/identity/tokens`,
          {
            method: 'POST',
            body: '{}',
            headers: {
              'content-type': 'application/json',
              ...(forwarded !== undefined && { 'x-forwarded-for': forwarded }),
            },
          },
          { incoming: { socket: { remoteAddress: address } } },
        );
      const statusOf = async (address: string, forwarded?: string): Promise<number> =>
        (await tryFrom(address, forwarded)).status;
      for (let i = 0; i < 15; i++) expect(await statusOf(`2001:db8:1:2::${i + 1}`)).toBe(400);
      expect(await statusOf('2001:db8:1:2::ff')).toBe(429);
      expect((await tryFrom('2001:db8:1:2::ff')).headers.get('retry-after')).toBe('4');
      expect(await statusOf('2001:db8:1:3::1')).toBe(400);
      other.now += 4000;
      expect(await statusOf('2001:db8:1:2::ff')).toBe(400);
      expect(await statusOf('2001:db8:1:2::ff')).toBe(429);

      // X-Forwarded-For counts only from a proxy on this machine.
      for (let i = 0; i < 15; i++) expect(await statusOf('192.0.2.7', `192.0.2.${i}`)).toBe(400);
      expect(await statusOf('192.0.2.7', '203.0.113.5')).toBe(429);
      for (let i = 0; i < 15; i++) {
        expect(await statusOf('127.0.0.1', `203.0.113.${i}, 198.51.100.1`)).toBe(400);
      }
      expect(await statusOf('::ffff:127.0.0.1', '198.51.100.1')).toBe(429);
      expect(await statusOf('127.0.0.1', '198.51.100.2')).toBe(400);

      // Other spellings of the same network, and link-local addresses with an interface.
      for (let i = 1; i <= 15; i++) expect(await statusOf(`2001:db8::${i}:0:0:1`)).toBe(400);
      expect(await statusOf('2001:db8::ff:1:2:3')).toBe(429);
      for (let i = 1; i <= 15; i++) expect(await statusOf(`fe80::${i}%eth0`)).toBe(400);
      expect(await statusOf('fe80::ff%eth0')).toBe(429);
      // A value that is not an address does not count as one.
      for (let i = 0; i < 15; i++) {
        expect(await statusOf('127.0.0.1', `198.51.100.3:${1000 + i}`)).toBe(400);
      }
      expect(await statusOf('127.0.0.1', '198.51.100.3:2000')).toBe(429);
    } finally {
      await other.close();
    }
  });
});
