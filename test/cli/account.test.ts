import { afterAll, beforeAll, expect, test } from 'vitest';
import { addAdministrator } from '../../src/identity/administrators.ts';
import { newTotpSecret } from '../../src/identity/totp.ts';
import { openStorage } from '../../src/storage/storage.ts';
import { sessionFor } from '../server/console/visitor.ts';
import { serveHere, type ServerHere } from '../server/running.ts';
import { newDatabase, type TestDatabase } from '../storage/databases.ts';
import { inProcess } from './in-process.ts';
import type { Result } from './service-local.ts';

let database: TestDatabase;
let server: ServerHere;
let token: string;
let codes: readonly string[];
const PASSKEY = '0198c0de-0000-7000-8000-00000000dddd';
beforeAll(async () => {
  database = await newDatabase('sqlite');
  const storage = await openStorage(database.location);
  const identity = { storage, clock: Date.now };
  const factors = {
    password: 'correct horse battery',
    totp_secret: newTotpSecret('ada').secret,
    totp_last_step: 0,
  };
  const terms = { label: 'test', scopes: ['read'] as const, expires_in_seconds: 3600 };
  const ada = await addAdministrator(identity, 'ada', factors, terms);
  ({ token } = ada.token!);
  codes = ada.recovery_codes;
  for (let i = 0; i < 3; i++) await sessionFor(identity, ada.administrator_id);
  await storage.write((tx) =>
    tx
      .insertInto('passkeys')
      .values({
        passkey_id: PASSKEY,
        administrator_id: ada.administrator_id,
        credential_id: 'AAAA',
        public_key: 'AAAA',
        counter: 0,
        transports: '[]',
        site: 'localhost',
        name: 'Phone',
        created_at: Date.now(),
        last_used_at: null,
      })
      .execute(),
  );
  await storage.close();
  server = await serveHere(database);
});
afterAll(async () => {
  await server.stop();
  await database.remove();
});

const run = (words: string): Promise<Result> =>
  inProcess(['identity', ...words.split(' ')], {
    env: { ...server.env, SERVICE_LOCAL_TOKEN: token },
  });
const ask = async <T>(words: string): Promise<T> => {
  const { code, stdout, stderr } = await run(`${words} --json`);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout) as T;
};

test('lists login sessions, and ends one or all of them', async () => {
  const { sessions } = await ask<{ sessions: { session_id: string }[] }>('sessions list');
  expect(sessions).toHaveLength(3);
  const [{ session_id }] = sessions as [{ session_id: string }];
  expect(await ask(`sessions end ${session_id}`)).toMatchObject({
    session_id,
    administrator: 'ada',
  });
  expect(await run(`sessions end ${session_id}`)).toMatchObject({ code: 1, stdout: '' });
  expect(await ask('sessions end --all')).toEqual({ ended: 2 });
  expect(await run('sessions end')).toMatchObject({ code: 2 });
});

test('lists and renames passkeys, and deletes them with a second factor', async () => {
  expect((await run('passkeys list')).stdout).toMatch(/Phone\s+localhost/);
  expect(await ask(`passkeys rename ${PASSKEY} Laptop`)).toMatchObject({ name: 'Laptop' });
  const wrong = await run(`passkeys delete ${PASSKEY} --code 000000000`);
  expect(wrong).toMatchObject({ code: 4, stdout: '' });
  const deleted = await ask(`passkeys delete ${PASSKEY} --code ${codes[0]}`);
  expect(deleted).toMatchObject({ passkey_id: PASSKEY });
});
