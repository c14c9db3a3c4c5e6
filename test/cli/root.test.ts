import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { KeyState, Keyset } from '../../src/api/keys.ts';
import { parseEnrollmentText } from '../../src/lease/enrollment-code.ts';
import {
  addSignatures,
  lifetime,
  publicKeyOf,
  signRoot,
  type SignedDocument,
} from '../../src/identity/root-documents.ts';
import { signerOf } from '../../src/identity/signing-key.ts';
import { verifyTrust, type Trust } from '../../src/lease/trust.ts';
import { newWorld, type Person, type World } from '../identity/people.ts';
import { serveHere, type ServerHere } from '../server/running.ts';
import { mainlyOn } from '../storage/databases.ts';
import { addAcme } from './acme.ts';
import { inProcess } from './in-process.ts';
import { createTerminal } from './terminal.ts';
import type { Result } from './service-local.ts';
import { isAtLength } from '../length.ts';

describe.each(mainlyOn('sqlite'))('the trust root, with a server on %s', (kind) => {
  let world: World;
  let server: ServerHere;
  let ada: Person;
  let token: string;
  let directory: string;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'service-local-root-'));
    world = await newWorld(kind);
    world.now = Date.now();
    ada = await world.newPerson();
    token = await ada.token('license', 'admin', 'read');
    await addAcme(world.identity, ['tokyo']);
    server = await serveHere(world.database);
  });
  afterEach(async () => {
    await server.stop();
    await world.close();
    await rm(directory, { recursive: true });
  });

  const cli = (...words: string[]): Promise<Result> =>
    inProcess(['identity', ...words], {
      cwd: directory,
      env: { ...server.env, SERVICE_LOCAL_TOKEN: token },
    });
  const ask = async <T = Record<string, unknown>>(...words: string[]): Promise<T> => {
    const { code, stdout, stderr } = await cli(...words, '--json');
    expect({ code, error: code === 0 ? '' : stderr }).toEqual({ code: 0, error: '' });
    return JSON.parse(stdout) as T;
  };
  const chain = ['--chain', 'root/license-root.json'] as const;
  const key = (name: string): string[] => ['--key', `root/${name}.pem`];
  const code = (): string[] => ['--code', ada.recovery_codes[used++]!];
  let used = 0;
  beforeEach(() => {
    used = 0;
  });
  const published = async (): Promise<string> =>
    (await fetch(`${server.url}/.well-known/license-keys.json`)).text();
  const trusted = async (held?: Trust, pin?: string, now = Date.now()): Promise<Trust> => {
    const trust = verifyTrust(await published(), { held, pin, now });
    if (!trust.ok) throw new Error(`${trust.reason}: ${trust.detail}`);
    return trust;
  };
  const keys = async (): Promise<KeyState[]> =>
    (await ask<{ keys: KeyState[] }>('keys', 'list')).keys;
  /** Key ids may begin with a hyphen. */
  const retire = async (id: string): Promise<void> => {
    expect(await cli('keys', 'retire', '--', id)).toMatchObject({ code: 0 });
  };
  /** Restarts the server with another signing key. */
  const restart = async (pem: string): Promise<void> => {
    await server.stop();
    server = await serveHere(world.database, { SERVICE_AUTH_LICENSE_LEASE_PRIVATE_KEY_PEM: pem });
  };
  const newPem = (): { readonly pem: string; readonly id: string; readonly x: string } => {
    const { privateKey } = generateKeyPairSync('ed25519');
    const { publicKeyId: id, x } = signerOf(privateKey);
    return { pem: privateKey.export({ format: 'pem', type: 'pkcs8' }), id, x };
  };
  const setUp = async (): Promise<string> => {
    const { fingerprint } = await ask<{ fingerprint: string }>('root', 'init', '--out', 'root');
    await ask(
      'root',
      'sign-keyset',
      ...chain,
      ...key('root-key-1'),
      '--yes',
      '--upload',
      ...code(),
    );
    return fingerprint;
  };

  test('init writes keys that only their owner can read, prints none, and overwrites nothing', async () => {
    const words = ['root', 'init', '--out', 'root', '--keys', '2', '--threshold', '2'];
    const made = await cli(...words);
    expect(made).toMatchObject({ code: 0, stderr: '' });
    expect(made.stdout).not.toMatch(/PRIVATE/);
    const pem = await readFile(join(directory, 'root/root-key-2.pem'), 'utf8');
    expect(pem).toMatch(/^-----BEGIN PRIVATE KEY-----/);
    expect((await stat(join(directory, 'root/root-key-2.pem'))).mode & 0o777).toBe(0o600);
    expect(await cli(...words)).toMatchObject({ code: 6 });
    expect(await readFile(join(directory, 'root/root-key-2.pem'), 'utf8')).toBe(pem);
    expect(await cli('root', 'init', '--out', 'x', '--threshold', '2')).toMatchObject({ code: 2 });
    const shown = await cli('root', 'show', 'root/license-root.json');
    expect(shown.stdout).toMatch(/^root +[\w-]{43}\nissuer +service-local\nversion +1, until 20/);
    expect((await cli('root', 'show')).stdout).toMatch(/publishes no root/);
  });

  test('machines that hold the key of the server accept the root in its published keyset', async () => {
    const before = await trusted();
    expect(before.root).toBeUndefined();
    const fingerprint = await setUp();
    expect(await trusted(undefined, fingerprint)).toMatchObject({
      by: 'pin',
      keyset: { version: 1 },
    });
    // The machines hold a bare key, which signed the keyset.
    expect(await trusted(before)).toMatchObject({ by: 'held', root: { lineage: [fingerprint] } });
    const { keys: bare } = JSON.parse(await published()) as Keyset;
    expect(bare).toMatchObject([{ status: 'active' }]);
    expect(await ask('root', 'show')).toMatchObject({
      root: { fingerprint },
      keyset: { version: 1 },
    });
    const { entries } = await ask<{ entries: object[] }>(
      'audit',
      'list',
      '--action',
      'admin.identity.root.store',
    );
    expect(entries).toMatchObject([{ target: `root:${fingerprint}`, details: { former: null } }]);
  });

  test.runIf(isAtLength)(
    'machines that hold the key of the server reject another root under the published keyset',
    async () => {
      const held = await trusted();
      await setUp();
      const { keyset } = JSON.parse(await published()) as { keyset: SignedDocument };
      const stranger = signerOf(generateKeyPairSync('ed25519').privateKey);
      const root = signRoot(
        {
          version: 1,
          issuer: 'service-local',
          ...lifetime(Date.now(), 86_400),
          threshold: 1,
          keys: [publicKeyOf(stranger)],
        },
        [stranger],
      );
      const forged = { roots: [root], keyset: addSignatures(keyset, [stranger]) };
      expect(verifyTrust(JSON.stringify(forged), { held, now: Date.now() })).toMatchObject({
        ok: false,
        reason: 'not_vouched_for',
      });
    },
  );

  test.runIf(isAtLength)(
    'without a root, the current key vouches for the next one, and a root can follow',
    async () => {
      const held = await trusted();
      const next = newPem();
      expect(await cli('keys', 'announce', `--key=${next.x}`, '--code', '000000')).toMatchObject({
        code: 4,
      });
      await ask('keys', 'announce', `--key=${next.x}`, ...code());
      const told = await trusted(held);
      expect(told).toMatchObject({ by: 'held', keyset: { version: 1 } });
      await restart(next.pem);
      const [active, former] = await keys();
      expect(active).toMatchObject({ public_key_id: next.id, status: 'active', in_keyset: null });
      // One machine holds the former key, the other has renewed since.
      for (const one of [held, told]) expect((await trusted(one)).keys.has(next.id)).toBe(true);

      await retire(former!.public_key_id);
      expect(JSON.parse(await published())).not.toHaveProperty('keyset');
      expect((await trusted(told)).keys.size).toBe(1);
      const again = newPem();
      await ask('keys', 'announce', `--key=${again.x}`, ...code());
      const second = await trusted(told);
      expect(second).toMatchObject({ keyset: { version: 2 } });
      await setUp();
      expect(await trusted(second)).toMatchObject({ by: 'held', root: {}, keyset: { version: 3 } });
      const refused = await cli('keys', 'announce', `--key=${newPem().x}`, ...code());
      expect(refused.stderr).toMatch(/conflict: this issuer has a trust root/);
    },
  );

  test.runIf(isAtLength)('without a root, machines do not trust an unannounced key', async () => {
    const held = await trusted();
    await ask('keys', 'announce', `--key=${newPem().x}`, ...code());
    await restart(newPem().pem);
    expect(JSON.parse(await published())).not.toHaveProperty('keyset');
    await expect(trusted(held)).rejects.toThrow('not_vouched_for');
    expect(server.log()).toMatch(
      /will reject key \S+ because no earlier key has endorsed it: restart the server/,
    );
  });

  test('a first root needs a fresh second factor', async () => {
    await ask('root', 'init', '--out', 'root');
    const sign = ['root', 'sign-keyset', ...chain, ...key('root-key-1'), '--yes', '--upload'];
    expect(await cli(...sign, '--code', '000000')).toMatchObject({ code: 4 });
    expect(JSON.parse(await published())).not.toHaveProperty('roots');
  });

  test.runIf(isAtLength)(
    'an enrollment code carries the fingerprint of the root and also works without it',
    async () => {
      const fingerprint = await setUp();
      for (const strip of [false, true]) {
        const { stdout } = await cli('devices', 'enroll-code', '--deployment', 'tokyo');
        const parsed = parseEnrollmentText(stdout)!;
        expect(parsed.rootFingerprint).toBe(fingerprint);
        const home = join(directory, `home-${strip}`);
        const enrolled = await inProcess(
          ['license', 'enroll', '--code', strip ? parsed.code : stdout.trim()],
          { cwd: directory, env: { ...server.env, SERVICE_LOCAL_HOME: home } },
        );
        expect({ code: enrolled.code, error: enrolled.stderr }).toMatchObject({ code: 0 });
      }
    },
  );

  test('a new signing key issues no leases until a keyset with that key is uploaded', async () => {
    await setUp();
    const held = await trusted();
    await ask('leases', 'issue', '--deployment', 'tokyo', '--out', 'old.json');
    const next = newPem();
    await restart(next.pem);
    expect(server.log()).toMatch(
      /this server issues no leases: the signed keyset does not contain/,
    );
    const issue = ['leases', 'issue', '--deployment', 'tokyo', '--out', 'new.json'];
    const refused = await cli(...issue);
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.stderr).toMatch(
      /license_lease_unavailable.*\n→ Run `service-local identity root sign-keyset/,
    );
    const ready = (await (await fetch(`${server.url}/readyz`)).json()) as object;
    expect(ready).toMatchObject({
      status: 'degraded',
      missing: [{ part: 'signing_key', reason: 'unsigned_key' }],
    });
    const status = await cli('keys', 'rotate-status');
    expect(status.stdout).toContain(`${next.id} does not sign yet`);
    expect(status.stdout).toMatch(
      /Run this on the machine with the root key: service-local identity root/,
    );
    expect(await keys()).toMatchObject([
      { public_key_id: next.id, status: 'pending', in_keyset: false },
      { status: 'active', in_keyset: true },
    ]);

    // On a machine without a network, from a copied list of keys.
    await writeFile(join(directory, 'keys.json'), JSON.stringify({ keys: await keys() }));
    const sign = ['root', 'sign-keyset', ...chain, ...key('root-key-1')];
    const offline = await inProcess(
      ['identity', ...sign, '--keys-from', 'keys.json', '--yes', '--json'],
      { cwd: directory },
    );
    expect(offline).toMatchObject({ code: 0 });
    expect(offline.stderr).toContain(`adds the key ${next.id}`);
    const uploaded = await ask('root', 'sign-keyset', ...chain, '--upload');
    expect(uploaded).toMatchObject({ version: 2, stored: { activated: next.id } });
    expect(await cli(...issue)).toMatchObject({ code: 0 });
    expect(await trusted(held)).toMatchObject({ by: 'held', keyset: { version: 2 } });
  });

  test.runIf(isAtLength)(
    'a server with another issuer name issues no leases, since machines would reject them',
    async () => {
      await setUp();
      await server.stop();
      server = await serveHere(world.database, { SERVICE_LOCAL_LICENSE_ISSUER: 'other' });
      expect(server.log()).toMatch(
        /this server issues no leases: the trust root belongs to the issuer service-local, but license_issuer is other/,
      );
      const ready = (await (await fetch(`${server.url}/readyz`)).json()) as object;
      expect(ready).toMatchObject({ missing: [{ part: 'signing_key', reason: 'other_issuer' }] });
      const refused = await cli('leases', 'issue', '--deployment', 'tokyo', '--out', 'new.json');
      expect(refused.stderr).toMatch(/license_lease_unavailable/);
    },
  );

  test.runIf(isAtLength)('a key in the keyset signs as soon as the server starts', async () => {
    await setUp();
    const next = newPem();
    const add = [`--add=${next.x}`, '--yes', '--upload'];
    await ask('root', 'sign-keyset', ...chain, ...key('root-key-1'), ...add);
    await restart(next.pem);
    await ask('leases', 'issue', '--deployment', 'tokyo', '--out', 'new.json');
    expect(await keys()).toMatchObject([{ public_key_id: next.id, status: 'active' }, {}]);
  });

  test.runIf(isAtLength)(
    'a second server with the former key issues leases until the keyset no longer holds that key',
    async () => {
      await setUp();
      const [former] = await keys();
      const next = newPem();
      const sign = ['root', 'sign-keyset', ...chain, ...key('root-key-1'), '--yes', '--upload'];
      await ask(...sign, `--add=${next.x}`);
      const env = { SERVICE_AUTH_LICENSE_LEASE_PRIVATE_KEY_PEM: next.pem };
      const second = await serveHere(world.database, env);
      try {
        const preview = ['leases', 'issue', '--deployment', 'tokyo', '--dry-run'];
        expect(await cli(...preview)).toMatchObject({ code: 0 });
        await ask(...sign, '--retire', former!.public_key_id);
        const refused = await cli(...preview);
        expect(refused.stderr).toMatch(
          /license_lease_unavailable: the signed keyset does not contain/,
        );
        const there = { env: { ...second.env, SERVICE_LOCAL_TOKEN: token } };
        expect(await inProcess(['identity', ...preview], there)).toMatchObject({ code: 0 });
      } finally {
        await second.stop();
      }
    },
  );

  test.runIf(isAtLength)(
    'rejects an older keyset, another root, another issuer, and a keyset without a key in use',
    async () => {
      await setUp();
      const first = await readFile(join(directory, 'root/license-root.json'), 'utf8');
      const sign = ['root', 'sign-keyset', ...chain, ...key('root-key-1'), '--yes'];
      await ask(...sign, '--upload');
      await writeFile(join(directory, 'old.json'), first);
      const old = await cli('root', 'sign-keyset', '--chain', 'old.json', '--upload');
      expect(old).toMatchObject({ code: 6 });
      expect(old.stderr).toMatch(/keyset_rollback|has version 1, but version 2 is already trusted/);

      const other = await newChain('other');
      expect((await cli(...other)).stderr).toMatch(/does not descend from the trusted one/);
      const foreign = await newChain('foreign', '--license-issuer', 'evil');
      expect(await cli(...foreign, '--replace', ...code())).toMatchObject({
        code: 6,
        stderr: expect.stringMatching(/belongs to the issuer evil/) as string,
      });

      const [active] = await keys();
      const lacking = await cli(
        ...sign,
        '--retire',
        active!.public_key_id,
        '--add',
        newPem().x,
        '--upload',
      );
      expect(lacking.stderr).toMatch(/the keyset lacks the active signing key/);
      expect(await trusted()).toMatchObject({ keyset: { version: 2 } });

      await ask('leases', 'issue', '--deployment', 'tokyo', '--out', 'lease.json');
      const next = newPem();
      await ask(...sign, `--add=${next.x}`, '--upload');
      await restart(next.pem);
      const without = await cli(...sign, '--retire', active!.public_key_id, '--upload');
      expect(without.stderr).toMatch(
        /lacks the key \S+, which signed leases that are still in use/,
      );
    },
  );

  test.runIf(isAtLength)(
    'the next keyset withdraws a retired key, and the status prints the command for that',
    async () => {
      await setUp();
      const [former] = await keys();
      const next = newPem();
      const sign = ['root', 'sign-keyset', ...chain, ...key('root-key-1'), '--yes', '--upload'];
      await ask(...sign, `--add=${next.x}`);
      await restart(next.pem);
      const id = former!.public_key_id;
      await retire(id);
      const { stdout } = await cli('keys', 'rotate-status');
      expect(stdout).toContain(`${id} is retired, but the signed keyset still contains it.`);
      expect(await ask(...sign)).toMatchObject({ keys: [next.id], retired: [id] });
      expect((await trusted()).keyset).toMatchObject({ retired: [id] });
      expect((await cli('keys', 'rotate-status')).stdout).not.toMatch(/Run this/);
    },
  );

  /** Returns the command line that uploads a keyset signed by another root. */
  const newChain = async (name: string, ...more: string[]): Promise<string[]> => {
    await ask('root', 'init', '--out', name, ...more);
    const file = ['root', 'sign-keyset', '--chain', `${name}/license-root.json`];
    await ask(...file, '--key', `${name}/root-key-1.pem`, '--yes');
    return [...file, '--upload'];
  };

  test('two of three key holders sign one after the other, and a single signature does not suffice', async () => {
    await ask('root', 'init', '--out', 'root', '--keys', '3', '--threshold', '2');
    const sign = ['root', 'sign-keyset', ...chain];
    const alone = await cli(...sign, ...key('root-key-1'), '--yes', '--upload', '--json');
    expect(alone).toMatchObject({ code: 6 });
    expect(JSON.parse(await published())).not.toHaveProperty('roots');
    const again = await ask(...sign, ...key('root-key-1'), '--continue');
    expect(again).toMatchObject({ complete: false, signatures: [{ count: 1, threshold: 2 }] });
    const both = [...sign, ...key('root-key-3'), '--continue', '--upload', ...code()];
    expect(await ask(...both)).toMatchObject({ version: 1, complete: true });
    expect(await trusted()).toMatchObject({ keyset: { version: 1 } });
    const stranger = newPem();
    await writeFile(join(directory, 'stranger.pem'), stranger.pem);
    const refused = await cli(...sign, '--key', 'stranger.pem', '--continue');
    expect(refused).toMatchObject({ code: 3 });
  });

  test('machines follow a rotation of the root and no longer accept the lost key', async () => {
    await setUp();
    const held = await trusted();
    await ask(
      'root',
      'rotate',
      ...chain,
      ...key('root-key-1'),
      '--new-keys',
      '2',
      '--threshold',
      '2',
    );
    const sign = ['root', 'sign-keyset', ...chain, '--yes', '--upload'];
    expect(await cli(...sign, ...key('root-key-1'))).toMatchObject({ code: 3 });
    const signed = await ask(...sign, ...key('root-key-v2-1'), ...key('root-key-v2-2'));
    expect(signed).toMatchObject({ version: 2 });
    const first = held.root!.lineage[0]!;
    const shown = await ask<{ root: { fingerprint: string } }>('root', 'show');
    expect(shown).toMatchObject({ root: { version: 2, first_fingerprint: first } });
    expect(shown.root.fingerprint).not.toBe(first);
    expect((await cli('root', 'show')).stdout).toContain(`first root  ${first} (pin this one)`);
    const after = await trusted(held);
    expect(after).toMatchObject({ by: 'held', root: { claims: { version: 2, threshold: 2 } } });
    expect(verifyTrust(JSON.stringify({ keys: [] }), { held: after, now: 0 })).toMatchObject({
      ok: false,
    });
  });

  test('a lost root is replaced with a second factor, and pinned machines refuse the new one', async () => {
    const lost = await setUp();
    const held = await trusted();
    const upload = await newChain('fresh');
    expect(await cli(...upload)).toMatchObject({ code: 6 });
    await ask(...upload, '--replace', ...code());
    const fingerprint = (await trusted()).root!.lineage.at(-1)!;
    expect(fingerprint).not.toBe(lost);
    await expect(trusted(held)).rejects.toThrow('other_root');
    expect(await trusted(undefined, fingerprint)).toMatchObject({ by: 'pin' });
  });

  test.runIf(isAtLength)(
    'replaces a lost root that was rotated, and rejects a stale file of the same root',
    async () => {
      await setUp();
      const stale = await readFile(join(directory, 'root/license-root.json'), 'utf8');
      await ask('root', 'rotate', ...chain, ...key('root-key-1'), '--new-keys', '1');
      const sign = ['root', 'sign-keyset', ...chain, '--yes'];
      await ask(...sign, ...key('root-key-v2-1'), '--upload');
      await writeFile(join(directory, 'root/license-root.json'), stale);
      const old = await cli(...sign, ...key('root-key-1'));
      expect(old).toMatchObject({ code: 6 });
      expect(old.stderr).toMatch(/the server has a newer root than the file/);

      const { fingerprint } = await ask('root', 'init', '--out', 'fresh');
      const file = ['--chain', 'fresh/license-root.json', '--key', 'fresh/root-key-1.pem'];
      const upload = ['root', 'sign-keyset', ...file, '--yes', '--upload'];
      const without = await cli(...upload);
      expect(without).toMatchObject({ code: 6 });
      expect(without.stderr).toMatch(/does not descend from the trusted one/);
      await ask(...upload, '--replace', ...code());
      expect((await trusted()).root!.lineage).toEqual([fingerprint]);
    },
  );

  test.runIf(isAtLength)(
    'a key that does not belong to the current root cannot rotate it and writes no file',
    async () => {
      await ask('root', 'init', '--out', 'root');
      const rotate = ['root', 'rotate', ...chain, ...key('root-key-1'), '--new-keys', '1'];
      await ask(...rotate);
      const before = await readFile(join(directory, 'root/license-root.json'), 'utf8');
      const again = await cli(...rotate);
      expect(again).toMatchObject({ code: 3 });
      expect(again.stderr).toMatch(/invalid_signing_key: \S+ is not a key of the current root/);
      expect(await readFile(join(directory, 'root/license-root.json'), 'utf8')).toBe(before);
      expect(await readdir(join(directory, 'root'))).not.toContain('root-key-v3-1.pem');

      const stranger = newPem();
      await writeFile(join(directory, 'stranger.pem'), stranger.pem);
      const more = ['root', 'rotate', ...chain, '--key', 'stranger.pem', '--continue'];
      expect(await cli(...more)).toMatchObject({ code: 3 });
      expect(await readFile(join(directory, 'root/license-root.json'), 'utf8')).toBe(before);
    },
  );

  test.runIf(isAtLength)(
    'rejects a root that lacks signatures, and prints the command that adds them',
    async () => {
      await ask('root', 'init', '--out', 'root', '--keys', '2', '--threshold', '2');
      const sign = ['root', 'sign-keyset', ...chain, '--yes', '--upload'];
      await ask(...sign, ...key('root-key-1'), ...key('root-key-2'), ...code());
      await ask('root', 'rotate', ...chain, ...key('root-key-1'), '--expires-in', '900d');
      const refused = await cli(...sign, ...key('root-key-1'), ...key('root-key-2'));
      expect(refused).toMatchObject({ code: 6 });
      expect(refused.stderr).toMatch(
        /→ .*service-local identity root rotate --chain license-root.json --key KEY --continue/,
      );
    },
  );

  test.runIf(isAtLength).each([
    ['Ctrl-C', '\x03'],
    ['Ctrl-D', '\x04'],
  ])(
    '%s at the prompt ends the command and signs nothing',
    async (_name, typed) => {
      const made = newPem();
      await ask('root', 'init', '--out', 'root');
      const list = { keys: [{ public_key_id: made.id, x: made.x }] };
      await writeFile(join(directory, 'keys.json'), JSON.stringify(list));
      const before = await readFile(join(directory, 'root/license-root.json'), 'utf8');
      vi.stubEnv('TERM', 'xterm');
      const signed = await inProcess(
        [
          'identity',
          'root',
          'sign-keyset',
          ...chain,
          ...key('root-key-1'),
          '--keys-from',
          'keys.json',
        ],
        { cwd: directory, person: createTerminal([['Type yes', typed]]) },
      ).finally(() => vi.unstubAllEnvs());
      expect(signed).toMatchObject({ code: 130 });
      expect(signed.stderr).toMatch(/error interrupted/);
      expect(await readFile(join(directory, 'root/license-root.json'), 'utf8')).toBe(before);
    },
    5000,
  );

  test.runIf(isAtLength).each([
    [['--upload'], /the file has no signed keyset to upload\n→ Sign a keyset first, with --key/],
    [
      ['--key', 'root/root-key-1.pem', '--continue'],
      /the file has no keyset to sign with --continue\n→ .*without --continue/,
    ],
    [[], /specify --key or --upload\n→ Pass the file of a root key with --key/],
  ])('a keyset that was never signed is refused with %j', async (words, message) => {
    await ask('root', 'init', '--out', 'root');
    const refused = await cli('root', 'sign-keyset', ...chain, ...words);
    expect(refused).toMatchObject({ code: 2 });
    expect(refused.stderr).toMatch(message);
  });

  test.runIf(isAtLength)(
    'warns in the log and the metrics of documents that expire within 60 days',
    async () => {
      await ask('root', 'init', '--out', 'root', '--expires-in', '61d');
      const sign = ['root', 'sign-keyset', ...chain, ...key('root-key-1'), '--yes', '--upload'];
      await ask(...sign, '--expires-in', '59d', ...code());
      await restart(newPem().pem);
      expect(server.log()).toMatch(
        /the license keyset expires at 20\S+: run `service-local identity root sign/,
      );
      expect(server.log()).not.toMatch(/license root expires/);
      const ready = (await (await fetch(`${server.url}/readyz`)).json()) as object;
      expect(ready).toMatchObject({ warnings: [{ part: 'trust_root', reason: 'keyset_expires' }] });
      // Only an enrolled machine asks a server.
      const { stdout: text } = await cli('devices', 'enroll-code', '--deployment', 'tokyo');
      const machine = {
        cwd: directory,
        env: { ...server.env, SERVICE_LOCAL_HOME: join(directory, 'machine') },
      };
      await inProcess(['license', 'enroll', '--code', text.trim()], machine);
      const doctor = await inProcess(['doctor', '--json'], machine);
      const { checks } = JSON.parse(doctor.stdout) as { checks: { code: string }[] };
      expect(checks.find(({ code: name }) => name === 'server')).toMatchObject({
        status: 'warn',
        summary: expect.stringMatching(/the license keyset expires at 20/) as string,
      });
      const answer = await fetch(`${server.url}/metrics`, {
        headers: { authorization: `Bearer ${token}` },
      });
      const [, left] = /license_trust_expires_in_seconds\{document="keyset"\} (\d+)/.exec(
        await answer.text(),
      )!;
      expect(Number(left)).toBeGreaterThan(58 * 86_400);
      expect(Number(left)).toBeLessThan(59 * 86_400 + 1);
    },
  );
});
