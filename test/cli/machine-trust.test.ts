import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import {
  createServer,
  request,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { DaemonState } from '../../daemon/daemon-state.ts';
import { anchorText } from '../../src/gate/anchor.ts';
import { openLicenseGate } from '../../src/gate/gate.ts';
import { updatePlan } from '../../src/identity/plans.ts';
import type { LeaseClaims } from '../../src/lease/claims.ts';
import { formatTime } from '../../src/lease/time.ts';
import { licenseFiles, type LicenseFiles } from '../../src/gate/license-files.ts';
import { startDaemon, type RunningDaemon } from '../daemon/running-daemon.ts';
import { newWorld, type Person, type World } from '../identity/people.ts';
import { claimsOf, issue, testKey } from '../lease/issuer.ts';
import { serveHere, type ServerHere } from '../server/running.ts';
import { addAcme } from './acme.ts';
import { inProcess } from './in-process.ts';
import type { Result } from './service-local.ts';
import { isAtLength } from '../length.ts';

const EVIL = testKey(66);

let directory: string;
let world: World;
let server: ServerHere;
let ada: Person;
let token: string;
/** Proxy at the address that machines know. */
let front: Server;
let url: string;
/** Whether an impostor with its own key answers at that address. */
let isEvil: boolean;
let home: string;
let files: LicenseFiles;
let daemons: RunningDaemon[];
/** Count of used recovery codes. */
let used: number;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-trust-'));
  home = join(directory, 'home');
  files = licenseFiles(home, {});
  [isEvil, daemons, used] = [false, [], 0];
  world = await newWorld('sqlite');
  world.now = Date.now();
  ada = await world.newPerson();
  token = await ada.token('license', 'admin', 'read');
  await addAcme(world.identity, ['tokyo', 'osaka']);
  front = createServer((incoming, outgoing) => {
    void (isEvil ? impersonate(incoming, outgoing) : forward(incoming, outgoing));
  });
  front.listen(0, '127.0.0.1');
  await once(front, 'listening');
  url = `http://127.0.0.1:${(front.address() as AddressInfo).port}`;
  server = await serveHere(world.database, { SERVICE_LOCAL_SERVER_PUBLIC_URL: url });
});

afterEach(async () => {
  for (const daemon of daemons) await daemon.kill();
  front.close();
  front.closeAllConnections();
  await server.stop();
  await world.close();
  rmSync(directory, { recursive: true });
});

async function forward(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const { method, headers } = incoming;
  const onward = request(`${server.url}${incoming.url}`, { method, headers });
  incoming.pipe(onward);
  const [answer] = (await once(onward, 'response')) as [IncomingMessage];
  outgoing.writeHead(answer.statusCode!, answer.headers);
  answer.pipe(outgoing);
}

/** Claims of a lease signed by the impostor. */
const evilClaims = (change: Partial<LeaseClaims> = {}): LeaseClaims =>
  claimsOf(EVIL, {
    lease_id: 'evil',
    deployment_id: 'tokyo',
    issuer: 'evil-issuer',
    issued_at: formatTime(Date.now()),
    ttl_seconds: 3 * 365 * 86_400,
    ...change,
  });
const evilKeyset = JSON.stringify({ keys: [EVIL.jwk] });

async function impersonate(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const body = await text(incoming);
  outgoing.writeHead(200, { 'service-name': 'service-local', 'content-type': 'application/json' });
  if (body === '') {
    outgoing.end(incoming.url!.endsWith('license-keys.json') ? evilKeyset : '{"status":"ok"}');
    return;
  }
  const { renewal_id } = JSON.parse(body) as { renewal_id: string };
  const device_thumbprint = deviceOf(readFileSync(files.lease, 'utf8'));
  const lease = issue(evilClaims({ renewal_id, device_thumbprint }), EVIL);
  outgoing.end(`{"lease":${lease},"limits":[],"warnings":[]}`);
}

function payloadOf(lease: string): LeaseClaims {
  const { payload } = JSON.parse(lease) as { payload: string };
  return JSON.parse(Buffer.from(payload, 'base64').toString()) as LeaseClaims;
}

const deviceOf = (lease: string): string => payloadOf(lease).device_thumbprint!;

