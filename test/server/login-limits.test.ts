import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loginSubject } from '../../src/identity/failed-tries.ts';
import { createApp } from '../../src/server/app.ts';
import { proxiesOf } from '../../src/server/client-address.ts';
import type { Services } from '../../src/server/services.ts';
import {
  MINUTE,
  newPerson,
  newWorld,
  PASSWORD,
  wrongCodeAt,
  type Person,
} from '../identity/people.ts';
import { newTestApp, PUBLIC_URL, type TestApp } from './in-process.ts';
import { serveHere } from './running.ts';
import { isAtLength } from '../length.ts';

let app: TestApp;
beforeAll(async () => {
  app = await newTestApp();
});
afterAll(() => app.close());

const person = (): Promise<Person> => newPerson(app.services.identity, (ms) => (app.now += ms));

interface From {
  readonly address: string;
  readonly forwarded?: string;
  readonly authorization?: string;
}

/** Sends a request as if from an address. @returns status and reason of the response. */
async function post(
  { address, forwarded, authorization }: From,
  path: string,
  body: object,
  services: Services = app.services,
): Promise<{ status: number; reason?: string; token: string }> {
  const made = services === app.services ? app.app : createApp(services);
  const answer = await made.request(
    `${services.origins[0]}${path}`,
    {
      method: 'POST',
      body: JSON.stringify(body),
      headers: {
        'content-type': 'application/json',
        ...(forwarded !== undefined && { 'x-forwarded-for': forwarded }),
        ...(authorization !== undefined && { authorization }),
      },
    },
    { incoming: { socket: { remoteAddress: address } } },
  );
  const { reason, token } = (await answer.json()) as { reason?: string; token: string };
  return { status: answer.status, ...(reason !== undefined && { reason }), token };
}

const logIn = (from: From, { name, nextCode }: Person, wrong: object = {}) =>
  post(from, '/identity/tokens', {
    administrator: name,
    password: PASSWORD,
    code: 'code' in wrong ? '' : nextCode(),
    label: 'CI',
    scopes: ['license'],
    ...wrong,
  });
const WRONG = { password: 'a wrong password', code: '000000' };
const statusOf = async (from: From, who: Person, wrong?: object): Promise<number> =>
  (await logIn(from, who, wrong)).status;

const times = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

describe('a login', () => {
  test('is rejected for an address with five failures, and for no other', async () => {
    const ada = await person();
    const [attacker, desk] = [{ address: '203.0.113.1' }, { address: '198.51.100.1' }];
    for (const _ of times(5)) expect(await statusOf(attacker, ada, WRONG)).toBe(401);
    expect(await logIn(attacker, ada)).toMatchObject({ status: 429, reason: 'address' });
    expect(await statusOf(desk, ada)).toBe(201);
    // A login lifts only the limit of its own address.
    expect(await statusOf(attacker, ada)).toBe(429);
    app.now += 15 * MINUTE;
    expect(await statusOf(attacker, ada, WRONG)).toBe(401);
  });

  test.each([
    ['X-Forwarded-For', (i: number) => ({ address: '203.0.113.2', forwarded: `192.0.2.${i}` })],
    [
      'X-Forwarded-For that a proxy extends',
      (i: number) => ({ address: '127.0.0.1', forwarded: `192.0.2.${i}, 203.0.113.3` }),
    ],
    ['addresses of one IPv6 network', (i: number) => ({ address: `2001:db8:7:8::${i}:1` })],
    [
      'spellings of one IPv4 address',
      (i: number) => ({
        address: '127.0.0.1',
        forwarded: ['203.0.113.4', '::ffff:203.0.113.4', '::FFFF:cb00:7104'][i % 3]!,
      }),
    ],
  ])('cannot be tried more often with %s', async (_what, from) => {
    const ada = await person();
    for (const i of times(5)) expect(await statusOf(from(i), ada, WRONG)).toBe(401);
    expect(await logIn(from(6), ada)).toMatchObject({ status: 429, reason: 'address' });
    expect(await statusOf({ address: '198.51.100.2' }, ada)).toBe(201);
  });

  test.runIf(isAtLength)(
    'is limited to 20 attempts in 15 minutes from new addresses, while known addresses can still log in',
    async () => {
      const ada = await person();
      const desk = { address: '198.51.100.3' };
      expect(await statusOf(desk, ada)).toBe(201);
      let tried = 0;
      for (const window of times(4)) {
        for (const i of times(30)) {
          const from = { address: `10.${window}.${i}.1` };
          const { status, reason } = await logIn(from, ada, WRONG);
          if (status === 401) tried++;
          else expect({ status, reason }).toEqual({ status: 429, reason: 'all_addresses' });
        }
        expect(await statusOf({ address: '192.0.2.99' }, ada)).toBe(429);
        expect(await statusOf(desk, ada)).toBe(201);
        app.now += 15 * MINUTE;
      }
      expect(tried).toBe(4 * 20);
      // Addresses are known for 90 days.
      app.now += 90 * 24 * 60 * MINUTE;
      for (const i of times(20)) await logIn({ address: `10.9.${i}.1` }, ada, WRONG);
      expect(await statusOf(desk, ada)).toBe(429);
    },
  );
});

