import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { createToken } from '../../src/api/administrators.ts';
import type { RequestOf } from '../../src/client/route.ts';
import { newDeviceKey } from '../../src/client/device-key.ts';
import { makeDeviceProof } from '../../src/client/device-proof.ts';
import type { ServiceError } from '../../src/base/errors.ts';
import { exampleDocument } from '../../src/api/bots.ts';
import { createBot } from '../../src/fleet/registry/bots.ts';
import { addToken } from '../../src/identity/tokens.ts';
import { createLog } from '../../src/base/log.ts';
import { startServer as startInProcess } from '../../src/server/server.ts';
import { resolveSettings } from '../../src/base/resolve-settings.ts';
import { openStorage } from '../../src/storage/storage.ts';
import { serviceLocal } from '../cli/service-local.ts';
import { ed25519Key } from '../identity/lease-world.ts';
import { mainlyOn, newDatabase, type TestDatabase } from '../storage/databases.ts';
import { SIGNING_KEY_PEM, startServer, type RunningServer } from './running.ts';
import { isAtLength } from '../length.ts';

let database: TestDatabase;
/** Stops the servers that a test leaves running. */
let ends: (() => Promise<unknown>)[];

beforeEach(async () => {
  database = await newDatabase('sqlite');
  ends = [];
});

afterEach(async () => {
  for (const end of ends) await end();
  await database.remove();
});

