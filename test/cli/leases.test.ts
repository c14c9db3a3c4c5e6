import { createPrivateKey } from 'node:crypto';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { LeaseRecord } from '../../src/api/leases.ts';
import type { Context, Io } from '../../src/cli/verb.ts';
import { verb as revoke } from '../../src/cli/verbs/identity/leases/revoke.ts';
import { signerOf } from '../../src/identity/signing-key.ts';
import { addToken } from '../../src/identity/tokens.ts';
import { newWorld, type Person, type World } from '../identity/people.ts';
import { serveHere, type ServerHere } from '../server/running.ts';
import { addAcme } from './acme.ts';
import { inProcess } from './in-process.ts';
import { createTerminal } from './terminal.ts';
import type { Result } from './service-local.ts';

let world: World;
let server: ServerHere;
let ada: Person;
let token: string;
let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'service-local-leases-'));
  world = await newWorld('sqlite');
  world.now = Date.now();
  ada = await world.newPerson();
  token = await ada.token('license', 'admin');
  await addAcme(
    world.identity,
    ['tokyo', 'osaka', 'kyoto', 'nara'],
    ['live_trading', 'kb_federation'],
  );
  server = await serveHere(world.database);
});
afterAll(async () => {
  await server.stop();
  await world.close();
  await rm(directory, { recursive: true });
});

const identity = (...words: string[]): Promise<Result> =>
  inProcess(['identity', ...words], {
    cwd: directory,
    env: { ...server.env, SERVICE_LOCAL_TOKEN: token },
  });
const ask = async <T>(...words: string[]): Promise<T> => {
  const { code, stdout, stderr } = await identity(...words, '--json');
  expect({ code, error: code === 0 ? '' : stderr }).toEqual({ code: 0, error: '' });
  return JSON.parse(stdout) as T;
};
const leasesOf = async (installation: string): Promise<LeaseRecord[]> =>
  (await ask<{ leases: LeaseRecord[] }>('leases', 'list', '--deployment', installation)).leases;

test('creates a signing key that only its owner can read, and never prints or overwrites it', async () => {
  const path = join(directory, 'key.pem');
  const made = await identity('keys', 'generate', '--out', 'key.pem');
  const pem = await readFile(path, 'utf8');
  const { publicKeyId, x } = signerOf(createPrivateKey(pem));
  const sign = `service-local identity root sign-keyset --chain license-root.json --key root-key-1.pem --add=${x} --upload`;
  expect(made).toEqual({
    code: 0,
    stderr: '',
    stdout: `${path}: key id ${publicKeyId}\nPublic key: ${x}\nWith a trust root, sign the keyset first: ${sign}\nWithout a trust root, if a server already signs: service-local identity keys announce --key=${x}\nStart the server with SERVICE_AUTH_LICENSE_LEASE_PRIVATE_KEY_PATH=${path}\n`,
  });
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  const again = await identity('keys', 'generate', '--out', 'key.pem');
  expect(again).toMatchObject({ code: 6, stdout: '' });
  expect(again.stderr).toMatch(/^error conflict: .*key\.pem already exists/);
  expect(await readFile(path, 'utf8')).toBe(pem);
  const nowhere = await identity('keys', 'generate', '--out', 'nowhere/key.pem');
  expect(nowhere).toMatchObject({ code: 1, stdout: '' });
  expect(nowhere.stderr).toMatch(
    /^error output_not_writable: .*key\.pem \(ENOENT\)\n→ Name a file/,
  );
});

test('issues a lease to a file or to stdout, and records it in the registry', async () => {
  const issue = ['leases', 'issue', '--deployment', 'tokyo', '--entitlement', 'live_trading'];
  const issued = await identity(...issue, '--ttl', '30d', '--out', 'license_lease.json');
  expect(issued).toMatchObject({ code: 0, stdout: '' });
  expect(issued.stderr).toMatch(/^lease [\w-]{36} for tokyo: live_trading until 20.*Z\n$/);
  const file = JSON.parse(await readFile(join(directory, 'license_lease.json'), 'utf8')) as object;
  expect(await identity(...issue, '--out', 'license_lease.json')).toMatchObject({ code: 0 });
  const piped = await identity(...issue);
  const form = { payloadType: 'application/vnd.service-local.license-lease.v1+json' };
  expect([file, JSON.parse(piped.stdout)]).toMatchObject([form, form]);

  const [newest, oldest] = await leasesOf('tokyo');
  expect(oldest).toMatchObject({ state: 'valid', entitlements: ['live_trading'] });
  const listed = await identity('leases', 'list', '--deployment', 'tokyo');
  expect(listed.stdout).toMatch(new RegExp(` valid +${ada.name} +20`));
  const unknown = await identity('leases', 'list', '--deployment', 'nope');
  expect(unknown).toMatchObject({ code: 1, stdout: '' });
  expect(unknown.stderr).toMatch(/^error not_found: there is no installation "nope"/);
  const shown = await identity('leases', 'show', newest!.lease_id);
  expect(shown.stdout).toMatch(new RegExp(`^issued_by +administrator:${ada.id}$`, 'm'));
  expect(shown.stdout).toMatch(new RegExp(`^issued_by_name +${ada.name}$`, 'm'));
});