describe('a step-up', () => {
  const stepUp = (from: From, code: string) =>
    post(from, '/identity/step-ups', {
      action: 'identity.license.revoke',
      target: 'deployment:acme-tokyo',
      code,
    });

  test('is rejected for an address with five wrong codes, and limited to 10 attempts from new addresses', async () => {
    const ada = await person();
    const desk = { address: '198.51.100.4' };
    const { token } = await logIn(desk, ada);
    const authorization = `Bearer ${token}`;
    const at = (address: string): From => ({ address, authorization });
    const wrong = wrongCodeAt(ada.totp_secret, app.now);
    for (const _ of times(5)) expect((await stepUp(at('203.0.113.5'), wrong)).status).toBe(401);
    expect(await stepUp(at('203.0.113.5'), wrong)).toMatchObject({ status: 429 });
    expect((await stepUp(at('192.0.2.77'), ada.nextCode())).status).toBe(201);
    for (const i of times(5)) {
      const next = wrongCodeAt(ada.totp_secret, app.now);
      expect((await stepUp(at(`10.0.${i}.1`), next)).status).toBe(401);
    }
    const refused = { status: 429, reason: 'all_addresses' };
    expect(await stepUp(at('10.0.8.1'), ada.nextCode())).toMatchObject(refused);
    expect((await stepUp(at(desk.address), ada.nextCode())).status).toBe(201);
    // A login counts wrong codes there too, without saying so.
    expect((await logIn({ address: '10.0.9.1' }, ada)).status).toBe(401);
    expect((await logIn(desk, ada)).status).toBe(201);
  });
});

let sent = 0;
/** Sends a login over a socket bound to an address of this machine. */
async function logInOver(url: string, localAddress: string, body: object): Promise<Answer> {
  const asked = request(`${url}/identity/tokens`, {
    method: 'POST',
    localAddress,
    headers: {
      'content-type': 'application/json',
      'x-forwarded-for': `203.0.113.${++sent}`,
    },
  });
  asked.end(JSON.stringify(body));
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  answer.resume();
  return { status: answer.statusCode!, hsts: answer.headers['strict-transport-security'] };
}

interface Answer {
  readonly status: number;
  readonly hsts: string | undefined;
}