async function start(
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<RunningServer> {
  const server = await startServer(database, args, env);
  ends.push(server.kill);
  return server;
}

async function connectTo(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  return socket;
}

describe.each(mainlyOn('sqlite'))('the server on %s', (kind) => {
  it('logs where it keeps data and listens, responds there, and exits with 0', async () => {
    const own = await newDatabase(kind);
    const server = await startServer(own);
    const ready = await fetch(`${server.url}/readyz`);
    expect(await ready.json()).toEqual({ status: 'ready', missing: [] });
    expect(await server.stop()).toBe(0);
    expect(server.log().split('\n')).toEqual([
      expect.stringMatching(
        /^home \S+, database (\S+server\.sqlite|PostgreSQL [^\s@]+), catalogue \S+, custom code off, console http:\/\/localhost:\d+\/console$/,
      ),
      expect.stringMatching(/^there is no administrator yet: .*identity administrators add NAME`$/),
      `listening on ${server.url}`,
      'stopping; press Ctrl-C again to stop immediately',
      'stopped',
    ]);
    await own.remove();
  });
});

describe('stopping a server', () => {
  it('completes accepted requests and accepts no new ones', async () => {
    const server = isAtLength ? await start() : await startOwn();
    const socket = await connectTo(server.url);
    const body = '{"customer_id":"acme"}';
    socket.write(
      `POST /identity/customers HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n` +
        `content-length: ${body.length}\r\n\r\n{`,
    );
    const answered = text(socket);
    // This response shows that the previous request has been read.
    await fetch(`${server.url}/healthz`);
    const stopped: Promise<unknown> = server.stop();
    await vi.waitFor(() => expect(connectTo(server.url)).rejects.toThrow('ECONNREFUSED'));
    socket.write(body.slice(1));
    const answer = await answered;
    expect(answer).toContain('"code":"not_authenticated"');
    expect(answer).toMatch(/^connection: close\r$/im);
    expect(await stopped).toBe(isAtLength ? 0 : undefined);
  });

  it('does not wait for idle connections', async () => {
    const server = await startOwn();
    const socket = await connectTo(server.url);
    socket.write('GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n');
    await once(socket, 'data');
    const ended = once(socket, 'close');
    await server.stop();
    expect(await ended).toBeDefined();
  });

  it('ends event streams', async () => {
    const server = await startOwn();
    const storage = await openStorage(database.location);
    const registry = { storage, clock: Date.now };
    await createBot(registry, 'operator', { document: exampleDocument('sma', 10) });
    const { token } = await storage.write(async (tx) => {
      await tx
        .insertInto('administrators')
        .values({
          administrator_id: 'ada',
          name: 'ada',
          password_hash: 'none',
          totp_secret: 'none',
          totp_last_step: 0,
          created_at: 0,
          disabled_at: null,
        })
        .execute();
      const terms = { label: 'test', scopes: ['read'], expires_in_seconds: 3600 } as const;
      return addToken(tx, Date.now(), 'operator', 'ada', terms);
    });
    await storage.close();
    const headers = { authorization: `Bearer ${token}` };
    const follow = (): Promise<Response> =>
      fetch(`${server.url}/bots/sma/state/events/stream`, { headers });
    const gone = await follow();
    await gone.body!.cancel();
    const answer = await follow();
    // No stream was cut off.
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    const stopped = server.stop();
    expect(await answer.text()).toContain('"kind":"version.created"');
    await stopped;
    vi.useRealTimers();
  });

  it('closes connections that are not finished after ten seconds', async () => {
    const server = await startOwn();
    const socket = await connectTo(server.url);
    socket.write('POST /identity/customers HTTP/1.1\r\nhost: x\r\n');
    await fetch(`${server.url}/healthz`);
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    const stopped = server.stop();
    const ended = once(socket, 'close');
    vi.advanceTimersByTime(9_999);
    expect(socket.closed).toBe(false);
    vi.advanceTimersByTime(1);
    vi.useRealTimers();
    await ended;
    await stopped;
  });
});

type OwnServer = Awaited<ReturnType<typeof startInProcess>> & { readonly log: () => string };

/** A server in this process, which starts sooner and whose timers a test can control. */
async function startOwn(variables: Readonly<Record<string, string>> = {}): Promise<OwnServer> {
  const env = {
    SERVICE_LOCAL_HOME: dirname(fileOf(database)),
    SERVICE_LOCAL_SERVER_PORT: '0',
    SERVICE_AUTH_LICENSE_LEASE_PRIVATE_KEY_PEM: SIGNING_KEY_PEM,
    ...variables,
  };
  const lines: string[] = [];
  const log = createLog((line) => lines.push(line), false);
  const server = await startInProcess(resolveSettings(tmpdir(), env).values, env, log);
  const own = { ...server, log: () => lines.join('\n') };
  ends.push(own.stop);
  return own;
}

function fileOf({ location }: TestDatabase): string {
  if (!('file' in location)) throw new Error('SQLite is what this test is on');
  return location.file;
}

describe('expired data', () => {
  const usedProofs = async (): Promise<number> => {
    const { default: Database } = await import('better-sqlite3');
    const db = new Database(fileOf(database), { readonly: true });
    const rows = db.prepare('select jti from used_proofs').all();
    db.close();
    return rows.length;
  };
  const addUsedProof = () =>
    database.execute("insert into used_proofs values ((select device_id from devices), 'jti', 1)");

  it('is deleted at the start and every ten minutes', async () => {
    await (await startOwn()).stop();
    await database.execute(`
      insert into customers values ('c', 'c', 0);
      insert into plans (plan_id, name, entitlements, created_at) values ('p', 'p', '[]', 0);
      insert into contracts (contract_id, customer_id, plan_id, entitlements, ends_at, created_at)
        values ('k', 'c', 'p', '[]', 1, 0);
      insert into deployments (deployment_id, contract_id, name, created_at)
        values ('d', 'k', 'd', 0);
      insert into devices (device_id, deployment_id, x, name, enrolled_at)
        values ('v', 'd', 'x', 'v', 0);
    `);
    await addUsedProof();
    expect(await usedProofs()).toBe(1);
    vi.useFakeTimers({ toFake: ['setInterval'] });
    const server = await startOwn();
    await vi.waitFor(async () => expect(await usedProofs()).toBe(0));
    await addUsedProof();
    vi.advanceTimersByTime(10 * 60_000 - 1);
    expect(await usedProofs()).toBe(1);
    vi.advanceTimersByTime(1);
    vi.useRealTimers();
    await vi.waitFor(async () => expect(await usedProofs()).toBe(0));
    await server.stop();
  });
});

describe('the log of a server', () => {
  it.runIf(isAtLength)('contains none of the secrets that were used', async () => {
    const own = await newDatabase('postgres');
    const { location } = own;
    const url = new URL('url' in location ? location.url : '');
    url.password = 'pass-of-database';
    const server = await startServer({ ...own, location: { url: url.href } }, ['--log-json']);
    const json = { 'content-type': 'application/json' };
    const post = async (path: string, body: unknown, headers: object): Promise<number> => {
      const request = {
        method: 'POST',
        headers: { ...json, ...headers },
        body: JSON.stringify(body),
      };
      return (await fetch(`${server.url}${path}`, request)).status;
    };
    const token = `slt_${'0'.repeat(32)}_secret-of-token${'x'.repeat(28)}`;
    const login: RequestOf<typeof createToken>['body'] = {
      administrator: 'ada',
      password: 'pass-of-ada',
      code: '918273',
      label: 'CI',
      scopes: ['license'],
    };
    expect(await post('/identity/tokens', login, {})).toBe(401);
    expect(await post('/identity/tokens', { ...login, code: SIGNING_KEY_PEM, x: 1 }, {})).toBe(400);
    const bearer = { authorization: `Bearer ${token}`, 'service-step-up': 'sls_secret-of-step-up' };
    expect(
      await post('/identity/deployments/d/revoke', { reason: 'r', confirm: 'd' }, bearer),
    ).toBe(401);
    expect(await post(`/${token}?code=918273`, {}, {})).toBe(404);
    const key = newDeviceKey();
    const path = '/auth/license/devices';
    const jwk = { kty: 'OKP', crv: 'Ed25519', x: key.x };
    const enrollment = { code: 'ABCD-EFGH-JKMN', jwk, name: 'trading' };
    const body = Buffer.from(JSON.stringify(enrollment));
    const proof = makeDeviceProof(
      key,
      { method: 'POST', url: server.url + path, body },
      Date.now(),
    );
    expect(await post(path, enrollment, { authorization: `DeviceProof ${proof}` })).toBe(401);
    await own.execute('alter table administrators rename to gone');
    expect(await post('/identity/tokens', login, {})).toBe(503);
    expect(await server.stop()).toBe(0);
    await own.remove();

    const lines = server.log().split('\n');
    const statuses = lines.map((line) => (JSON.parse(line) as { status?: number }).status);
    expect(statuses.filter(Boolean)).toEqual([401, 400, 401, 404, 401, 503]);
    const [, keyText] = SIGNING_KEY_PEM.split('\n');
    for (const secret of ['pass-of', '918273', 'secret-of', 'ABCD-EFGH', proof, keyText!]) {
      expect(server.log()).not.toContain(secret);
    }
  });

  it('states that the signing key is missing, and why', async () => {
    const server = await startOwn({ SERVICE_AUTH_LICENSE_LEASE_PRIVATE_KEY_PEM: 'nonsense' });
    expect(server.log()).toMatch(
      /warn: this server issues no leases: .*PRIVATE_KEY_PEM does not hold/,
    );
    expect(server.log()).not.toContain('nonsense');
    const ready = await fetch(`${server.url}/readyz`);
    expect(await ready.json()).toMatchObject({
      status: 'degraded',
      missing: [{ part: 'signing_key', reason: 'not_a_key' }],
    });
  });

  it.runIf(isAtLength)(
    'reports the start of a key rotation, and readiness fails once its key was retired elsewhere',
    async () => {
      const first = await startOwn();
      const next = ed25519Key();
      const second = await startOwn({ SERVICE_AUTH_LICENSE_LEASE_PRIVATE_KEY_PEM: next });
      expect(first.log()).not.toContain('warn');
      expect(second.log()).toMatch(
        /warn: key [\w-]{43} now signs leases and key [\w-]{43} is retiring; check with/,
      );
      await database.execute(
        `update signing_keys set status = 'retired' where status = 'retiring'`,
      );
      const ready = await fetch(`${first.url}/readyz`);
      expect(await ready.json()).toMatchObject({
        status: 'degraded',
        missing: [{ part: 'signing_key', reason: 'retired_key' }],
      });
    },
  );

  it('warns that revoked leases can still be renewed when license_registry_enforced is off', async () => {
    const server = await startOwn({ SERVICE_LOCAL_LICENSE_REGISTRY_ENFORCED: 'false' });
    expect(server.log()).toContain(
      'warn: license_registry_enforced is off, so revoked leases can still be renewed',
    );
  });

  it.runIf(isAtLength)(
    'warns if the public origin cannot be reached from other machines',
    async () => {
      const everywhere = { SERVICE_LOCAL_SERVER_HOST: '0.0.0.0' };
      expect((await startOwn(everywhere)).log()).toContain(
        'warn: devices on other machines will be rejected',
      );
      const named = await startOwn({
        ...everywhere,
        SERVICE_LOCAL_SERVER_PUBLIC_URL: 'https://licenses.example',
      });
      expect(named.log()).not.toContain('warn');
      const document = await fetch(named.url.replace('0.0.0.0', '127.0.0.1') + '/openapi.json');
      expect(await document.json()).toMatchObject({
        servers: [{ url: 'https://licenses.example' }],
      });
    },
  );
});

describe('a server that cannot start', () => {
  it.runIf(isAtLength)('does not change the active signing key of another server', async () => {
    const server = await startOwn();
    const keysOf = async (): Promise<unknown> =>
      (await fetch(`${server.url}/.well-known/license-keys.json`)).json();
    const before = await keysOf();
    const { port } = new URL(server.url);
    const failed = startOwn({
      SERVICE_LOCAL_SERVER_PORT: port,
      SERVICE_AUTH_LICENSE_LEASE_PRIVATE_KEY_PEM: ed25519Key(),
    });
    await expect(failed).rejects.toThrow('is in use');
    expect(await keysOf()).toEqual(before);
  });

  it('reports that its port is in use', async () => {
    const server = await startOwn();
    const { port } = new URL(server.url);
    await expect(startOwn({ SERVICE_LOCAL_SERVER_PORT: port })).rejects.toMatchObject({
      code: 'conflict',
      message: `port ${port} of 127.0.0.1 is in use`,
      remedy: expect.stringContaining('--port'),
    });
    await server.stop();
  });

  it.each([
    [
      'a host that is not its own',
      { SERVICE_LOCAL_SERVER_HOST: '192.0.2.1' },
      'invalid_setting',
      /^cannot listen on 192\.0\.2\.1: /,
    ],
    [
      'a lease that would last for longer than it may',
      { SERVICE_LOCAL_LICENSE_TTL_MAX_SECONDS: '3600' },
      'invalid_setting',
      /^license_ttl_seconds is 604800, more than license_ttl_max_seconds, 3600$/,
    ],
    [
      'a grace period that would',
      { SERVICE_LOCAL_LICENSE_GRACE_PERIOD_MAX_SECONDS: '0' },
      'invalid_setting',
      /^license_grace_period_seconds is 259200, more than /,
    ],
    [
      'a database of another kind',
      { DATABASE_URL: 'mysql://me:hunter2@db/x' },
      'invalid_setting',
      /^DATABASE_URL is not the URL of a PostgreSQL database$/,
    ],
    [
      'a database that is not there',
      { DATABASE_URL: 'postgres://me:hunter2@127.0.0.1:1/x' },
      'storage_unavailable',
      /^cannot open DATABASE_URL: connect ECONNREFUSED 127\.0\.0\.1:1$/,
    ],
    [
      'a home that is a file',
      { SERVICE_LOCAL_HOME: import.meta.filename },
      'storage_unavailable',
      /server\.sqlite: /,
    ],
  ])('says so of %s', async (_, env, code, message) => {
    const error = await startOwn(env).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
    expect(`${String(error)} ${(error as ServiceError).remedy}`).not.toContain('hunter2');
  });

  it.runIf(isAtLength)('exits with the exit code of its failure', async () => {
    const { code, stdout, stderr } = await serviceLocal(['server'], {
      env: { DATABASE_URL: 'mysql://db' },
    });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^error invalid_setting: DATABASE_URL/);
  });
});