test('previews a lease, and lists the leases of each installation', async () => {
  const before = await leasesOf('kyoto');
  const dry = ['leases', 'issue', '--deployment', 'kyoto', '--ttl', '90d', '--dry-run'];
  const told = await identity(...dry);
  expect(told).toMatchObject({ code: 0, stderr: '' });
  expect(told.stdout).toMatch(
    /^The lease would be for kyoto: kb_federation, live_trading until 20/,
  );
  expect(await leasesOf('kyoto')).toEqual(before);
  expect(await identity(...dry, '--out', 'lease.json')).toMatchObject({ code: 2 });

  const listed = await identity('licenses', 'list', '--search', 'KYO');
  expect(listed.stdout).toMatch(/^kyoto +acme +(none|valid) /m);
  expect((await identity('licenses', 'list', '--silent')).stdout).toBe('No entries.\n');
  const [newest] = await leasesOf('tokyo');
  const { lease_id } = newest!;
  const line = await ask<{ leases: LeaseRecord[] }>('leases', 'list', '--lineage', lease_id);
  expect(line.leases.map((lease) => lease.lease_id)).toEqual([lease_id]);
  const next = await ask<{ leases: LeaseRecord[] }>('leases', 'list', '--previous', lease_id);
  expect(next.leases).toEqual([]);
});

test('filters the audit log', async () => {
  const issue = 'admin.identity.license.issue';
  const search = ['audit', 'list', '--action', issue];
  const { entries } = await ask<{ entries: { seq: number; action: string }[] }>(...search);
  expect(entries.map(({ action }) => action)).toEqual(entries.map(() => issue));
  expect(entries.length).toBeGreaterThan(1);
  const last = await ask<{ entries: unknown[] }>(...search, '--last', '1');
  expect(last.entries).toEqual(entries.slice(-1));
  const nobody = await ask<{ entries: unknown[] }>(...search, '--actor', 'server');
  expect(nobody.entries).toEqual([]);
  expect(await identity(...search, '--after', '0')).toMatchObject({ code: 2 });
});

test('issues no lease if its file cannot be written', async () => {
  await writeFile(join(directory, 'precious.txt'), 'no lease');
  const before = await leasesOf('tokyo');
  for (const [out, error] of [
    ['nowhere/lease.json', /^error output_not_writable: .*lease\.json \(ENOENT\)\n→ Name a file/],
    ['.', /^error output_not_writable: .*\(EISDIR\)\n→ Name a file/],
    ['precious.txt', /^error conflict: .*precious\.txt exists and is not a lease\n/],
  ] as const) {
    const rejected = await identity('leases', 'issue', '--deployment', 'tokyo', '--out', out);
    expect(rejected.stderr).toMatch(error);
  }
  expect(await readFile(join(directory, 'precious.txt'), 'utf8')).toBe('no lease');
  expect(await leasesOf('tokyo')).toEqual(before);
});

