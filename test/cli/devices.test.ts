import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Device } from '../../src/api/devices.ts';
import type { Context, Io } from '../../src/cli/verb.ts';
import { verb as enroll } from '../../src/cli/verbs/license/enroll.ts';
import { createContract } from '../../src/identity/contracts.ts';
import { createInstallation } from '../../src/identity/installations.ts';
import { importKeyset } from '../../src/lease/keys.ts';
import { verifyLease } from '../../src/lease/verify.ts';
import { newWorld, type World } from '../identity/people.ts';
import { serveHere, type ServerHere } from '../server/running.ts';
import { addAcme } from './acme.ts';
import { inProcess } from './in-process.ts';
import { createTerminal } from './terminal.ts';
import type { Result } from './service-local.ts';

let world: World;
let server: ServerHere;
let token: string;
/** Home of the customer's machine. */
let directory: string;
let home: string;

beforeAll(async () => {
  world = await newWorld('sqlite');
  world.now = Date.now();
  token = await (await world.newPerson()).token('license');
  await addAcme(world.identity, ['acme-tokyo']);
  server = await serveHere(world.database);
});

afterAll(async () => {
  await server.stop();
  await world.close();
});

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-device-'));
  home = join(directory, 'home');
});

afterEach(() => rmSync(directory, { recursive: true }));

/** Runs the CLI on the vendor's machine. */
const devices = (...words: string[]): Promise<Result> =>
  inProcess(['identity', 'devices', ...words], {
    env: { ...server.env, SERVICE_LOCAL_TOKEN: token },
  });
/** Runs the CLI on the customer's machine, which has no token and no database. */
const licenseWith = (input: string, ...words: string[]): Promise<Result> =>
  inProcess(['license', ...words, '--url', server.url], {
    env: { SERVICE_LOCAL_HOME: home },
    input,
  });
const license = (...words: string[]): Promise<Result> => licenseWith('', ...words);
const newCode = async (): Promise<string> => {
  const { code, stdout, stderr } = await devices('enroll-code', '--deployment', 'acme-tokyo');
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr: expect.stringMatching(/^enrolls one machine, until 20\S+Z\n$/) as string,
  });
  return stdout.trim();
};
const listed = async (): Promise<Device[]> => {
  const { stdout } = await devices('list', '--deployment', 'acme-tokyo', '--json');
  return (JSON.parse(stdout) as { devices: Device[] }).devices;
};
/** Output on stderr of an enrollment, after the warning that nothing vouches for the keys. */
const afterContact = ({ stderr }: Result): string => {
  const said = /^First contact: nothing vouched for the keys of .*\nCompare with .*\n/;
  expect(stderr).toMatch(said);
  return stderr.replace(said, '');
};
const deviceOf = async (id: string): Promise<Device | undefined> =>
  (await listed()).find(({ device_id }) => device_id === id);
const problemOf = ({ stdout }: Result): unknown => (JSON.parse(stdout) as { error: unknown }).error;

