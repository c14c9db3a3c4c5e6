import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { writeToken } from '../../src/client/token.ts';
import { addToken } from '../../src/identity/tokens.ts';
import type { Scope } from '../../src/base/scopes.ts';
import { newPerson, newWorld, PASSWORD, type Person, type World } from '../identity/people.ts';
import { serveHere, type ServerHere } from '../server/running.ts';
import { inProcess } from './in-process.ts';
import { createTerminal } from './terminal.ts';
import type { Result } from './service-local.ts';

let world: World;
let server: ServerHere;
let ada: Person;
let codes: string[];
let home: string;

beforeAll(async () => {
  world = await newWorld('sqlite');
  world.now = Date.now();
  ada = await newPerson(world.identity, () => world.now);
  codes = [...ada.recovery_codes];
  server = await serveHere(world.database);
});
afterAll(async () => {
  await server.stop();
  await world.close();
});
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'service-local-login-'));
});
afterEach(() => rm(home, { recursive: true }));

const file = (): string => join(home, 'token');
const run = (words: string[], { env = {}, input = '' } = {}): Promise<Result> =>
  inProcess(words, { env: { ...server.env, SERVICE_LOCAL_HOME: home, ...env }, input });
const logIn = (...words: string[]): Promise<Result> => {
  const who = ['--name', ada.name, '--password-stdin', '--code', codes.pop()!];
  return run(['login', ...who, ...words], { input: `${PASSWORD}\n` });
};
const stored = async (): Promise<{ token: string; token_id: string; origin: string }> =>
  JSON.parse(await readFile(file(), 'utf8')) as never;

/** Creates a token faster than a login does. */
async function keepToken(scope: Scope = 'read'): Promise<string> {
  const terms = { label: 'test', scopes: [scope], expires_in_seconds: 3600 };
  const { token, token_id } = await world.identity.storage.write((tx) =>
    addToken(tx, world.now, 'operator', ada.id, terms),
  );
  await writeToken(home, { origin: server.url, token_id, token });
  return token;
}

test('login stores a token that is never printed, and logout removes it', async () => {
  const before = await run(['whoami']);
  expect(before).toMatchObject({ code: 4, stdout: '' });
  expect(before.stderr).toBe(
    `error not_authenticated: SERVICE_LOCAL_TOKEN is not set, and you are not logged in to ${server.url}\n` +
      `→ Log in with \`service-local login --url ${server.url}\`.\n`,
  );

  const made = await logIn();
  expect(made).toMatchObject({ code: 0, stderr: '' });
  expect(made.stdout).toMatch(
    new RegExp(`^${ada.name} is logged in to ${server.url}\nfor read, write, until 20\\S+Z\\.\n$`),
  );
  expect((await stat(file())).mode & 0o777).toBe(0o600);
  const { token, token_id } = await stored();
  expect(token).toMatch(/^slt_/);

  const who = await run(['whoami']);
  expect(who).toMatchObject({ code: 0, stderr: '' });
  expect(who.stdout).toContain(`${ada.name} at ${server.url}, by login\n`);
  expect(who.stdout).toContain('read write');
  const exact = await run(['whoami', '--json']);
  expect(JSON.parse(exact.stdout)).toMatchObject({
    server: server.url,
    source: 'login',
    token: { token_id, administrator: ada.name, scopes: ['read', 'write'] },
  });

  expect(await run(['logout'])).toEqual({
    code: 0,
    stdout: `You are logged out of ${server.url}.\n`,
    stderr: '',
  });
  await expect(stat(file())).rejects.toThrow('ENOENT');
  const ended = await run(['whoami'], { env: { SERVICE_LOCAL_TOKEN: token } });
  expect(ended).toMatchObject({ code: 4, stdout: '' });
  expect(ended.stderr).toContain('the token was revoked\n→ Log in with `service-local login`');
  expect(await run(['logout'])).toEqual({
    code: 0,
    stdout: 'You were not logged in.\n',
    stderr: '',
  });
  for (const { stdout, stderr } of [made, who, exact, ended]) {
    expect(stdout + stderr).not.toContain(token);
  }
  expect(server.log()).not.toContain(token);
});

test('a second login ends the token of the first, and gets the scopes and expiry it names', async () => {
  const first = await keepToken();
  const second = await logIn('--scopes', 'license', '--expires', '1h', '--json');
  expect(second).toMatchObject({ code: 0, stderr: '' });
  const { token } = JSON.parse(second.stdout) as {
    token: { created_at: string; expires_at: string; scopes: string[] };
  };
  expect(token).not.toHaveProperty('token');
  expect(token.scopes).toEqual(['license']);
  expect(Date.parse(token.expires_at) - Date.parse(token.created_at)).toBe(3_600_000);
  const env = { SERVICE_LOCAL_TOKEN: first };
  expect(await run(['whoami'], { env })).toMatchObject({ code: 4 });
  expect(await run(['identity', 'customers', 'list'])).toMatchObject({ code: 0 });
});

test('the token of the environment overrides that of the login', async () => {
  const token = await keepToken();
  const wrong = { SERVICE_LOCAL_TOKEN: `${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}` };
  expect(await run(['whoami'], { env: wrong })).toMatchObject({
    code: 4,
    stderr: expect.stringContaining('the token is unknown') as string,
  });
  const { code, stdout } = await run(['whoami'], { env: { SERVICE_LOCAL_TOKEN: token } });
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: expect.stringContaining(', by SERVICE_LOCAL_TOKEN\n') as string,
  });
  expect(await run(['whoami'], { env: { SERVICE_LOCAL_TOKEN: 'slt_\n' } })).toMatchObject({
    code: 4,
    stderr: expect.stringContaining(
      'SERVICE_LOCAL_TOKEN contains characters that no token has\n→ Set it',
    ) as string,
  });
  const { stderr } = await run(['logout'], { env: { SERVICE_LOCAL_TOKEN: token } });
  expect(stderr).toBe('SERVICE_LOCAL_TOKEN is still set, so commands continue to use its token\n');
});

