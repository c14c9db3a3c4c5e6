import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newPerson, type Person } from '../identity/people.ts';
import { newTestApp, type TestApp } from '../server/in-process.ts';
import { COOKIE, newSignedIn, newVisitor } from './visitor.ts';

let server: TestApp;
beforeAll(async () => {
  server = await newTestApp();
});
afterAll(() => server.close());

const person = (): Promise<Person> =>
  newPerson(server.services.identity, (ms) => (server.now += ms));

describe('signing in', () => {
  test('leads from the page that was asked for, and back to it', async () => {
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
    expect((await visitor.open('/console/sign-in')).location).toBe('/identity/license');
    expect((await visitor.open('/console')).location).toBe('/identity/license');
  });

  test('gives a cookie that scripts, other sites and plain http do not get', async () => {
    const visitor = newVisitor(server);
    const { headers } = await visitor.signIn(await person());
    expect(headers.getSetCookie()).toEqual([
      expect.stringMatching(
        /^__Host-service-local=[\w-]{43}; Max-Age=43200; Path=\/; HttpOnly; Secure; SameSite=Strict$/,
      ),
    ]);
  });

  test('takes no session from outside, and ends the one that was there', async () => {
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
