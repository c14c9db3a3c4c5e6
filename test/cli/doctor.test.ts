import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { daemonFiles } from '../../daemon/daemon-files.ts';
import { DAY } from '../../src/base/durations.ts';
import { holdLock } from '../../src/base/file-lock.ts';
import type { CheckResult } from '../../src/doctor/run-checks.ts';
import { examine } from '../../src/doctor/examine.ts';
import { CERTIFICATE, CERTIFICATE_KEY } from '../client/certificate.ts';
import { addToken, type NewToken, type TokenTerms } from '../../src/identity/tokens.ts';
import type { Scope } from '../../src/base/scopes.ts';
import { newLicensed, startIssuer, type Issuer, type Licensed } from '../doctor/licensed.ts';
import { revokeAs } from '../identity/lease-world.ts';
import { inProcess } from './in-process.ts';
import { serviceLocal, type Result } from './service-local.ts';
import { isAtLength } from '../length.ts';

const trusted = getCACertificates();
let issuer: Issuer;
let directory: string;
let authority: string;

beforeAll(async () => {
  setDefaultCACertificates([...trusted, CERTIFICATE]);
  issuer = await startIssuer({ cert: CERTIFICATE, key: CERTIFICATE_KEY });
  issuer.world.now = issuer.now = Date.now();
});
afterAll(async () => {
  await issuer.close();
  setDefaultCACertificates(trusted);
});

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-doctor-'));
  authority = join(directory, 'authority.pem');
  writeFileSync(authority, CERTIFICATE);
});
afterEach(() => rmSync(directory, { recursive: true }));

/** Runs doctor in this process; without --url, it asks the last server of the daemon. */
const doctor = ({ machine }: Pick<Licensed, 'machine'>, ...words: string[]): Promise<Result> =>
  inProcess(['doctor', ...words], { env: { SERVICE_LOCAL_HOME: machine.home } });

/** Runs doctor in a separate process with its own trusted certificates. */
const doctorAlone = ({ machine }: Pick<Licensed, 'machine'>, ...words: string[]): Promise<Result> =>
  serviceLocal(['doctor', ...words], {
    env: {
      SERVICE_LOCAL_HOME: machine.home,
      NODE_EXTRA_CA_CERTS: authority,
    },
  });

test('a fresh machine passes, gets suggestions, and is not changed', async () => {
  const home = join(directory, 'home');
  const fresh = await inProcess(['doctor'], { env: { SERVICE_LOCAL_HOME: home } });
  expect(fresh).toMatchObject({ code: 0, stderr: '' });
  expect(fresh.stdout).toMatch(/^skip {2}lease_file +no license is installed; local work/m);
  expect(fresh.stdout).toMatch(
    /^skip {2}keyset, trust, lease_signature, lease_use, lease_state, entitlements {2}not checked, because lease_file was skipped$/m,
  );
  expect(fresh.stdout).toMatch(/^ok {4}runtime +Node v/m);
  expect(fresh.stdout).toMatch(/\nAll is well\.\n$/);
  expect(readdirSync(directory)).toEqual(['authority.pem']);
});