/** Runs the CLI at the issuer. */
const identity = async (...words: string[]): Promise<Result> => {
  const env = { ...server.env, SERVICE_LOCAL_TOKEN: token };
  const result = await inProcess(['identity', ...words], { cwd: directory, env });
  expect({ code: result.code, stderr: result.code === 0 ? '' : result.stderr }).toEqual({
    code: 0,
    stderr: '',
  });
  return result;
};
/** Runs the CLI on the machine. */
const onMachine = (words: readonly string[], env: Record<string, string> = {}): Promise<Result> =>
  inProcess(words, {
    cwd: directory,
    env: { SERVICE_LOCAL_HOME: home, SERVICE_LOCAL_SERVER_URL: url, ...env },
  });
const license = (...words: string[]): Promise<Result> => onMachine(['license', ...words]);
const json = ({ stdout }: Result): unknown => JSON.parse(stdout);
const errorOf = (result: Result) =>
  (json(result) as { error: { code: string; reason: string; message: string } }).error;
const newCode = async (installation = 'tokyo'): Promise<string> =>
  (await identity('devices', 'enroll-code', '--deployment', installation)).stdout.trim();
const newRoot = async (name = 'root'): Promise<string> => {
  await identity('root', 'init', '--out', name);
  const chain = ['--chain', `${name}/license-root.json`, '--key', `${name}/root-key-1.pem`];
  const words = ['--yes', '--upload', '--code', ada.recovery_codes[used++]!];
  const replace = name === 'root' ? [] : ['--replace'];
  await identity('root', 'sign-keyset', ...chain, ...words, ...replace);
  const { stdout } = await identity('root', 'show', '--json');
  return (JSON.parse(stdout) as { root: { fingerprint: string } }).root.fingerprint;
};
const enroll = async (...words: string[]): Promise<Result> => {
  const result = await license('enroll', '--code', await newCode(), '--json', ...words);
  expect(result).toMatchObject({ code: 0 });
  return result;
};
const LICENSE_FILES = ['lease', 'keyset', 'root'] as const;
const contents = (): Record<string, string> =>
  Object.fromEntries(
    [...LICENSE_FILES.map((name) => files[name]), `${files.lease}.bak`].map((path) => [
      path,
      readFileSync(path, 'utf8'),
    ]),
  );
const state = (): DaemonState => JSON.parse(readFileSync(files.state, 'utf8')) as DaemonState;
const isLicensed = async (): Promise<boolean> => (await license('status')).code === 0;
interface Checked {
  readonly code: string;
  readonly status: string;
  readonly summary: string;
  readonly remedy?: string;
}
const doctor = async (): Promise<readonly Checked[]> => {
  const { stdout } = await onMachine(['doctor', '--json']);
  return (JSON.parse(stdout) as { checks: readonly Checked[] }).checks;
};

describe.each(['no root', 'a root'])('with an issuer that has %s, another server', (issuer) => {
  let before: Record<string, string>;

  beforeEach(async () => {
    if (issuer === 'a root') await newRoot();
    await enroll();
    before = contents();
    isEvil = true;
  });

  test.runIf(isAtLength)(
    'renews nothing: the lease still works, and is renewed once the right server is back',
    async () => {
      const refused = await license('renew', '--now');
      expect(refused).toMatchObject({ code: 3, stdout: '' });
      expect(refused.stderr).toMatch(
        /^error invalid_data: the keys of the server are not trusted: .*\n→ No file was changed, and the lease of this machine stays in force\./,
      );
      expect(contents()).toEqual(before);
      expect(await isLicensed()).toBe(true);
      expect(state()).toMatchObject({
        last_error: { code: 'invalid_data', reason: 'not_vouched_for' },
        failures_in_row: 1,
      });
      const { stdout } = await license('status');
      expect(stdout).toMatch(
        /The last renewal failed at \S+: the keys of the server are not trusted/,
      );
      const found = async () => (await doctor()).find(({ code }) => code === 'renewal');
      expect(await found()).toMatchObject({
        status: 'fail',
        summary: expect.stringMatching(
          /^the keys of the server are not trusted: .*; the lease works until 20/,
        ) as string,
      });
      isEvil = false;
      expect(await found()).toMatchObject({ status: 'ok' });
      expect(await license('renew', '--now')).toMatchObject({ code: 0 });
      expect(state()).toMatchObject({ last_error: null });
    },
  );

  test.runIf(isAtLength)(
    'is rejected by a running daemon, which logs this, waits, and renews at the right server',
    async () => {
      // The lease is due after this time.
      const { lease_id } = payloadOf(before[files.lease]!);
      const running_time = { lease_id, seconds: 6.5 * 86_400, boot_id: 'b', uptime_seconds: 1 };
      writeFileSync(files.state, JSON.stringify({ schema: 1, running_time }), { mode: 0o600 });
      const daemon = await run();
      const line = await daemon.logged('the lease was not renewed');
      expect(line).toMatch(/the keys of the server are not trusted: .*; next attempt at 20/);
      expect(contents()).toEqual(before);
      expect(await isLicensed()).toBe(true);
      expect(state()).toMatchObject({ last_error: { reason: 'not_vouched_for' } });
      const failing = (await doctor()).filter(({ status }) => status === 'fail');
      expect(failing.map(({ code }) => code)).toContain('renewal');
      isEvil = false;
      process.kill(daemon.pid, 'SIGHUP');
      await daemon.logged('renewed the lease: valid until');
      expect(contents()).not.toEqual(before);
    },
  );
});

