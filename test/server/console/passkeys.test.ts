import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { codeSubject, countFailures, loginSubject } from '../../../src/identity/failed-tries.ts';
import { newAuthenticator, type Authenticator } from '../../identity/authenticator.ts';
import type { Person } from '../../identity/people.ts';
import { newTestApp, PUBLIC_URL, type TestApp } from '../in-process.ts';
import { COOKIE, newSignedIn, newVisitor, type Answer, type Visitor } from './visitor.ts';

let server: TestApp;
beforeAll(async () => {
  server = await newTestApp();
});
afterAll(() => server.close());

const parsed = ({ text }: Answer): Record<string, string> =>
  JSON.parse(text) as Record<string, string>;

interface Owner {
  readonly person: Person;
  readonly visitor: Visitor;
  readonly device: Authenticator;
  readonly passkey_id: string;
}

/** Creates an administrator with a passkey, added as the account page adds it. */
async function newOwner(): Promise<Owner> {
  const { person, visitor } = await newSignedIn(server);
  const device = newAuthenticator(PUBLIC_URL);
  const before = visitor.cookies.get(COOKIE);
  const options = await visitor.fetch('POST', '/console/account/passkeys/options', {
    code: person.nextCode(),
  });
  expect(options.status).toBe(200);
  expect(visitor.cookies.get(COOKIE)).not.toBe(before);
  const response = JSON.stringify(device.register(parsed(options)['challenge']!));
  const added = await visitor.submit('/console/account/passkeys', { name: 'Phone', response });
  expect(added).toMatchObject({ status: 303, location: '/console/account' });
  const again = await visitor.submit('/console/account/passkeys', { name: 'Again', response });
  expect(again.status).toBe(401);
  const list = await visitor.fetch('GET', '/identity/passkeys');
  const { items } = JSON.parse(list.text) as { items: { passkey_id: string }[] };
  return { person, visitor, device, passkey_id: items[0]!.passkey_id };
}

test.each([
  // {}, {"x5c": [h'']}
  ['android-key', 'a0'],
  ['tpm', 'a0'],
  ['packed', 'a1637835638140'],
])('rejects an unrequested attestation of the format %s', async (format, statement) => {
  const { person, visitor } = await newSignedIn(server);
  const options = await visitor.fetch('POST', '/console/account/passkeys/options', {
    code: person.nextCode(),
  });
  const attestation = { format, statement: Buffer.from(statement, 'hex') };
  const made = newAuthenticator(PUBLIC_URL).register(parsed(options)['challenge']!, {
    attestation,
  });
  const response = JSON.stringify(made);
  const added = await visitor.submit('/console/account/passkeys', { name: 'Phone', response });
  expect(added.status).toBe(400);
  expect(added.text).toContain('is not a valid passkey for this site');
});

const signInChallenge = async (visitor: Visitor): Promise<string> =>
  parsed(await visitor.fetch('POST', '/console/sign-in/options', {}))['challenge']!;

describe('signing in with a passkey', () => {
  let owner: Owner;
  beforeAll(async () => {
    owner = await newOwner();
  });
  const signIn = (visitor: Visitor, response: unknown, next?: string): Promise<Answer> =>
    visitor.fetch('POST', '/console/sign-in/passkey', { response, next });

  test('works once per challenge and redirects only to pages of this server', async () => {
    const visitor = newVisitor(server);
    const response = owner.device.sign(await signInChallenge(visitor));
    const answer = await signIn(visitor, response, '//evil.example/console');
    expect(parsed(answer)).toEqual({ location: '/console' });
    expect((await visitor.open('/console/account')).text).toContain(owner.person.name);
    expect(parsed(await signIn(newVisitor(server), response))).toMatchObject({
      code: 'not_authenticated',
      reason: 'challenge_expired',
    });
  });

  test.each([
    ['made at another site', { origin: 'https://evil.example' }],
    ['made for another site', { site: 'evil.example' }],
    ['made without verifying its owner', { isUserVerified: false }],
    ['made by a copy of the passkey', { counter: 1 }],
    ['of a registration', { type: 'webauthn.create' }],
  ])('rejects a response %s', async (_, wrong) => {
    const visitor = newVisitor(server);
    const response = owner.device.sign(await signInChallenge(visitor), wrong);
    const { status, text } = await signIn(visitor, response);
    expect({ status, text }).toEqual({
      status: 401,
      text: expect.stringContaining('wrong_passkey') as string,
    });
    expect(visitor.cookies.size).toBe(0);
  });

  test('rejects unknown passkeys, expired challenges, and challenges for another purpose', async () => {
    const visitor = newVisitor(server);
    const stranger = newAuthenticator(PUBLIC_URL).sign(await signInChallenge(visitor));
    expect(parsed(await signIn(visitor, stranger))['reason']).toBe('wrong_passkey');
    const subject = { action: 'identity.passkey.delete', target: 'passkey:1' };
    const other = await owner.visitor.fetch('POST', '/console/step-up/options', subject);
    const misused = owner.device.sign(parsed(other)['challenge']!);
    expect(parsed(await signIn(visitor, misused))['reason']).toBe('challenge_expired');
    const late = owner.device.sign(await signInChallenge(visitor));
    server.now += 5 * 60_000;
    expect(parsed(await signIn(visitor, late))['reason']).toBe('challenge_expired');
  });

  test('works after too many failed tries with the name and codes of the administrator', async () => {
    const { identity } = server.services;
    const subjects = [loginSubject(owner.person.name), codeSubject(owner.person.id)];
    await identity.storage.write(async (tx) => {
      for (let i = 0; i < 5; i++) await countFailures(tx, server.now, subjects, '');
    });
    const visitor = newVisitor(server);
    expect((await visitor.signIn(owner.person)).status).toBe(429);
    const response = owner.device.sign(await signInChallenge(visitor));
    expect((await signIn(visitor, response)).status).toBe(200);
  });

  test('fails for a disabled administrator, whose login sessions have ended', async () => {
    const { person, visitor, device } = await newOwner();
    await server.execute(`update administrators set disabled_at = 1 where name = '${person.name}'`);
    expect((await visitor.open('/console/account')).location).toContain('/console/sign-in');
    expect((await visitor.fetch('GET', '/identity/sessions')).status).toBe(401);
    const response = device.sign(await signInChallenge(visitor));
    expect(parsed(await signIn(newVisitor(server), response))['reason']).toBe(
      'administrator_disabled',
    );
  });
});

