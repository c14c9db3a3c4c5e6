/** Shared parts of the tests of `server backup` and `server restore`. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect } from 'vitest';
import { ServiceError } from '../../src/base/errors.ts';
import { createEnrollmentCode } from '../../src/identity/enrollment.ts';
import { openStorage, type StorageLocation } from '../../src/storage/storage.ts';
import { newPerson, type Person } from '../identity/people.ts';
import { USUAL_POLICY } from '../identity/policy.ts';
import { addAcme } from './acme.ts';
import { inProcess } from './in-process.ts';
import type { Result } from './service-local.ts';

/** Cleanup after the test. */
export type Ends = (() => Promise<unknown>)[];

/** A server with an administrator and a customer with two installations. */
export interface Place {
  /** Working directory of `cli`; with SQLite, the home of the server. */
  readonly directory: string;
  readonly env: Readonly<Record<string, string>>;
  readonly ada: Person;
  readonly token: string;
  /** Enrollment code of the installation `tokyo`. */
  readonly code: string;
}

export async function fillPlace(
  location: StorageLocation,
  directory = 'file' in location ? dirname(location.file) : tmpdir(),
): Promise<Place> {
  let now = Date.now();
  const storage = await openStorage(location);
  const signer = new ServiceError('license_lease_unavailable', 'no key');
  const identity = { storage, clock: () => now, policy: USUAL_POLICY, signer };
  const ada = await newPerson(identity, (ms) => (now += ms));
  const token = await ada.token('license', 'admin', 'read', 'write', 'trade', 'halt');
  await addAcme(identity, ['tokyo', 'osaka']);
  now = Date.now();
  const { code } = await createEnrollmentCode(identity, 'operator', 'tokyo');
  await storage.close();
  const env = {
    SERVICE_LOCAL_HOME: directory,
    ...('url' in location && { DATABASE_URL: location.url }),
  };
  return { directory, env, ada, token, code };
}

/** Runs a verb on the machine of the server. */
export const cli = (
  { directory, env, token }: Place,
  args: readonly string[],
  url = 'http://127.0.0.1:9',
): Promise<Result> =>
  inProcess(args, {
    cwd: directory,
    env: { ...env, SERVICE_LOCAL_SERVER_URL: url, SERVICE_LOCAL_TOKEN: token },
  });

/** Runs a verb that must succeed, and returns its JSON document. */
export async function answer<T>(result: Promise<Result>): Promise<T> {
  const { code, stdout, stderr } = await result;
  expect({ code, error: code === 0 ? '' : stderr + stdout }).toEqual({ code: 0, error: '' });
  return JSON.parse(stdout) as T;
}

export async function send(
  { token }: Place,
  url: string,
  method: string,
  path: string,
  body?: object,
): Promise<{ readonly status: number; readonly body: unknown }> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const sent = { method, headers, ...(body && { body: JSON.stringify(body) }) };
  const got = await fetch(url + path, sent);
  return { status: got.status, body: await got.json() };
}

/** Runs verbs on a machine of the customer. */
export async function newMachine(
  ends: Ends,
): Promise<(url: string, ...args: string[]) => Promise<Result>> {
  const home = await mkdtemp(join(tmpdir(), 'machine-'));
  ends.push(() => rm(home, { recursive: true }));
  return (url, ...args) =>
    inProcess(['license', ...args], {
      env: { SERVICE_LOCAL_HOME: home, SERVICE_LOCAL_SERVER_URL: url },
    });
}