test('--server names the tokens that could issue leases for every installation and never expire', async () => {
  const { identity } = issuer.world;
  const person = await issuer.world.newPerson();
  const admin = await person.token('admin');
  const none = { deployment_ids: null, customer_id: null, max_ttl_seconds: null };
  const make = (label: string, scope: Scope, terms: Partial<TokenTerms> = {}): Promise<NewToken> =>
    identity.storage.write((tx) =>
      addToken(tx, Date.now(), 'operator', person.id, {
        label,
        scopes: [scope],
        expires_in_seconds: null,
        ...terms,
      }),
    );
  const env = {
    SERVICE_LOCAL_HOME: join(directory, 'home'),
    SERVICE_LOCAL_SERVER_URL: issuer.url,
    SERVICE_LOCAL_TOKEN: admin,
  };
  const look = (token = admin, ...words: string[]): Promise<Result> =>
    inProcess(['doctor', '--server', ...words], { env: { ...env, SERVICE_LOCAL_TOKEN: token } });

  await make('short', 'license', { expires_in_seconds: 600 });
  await make('one customer', 'license', { narrowing: { ...none, customer_id: 'acme' } });
  await make('one day', 'license', { narrowing: { ...none, max_ttl_seconds: 86_400 } });
  await make('metrics', 'read');
  const ended = await make('ended', 'license');
  await identity.storage.write((tx) =>
    tx
      .updateTable('api_tokens')
      .set({ revoked_at: 1 })
      .where('token_id', '=', ended.token_id)
      .execute(),
  );
  const well = await look();
  expect(well.stdout).toMatch(
    /^ok +tokens +each token that can issue leases expires or is restricted$/m,
  );
  expect(well.code).toBe(0);

  const wide = await make('wide', 'license');
  const found = await look();
  expect(found.code).toBe(1);
  expect(found.stdout).toContain(`: ${wide.token_id} (wide, of ${person.name})\n`);
  expect(found.stdout).toMatch(/^warn +tokens +1 token can issue leases for every installation/m);
  const { checks } = JSON.parse((await look(admin, '--json')).stdout) as { checks: CheckResult[] };
  expect(checks.at(-1)).toMatchObject({
    code: 'tokens',
    status: 'warn',
    evidence: { tokens: [{ token_id: wide.token_id, label: 'wide' }] },
  });

  const reader = await look(await person.token('read', 'write', 'halt'));
  expect(reader.code).toBe(0);
  expect(reader.stdout).toMatch(
    /^skip +tokens +not checked, because the login lacks the scope admin.*\n +→ .*--scopes read,write,halt,admin`/m,
  );
  const nobody = await inProcess(['doctor', '--server'], {
    env: { ...env, SERVICE_LOCAL_TOKEN: '' },
  });
  expect(nobody.stdout).toMatch(
    /^fail +database_size, notifications, tokens +.*\n +→ .*service-local login/m,
  );
  expect(nobody.stdout.match(/service-local login/g)).toHaveLength(1);
  expect(await look(admin, '--offline')).toMatchObject({ code: 2 });
});

test('--server shows how large the database is, and which tables grow', async () => {
  const { storage } = issuer.world.identity;
  const person = await issuer.world.newPerson();
  const env = {
    SERVICE_LOCAL_HOME: join(directory, 'home'),
    SERVICE_LOCAL_SERVER_URL: issuer.url,
    SERVICE_LOCAL_TOKEN: await person.token('admin'),
  };
  const sizeLine = async (): Promise<string> => {
    const { stdout } = await inProcess(['doctor', '--server'], { env });
    return /^ok +database_size +(.*)$/m.exec(stdout)![1]!;
  };
  expect(await sizeLine()).toMatch(
    /^the database has [\d.]+ MiB and has not been measured for a day, so its growth is unknown; \d+ events? in it, and 0 archived$/,
  );
  const first = { name: 'bot_events', day: 1, bytes: 30 * 2 ** 20, measured_at: DAY };
  const later = { ...first, day: 3, bytes: 90 * 2 ** 20, measured_at: 3 * DAY };
  await storage.write((tx) => tx.insertInto('size_samples').values([first, later]).execute());
  expect(await sizeLine()).toContain('grows by 30 MiB a day, bot_events by 30 MiB; ');
  const { stdout } = await inProcess(['doctor', '--server', '--json'], { env });
  const { checks } = JSON.parse(stdout) as { checks: CheckResult[] };
  expect(checks.find(({ code }) => code === 'database_size')).toMatchObject({
    status: 'ok',
    evidence: {
      tables: [{ table: 'bot_events', bytes: 90 * 2 ** 20, bytes_per_day: 30 * 2 ** 20 }],
    },
  });
});

test('prints failures last with their remedies, and repairs a truncated lease', async () => {
  const licensed = await newLicensed(issuer, directory, 'tokyo');
  const { home, files } = licensed.machine;
  const lease = readFileSync(files.lease, 'utf8');
  writeFileSync(files.lease, lease.slice(0, 100));
  const torn = await doctor(licensed);
  expect(torn).toMatchObject({ code: 1, stderr: '' });
  expect(torn.stdout.split('\n').slice(-6)).toEqual([
    expect.stringMatching(/^warn {2}lease_file +.* cut short .*\.bak is used instead$/) as string,
    expect.stringMatching(
      /^ +→ Run `service-local doctor --fix` to put the best copy in its place\.$/,
    ),
    expect.stringMatching(/^warn {2}daemon +the daemon was killed, so the lease is not renewed/),
    expect.stringMatching(/^ +→ Start it with `service-local daemon start`/) as string,
    '2 warnings',
    '',
  ]);

  const fixed = await doctor(licensed, '--fix');
  expect(fixed).toMatchObject({ code: 1, stderr: '' });
  expect(fixed.stdout).toMatch(
    new RegExp(`^fixed ${files.lease}: the best copy was restored; the previous file is now`),
  );
  expect(fixed.stdout).toMatch(/\n1 warning\n$/);
  expect(readFileSync(files.lease, 'utf8')).toBe(lease);

  const lock = await holdLock(daemonFiles(home).lock, 0);
  const well = await doctor(licensed, '--fix');
  lock.release();
  expect(well).toMatchObject({ code: 0, stderr: '' });
  expect(well.stdout).toMatch(/^ok {4}server +https:\/\/localhost:\d+ answered in \d+ ms$/m);
  expect(well.stdout).toMatch(/^ok {4}lease_state +valid until 20\S+Z \(\d+ \w+ left\)/m);
  expect(well.stdout).toMatch(/\nAll is well\.\n$/);
});

test.runIf(isAtLength)(
  'reports a revoked license as one failure in one JSON document',
  async () => {
    const licensed = await newLicensed(issuer, directory, 'osaka');
    const { world } = issuer;
    await revokeAs(world, world.identity, { deployment_id: 'osaka' }, 'osaka');
    const { code, stdout, stderr } = await doctorAlone(licensed, '--json');
    expect({ code, stderr }).toEqual({ code: 2, stderr: '' });
    const { checks, ...rest } = JSON.parse(stdout) as { checks: CheckResult[] };
    expect(rest).toEqual({ schema_version: 1, status: 'fail', fixed: [] });
    expect(checks.filter(({ status }) => status === 'fail')).toEqual([
      {
        code: 'renewal',
        status: 'fail',
        summary: `the license is revoked and cannot be renewed; the lease works until ${licensed.claims.grace_ends_at}`,
        depends_on: ['server'],
        because: null,
        evidence: { code: 'license_revoked', message: expect.stringContaining('osaka') as string },
        remedy: 'Contact the issuer of the license.',
      },
    ]);
    expect(checks.find((check) => check.code === 'server')?.evidence).toMatchObject({
      certificate_ends_at: '2126-10-27T11:00:07.000Z',
    });
  },
);

test.runIf(isAtLength)(
  'reports a certificate of the server that expires soon or is not trusted',
  async () => {
    const { machine } = await newLicensed(issuer, directory, 'tokyo');
    issuer.now = Date.UTC(2126, 9, 25);
    const { checks } = await examine({ ...machine, clock: () => issuer.now });
    issuer.now = issuer.world.now;
    expect(checks.find(({ code }) => code === 'server')).toMatchObject({
      status: 'warn',
      summary: `the certificate of ${machine.url} expires in 2 days`,
    });
    authority = '';
    const { code, stdout } = await doctorAlone({ machine }, '--url', machine.url);
    expect(code).toBe(2);
    expect(stdout).toMatch(/^fail {2}server +.*this machine does not trust its certificate$/m);
    expect(stdout).toMatch(/^ +→ .*NODE_EXTRA_CA_CERTS to the file of that authority\.$/m);
  },
);
