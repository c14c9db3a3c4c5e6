import { afterAll, beforeAll, expect, test } from 'vitest';
import { packageVersion } from '../../../src/base/package-version.ts';
import type { Scope } from '../../../src/base/scopes.ts';
import { addToken } from '../../../src/identity/tokens.ts';
import { openStorage, type Storage } from '../../../src/storage/storage.ts';
import { inProcess } from '../../cli/in-process.ts';
import { serveHere, type ServerHere } from '../../server/running.ts';
import { newDatabase, type TestDatabase } from '../../storage/databases.ts';

let database: TestDatabase;
let storage: Storage;
let server: ServerHere;
let ada: string;
let bob: string;
let root: string;
beforeAll(async () => {
  database = await newDatabase('sqlite');
  storage = await openStorage(database.location);
  ada = await tokenOf('ada', ['read', 'write']);
  bob = await tokenOf('bob', ['read', 'write']);
  root = await tokenOf('root', ['read', 'write', 'admin']);
  server = await serveHere(database);
});
afterAll(async () => {
  await server.stop();
  await storage.close();
  await database.remove();
});

function tokenOf(name: string, scopes: readonly Scope[]): Promise<string> {
  const now = Date.now();
  return storage.write(async (tx) => {
    await tx
      .insertInto('administrators')
      .values({
        administrator_id: name,
        name,
        password_hash: 'none',
        totp_secret: 'none',
        totp_last_step: 0,
        created_at: now,
        disabled_at: null,
      })
      .execute();
    const terms = { label: 'test', scopes, expires_in_seconds: 3600 };
    return (await addToken(tx, now, 'operator', name, terms)).token;
  });
}

async function send(token: string, method: string, path: string, body: object) {
  const response = await fetch(server.url + path, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, body: text === '' ? {} : (JSON.parse(text) as Problem) };
}

interface Problem {
  readonly search_id?: string;
  readonly reason?: string;
}

const open = (token: string, digest: number) =>
  send(token, 'POST', '/searches', {
    digest: digest.toString(16).padStart(64, '0'),
    title: `sweep ${digest}`,
    package: packageVersion(),
    has_code: false,
  });

async function cli(token: string, ...words: string[]) {
  const env = { SERVICE_LOCAL_SERVER_URL: server.url, SERVICE_LOCAL_TOKEN: token };
  const { code, stdout } = await inProcess([...words, '--json'], { env });
  return { code, document: JSON.parse(stdout) as Record<string, unknown> };
}

test('only its owner and admins change or cancel a search', async () => {
  const { search_id } = (await open(ada, 1)).body;
  const digest = 'c'.repeat(64);
  const part = { parts: 1, data: 'AAAA' };
  const input = `/searches/${search_id!}/inputs/${digest}/0`;
  const shard = { id: 'e'.repeat(64), input: digest, trials: [{ index: 0, params: {} }] };
  const shards = { shards: [shard], received: 0 };
  const queue = `/searches/${search_id!}/shards`;
  const refused = { status: 403, body: { reason: 'not_owner' } };
  expect(await send(bob, 'PUT', input, part)).toMatchObject(refused);
  expect(await send(bob, 'POST', queue, shards)).toMatchObject(refused);
  expect(await send(bob, 'DELETE', `/searches/${search_id!}`, {})).toMatchObject(refused);
  expect(await cli(bob, 'searches', 'cancel', search_id!)).toMatchObject({
    document: { error: { code: 'not_allowed' } },
  });
  expect(await cli(bob, 'searches', 'cancel', '123')).toMatchObject({
    document: { error: { code: 'not_found', remedy: 'See `service-local searches list`.' } },
  });
  expect(await cli(bob, 'searches', 'list')).toMatchObject({
    code: 0,
    document: { searches: [{ search_id, title: 'sweep 1', created_by_name: 'ada', queued: 0 }] },
  });
  expect(await cli(ada, 'searches', 'cancel', search_id!)).toMatchObject({ code: 0 });
  const again = (await open(ada, 1)).body.search_id!;
  expect(await cli(root, 'searches', 'cancel', again)).toMatchObject({ code: 0 });
  expect(await cli(root, 'searches', 'list')).toMatchObject({ document: { searches: [] } });
});

test('an administrator has at most 20 searches and 16,384 parts of inputs, and others their own', async () => {
  const full = { status: 409, body: { reason: 'quota' } };
  const opened: string[] = [];
  for (let digest = 1; digest <= 20; digest++)
    opened.push((await open(ada, digest)).body.search_id!);
  expect(await open(ada, 21)).toMatchObject(full);
  expect(await open(ada, 20)).toMatchObject({ status: 200, body: { search_id: opened.at(-1) } });
  expect(await open(bob, 21)).toMatchObject({ status: 200 });

  const store = (search: number, digest: string, parts: number) => {
    const path = `/searches/${opened[search]!}/inputs/${digest.repeat(64)}/0`;
    return send(ada, 'PUT', path, { parts, data: 'AAAA' });
  };
  expect(await store(0, 'a', 10_000)).toMatchObject({ status: 204 });
  expect(await store(1, 'b', 6385)).toMatchObject(full);
  expect(await store(1, 'b', 6384)).toMatchObject({ status: 204 });
  expect(await store(1, 'b', 6385)).toMatchObject({
    status: 409,
    body: { reason: 'other_parts' },
  });
});