const run = async (variables: Record<string, string> = {}): Promise<RunningDaemon> => {
  const env = { SERVICE_LOCAL_HOME: home, SERVICE_LOCAL_SERVER_URL: url, ...variables };
  const daemon = await startDaemon(directory, env);
  daemons.push(daemon);
  return daemon;
};

describe('while the daemon runs', () => {
  /** Replaces keys, lease and trust anchor with a consistent set of an impostor. */
  const swap = (lease_id: string): void => {
    const device_thumbprint = deviceOf(readFileSync(files.lease, 'utf8'));
    const lease = issue(evilClaims({ lease_id, device_thumbprint }), EVIL);
    writeFileSync(
      files.root,
      anchorText({ installationId: 'tokyo', issuer: 'evil-issuer', document: evilKeyset }),
    );
    writeFileSync(files.keyset, evilKeyset);
    writeFileSync(`${files.lease}.bak`, lease);
    writeFileSync(files.lease, lease);
  };

  test.runIf(isAtLength)(
    'restores license files that are swapped together, equally fast each time',
    async () => {
      await newRoot();
      await enroll();
      const before = contents();
      const daemon = await run();
      await daemon.logged('renewing');
      await expect.poll(() => state().next_attempt_at).toBeTruthy();
      const { next_attempt_at } = state();
      for (const times of [1, 2, 3]) {
        swap(`evil-${times}`);
        await daemon.logged(`put ${files.lease} back`, times);
        await expect.poll(contents).toEqual(before);
      }
      expect(await daemon.logged(`put ${files.root} back`)).toMatch(/evil-issuer/);
      await daemon.logged(`put ${files.keyset} back`);
      expect(readdirSync(home).filter((name) => name.includes('quarantined'))).not.toEqual([]);
      await expect.poll(state).toMatchObject({ next_attempt_at, unrepaired: null });
      expect(await isLicensed()).toBe(true);
    },
  );

  test.runIf(isAtLength)('does not undo changes made by a person', async () => {
    await enroll();
    const daemon = await run();
    await daemon.logged('renewing');
    const device_thumbprint = deviceOf(readFileSync(files.lease, 'utf8'));
    const lease = issue(evilClaims({ lease_id: 'next', issuer: 'next', device_thumbprint }), EVIL);
    writeFileSync(join(directory, 'next.json'), lease);
    writeFileSync(join(directory, 'keys.json'), evilKeyset);
    const words = ['import', 'next.json', '--keyset', 'keys.json'];
    const refused = await license(...words, '--json');
    expect(refused.code).toBe(6);
    expect(errorOf(refused)).toMatchObject({ reason: 'other_issuer' });
    expect(await license(...words, '--replace')).toMatchObject({ code: 0 });
    const after = contents();
    const said = await daemon.logged('accepted files that a person put in place');
    expect(said).toContain('installation tokyo of the issuer next');
    expect(contents()).toEqual(after);

    // The other remedy is to enroll again with the fingerprint of a root.
    await newRoot();
    rmSync(files.key);
    const enrolled = await enroll();
    expect(json(enrolled)).toMatchObject({ trust: { by: 'code' } });
    const again = contents();
    await daemon.logged('accepted files that a person put in place', 2);
    expect(contents()).toEqual(again);
    expect(await isLicensed()).toBe(true);
  });
});