test('enrolls a machine with a code, rotates its key, and revokes the device', async () => {
  const code = await newCode();
  const enrolled = await license('enroll', '--code', code, '--name', 'trading-1', '--json');
  expect(enrolled).toMatchObject({ code: 0 });
  const { device_id, files, ...lease } = JSON.parse(enrolled.stdout) as {
    device_id: string;
    files: Record<'key' | 'lease' | 'keyset' | 'root', string>;
  };
  expect(lease).toMatchObject({ deployment_id: 'acme-tokyo', entitlements: ['live_trading'] });
  expect(statSync(home).mode & 0o777).toBe(0o700);
  for (const file of Object.values(files)) expect(statSync(file).mode & 0o777).toBe(0o600);
  const names = readdirSync(home);
  expect(names.sort()).toEqual([
    'config.yaml',
    'daemon_state.json',
    'device.key',
    'license.lock',
    'license_lease.json',
    'license_lease.json.bak',
    'license_public_key.json',
    'license_root.json',
  ]);
  const keyset = importKeyset(readFileSync(files.keyset, 'utf8'));
  expect(keyset.ok && verifyLease(readFileSync(files.lease, 'utf8'), keyset.keys)).toMatchObject({
    ok: true,
    claims: { device_thumbprint: device_id },
  });
  expect(await deviceOf(device_id)).toMatchObject({ name: 'trading-1', revoked_at: null });

  const rotated = await license('rotate-key');
  expect(rotated).toMatchObject({ code: 0, stderr: '' });
  const [, next] = /contains a new key: this machine is now the device (\S+)\.\n/.exec(
    rotated.stdout,
  )!;
  expect(await deviceOf(next!)).toMatchObject({ replaces: device_id, first_used_at: null });
  expect(readdirSync(home).sort()).toEqual(names);

  const revoked = await devices('revoke', next!, '--reason', 'sold');
  expect(revoked).toMatchObject({ code: 0, stderr: '' });
  expect(revoked.stdout).toMatch(/ 20\S+Z sold\n$/);
  const rejected = await license('rotate-key', '--json');
  expect(rejected.code).toBe(4);
  expect(problemOf(rejected)).toMatchObject({
    code: 'invalid_device_proof',
    reason: 'revoked_device',
  });
});

test('enrolling again with the same code changes nothing and prints the same', async () => {
  const code = await newCode();
  const first = await license('enroll', '--code', code);
  expect(first).toMatchObject({ code: 0 });
  expect(first.stdout.split('\n')).toEqual([
    expect.stringMatching(
      /^This machine is now the device \S{43} of the installation acme-tokyo\.$/,
    ),
    expect.stringContaining(`${join(home, 'license_lease.json')} is valid until 20`),
    'It licenses live_trading.',
    '',
  ]);
  const files = readdirSync(home).map((name) => readFileSync(join(home, name), 'utf8'));
  for (const another of [code, await newCode()]) {
    const again = await license('enroll', '--code', another);
    expect(again).toMatchObject({ code: 0, stderr: '' });
    const [told, ...rest] = again.stdout.split('\n');
    expect(told).toMatch(
      /^This machine already is the device \S{43} of the installation acme-tokyo and has a valid lease: the code changed nothing\.$/,
    );
    expect(rest).toEqual(first.stdout.split('\n').slice(1));
  }
  expect(readdirSync(home).map((name) => readFileSync(join(home, name), 'utf8'))).toEqual(files);
});

describe('the server of --url', () => {
  const config = (): string => join(home, 'config.yaml');
  const serverUrl = async (): Promise<unknown> => {
    const { stdout } = await inProcess(['config', 'explain', 'server_url', '--json'], {
      env: { SERVICE_LOCAL_HOME: home },
    });
    return (JSON.parse(stdout) as { winner: { value: unknown } }).winner.value;
  };

  test('is added to the user file, whose other settings are kept', async () => {
    mkdirSync(home, { mode: 0o700 });
    writeFileSync(join(directory, 'mine.yaml'), '# mine\nworkers: 2 # two\nruns_dir: 007');
    symlinkSync(join(directory, 'mine.yaml'), config());
    const enrolled = await license('enroll', '--code', await newCode());
    expect(afterContact(enrolled)).toBe(`${config()} now contains server_url: ${server.url}\n`);
    expect(readFileSync(join(directory, 'mine.yaml'), 'utf8')).toBe(
      `# mine\nworkers: 2 # two\nruns_dir: 007\nserver_url: ${server.url}\n`,
    );
    expect(await serverUrl()).toBe(server.url);
  });

  test.each(['{ workers: 2 }\n', 'workers: 2\n...\n'])(
    'is printed if it cannot be appended to the user file %j',
    async (text) => {
      mkdirSync(home, { mode: 0o700 });
      writeFileSync(config(), text);
      const enrolled = await license('enroll', '--code', await newCode());
      expect(enrolled).toMatchObject({ code: 0 });
      expect(afterContact(enrolled)).toBe(
        `To omit --url from now on, add this line to ${config()}:\nserver_url: ${server.url}\n`,
      );
      expect(readFileSync(config(), 'utf8')).toBe(text);
    },
  );

  test('is not stored if another server is set, and the command says so', async () => {
    mkdirSync(home, { mode: 0o700 });
    writeFileSync(config(), 'server_url: https://other.example\n');
    const enrolled = await license('enroll', '--code', await newCode());
    expect(afterContact(enrolled)).toBe(
      `Without --url, other commands use https://other.example, which ${config()}:1 sets. Change it there.\n`,
    );
    expect(await serverUrl()).toBe('https://other.example');
  });
});