describe('a step-up with a passkey', () => {
  const ask = (visitor: Visitor, target: string): Promise<Answer> =>
    visitor.fetch('POST', '/console/step-up/options', {
      action: 'identity.passkey.delete',
      target,
    });
  const grant = (visitor: Visitor, target: string, passkey: unknown): Promise<Answer> =>
    visitor.fetch('POST', '/identity/step-ups', {
      action: 'identity.passkey.delete',
      target,
      passkey,
    });
  const end = (visitor: Visitor, passkey_id: string, token: string): Promise<Answer> =>
    visitor.fetch('DELETE', `/identity/passkeys/${passkey_id}`, undefined, {
      'service-step-up': token,
    });

  test('authorizes its own action and target, once, within five minutes', async () => {
    const { visitor, device, passkey_id } = await newOwner();
    const target = `passkey:${passkey_id}`;
    const signed = device.sign(parsed(await ask(visitor, target))['challenge']!);
    expect(parsed(await grant(visitor, 'passkey:other', signed))['reason']).toBe(
      'challenge_expired',
    );
    // The failed try for another target has used up the challenge.
    expect(parsed(await grant(visitor, target, signed))['reason']).toBe('challenge_expired');

    const other = device.sign(parsed(await ask(visitor, 'passkey:other'))['challenge']!);
    const elsewhere = parsed(await grant(visitor, 'passkey:other', other))['step_up_token']!;
    expect(parsed(await end(visitor, passkey_id, elsewhere))['reason']).toBe('other_target');

    const late = device.sign(parsed(await ask(visitor, target))['challenge']!);
    const { step_up_token: expired } = parsed(await grant(visitor, target, late));
    server.now += 5 * 60_000;
    expect(parsed(await end(visitor, passkey_id, expired!))['reason']).toBe('expired');
    expect(parsed(await end(visitor, passkey_id, ''))['reason']).toBe('unknown');

    const own = device.sign(parsed(await ask(visitor, target))['challenge']!);
    const { step_up_token: token } = parsed(await grant(visitor, target, own));
    const thief = await newOwner();
    expect((await end(thief.visitor, passkey_id, token!)).status).toBe(404);
    expect((await end(visitor, passkey_id, token!)).status).toBe(200);
    expect((await end(visitor, passkey_id, token!)).status).toBe(404);
  });

  test('rejects the passkey of another administrator', async () => {
    const [one, other] = [await newOwner(), await newOwner()];
    const target = `passkey:${one.passkey_id}`;
    const signed = other.device.sign(parsed(await ask(one.visitor, target))['challenge']!);
    expect(parsed(await grant(one.visitor, target, signed))['reason']).toBe('wrong_passkey');
  });

  test('replaces the secret of the login session and invalidates the old one', async () => {
    const { person, visitor, passkey_id } = await newOwner();
    const before = visitor.cookies.get(COOKIE)!;
    const path = `/console/account/passkeys/${passkey_id}`;
    const wrong = await visitor.submit(`${path}/delete`, { code: 'nothing' });
    expect({ status: wrong.status, text: wrong.text }).toEqual({
      status: 401,
      text: expect.stringContaining('The code is wrong') as string,
    });
    const code = person.recovery_codes[0]!;
    expect(await visitor.submit(`${path}/delete`, { code })).toMatchObject({ status: 303 });
    expect((await visitor.open('/console/account')).text).toContain(
      'The passkey Phone is deleted.',
    );
    const thief = newVisitor(server);
    thief.cookies.set(COOKIE, before);
    expect((await thief.open('/console/account')).status).toBe(303);
  });
});