// Only Linux accepts all addresses of 127.0.0.0/8.
test.runIf(process.platform === 'linux')(
  'a server without a public URL counts by the addresses of sockets and ignores X-Forwarded-For',
  async () => {
    const world = await newWorld('sqlite');
    world.now = Date.now();
    const ada = await world.newPerson();
    const server = await serveHere(world.database);
    try {
      const terms = { administrator: ada.name, label: 'CI', scopes: ['license'] };
      const wrong = { ...terms, ...WRONG };
      const right = { ...terms, password: PASSWORD, code: ada.recovery_codes[0] };
      for (const _ of times(5)) {
        expect((await logInOver(server.url, '127.0.0.2', wrong)).status).toBe(401);
      }
      expect((await logInOver(server.url, '127.0.0.2', right)).status).toBe(429);
      expect(await logInOver(server.url, '127.0.0.1', right)).toEqual({ status: 201 });
      expect(server.log()).toContain('X-Forwarded-For from 127.0.0.2 is ignored');
    } finally {
      await server.stop();
      await world.close();
    }
  },
);

describe('the address of a client', () => {
  const PROXIES = '10.1.0.0/16,fd00::/8,192.0.2.1';

  test.each([
    ['auto', 'auto', '127.0.0.1', '203.0.113.9', '127.0.0.1'],
    ['auto', PUBLIC_URL, '127.0.0.1', '203.0.113.9', '203.0.113.9'],
    ['auto', PUBLIC_URL, '10.1.2.3', '203.0.113.9', '10.1.2.3'],
    ['none', PUBLIC_URL, '127.0.0.1', '203.0.113.9', '127.0.0.1'],
    [PROXIES, PUBLIC_URL, '127.0.0.1', '203.0.113.9', '127.0.0.1'],
    [PROXIES, 'auto', '10.1.2.3', '203.0.113.9', '203.0.113.9'],
    [PROXIES, 'auto', '::ffff:10.1.2.3', '203.0.113.9, fd00::7, 192.0.2.1', '203.0.113.9'],
    [PROXIES, 'auto', 'fd00::1', '198.51.100.1, 203.0.113.9,10.1.9.9', '203.0.113.9'],
    [PROXIES, 'auto', '10.1.2.3', 'unknown, 10.1.4.4', '10.1.4.4'],
    [PROXIES, 'auto', '10.1.2.3', '203.0.113.9:4711', '203.0.113.9'],
    [PROXIES, 'auto', '10.1.2.3', '198.51.100.1, [2001:db8::1]:4711', '2001:db8:0:0::/64'],
    [PROXIES, 'auto', '10.1.2.3', '[2001:db8::1]', '2001:db8:0:0::/64'],
    [PROXIES, 'auto', '10.1.2.3', '203.0.113.9:port', '10.1.2.3'],
    [PROXIES, 'auto', '10.2.0.1', '203.0.113.9', '10.2.0.1'],
  ])('with proxies %s at %s: %s and %s are %s', async (trusted, publicUrl, peer, header, own) => {
    const services = { ...app.services, isProxy: proxiesOf(trusted, publicUrl) };
    const ada = await person();
    const body = { administrator: ada.name, password: WRONG.password, code: '000000' };
    const terms = { label: 'CI', scopes: ['license'] };
    const from = { address: peer, forwarded: header };
    expect(await post(from, '/identity/tokens', { ...body, ...terms }, services)).toMatchObject({
      status: 401,
    });
    const { read } = app.services.identity.storage;
    const rows = await read
      .selectFrom('failed_tries')
      .select('network')
      .where('subject', '=', loginSubject(ada.name))
      .execute();
    expect(rows).toEqual([{ network: own }]);
  });

  test('is logged once if it may be an undeclared proxy', async () => {
    const before = app.log.length;
    const services = { ...app.services, isProxy: proxiesOf('auto', 'auto') };
    const made = createApp(services);
    for (const _ of times(3)) {
      await made.request(
        '/healthz',
        { headers: { 'x-forwarded-for': '203.0.113.9' } },
        { incoming: { socket: { remoteAddress: '10.1.2.3' } } },
      );
    }
    const lines = app.log.slice(before).filter((line) => line.includes('X-Forwarded-For'));
    expect(lines).toEqual([expect.stringContaining('--trusted-proxies')]);
  });
});