test('reads the code from standard input or prompts for it', async () => {
  const code = await newCode();
  const enrolled = await licenseWith(`${code}\n`, 'enroll', '--code', '-', '--json');
  expect(enrolled).toMatchObject({ code: 0 });

  vi.stubEnv('TERM', 'xterm');
  const person = createTerminal([['Enrollment code from the issuer:', `${code}\r`]]);
  const context: Partial<Context> = {
    io: { stdin: person.stdin, stderr: person.stderr, env: {} } as unknown as Io,
    interactive: true,
    settings: { home, server_url: server.url } as Context['settings'],
    settingSources: { server_url: [{ origin: 'default' }] } as unknown as Context['settingSources'],
    message: () => {},
  };
  const asked = await enroll.run(
    context as Context,
    {},
    {
      code: undefined,
      name: 'trading-1',
      keyset: undefined,
      insecure: false,
    },
  );
  vi.unstubAllEnvs();
  expect(person.asked()).toBe(1);
  const before = JSON.parse(enrolled.stdout) as { trust: object };
  expect(before.trust).toMatchObject({ by: 'first_contact', root: null });
  const trust = { ...before.trust, by: 'held' };
  expect(asked.data).toEqual({ ...before, enrolled: false, limits: [], trust });
});

test('reports that a lease is shorter than its plan', async () => {
  const vendor = [world.identity, 'operator'] as const;
  const ends_at = Math.ceil(Date.now() / 1000 + 3600) * 1000;
  const contract = { contract_id: 'short', customer_id: 'acme', plan_id: 'pro', ends_at };
  await createContract(...vendor, contract);
  const installation = { deployment_id: 'brief', contract_id: 'short', name: 'Brief' };
  await createInstallation(...vendor, installation);
  const code = (await devices('enroll-code', '--deployment', 'brief')).stdout.trim();
  const { stdout } = await license('enroll', '--code', code);
  expect(stdout).toMatch(
    /^ {2}the lease is valid for \d+[smh] instead of 7d: the contract ends then$/m,
  );
  expect(stdout).toMatch(/^ {2}the grace period is 0d instead of 3d: the contract ends then$/m);
});

test('exits with 4 for an invalid code, and with 2 for a missing option', async () => {
  const rejected = await license('enroll', '--code', 'ABCD'.repeat(7), '--json');
  expect(rejected.code).toBe(4);
  expect(problemOf(rejected)).toMatchObject({ code: 'not_authenticated', reason: 'unknown_code' });
  expect((await license('enroll')).code).toBe(2);
  expect((await devices('enroll-code')).code).toBe(2);
  expect((await devices('revoke', 'x')).code).toBe(2);
  expect((await devices('enroll-code', '--deployment', 'acme-osaka')).code).toBe(1);
});

test('prints how to enroll a machine that is not a device', async () => {
  const { code, stderr } = await license('rotate-key');
  expect(code).toBe(3);
  expect(stderr).toContain(
    `this machine is not enrolled: ${join(home, 'device.key')} does not exist`,
  );
  expect(stderr).toContain('service-local license enroll');
  // No lease works either, which has the exit code of license status.
  const renewed = await license('renew', '--now');
  expect(renewed.code).toBe(4);
  expect(renewed.stderr).toMatch(/^error license_invalid: this machine is not enrolled: /);
});
