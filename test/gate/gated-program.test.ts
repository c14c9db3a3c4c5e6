import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { anchorText } from '../../src/gate/anchor.ts';
import { writePrivateFile } from '../../src/base/private-file.ts';
import type { Decision, GateStatus } from '../../src/gate/decide.ts';
import { formatTime } from '../../src/lease/time.ts';
import { licenseFiles, type LicenseFiles } from '../../src/gate/license-files.ts';
import { inProcess } from '../cli/in-process.ts';
import { BASIC_ENV } from '../cli/service-local.ts';
import { claimsOf, issue, rootOf, testKey, type SigningKey } from '../lease/issuer.ts';
import { serveHere } from '../server/running.ts';
import { newDatabase } from '../storage/databases.ts';
import { fingerprintOf, FOREIGN_ROOT_KEY, published, ROOT_KEY } from './signed-keyset.ts';
import { isAtLength } from '../length.ts';

const KEY = testKey(1);
const OWN_KEY = testKey(3);
const DAY = 86_400_000;
const FEATURES = ['live_trading', 'byoc_deployments', 'kb_federation'];

/** Valid today: these processes go by the clock of the machine. */
const TODAY = {
  issued_at: formatTime(Date.now() - DAY),
  expires_at: formatTime(Date.now() + 300 * DAY),
};
const ROOT = rootOf([ROOT_KEY], TODAY);
const FOREIGN_ROOT = rootOf([FOREIGN_ROOT_KEY], TODAY);
const PIN = fingerprintOf(ROOT);
const SIGNED = published([KEY], TODAY, [ROOT]);
/** Made by the licensee: keys, a root of their own, and a lease for every feature. */
const OWN_KEYSET = JSON.stringify({ keys: [OWN_KEY.jwk] });
const OWN_SIGNED = published([OWN_KEY], TODAY, [FOREIGN_ROOT], [FOREIGN_ROOT_KEY]);

function lease(lease_id: string, key: SigningKey, change = {}): string {
  const issued_at = formatTime(Date.now() - DAY / 2);
  const claims = { lease_id, issued_at, entitlements: FEATURES, ...change };
  return issue(claimsOf(key, claims), key);
}
const GOOD = lease('good', KEY);
const OWN_LEASE = lease('own', OWN_KEY, { ttl_seconds: 4 * 365 * 86_400, issuer: 'evil-issuer' });

let files: LicenseFiles;
let home: string;
const programs: (() => Promise<unknown>)[] = [];

beforeEach(() => {
  home = join(mkdtempSync(join(tmpdir(), 'service-local-program-')), 'home');
  files = licenseFiles(home, {});
});
afterEach(async () => {
  for (const end of programs.splice(0)) await end();
  rmSync(dirname(home), { recursive: true });
});

const put = async (keyset: string, text: string): Promise<void> => {
  await writePrivateFile(files.keyset, keyset);
  await writePrivateFile(files.lease, text);
  await writePrivateFile(`${files.lease}.bak`, text);
};
const putAnchor = (document: string, installationId = 'deployment-1'): Promise<void> => {
  const issuer = 'https://licenses.example';
  return writePrivateFile(files.root, anchorText({ installationId, issuer, document }));
};

type Printed = Pick<GateStatus, 'refused' | 'trust'> & { readonly lease: string | null };

