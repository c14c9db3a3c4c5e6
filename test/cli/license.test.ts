import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { LeaseClaims } from '../../src/lease/claims.ts';
import { formatTime } from '../../src/lease/time.ts';
import { newWorld, type World } from '../identity/people.ts';
import { claimsOf, issue, testKey } from '../lease/issuer.ts';
import { serveHere, type ServerHere } from '../server/running.ts';
import { addAcme } from './acme.ts';
import { inProcess } from './in-process.ts';
import type { Result } from './service-local.ts';
import { isAtLength } from '../length.ts';

let world: World;
let server: ServerHere;
let token: string;
/** Directory of the files that people carry between machines. */
let directory: string;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-license-'));
  world = await newWorld('sqlite');
  world.now = Date.now();
  token = await (await world.newPerson()).token('license');
  await addAcme(world.identity, ['tokyo', 'osaka']);
  server = await serveHere(world.database);
});
afterAll(async () => {
  await server.stop();
  await world.close();
  rmSync(directory, { recursive: true });
});

/** Runs the CLI on the vendor's machine. */
const identity = (...words: string[]): Promise<Result> =>
  inProcess(['identity', ...words], {
    cwd: directory,
    env: { ...server.env, SERVICE_LOCAL_TOKEN: token },
  });
/** Runs the CLI on a machine of the customer. */
const on =
  (machine: string) =>
  (...words: string[]): Promise<Result> =>
    inProcess(['license', ...words], {
      cwd: directory,
      env: { SERVICE_LOCAL_HOME: join(directory, machine), SERVICE_LOCAL_SERVER_URL: server.url },
    });
const documentOf = ({ stdout }: Result): unknown => JSON.parse(stdout);

interface Status {
  readonly state: string;
  readonly reason: string | null;
  readonly works_until: string | null;
  readonly lease: LeaseClaims | null;
  readonly renewal: object;
}