test('a narrowed token issues only the leases it allows; others are denied with the reason', async () => {
  const day = 86_400;
  const terms = { label: 'CI', scopes: ['license'], expires_in_seconds: 600 } as const;
  const narrowing = { deployment_ids: ['nara'], customer_id: null, max_ttl_seconds: day };
  const made = await world.identity.storage.write((tx) =>
    addToken(tx, Date.now(), 'operator', ada.id, { ...terms, narrowing }),
  );
  const issue = (...words: string[]): Promise<Result> =>
    inProcess(['identity', 'leases', 'issue', ...words], {
      cwd: directory,
      env: { ...server.env, SERVICE_LOCAL_TOKEN: made.token },
    });
  const before = await leasesOf('nara');
  for (const [words, message] of [
    [['--deployment', 'osaka', '--ttl', '1h'], 'the token is not for the installation osaka'],
    [['--deployment', 'nara', '--ttl', '90d'], 'the token issues leases of up to 1d, and'],
    [
      ['--deployment', 'nara', '--ttl', '1d', '--grace', '30d'],
      'with a grace period of at most 3d',
    ],
  ] as const) {
    const rejected = await issue(...words, '--out', 'refused.json');
    expect(rejected).toMatchObject({ code: 4, stdout: '' });
    expect(rejected.stderr).toMatch(/^error not_allowed: /);
    expect(rejected.stderr).toContain(message);
  }
  expect(await leasesOf('nara')).toEqual(before);
  const issued = await issue('--deployment', 'nara', '--out', 'nara.json');
  expect(issued).toMatchObject({ code: 0 });
  expect(issued.stderr).toMatch(
    /^the lease is valid for 1d instead of 7d: the token allows no longer$/m,
  );
  await world.identity.storage.write((tx) =>
    tx
      .updateTable('api_tokens')
      .set({ expires_at: Date.now() })
      .where('token_id', '=', made.token_id)
      .execute(),
  );
  const late = await issue('--deployment', 'nara', '--out', 'late.json');
  expect(late.code).toBe(4);
  expect(late.stderr).toMatch(/^error not_authenticated: the token has expired\n/);
});

test('prints why a lease is shorter than requested', async () => {
  const { code, stderr } = await identity(
    'leases',
    'issue',
    '--deployment',
    'tokyo',
    '--ttl',
    '91d',
  );
  expect({ code, stderr }).toMatchObject({ code: 3 });
  expect(stderr).toMatch(/--ttl invalid_value .* to 7776000 \(90d\), not/);
  const soon = new Date(Math.ceil(Date.now() / 1000) * 1000 + 3_600_000).toISOString();
  const end = soon.replace('.000Z', 'Z');
  await ask(
    'contracts',
    'create',
    '--id',
    'short',
    '--customer',
    'acme',
    '--plan',
    'pro',
    '--ends-at',
    end,
    '--code',
    ada.recovery_codes[3]!,
  );
  await ask('deployments', 'create', '--id', 'brief', '--contract', 'short', '--name', 'Brief');
  const cut = await identity('leases', 'issue', '--deployment', 'brief', '--out', 'brief.json');
  expect(cut.stderr).toContain(`until ${end}, with grace until ${end}`);
  expect(cut.stderr).toMatch(
    /^the lease is valid for \d+[smh] instead of 7d: the contract ends then$/m,
  );
});

test('a script needs --confirm and --code to revoke a license', async () => {
  await ask('leases', 'issue', '--deployment', 'osaka');
  const [lease] = await leasesOf('osaka');
  const command = ['leases', 'revoke', lease!.lease_id, '--reason', 'unpaid'];
  for (const [extra, code, error] of [
    [[], 2, /^error usage: --confirm osaka and --code DIGITS are required/m],
    [['--code', '000000'], 2, /^error usage: --confirm osaka is required/m],
    [['--confirm', 'tokyo'], 2, /^error confirmation_mismatch: 'tokyo' is not osaka/m],
    [['--confirm', 'osaka'], 2, /^error usage: --code is required/m],
    [['--confirm', 'osaka', '--code', '000000'], 4, /^error not_authenticated/m],
  ] as const) {
    const rejected = await identity(...command, ...extra);
    expect(rejected).toMatchObject({
      code,
      stdout: '',
      stderr: expect.stringMatching(error) as string,
    });
  }
  const code = ada.recovery_codes[0]!;
  const { stdout } = await identity(...command, '--confirm', 'osaka', '--code', code);
  expect(stdout).toBe(
    `Revoked: 1 working lease of osaka.\nThe last copy stops working at ${lease!.grace_ends_at}.\n`,
  );
  expect(await leasesOf('osaka')).toMatchObject([{ state: 'revoked', revoked_reason: 'unpaid' }]);
  expect((await identity('leases', 'issue', '--deployment', 'osaka')).code).toBe(0);
});