describe('enrollment', () => {
  test.runIf(isAtLength)(
    'with the fingerprint of another root fails before the code is used, naming both',
    async () => {
      const fingerprint = await newRoot();
      const code = (await newCode()).split('.')[0]!;
      const other = 'A'.repeat(43);
      const wrong = await license('enroll', '--code', `${code}.${other}`, '--json');
      expect(wrong.code).toBe(3);
      const { reason, message } = errorOf(wrong);
      expect(reason).toBe('other_root');
      expect(message).toBe(
        `the code requires the root ${other}, but ${url} has the root ${fingerprint}`,
      );
      expect(existsSync(files.key)).toBe(false);
      const words = ['license', 'enroll', '--code', `${code}.${fingerprint}`, '--json'];
      const disagreeing = await onMachine(words, { SERVICE_LICENSE_ROOT: other });
      expect(errorOf(disagreeing).message).toMatch(/^SERVICE_LICENSE_ROOT requires the root A/);
      const enrolled = await onMachine(words, { SERVICE_LICENSE_ROOT: fingerprint });
      expect(enrolled).toMatchObject({ code: 0 });
      expect(json(enrolled)).toMatchObject({ trust: { by: 'code', root: fingerprint } });
    },
  );

  test.runIf(isAtLength)('that was never completed lets no renewal trust the server', async () => {
    const [code] = (await newCode()).split('.');
    const wrong = await license('enroll', '--code', code!.replaceAll(/[A-Z]/g, 'Z'));
    expect(wrong.code).not.toBe(0);
    expect(existsSync(files.key)).toBe(true);
    const renewed = await license('renew', '--now');
    expect(renewed.stderr).toMatch(/^error invalid_device_proof: /);
    expect(existsSync(files.keyset)).toBe(false);
    const { stderr } = await license('status');
    expect(stderr).toContain('Enroll this machine with `service-local license enroll`');
    const checks = await doctor();
    const found = (name: string) => checks.find((check) => check.code === name);
    expect(found('device_key')?.summary).toContain('it is unknown whether the device is enrolled');
    expect(found('lease_file')?.remedy).toContain('license enroll');
  });

  test('is accepted by a running gate, even if the former files were removed before', async () => {
    await enroll();
    const gate = await openLicenseGate({ files, enforced: true });
    for (const path of [files.key, ...Object.keys(contents())]) rmSync(path);
    const moved = await license('enroll', '--code', await newCode('osaka'));
    expect(moved).toMatchObject({ code: 0 });
    await expect.poll(() => gate.status().lease?.deployment_id).toBe('osaka');
    await gate.close();
  });

  test.runIf(isAtLength)('with a truncated code fails with an error about the code', async () => {
    const code = await newCode();
    const cut = await license('enroll', '--code', `${code}.abc`, '--json');
    expect(cut.code).toBe(2);
    expect(errorOf(cut)).toMatchObject({ reason: 'invalid_code' });
    const short = await license('enroll', '--code', 'AAAA-BBBB', '--json');
    expect(short.code).toBe(2);
    expect(errorOf(short)).toMatchObject({ reason: 'invalid_code' });
  });

  test('at a server without a root fails if a root is pinned', async () => {
    const code = await newCode();
    const pinned = await onMachine(['license', 'enroll', '--code', code, '--json'], {
      SERVICE_LICENSE_ROOT: 'B'.repeat(43),
    });
    expect(errorOf(pinned).message).toMatch(/requires the root B+, but \S+ has no root$/);
    expect(await license('enroll', '--code', code)).toMatchObject({ code: 0 });
  });

  test('trusts only the keys that a person names', async () => {
    const published = await (await fetch(`${url}/.well-known/license-keys.json`)).text();
    writeFileSync(join(directory, 'keys.json'), published);
    writeFileSync(join(directory, 'evil.json'), evilKeyset);
    const code = await newCode();
    const refused = await license('enroll', '--code', code, '--keyset', 'evil.json', '--json');
    expect(errorOf(refused)).toMatchObject({ reason: 'not_vouched_for' });
    const named = await license('enroll', '--code', code, '--keyset', 'keys.json', '--json');
    expect(json(named)).toMatchObject({ trust: { by: 'named' } });
    expect(named.stderr).not.toMatch(/First contact/);
  });

  test('prints at first contact what this machine trusts from now on', async () => {
    const root = await newRoot();
    const [code] = (await newCode()).split('.');
    const { stdout, stderr } = await license('enroll', '--code', code!, '--json');
    expect(JSON.parse(stdout)).toMatchObject({ trust: { by: 'first_contact', root } });
    expect(stderr).toContain(`This machine now trusts the root ${root}.`);
  });
});

