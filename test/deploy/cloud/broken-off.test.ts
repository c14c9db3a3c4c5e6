import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import type { LeaseFacts } from '../../../src/deploy/cloud/manifest.ts';
import { importKeyset } from '../../../src/lease/keys.ts';
import { verifyLease } from '../../../src/lease/verify.ts';
import { BASIC_ENV, BIN } from '../../cli/service-local.ts';
import { startAwsEmulator, type AwsEmulator } from './aws-emulator.ts';
import { newCloudWorld, type CloudWorld } from './cloud-world.ts';
import { isAtLength, some } from '../../length.ts';

const PREFIX = 'service/customer/acme/prod/license';
const KEYS = `${PREFIX}/public_key`;
const LEASE = `${PREFIX}/lease`;
const NAMES = ['acme-api', 'acme-worker', 'acme-scheduler'];

let world: CloudWorld;
let aws: AwsEmulator;
beforeAll(async () => {
  world = await newCloudWorld();
  const [api, worker, scheduler] = NAMES;
  await world.configure({
    license_deployment_id: 'acme-prod',
    store: { type: 'aws' },
    services: { type: 'ecs', cluster: 'acme', api, worker, scheduler },
  });
});
beforeEach(async () => {
  aws = await startAwsEmulator();
  aws.addServices(NAMES, Date.now() - 1000);
  for (const [name, value] of Object.entries(aws.env)) vi.stubEnv(name, value);
  world.test.now = Date.now();
});
afterEach(async () => {
  world.onIssued = () => {};
  vi.unstubAllEnvs();
  await aws.close();
});
afterAll(() => world.close());

const currentOf = (name: string): string | undefined => {
  const secret = aws.secrets.get(name);
  return secret?.versions.find(({ id }) => id === secret.current)?.value;
};

/** Result of a verifier that reads both secrets now. */
function verdict(): 'no lease' | 'verifies' | 'does not' {
  const lease = currentOf(LEASE);
  if (lease === undefined) return 'no lease';
  const keys = importKeyset(currentOf(KEYS));
  return keys.ok && verifyLease(lease, keys.keys).ok ? 'verifies' : 'does not';
}

/** Runs `cloud renew` in a process that `arm` kills. */
async function killedRenewal(arm: (kill: () => Promise<void>) => void): Promise<void> {
  const words = ['cloud', 'renew', '--customer', 'acme', '--env', 'prod'];
  const child = spawn(process.execPath, [BIN, ...words], {
    env: { ...BASIC_ENV, HOME: world.directory, ...world.env, ...aws.env },
    stdio: 'ignore',
  });
  const ended = once(child, 'close') as Promise<[number | null, string | null]>;
  arm(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  expect((await ended)[1]).toBe('SIGKILL');
}

async function finish(): Promise<LeaseFacts> {
  const { lease } = await world.ask<{ lease: LeaseFacts }>(0, 'renew');
  expect(currentOf(LEASE)).toBeDefined();
  expect(verdict()).toBe('verifies');
  const { versions, current } = aws.secrets.get(LEASE)!;
  expect(current).toBe(lease.lease_id);
  const { created } = versions.find(({ id }) => id === current)!;
  for (const { tasks } of aws.services.values()) {
    expect(tasks.every((task) => task.created >= created)).toBe(true);
  }
  return lease;
}

test.runIf(isAtLength)(
  'a run after one that was killed before storing its lease names the lost lease once',
  async () => {
    const before = await world.issued();
    await killedRenewal((kill) => (world.onIssued = kill));
    world.onIssued = () => {};
    expect(aws.done).toEqual([`CreateSecret ${KEYS}`]);
    const lost = (await world.issued()).find((id) => !before.includes(id));
    const { stderr } = await world.cloud('seed');
    expect(stderr).toContain(
      `An earlier run was interrupted: the lease ${lost} was already issued and returned`,
    );
    expect(stderr).toContain('If the store does not contain that lease, it is lost.');
    expect(await world.issued()).toHaveLength(before.length + 2);
    expect((await world.cloud('seed')).stderr).toBe('');
    await finish();
  },
);

test.each(
  some(1, [
    ['the lease is written', `CreateSecret ${LEASE}`],
    ['a service is redeployed', `UpdateService ${NAMES[0]}`],
  ]),
)('a renewal interrupted after %s resumes without issuing another lease', async (_, step) => {
  const before = await world.issued();
  const verdicts = new Set<string>();
  aws.onDone = (action, name) => {
    verdicts.add(verdict());
    if (`${action} ${name}` !== step) return;
    // This action takes effect, but its response and all further actions fail.
    aws.faults.push({ actions: [action], kind: 'lost' });
    for (const any of aws.actions) aws.denied.add(any);
  };
  expect(await world.cloud('renew')).toMatchObject({ code: 4 });
  aws.denied.clear();
  aws.onDone = () => verdicts.add(verdict());
  await finish();
  expect(await world.issued()).toHaveLength(before.length + 1);
  expect(verdicts).not.toContain('does not');
  expect(aws.done.filter((done) => done === `UpdateService ${NAMES[0]}`)).toHaveLength(1);
  expect((await world.cloud('seed')).stderr).toBe('');
});

test.runIf(isAtLength)(
  'a renewal succeeds with one lease despite lost, throttled and failed responses',
  async () => {
    const before = await world.issued();
    const writes = ['CreateSecret', 'PutSecretValue'];
    for (const kind of ['lost', 'throttled', 'broken', 'lost'] as const) {
      aws.faults.push({ actions: writes, kind });
    }
    aws.faults.push({ actions: ['UpdateService'], kind: 'throttled' });
    await finish();
    expect(await world.issued()).toHaveLength(before.length + 1);
    expect(aws.secrets.get(LEASE)!.versions).toHaveLength(1);

    const broken = Array.from({ length: 5 }, () => ({ actions: writes, kind: 'broken' }) as const);
    aws.faults.push(...broken);
    const failed = await world.cloud('seed');
    expect(failed).toMatchObject({ code: 1, stdout: '' });
    expect(failed.stderr).toMatch(/^error cloud_unavailable: cannot write \S+public_key: Internal/);
    expect(await world.issued()).toHaveLength(before.length + 1);
    aws.faults.push({ actions: writes, kind: 'refused' });
    expect((await world.cloud('seed')).stderr).toMatch(/^error conflict: .*ValidationException/);
    await finish();
  },
);

test.runIf(isAtLength)('no output, file or error contains the value of a secret', async () => {
  const values = [...aws.secrets.values()].flatMap(({ versions }) => versions);
  expect(values).toEqual([]);
  await world.ask(0, 'seed');
  const [lease, keys] = [currentOf(LEASE)!, currentOf(KEYS)!];
  const { payload, signatures } = JSON.parse(lease) as {
    payload: string;
    signatures: { sig: string }[];
  };
  const sent = aws.received.join('\n');
  // These errors quote the request, including the secret.
  for (const action of ['PutSecretValue', 'CreateSecret']) {
    for (const kind of ['refused', 'broken'] as const) {
      aws.faults.push({ actions: [action], kind });
      await world.cloud('seed');
    }
  }
  aws.denied.add('PutSecretValue');
  await world.cloud('seed', '--json');
  aws.denied.clear();
  await world.cloud('preflight');
  await world.cloud('status', '--json');
  await world.cloud('renew', '--json');
  const everything = await world.everything();
  expect(sent).toContain(signatures[0]!.sig);
  for (const secret of [payload, signatures[0]!.sig, keys, 'canary']) {
    expect(everything.includes(secret), secret.slice(0, 20)).toBe(false);
  }
});