describe('a token of another server', () => {
  let seen: (string | undefined)[];
  let other: Server;
  let otherUrl: string;
  beforeEach(async () => {
    seen = [];
    other = createServer((request, response) => {
      seen.push(request.headers.authorization);
      response.setHeader('service-name', 'service-local');
      response.writeHead(503).end();
    });
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    otherUrl = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
  });
  afterEach(() => void other.close());

  test('is never sent', async () => {
    await keepToken();
    const { code, stderr } = await run(['whoami', '--url', otherUrl]);
    expect({ code, stderr }).toEqual({
      code: 4,
      stderr:
        `error not_authenticated: you are logged in to ${server.url}, not to ${otherUrl}\n` +
        `→ Log in with \`service-local login --url ${otherUrl}\`.\n`,
    });
    expect(seen).toEqual([]);
  });

  test('is removed by a logout, which reports that the server did not revoke it', async () => {
    const token = { origin: otherUrl, token_id: 'id-1', token: 'slt_x' };
    await writeFile(file(), JSON.stringify(token), { mode: 0o600 });
    const { code, stdout, stderr } = await run(['logout']);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(
      'the token was deleted from this machine, but not ended on the server: ',
    );
    expect(stderr).toContain(`identity tokens revoke id-1 --url ${otherUrl}`);
    expect(seen).toEqual(['Bearer slt_x']);
    await expect(stat(file())).rejects.toThrow('ENOENT');
  });

  test('is replaced by a login, which reports that it was not revoked', async () => {
    const token = { origin: otherUrl, token_id: 'id-1', token: 'slt_x' };
    await writeFile(file(), JSON.stringify(token), { mode: 0o600 });
    const { code, stderr } = await logIn();
    expect(code).toBe(0);
    expect(stderr).toContain(`could not end the token id-1 of the previous login to ${otherUrl}`);
    expect((await stored()).origin).toBe(server.url);
    expect(seen).toEqual(['Bearer slt_x']);
  });
});

test('rejects a token file that others can read or that is invalid, before prompting', async () => {
  await writeFile(file(), '{"origin":"http://127.0.0.1:1","token_id":"a","token":"b c"}');
  await chmod(file(), 0o644);
  for (const verb of ['login', 'logout', 'whoami']) {
    const { code, stderr } = await run([verb]);
    expect({ code, stderr }).toEqual({
      code: 3,
      stderr: expect.stringContaining(`can be read or changed by other users`) as string,
    });
  }
  await chmod(file(), 0o600);
  const { code, stderr } = await run(['login']);
  expect({ code, stderr }).toEqual({
    code: 3,
    stderr: `error invalid_data: ${file()} does not contain a stored token\n→ Remove the file, and log in again with \`service-local login\`.\n`,
  });
});

test('a login whose file cannot be written leaves no valid token', async () => {
  await chmod(home, 0o777);
  expect(await logIn()).toMatchObject({ code: 3 });
  await chmod(home, 0o700);
  await keepToken('admin');
  const { stdout } = await run(['identity', 'tokens', 'list', '--json']);
  const { tokens } = JSON.parse(stdout) as {
    tokens: { label: string; revoked_at: string | null }[];
  };
  const last = tokens.findLast(({ label }) => label.startsWith('login on '));
  expect(last!.revoked_at).toMatch(/^20/);
});

test('reports a wrong password and missing options', async () => {
  const words = ['login', '--name', ada.name, '--password-stdin', '--code', '123456'];
  expect(await run(words, { input: 'this is not it' })).toMatchObject({
    code: 4,
    stderr: expect.stringContaining('name, password or code is wrong') as string,
  });
  expect(await run(['login'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--name is required when prompting is not possible') as string,
  });
  await expect(stat(file())).rejects.toThrow('ENOENT');
});

test('prompts for name, password and code, and hides the password', async () => {
  vi.stubEnv('TERM', 'xterm');
  const person = createTerminal([
    [`Name at ${server.url}:`, `${ada.name}\r`],
    [`Password of ${ada.name}:`, `${PASSWORD}\r`],
    ['Code of the app, or a recovery code:', `${codes.pop()!}\r`],
  ]);
  const env = { ...server.env, SERVICE_LOCAL_HOME: home };
  const { code, stdout } = await inProcess(['login'], { env, person });
  vi.unstubAllEnvs();
  expect({ code, asked: person.asked() }).toEqual({ code: 0, asked: 3 });
  for (const secret of [PASSWORD, (await stored()).token]) {
    expect(stdout + person.shown()).not.toContain(secret);
  }
});

test('refuses a lifetime outside the limits of a token before it asks for a password', async () => {
  const seconds = await run(['login', '--expires', '1s']);
  expect(seconds).toMatchObject({
    code: 2,
    stderr: 'error usage: --expires: the lifetime of a token must be between 1m and 365d, not 1s\n',
  });
  const years = ['identity', 'tokens', 'create', '--administrator', ada.name, '--scopes', 'read'];
  expect(await run([...years, '--expires', '800d'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--expires: the lifetime of a token must be') as string,
  });
});