test.runIf(isAtLength)(
  'a new code moves a machine to the next root after the issuer lost its root',
  async () => {
    const former = await newRoot();
    await enroll();
    const fingerprint = await newRoot('fresh');
    const refused = await license('renew', '--now');
    expect(refused.stdout).toMatch(
      /^No new key is accepted: the keys of the server are not trusted: /m,
    );
    expect(state()).toMatchObject({ last_error: null, refused_keyset: { reason: 'other_root' } });
    expect(await isLicensed()).toBe(true);
    const { stdout } = await license('enroll', '--code', await newCode());
    expect(stdout).not.toContain('the code changed nothing');
    expect(stdout).toContain('and has a valid lease, which it keeps.');
    expect(stdout).toContain(
      `This machine now trusts the root ${fingerprint}; before, it trusted the root ${former}.`,
    );
    const again = await enroll();
    expect(json(again)).toMatchObject({ trust: { by: 'code', root: fingerprint } });
    expect(await license('renew', '--now')).toMatchObject({ code: 0 });
  },
);

test.runIf(isAtLength)(
  'reports a wrong SERVICE_LICENSE_ROOT by the name of the variable',
  async () => {
    await newRoot();
    await enroll();
    const env = { SERVICE_LICENSE_ROOT: 'B'.repeat(43) };
    for (const words of [['status'], ['renew', '--now']]) {
      const { code, stderr } = await onMachine(['license', ...words], env);
      expect(code).not.toBe(0);
      expect(stderr).toMatch(/\n→ .*SERVICE_LICENSE_ROOT requires the root B{43}: compare it/);
      expect(stderr).not.toMatch(/stays in force|renew --now/);
    }
    const [lease, keyset] = [files.lease, files.keyset].map((path) => readFileSync(path, 'utf8'));
    writeFileSync(join(directory, 'brought.json'), `{"lease":${lease},"keyset":${keyset}}`);
    const fresh = { ...env, SERVICE_LOCAL_HOME: join(directory, 'fresh') };
    const imported = await onMachine(['license', 'import', 'brought.json'], fresh);
    expect(imported.stderr).toMatch(/\n→ Nothing was changed. SERVICE_LICENSE_ROOT requires/);
    expect(await isLicensed()).toBe(true);
  },
);

test.runIf(isAtLength)(
  'reports the key of another device as such, not as a temporary failure',
  async () => {
    await updatePlan(world.identity, 'operator', 'pro', { binding: 'device' });
    await enroll();
    const other = join(directory, 'other');
    const words = ['license', 'enroll', '--code', await newCode('osaka')];
    expect(await onMachine(words, { SERVICE_LOCAL_HOME: other })).toMatchObject({ code: 0 });
    cpSync(join(other, 'device.key'), files.key);
    const renewal = (await doctor()).find(({ code }) => code === 'renewal');
    expect(renewal?.summary).toMatch(/; its lease cannot be used on this machine$/);
    expect(renewal?.remedy).toContain('restore the key and lease of this machine');
    const { stderr } = await license('renew', '--now');
    expect(stderr).toContain('its installation is osaka, not tokyo');
    expect(stderr).toMatch(/\n→ .*put back those of this machine, or enroll it again/);
    expect(stderr).not.toContain('Try it again');
  },
);

test('accepts unannounced keys once a person names them', async () => {
  await enroll();
  isEvil = true;
  writeFileSync(join(directory, 'keys.json'), evilKeyset);
  const renewed = await license('renew', '--now', '--keyset', 'keys.json');
  expect(renewed).toMatchObject({ code: 0 });
  expect(await license('renew', '--now')).toMatchObject({ code: 0 });
  expect(payloadOf(readFileSync(files.lease, 'utf8')).issuer).toBe('evil-issuer');
});