/** The program in a process of its own. @param root what it pins. */
async function start(root?: string, env: Readonly<Record<string, string>> = {}) {
  const program = join(import.meta.dirname, 'gated-program.ts');
  const child = spawn(process.execPath, [program, ...(root ? [root] : [])], {
    env: { ...BASIC_ENV, HOME: dirname(home), SERVICE_LOCAL_HOME: home, ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(child, 'close');
  programs.push(async () => {
    child.stdin.end();
    await ended;
  });
  const statuses: Printed[] = [];
  const decisions: Decision[] = [];
  let look = (): void => {};
  createInterface(child.stdout).on('line', (line) => {
    const { status, decision } = JSON.parse(line) as { status?: Printed; decision?: Decision };
    if (status !== undefined) statuses.push(status);
    if (decision !== undefined) decisions.push(decision);
    look();
  });
  const until = <T>(find: () => T | undefined): Promise<T> =>
    new Promise((resolve) => {
      look = () => {
        const found = find();
        if (found !== undefined) resolve(found);
      };
      look();
    });
  const status = (accept: (one: Printed) => boolean): Promise<Printed> =>
    until(() => statuses.findLast(accept));
  const decide = async (features: readonly string[]): Promise<readonly Decision[]> => {
    const count = decisions.length + features.length;
    child.stdin.write(`${features.join('\n')}\n`);
    return until(() =>
      decisions.length === count ? decisions.slice(-features.length) : undefined,
    );
  };
  await status(() => true);
  return { status, statuses, decide };
}

const doctor = async (env: Readonly<Record<string, string>> = {}) => {
  const { code, stdout } = await inProcess(['doctor', '--offline', '--json'], {
    env: { HOME: dirname(home), SERVICE_LOCAL_HOME: home, ...env },
  });
  const { checks } = JSON.parse(stdout) as { checks: Record<string, string>[] };
  const of = (name: string) => checks.find((check) => check['code'] === name)!;
  return { code, keyset: of('keyset'), trust: of('trust'), lease: of('lease_signature') };
};
const all = (decision: object): object[] => FEATURES.map(() => expect.objectContaining(decision));

describe('a licensee with keys, a keyset file and a lease of their own', () => {
  test.runIf(isAtLength).each([
    ['bare keys', OWN_KEYSET, 'not_vouched_for'],
    ['a root of their own', OWN_SIGNED, 'other_root'],
  ])('and %s gets nothing from a program that pins a root', async (_, keyset, reason) => {
    await put(keyset, OWN_LEASE);
    await putAnchor(keyset);
    const program = await start(PIN);
    expect(await program.decide(FEATURES)).toEqual(all({ allowed: false, reason }));

    const found = await doctor({ SERVICE_LICENSE_ROOT: PIN });
    expect(found).toMatchObject({
      code: 2,
      keyset: { status: 'fail', evidence: { reason } },
      trust: { status: 'fail', evidence: { pin: PIN, by: null, anchor_reason: reason } },
      lease: { status: 'skip', because: 'keyset' },
    });
    expect(found.keyset['remedy']).toContain('/.well-known/license-keys.json');
  });

  test('forged files license nothing under a pin, and the variable does not replace a root pinned by the program', async () => {
    await put(OWN_SIGNED, OWN_LEASE);
    const operated = await start(undefined, { SERVICE_LICENSE_ROOT: PIN });
    expect(await operated.decide(FEATURES)).toEqual(all({ reason: 'other_root' }));
    const env = { SERVICE_LICENSE_ROOT: fingerprintOf(FOREIGN_ROOT) };
    const program = await start(PIN, env);
    expect(await program.decide(FEATURES)).toEqual(all({ reason: 'other_root' }));
  });

  test.runIf(isAtLength)('forged files are only shown as unpinned without a pin', async () => {
    await put(OWN_KEYSET, OWN_LEASE);
    const program = await start();
    expect(await program.decide(FEATURES)).toEqual(all({ allowed: true }));
    expect(program.statuses.at(-1)?.trust).toEqual({ by: 'unpinned', root: null });
    expect((await doctor()).trust).toMatchObject({
      status: 'ok',
      summary: expect.stringMatching(/^unpinned: /),
    });
  });
});

test.runIf(isAtLength).each([
  ['that pins the root', PIN],
  ['on a machine with an anchor', undefined],
])('a running program %s keeps its lease when all its files are overwritten', async (_, root) => {
  await putAnchor(SIGNED);
  await put(SIGNED, GOOD);
  const program = await start(root);
  expect(await program.decide(['live_trading'])).toEqual([{ allowed: true, status: 'valid' }]);

  await put(OWN_SIGNED, OWN_LEASE);
  expect((await doctor()).keyset).toMatchObject({ evidence: { reason: 'other_root' } });
  await putAnchor(OWN_SIGNED, 'other');
  const swapped = ({ refused }: Printed): boolean => refused.length === 4;
  expect(await program.status(swapped)).toMatchObject({
    lease: 'good',
    refused: [
      { path: files.lease, reason: 'unknown_key' },
      { path: `${files.lease}.bak`, reason: 'unknown_key' },
      { path: files.keyset, reason: 'other_root' },
      { path: files.root },
    ],
  });
  expect(await program.decide(['live_trading'])).toEqual([{ allowed: true, status: 'valid' }]);
  expect(await doctor({ SERVICE_LICENSE_ROOT: PIN })).toMatchObject({
    code: 2,
    keyset: { evidence: { reason: 'other_root' } },
    trust: { evidence: { anchor_reason: 'other_root' } },
  });

  const next = lease('next', KEY, { issued_at: formatTime(Date.now()) });
  await putAnchor(SIGNED);
  await put(SIGNED, next);
  await program.status(({ lease: held, refused }) => held === 'next' && refused.length === 0);
  expect(program.statuses.filter(swapped)).toHaveLength(1);
  expect(await doctor()).toMatchObject({ keyset: { status: 'ok' }, trust: { status: 'ok' } });
});

test('doctor --fix restores the accepted keys and their lease, and accepts no others', async () => {
  await putAnchor(SIGNED);
  await put(OWN_SIGNED, OWN_LEASE);
  const env = { HOME: dirname(home), SERVICE_LOCAL_HOME: home };
  const fix = () => inProcess(['doctor', '--offline', '--fix'], { env });
  expect((await fix()).stdout).toContain(
    `fixed ${files.keyset}: the keys that this machine accepted were restored`,
  );
  expect(JSON.parse(readFileSync(files.keyset, 'utf8'))).toEqual(JSON.parse(SIGNED));
  expect(readFileSync(files.lease, 'utf8')).toBe(OWN_LEASE);
  await writePrivateFile(`${files.lease}.bak`, GOOD);
  expect((await fix()).stdout).toContain(`fixed ${files.lease}: the best copy was restored`);
  expect(readFileSync(files.lease, 'utf8')).toBe(GOOD);
  expect((await doctor()).trust).toMatchObject({ status: 'ok' });
});

test('a running server logs swapped license files, and logs when its license is correct again', async () => {
  await putAnchor(SIGNED);
  await put(SIGNED, GOOD);
  const database = await newDatabase('sqlite');
  const server = await serveHere(database, { SERVICE_LOCAL_HOME: home });
  try {
    await put(OWN_SIGNED, OWN_LEASE);
    await expect
      .poll(server.log)
      .toContain(`${files.keyset} was rejected: the root does not descend`);
    await put(SIGNED, lease('next', KEY, { issued_at: formatTime(Date.now()) }));
    await expect.poll(server.log).toContain('license next is valid until');
    expect(server.log()).not.toContain('the license own');
  } finally {
    await server.stop();
    await database.remove();
  }
});