/** Runs the CLI with a person who types the id of the installation and a code. */
async function revokeAsPerson(
  installation: string,
  target: { readonly lease: string } | { readonly installation: string },
  code: string,
): Promise<{ readonly told: string; readonly data: unknown }> {
  const person = createTerminal([
    [`Type ${installation} to confirm:`, `${installation}\r`],
    ['Code from your authenticator:', `${code}\r`],
  ]);
  const message = vi.fn<(text: string) => void>();
  const io = { stdin: person.stdin, stderr: person.stderr, env: { SERVICE_LOCAL_TOKEN: token } };
  const { data } = await revoke.run(
    {
      cwd: directory,
      interactive: true,
      message,
      settings: { server_url: server.url } as Context['settings'],
      io: io as unknown as Io,
    } as unknown as Context,
    { lease: 'lease' in target ? target.lease : undefined },
    {
      deployment: 'installation' in target ? target.installation : undefined,
      reason: 'unpaid',
      confirm: undefined,
      code: undefined,
    },
  );
  expect(person.asked()).toBe(2);
  return { told: message.mock.calls.join(), data };
}

test('shows when the license ends before prompting for its id and a code', async () => {
  await ask('leases', 'issue', '--deployment', 'kyoto');
  const [lease] = await leasesOf('kyoto');
  const { told, data } = await revokeAsPerson(
    'kyoto',
    { installation: 'kyoto' },
    ada.recovery_codes[1]!,
  );
  expect(told).toBe(
    `This revokes 1 working lease of kyoto, the last until ${lease!.grace_ends_at}. Nothing can end them before.`,
  );
  expect(data).toMatchObject({ revoked_leases: 1, effective_at: lease!.grace_ends_at });
  const denied = await identity('leases', 'issue', '--deployment', 'kyoto');
  expect(denied).toMatchObject({ code: 4 });
  const reinstate = /^error license_revoked: .*work until.*\n→ .*identity deployments reinstate/;
  expect(denied.stderr).toMatch(reinstate);
  const code = await identity('devices', 'enroll-code', '--deployment', 'kyoto');
  expect(code).toMatchObject({ code: 4, stdout: '' });
  expect(code.stderr).toMatch(reinstate);
});

test('revoking by lease shows and revokes the license of its machine', async () => {
  for (const ttl of ['90d', '1d', '2d', '3d']) {
    await ask('leases', 'issue', '--deployment', 'nara', '--ttl', ttl);
  }
  const [third, second, first] = await leasesOf('nara');
  // The second lease renewed the first; the third was issued separately to the same device.
  await world.identity.storage.write(async (tx) => {
    for (const device_id of ['old', 'new']) {
      await tx
        .insertInto('devices')
        .values({
          device_id,
          deployment_id: 'nara',
          x: device_id,
          name: device_id,
          enrolled_at: world.now,
          replaces: null,
          first_used_at: null,
          revoked_at: null,
          revoked_by: null,
          revoked_reason: null,
        })
        .execute();
    }
    const change = (id: string, values: object) =>
      tx.updateTable('license_leases').set(values).where('lease_id', '=', id).execute();
    await change(first!.lease_id, { device_id: 'old' });
    await change(second!.lease_id, { device_id: 'new', lineage_id: first!.lineage_id });
    await change(third!.lease_id, { device_id: 'new' });
  });
  const { told, data } = await revokeAsPerson(
    'nara',
    { lease: first!.lease_id },
    ada.recovery_codes[2]!,
  );
  expect(told).toBe(
    `This revokes 3 working leases of the device old of nara, the last until ${third!.grace_ends_at}. Nothing can end them before.`,
  );
  expect(data).toMatchObject({ revoked_leases: 3, effective_at: third!.grace_ends_at });
});

test('shows the rotation of keys, and refuses to retire the signing key', async () => {
  const { keys } = await ask<{ keys: { public_key_id: string }[] }>('keys', 'list');
  const id = keys[0]!.public_key_id;
  const { stdout } = await identity('keys', 'rotate-status');
  expect(stdout).toMatch(new RegExp(`^${id} signs since .*\\nNo rotation is in progress.\\n$`));
  expect(await identity('keys', 'retire', id)).toMatchObject({
    code: 6,
    stderr: expect.stringMatching(/^error key_in_use: /) as string,
  });
  const dashed = `--${id.slice(2)}`;
  expect(await identity('keys', 'retire', dashed, '--json')).toMatchObject({ code: 1 });
  expect((await identity('keys', 'retire', '--foce', id)).stderr).toContain("option '--foce'");
});