test.runIf(isAtLength)('uses plain HTTP to another host only if a person allows it', async () => {
  const exposed = { SERVICE_LOCAL_SERVER_URL: 'http://nobody.invalid' };
  await enroll();
  const verbs = [
    ['license', 'enroll', '--code', 'ABCD'.repeat(7)],
    ['license', 'renew', '--now'],
    ['license', 'rotate-key'],
    ['daemon', 'start'],
    ['daemon', 'run'],
    ['daemon', 'install', '--print'],
  ];
  for (const words of verbs) {
    const refused = await onMachine([...words, '--json'], exposed);
    const said = refused.stderr + refused.stdout;
    expect({ words, code: refused.code }).toEqual({ words, code: 2 });
    expect(said).toMatch(/http:\/\/nobody\.invalid uses plain http: others on the network/);
  }
  const renewing = ['license', 'renew', '--now'];
  const allowed = await onMachine([...renewing, '--insecure'], exposed);
  expect(allowed.stderr).toMatch(/^error server_unreachable: /m);
  writeFileSync(join(home, 'config.yaml'), 'server_insecure: true\n');
  const stored = await onMachine(renewing, exposed);
  expect(stored.stderr).toMatch(/^error server_unreachable: /m);
  const unit = await onMachine(['daemon', 'install', '--print'], exposed);
  expect(unit.stdout).not.toContain('INSECURE');
  rmSync(join(home, 'config.yaml'));
  const typed = await onMachine(['daemon', 'install', '--print', '--insecure'], exposed);
  expect(typed.stdout).toContain('SERVICE_LOCAL_SERVER_INSECURE=true');
});

test.runIf(isAtLength)(
  'daemon status prints why the keys are trusted according to the pin of the daemon',
  async () => {
    const status = async (): Promise<{ text: string; trust: unknown }> => {
      const { stdout } = await onMachine(['daemon', 'status', '--json']);
      const { trust } = JSON.parse(stdout) as { trust: unknown };
      return { text: (await onMachine(['daemon', 'status'])).stdout, trust };
    };
    expect((await status()).trust).toBe(null);
    const fingerprint = await newRoot();
    await enroll();
    expect(await status()).toEqual({
      text: expect.stringContaining(
        `keys: this machine accepted the keys before (root ${fingerprint})`,
      ) as string,
      trust: { by: 'held', pin: null, root: fingerprint },
    });
    rmSync(files.root);
    expect(await status()).toEqual({
      text: expect.stringContaining('keys: unpinned: the keys are trusted because') as string,
      trust: { by: 'unpinned', pin: null, root: fingerprint },
    });
    await run({ SERVICE_LICENSE_ROOT: fingerprint });
    expect(await status()).toEqual({
      text: expect.stringContaining(
        `keys: the keys descend from the pinned root ${fingerprint}`,
      ) as string,
      trust: { by: 'pin', pin: fingerprint, root: fingerprint },
    });
  },
);

test('license status lists rejected files with the reasons', async () => {
  await newRoot();
  await enroll();
  const refused = async (): Promise<[path: string, reason: string][]> => {
    const { stdout } = await license('status', '--json');
    const { refused: all } = JSON.parse(stdout) as { refused: { path: string; reason: string }[] };
    return all.map(({ path, reason }) => [path, reason]);
  };
  expect(await refused()).toEqual([]);
  expect((await license('status')).stdout).not.toContain('is refused');
  writeFileSync(`${files.lease}.bak`, 'torn');
  writeFileSync(files.keyset, JSON.stringify({ keys: [EVIL.jwk] }));
  expect(await refused()).toEqual([
    [`${files.lease}.bak`, 'not_json'],
    [files.keyset, 'not_vouched_for'],
  ]);
  const { code, stdout } = await license('status');
  expect(code).toBe(0);
  expect(stdout).toContain(`${files.keyset} is refused: ${files.keyset} holds keys without`);
  expect(stdout).toContain(`${files.lease}.bak is refused: `);
  writeFileSync(files.root, 'torn');
  expect(await refused()).toContainEqual([files.root, 'not_json']);
});

test.runIf(isAtLength)('license status lists a lease that is bound to another device', async () => {
  await updatePlan(world.identity, 'operator', 'pro', { binding: 'device' });
  await enroll();
  rmSync(files.key);
  const { code, stdout } = await license('status', '--json');
  expect(code).toBe(4);
  expect((JSON.parse(stdout) as { refused: unknown }).refused).toContainEqual({
    path: files.lease,
    reason: 'no_device_key',
    detail: expect.any(String) as string,
  });
});