test('licenses a machine without a network through files that people carry', async () => {
  const vault = on('vault');
  const none = await vault('status', '--json');
  expect(none).toMatchObject({ code: 4 });
  expect(none.stderr).toMatch(
    /^error license_invalid: no valid license: .* does not exist\n→ Enroll/,
  );
  expect(documentOf(none)).toMatchObject({ state: 'none', reason: 'missing', works_until: null });

  writeFileSync(join(directory, 'precious.txt'), 'mine');
  const precious = await vault('export-request', '--out', 'precious.txt');
  expect(precious).toMatchObject({ code: 6, stdout: '' });
  expect(precious.stderr).toMatch(
    /^error conflict: .*precious\.txt exists and is not the request of a machine\n/,
  );
  expect(readFileSync(join(directory, 'precious.txt'), 'utf8')).toBe('mine');
  const nowhere = await vault('export-request', '--out', 'nowhere/request.jwt');
  expect(nowhere.stderr).toMatch(/^error output_not_writable: cannot write .* \(ENOENT\)\n/);
  expect(existsSync(join(directory, 'vault'))).toBe(false);

  mkdirSync(join(directory, 'careful'), { mode: 0o700 });
  const own = await on('careful')('export-request', '--out', 'careful/device.key');
  expect(own.stderr).toMatch(/device\.key exists and is not/);

  const asked = await vault('export-request', '--out', 'request.jwt', '--name', 'vault');
  expect(statSync(join(directory, 'request.jwt')).mode & 0o777).toBe(0o600);
  expect(asked).toMatchObject({ code: 0, stderr: '' });
  const [, device] = /requests a lease for the device (\S+)\.\n/.exec(asked.stdout)!;
  const request = ['leases', 'issue', '--deployment', 'tokyo', '--request', 'request.jwt'];
  const issued = await identity(...request, '--out', 'lease.json');
  expect(issued).toMatchObject({ code: 0, stdout: '' });
  expect(issued.stderr).toMatch(
    new RegExp(
      `^requested by the device ${device} \\(vault\\) at 20\\S+Z\nlease \\S+ for tokyo: live_trading`,
    ),
  );

  expect((await vault('status')).stderr).toMatch(
    / does not exist\n→ Write a request with `service-local license export-request/,
  );

  const taken = await vault('import', 'lease.json');
  expect(taken).toMatchObject({ code: 0, stderr: '' });
  expect(taken.stdout).toMatch(
    /license_lease\.json is valid until 20.*\nIt licenses live_trading\.\nThis machine trusts the keys in that file, because there were none: [\w-]{43}\.\n$/,
  );
  const works = await vault('status');
  expect(works).toMatchObject({ code: 0, stderr: '' });
  expect(works.stdout).toMatch(
    /^The lease works until 20\S+Z; its grace period begins at 20\S+Z\.\nIt is renewed by hand: run `service-local license export-request --out FILE` from 20\S+Z on, /,
  );
  expect((await vault('import', 'lease.json')).stdout).toMatch(/ already contains this lease\.\n/);

  await vault('export-request', '--out', 'request.jwt');
  await identity(...request, '--ttl', '30d', '--out', 'next.json');
  expect(await vault('import', 'next.json')).toMatchObject({ code: 0 });
  const [first, second] = ['lease.json', 'next.json'].map((name) => {
    const { lease } = JSON.parse(readFileSync(join(directory, name), 'utf8')) as {
      lease: { payload: string };
    };
    return JSON.parse(Buffer.from(lease.payload, 'base64').toString()) as LeaseClaims;
  });
  expect(second).toMatchObject({ previous_lease_id: first!.lease_id, device_thumbprint: device });
  expect(documentOf(await vault('status', '--json'))).toMatchObject({ lease: second });

  const older = await vault('import', 'lease.json');
  expect(older).toMatchObject({ code: 6, stdout: '' });
  expect(older.stderr).toMatch(/^error conflict: .*\n→ Nothing was changed\./);
  const stolen = await on('thief')('import', 'next.json');
  expect(stolen).toMatchObject({ code: 3, stdout: '' });
  expect(stolen.stderr).toMatch(/^error invalid_data: the lease is for the device /);

  const key = join(directory, 'vault', 'device.key');
  rmSync(key);
  const lost = await vault('status');
  expect(lost).toMatchObject({ code: 0, stderr: '' });
  expect(lost.stdout).toContain(
    `\nThe lease cannot be renewed: it belongs to the device whose key was ${key}, and that file is missing. Restore ${key} from a backup; or enroll this machine again`,
  );
  expect((await vault('renew')).stderr).toContain(`\n→ Restore ${key} from a backup; or enroll`);
  await vault('export-request', '--out', 'request.jwt');
  expect((await vault('status')).stdout).toMatch(/^It is renewed by hand: run /m);
});

test('issues nothing for a file that is not a request or is for another installation', async () => {
  writeFileSync(join(directory, 'no-request'), 'hello');
  const request = ['leases', 'issue', '--deployment', 'tokyo', '--request'];
  const rejected = await identity(...request, 'no-request');
  expect(rejected).toMatchObject({ code: 3, stdout: '' });
  expect(rejected.stderr).toMatch(/^error invalid_data: .*no-request is not a lease request\n/);
  const long = await identity('leases', 'issue', '--deployment', 'tokyo', '--ttl', '300d');
  expect(long).toMatchObject({ code: 3, stdout: '' });
  expect(long.stderr).toMatch(
    / from 300 to 7776000 \(90d\), not 25920000\n→ Correct the listed values/,
  );
  expect(await identity(...request, 'nowhere')).toMatchObject({
    code: 3,
    stderr: expect.stringMatching(/^error file_not_found: /) as string,
  });
});

test.runIf(isAtLength)(
  'an enrolled machine renews when due or with --now, until renewal is denied',
  async () => {
    const osaka = on('osaka');
    const early = await osaka('renew');
    expect(early).toMatchObject({ code: 4, stdout: '' });
    expect(early.stderr).toMatch(/this machine is not enrolled: .*\n→ Enroll this machine with/);
    const code = await identity('devices', 'enroll-code', '--deployment', 'osaka');
    await osaka('enroll', '--code', code.stdout.trim());
    const before = documentOf(await osaka('status', '--json')) as Status;

    const notDue = await osaka('renew');
    expect(notDue).toMatchObject({ code: 0, stderr: '' });
    expect(notDue.stdout).toMatch(
      /^Not renewed; next attempt at 20\S+Z: the lease is due at that time\.\n/,
    );
    const renewed = await osaka('renew', '--now');
    expect(renewed).toMatchObject({ code: 0, stderr: '' });
    expect(renewed.stdout).toMatch(/^Renewed\.\n.*license_lease\.json is valid until 20/);
    const after = documentOf(await osaka('status', '--json')) as Status;
    expect(after).toMatchObject({
      state: 'valid',
      lease: { previous_lease_id: before.lease!.lease_id },
      renewal: {
        enrolled: true,
        daemon: false,
        denied: false,
        last_error: null,
        other_server: null,
      },
    });

    const file = join(directory, 'osaka', 'config.yaml');
    writeFileSync(file, 'server_url: https://vendor.example\n', { mode: 0o600 });
    const overridden = `SERVICE_LOCAL_SERVER_URL names the server ${server.url}, but ${file}:1 names https://vendor.example`;
    const shown = await osaka('status');
    expect(shown).toMatchObject({ code: 0, stderr: '' });
    expect(shown.stdout).toContain(
      `${overridden}. If this machine is enrolled at https://vendor.example, remove SERVICE_LOCAL_SERVER_URL; `,
    );
    const examined = await inProcess(['doctor', '--json'], {
      env: { SERVICE_LOCAL_HOME: join(directory, 'osaka'), SERVICE_LOCAL_SERVER_URL: server.url },
    });
    const { checks } = documentOf(examined) as { checks: { code: string }[] };
    expect(checks.find(({ code: name }) => name === 'server')).toMatchObject({
      status: 'warn',
      summary: overridden,
    });
    rmSync(file);

    await world.identity.storage.write((tx) =>
      tx
        .updateTable('deployments')
        .set({ revoked_at: Date.now() })
        .where('deployment_id', '=', 'osaka')
        .execute(),
    );
    const denied = await osaka('renew', '--now');
    expect(denied).toMatchObject({ code: 4 });
    expect(denied.stderr).toMatch(/^error license_revoked: .*work until 20\S+Z\n/);
    const status = await osaka('status');
    expect(status).toMatchObject({ code: 0, stderr: '' });
    expect(status.stdout.split('\n')).toEqual(
      expect.arrayContaining([
        `The lease works until ${after.works_until}; its grace period begins at ${after.lease!.expires_at}.`,
        expect.stringMatching(
          /^The server has denied renewal since 20\S+Z: the license of the installation osaka is revoked; /,
        ),
      ]),
    );
  },
);

const KEY = testKey(1);

/** Creates a machine with a lease of that age, valid for seven days with three days of grace. */
function licensedSince(machine: string, days: number): ReturnType<typeof on> {
  const issued_at = formatTime(Date.now() - days * 86_400_000);
  const lease = issue(claimsOf(KEY, { issued_at }), KEY);
  writeFileSync(join(directory, `${machine}.json`), lease);
  writeFileSync(join(directory, 'keys.json'), JSON.stringify({ keys: [KEY.jwk] }));
  return on(machine);
}

test('verifies a lease on any machine, and reports its state in the exit code', async () => {
  const valid = await licensedSince('fresh', 1)('verify', 'fresh.json', '--keyset', 'keys.json');
  expect(valid).toMatchObject({ code: 0, stderr: '' });
  expect(valid.stdout).toMatch(
    /^The lease is genuine: the key [\w-]{43} of keys\.json signed it\.\nIt works until 20\S+Z\.\n[^]*^entitlements +live_trading kb_federation$/m,
  );
  const old = await licensedSince('old', 11)(
    'verify',
    'old.json',
    '--keyset',
    'keys.json',
    '--json',
  );
  expect(old).toMatchObject({ code: 4 });
  expect(documentOf(old)).toMatchObject({ state: 'expired', claims: { lease_id: 'lease-1' } });
  const delivered = await inProcess(['license', 'status'], {
    env: {
      SERVICE_LICENSE_LEASE_PATH: join(directory, 'old.json'),
      SERVICE_LICENSE_PUBLIC_KEY_PATH: join(directory, 'keys.json'),
    },
  });
  expect(delivered).toMatchObject({ code: 4 });
  expect(delivered.stderr).toMatch(
    /^error license_invalid: no valid license: the lease ended on 20\S+Z\n→ Enroll this machine with/,
  );
  const lease = readFileSync(join(directory, 'fresh.json'), 'utf8');
  const { signatures } = JSON.parse(lease) as { signatures: { sig: string }[] };
  const other = issue(claimsOf(KEY, { lease_id: 'other' }), KEY);
  const [{ sig }] = (JSON.parse(other) as { signatures: [{ sig: string }] }).signatures;
  writeFileSync(join(directory, 'forged.json'), lease.replace(signatures[0]!.sig, sig));
  const forged = await on('fresh')('verify', 'forged.json', '--keyset', 'keys.json');
  expect(forged).toMatchObject({ code: 3, stdout: '' });
  expect(forged.stderr).toMatch(
    /^error invalid_data: the lease is refused: the lease was changed after it was signed, or another key signed it \(the signature by \S+\)\n→ Ask the issuer to send the original file again/,
  );
  const unknown = await on('fresh')('verify', 'fresh.json');
  expect(unknown).toMatchObject({ code: 3, stdout: '' });
  expect(unknown.stderr).toMatch(
    /^error invalid_data: .*there are no keys in .*\n→ Name the current keys .* --keyset FILE/,
  );
  expect(await on('fresh')('verify', 'nowhere.json')).toMatchObject({ code: 3, stdout: '' });
});

test('reports that a renewal did not make the license valid', async () => {
  const home = join(directory, 'ended');
  await on('ended')('export-request', '--out', 'ended.jwt', '--json');
  const request = readFileSync(join(directory, 'ended.jwt'), 'utf8').split('.')[1]!;
  const { sub: device_thumbprint } = JSON.parse(
    Buffer.from(request, 'base64url').toString(),
  ) as Record<'sub', string>;
  const issued_at = formatTime(Date.now() - 11 * 86_400_000);
  const lease = issue(claimsOf(KEY, { issued_at, device_thumbprint }), KEY);
  writeFileSync(join(home, 'license_lease.json'), lease);
  const last_error = { at: formatTime(Date.now() - 1000), code: 'license_revoked', message: 'no' };
  const denied = {
    schema: 1,
    last_error,
    failures_in_row: 1,
    next_attempt_at: formatTime(Date.now() + 3_600_000),
    next_attempt_because: 'denied',
  };
  const keyset = join(home, 'license_public_key.json');
  for (const why of ['the lease ended on 20', 'there are no keys in ']) {
    writeFileSync(join(home, 'daemon_state.json'), JSON.stringify(denied), { mode: 0o600 });
    if (why.startsWith('the lease')) writeFileSync(keyset, JSON.stringify({ keys: [KEY.jwk] }));
    else rmSync(keyset);
    const waiting = await on('ended')('renew');
    expect(waiting.code).toBe(4);
    expect(waiting.stdout).toMatch(
      /^Not renewed; next attempt at .* denied renewal, so retries are rare\.\n$/,
    );
    expect(waiting.stderr).toContain(`error license_invalid: no valid license: ${why}`);
    expect(waiting.stderr).toContain('→ Ask the issuer why its server denies renewal; then');
  }
  const failed = await on('ended')('renew', '--now');
  expect(failed).toMatchObject({ code: 4, stdout: '' });
  expect(failed.stderr).toMatch(/^error invalid_device_proof: .*\n→ /);
  expect(existsSync(keyset)).toBe(false);
});

test('a lease without a grace period works until it expires, without a warning', async () => {
  const issued_at = formatTime(Date.now());
  const claims = claimsOf(KEY, { issued_at, grace_period_seconds: 0 });
  writeFileSync(join(directory, 'brief.json'), issue(claims, KEY));
  writeFileSync(join(directory, 'keys.json'), JSON.stringify({ keys: [KEY.jwk] }));
  const taken = await on('brief')('import', 'brief.json', '--keyset', 'keys.json');
  expect(taken.stdout).toContain(`license_lease.json is valid until ${claims.expires_at}.\n`);
  const { stdout } = await on('brief')('status');
  expect(stdout.split('\n')[0]).toBe(`The lease works until ${claims.expires_at}.`);
});

test('a machine with keys ignores the keys in the file of a lease unless they are named', async () => {
  const other = testKey(2);
  const issued_at = formatTime(Date.now());
  const lease = JSON.parse(
    issue(claimsOf(other, { lease_id: 'next', issued_at }), other),
  ) as object;
  const bundle = JSON.stringify({ lease, keyset: { keys: [other.jwk] } });
  writeFileSync(join(directory, 'bundle.json'), bundle);

  const alone = await on('no-keys')('verify', 'bundle.json');
  expect(alone).toMatchObject({ code: 3, stdout: '' });
  expect(alone.stderr).toMatch(
    /^error invalid_data: .*there are no keys in .*\n→ Name the current keys .* --keyset FILE/,
  );

  const machine = licensedSince('rotated', 1);
  await machine('import', 'rotated.json', '--keyset', 'keys.json');
  for (const verb of ['verify', 'import']) {
    const forged = await machine(verb, 'bundle.json', '--json');
    expect(forged).toMatchObject({ code: 3 });
    expect(documentOf(forged)).toMatchObject({ error: { reason: 'unknown_key' } });
  }
  expect(documentOf(await machine('status', '--json'))).toMatchObject({
    lease: { lease_id: 'lease-1' },
  });
  const named = await machine('verify', 'bundle.json', '--keyset', 'bundle.json', '--json');
  expect(documentOf(named)).toMatchObject({ verified_by: 'named', public_key_id: other.jwk.kid });
  const taken = await machine('import', 'bundle.json', '--keyset', 'bundle.json');
  expect(taken.stdout).toContain(
    `This machine trusts the keys that you specified: ${other.jwk.kid}.\n`,
  );
  expect((await machine('verify', 'bundle.json')).stdout).toMatch(
    /^The lease is genuine: the key \S+ of this machine signed it\.\n/,
  );
});

test('issues no lease for a machine while its trusted keys are unknown', async () => {
  await on('late-keys')('export-request', '--out', 'late-keys.jwt');
  const asked: string[] = [];
  const broken = createServer(({ method, url }, response) => {
    asked.push(`${method} ${url}`);
    response.writeHead(500, { 'service-name': 'service-local' }).end();
  }).listen(0, '127.0.0.1');
  await once(broken, 'listening');
  const { port } = broken.address() as AddressInfo;
  const words = ['--deployment', 'tokyo', '--request', 'late-keys.jwt'];
  const { code } = await inProcess(['identity', 'leases', 'issue', ...words], {
    cwd: directory,
    env: { SERVICE_LOCAL_SERVER_URL: `http://127.0.0.1:${port}`, SERVICE_LOCAL_TOKEN: token },
  });
  broken.close();
  expect(code).not.toBe(0);
  expect(new Set(asked)).toEqual(new Set(['GET /.well-known/license-keys.json']));
});

test('reports in the exit code whether a renewal is due, without output on stderr', async () => {
  const none = await on('empty')('needs-renewal');
  expect(none).toMatchObject({ code: 2, stderr: '' });
  expect(none.stdout).toMatch(/^There is no lease to renew: .* does not exist\n$/);

  await licensedSince('early', 1)('import', 'early.json', '--keyset', 'keys.json');
  const early = await on('early')('needs-renewal');
  expect(early).toMatchObject({ code: 1, stderr: '' });
  expect(early.stdout).toMatch(/^Not due: the renewal is due at 20\S+Z\.\n$/);

  const running_time = {
    lease_id: 'lease-1',
    seconds: 8 * 86_400,
    boot_id: 'b',
    uptime_seconds: 0,
  };
  const state = join(directory, 'early', 'daemon_state.json');
  writeFileSync(state, JSON.stringify({ schema: 1, running_time }), { mode: 0o600 });
  const setBack = await on('early')('needs-renewal', '--json');
  expect(setBack).toMatchObject({ code: 0 });
  expect(documentOf(setBack)).toMatchObject({ due: true, reason: 'clock_rollback' });

  await licensedSince('late', 8)('import', 'late.json', '--keyset', 'keys.json');
  const late = await on('late')('needs-renewal', '--json');
  expect(late).toMatchObject({ code: 0, stderr: '' });
  expect(documentOf(late)).toMatchObject({ due: true, reason: 'in_grace' });
  const status = await on('late')('status');
  expect(status).toMatchObject({ code: 0 });
  expect(status.stdout).toMatch(
    /^The lease works until 20\S+Z, with a warning: The lease was not renewed in time/,
  );
  expect(status.stdout).toMatch(
    /^This machine is not enrolled, so you must copy a new lease to it/m,
  );
});
