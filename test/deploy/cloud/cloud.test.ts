import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import type { CheckedSecret } from '../../../src/deploy/cloud/check.ts';
import type { LeaseFacts, SeedManifest } from '../../../src/deploy/cloud/manifest.ts';
import type { Outlook, RunningService } from '../../../src/deploy/cloud/in-use.ts';
import { inProcess } from '../../cli/in-process.ts';
import { runNode } from '../../cli/service-local.ts';
import { startAwsEmulator, type AwsEmulator } from './aws-emulator.ts';
import { DAY, newCloudWorld, type CloudWorld } from './cloud-world.ts';
import { isAtLength } from '../../length.ts';

const PREFIX = 'service/customer/acme/prod/license';
const KEYS = `${PREFIX}/public_key`;
const LEASE = `${PREFIX}/lease`;

const NAMES = ['acme-api', 'acme-worker', 'acme-scheduler'];
const ECS = { type: 'ecs', cluster: 'acme', api: NAMES[0], worker: NAMES[1], scheduler: NAMES[2] };
const AWS = { license_deployment_id: 'acme-prod', store: { type: 'aws' }, services: ECS };

interface Status extends Outlook {
  readonly lease: LeaseFacts | null;
  readonly secrets: readonly CheckedSecret[];
  readonly services: readonly RunningService[];
}

interface Renewed {
  readonly status: string;
  readonly lease: LeaseFacts;
  readonly redeployed: readonly string[];
  readonly manifest: SeedManifest | null;
}

let world: CloudWorld;
let aws: AwsEmulator;
beforeAll(async () => {
  world = await newCloudWorld();
});
beforeEach(async () => {
  aws = await startAwsEmulator();
  for (const [name, value] of Object.entries(aws.env)) vi.stubEnv(name, value);
  world.test.now = Date.now();
  await world.configure(AWS);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await aws.close();
});
afterAll(() => world.close());

const valueOf = (name: string): string => {
  const { versions, current } = aws.secrets.get(name)!;
  return versions.find(({ id }) => id === current)!.value;
};

/** Seeds a lease that was issued `ms` milliseconds ago. */
async function seedBefore(ms: number): Promise<SeedManifest> {
  world.test.now = Date.now() - ms;
  const manifest = await world.ask<SeedManifest>(0, 'seed');
  world.test.now = Date.now();
  return manifest;
}

test('a container is licensed by the secrets that were seeded into a directory', async () => {
  await world.configure({ license_deployment_id: 'acme-prod' });
  const seeded = await world.cloud('seed', '--out', 'seeded.json');
  expect(seeded).toMatchObject({ code: 0, stderr: '' });
  const manifest = JSON.parse(seeded.stdout) as SeedManifest;
  expect(JSON.parse(await readFile(join(world.directory, 'seeded.json'), 'utf8'))).toEqual(
    manifest,
  );
  expect(manifest).toMatchObject({
    schema: 'service-local/secret_seed_manifest/v1',
    customer: 'acme',
    env: 'prod',
    license_deployment_id: 'acme-prod',
    status: 'seeded',
    secrets: [
      { name: KEYS, status: 'seeded' },
      { name: LEASE, status: 'seeded' },
    ],
  });
  const secret = (name: string): Promise<string> =>
    readFile(join(world.directory, 'secrets', name), 'utf8');
  const materialized = await inProcess(['license', 'materialize', '--json'], {
    env: {
      SERVICE_LICENSE_LEASE_PATH: join(world.directory, 'container', 'lease'),
      SERVICE_LICENSE_PUBLIC_KEY_PATH: join(world.directory, 'container', 'keys'),
      SERVICE_LICENSE_LEASE: await secret(LEASE),
      SERVICE_LICENSE_PUBLIC_KEY: await secret(KEYS),
    },
  });
  expect(JSON.parse(materialized.stdout)).toMatchObject({
    state: 'valid',
    lease_id: manifest.lease_id,
  });

  const redeployed = await world.cloud('redeploy', '--wait');
  expect(redeployed.stdout).toMatch(/^There is nothing to redeploy/);
  const checked = await world.cloud('preflight');
  expect(checked).toMatchObject({ code: 0, stderr: '' });
  const status = await world.cloud('status');
  expect(status.stdout).toContain(
    `tasks that read the secrets are licensed until ${manifest.grace_ends_at}`,
  );
  expect(await world.ask(0, 'iam')).toEqual({ seed: null, tasks: null, redeploy: null });
  expect(await world.ask<Renewed>(0, 'renew')).toMatchObject({ status: 'not_due', manifest: null });
  expect((await world.cloud('renew')).stdout).toBe('');
});

test.runIf(isAtLength)(
  'the example script for pipelines reports a secret of the manifest that is missing',
  async () => {
    await world.configure({ license_deployment_id: 'acme-prod' });
    await world.cloud('seed', '--out', 'seeded.json');
    await rm(join(world.directory, 'secrets', LEASE));
    const { code: failed, stdout: said } = await world.cloud(
      'preflight',
      '--manifest',
      'seeded.json',
      '--json',
    );
    await writeFile(join(world.directory, 'said.json'), said);
    const shim = `#!/bin/sh\necho "$@" > words; cat said.json; exit ${failed}\n`;
    await writeFile(join(world.directory, 'service-local'), shim, { mode: 0o700 });
    const script = join(import.meta.dirname, '../../../examples/preflight-secrets.ts');
    const { code, stdout } = await runNode([script, 'seeded.json'], {
      cwd: world.directory,
      env: { ...world.env, PATH: `${world.directory}:${process.env['PATH']}` },
    });
    expect({ code, stdout }).toEqual({
      code: 1,
      stdout: `ok ${KEYS} \nmissing ${LEASE} The secret does not exist or has no value.\n`,
    });
    expect(await readFile(join(world.directory, 'words'), 'utf8')).toBe(
      'cloud preflight --manifest seeded.json --json\n',
    );
  },
);

test('cloud seed writes the keys before the lease and needs no permission to read', async () => {
  aws.denied.add('GetSecretValue');
  const manifest = await world.ask<SeedManifest>(0, 'seed');
  expect(aws.done).toEqual([`CreateSecret ${KEYS}`, `CreateSecret ${LEASE}`]);
  expect(manifest.secrets[1]).toMatchObject({ version_id: manifest.lease_id });
  await world.ask(0, 'seed');
  expect(aws.done.slice(2)).toEqual([`PutSecretValue ${KEYS}`, `PutSecretValue ${LEASE}`]);
  expect(aws.secrets.get(KEYS)!.versions).toHaveLength(1);

  await world.configure({ ...AWS, license_deployment_id: 'bolt-prod' });
  const foreign = await world.cloud('seed');
  expect(foreign).toMatchObject({ code: 3, stdout: '' });
  expect(foreign.stderr).toContain('bolt-prod belongs to the customer bolt');
  // No lease was issued, so the keys are not written either.
  expect(aws.done.slice(4)).toEqual([]);
});

test('cloud seed issues no lease if it cannot write to the store', async () => {
  const before = await world.issued();
  aws.denied.add('PutSecretValue');
  const refused = await world.cloud('seed');
  expect(refused).toMatchObject({ code: 4, stdout: '' });
  expect(refused.stderr).toMatch(/^error not_allowed: cannot write \S+\/public_key: AccessDenied/);
  expect(await world.issued()).toEqual(before);
});

test.runIf(isAtLength)(
  'the keyset verifies both old and new leases after a key rotation',
  async () => {
    await world.ask(0, 'seed');
    const old = valueOf(LEASE);
    await world.rotateKey();
    const { public_key_id } = await world.ask<SeedManifest>(0, 'seed');
    const { keys } = JSON.parse(valueOf(KEYS)) as { keys: { kid: string; status: string }[] };
    expect(keys.map(({ status }) => status).slice(0, 2)).toEqual(['active', 'retiring']);
    expect(keys[0]!.kid).toBe(public_key_id);
    const { keyid } = (JSON.parse(old) as { signatures: { keyid: string }[] }).signatures[0]!;
    expect(keys.map(({ kid }) => kid)).toContain(keyid);

    // The signing key changes after the keyset is written, so the keyset is written again.
    const keysSeen: string[] = [];
    let isFirst = true;
    aws.onDone = async (action, name) => {
      keysSeen.push(`${action} ${name}`);
      if (isFirst) await world.rotateKey();
      isFirst = false;
    };
    await world.ask(0, 'seed');
    expect(keysSeen).toEqual([KEYS, KEYS, LEASE].map((name) => `PutSecretValue ${name}`));
    expect(await world.ask(0, 'preflight')).toMatchObject({ ok: true });
  },
);

test.runIf(isAtLength)(
  'preflight reports the status of each secret in every state of the store',
  async () => {
    const empty = await world.ask<{ ok: boolean; secrets: CheckedSecret[] }>(4, 'preflight');
    expect(empty).toMatchObject({
      ok: false,
      secrets: [{ status: 'missing' }, { status: 'missing' }],
    });

    const status = async (...words: string[]): Promise<string> => {
      const { stdout } = await world.cloud('preflight', '--json', ...words);
      const { secrets } = JSON.parse(stdout) as { secrets: CheckedSecret[] };
      return secrets.map((secret) => secret.status).join();
    };
    const put = (name: string, value: string): void => {
      const id = String(aws.secrets.get(name)!.versions.length).padStart(32, '0');
      aws.secrets.get(name)!.versions.push({ id, value, created: Date.now() });
      aws.secrets.get(name)!.current = id;
    };
    await seedBefore(11 * DAY);
    expect(await status()).toBe('ok,expired');
    await seedBefore(8 * DAY);
    expect(await status()).toBe('ok,grace');
    const due = await seedBefore(6.9 * DAY);
    expect(await status()).toBe('ok,due');
    await writeFile(join(world.directory, 'due.json'), JSON.stringify(due));
    // A lease that is due is still valid, so preflight succeeds.
    await world.ask(0, 'preflight');
    const good = await world.ask<SeedManifest>(0, 'seed');
    expect(await status('--manifest', 'due.json')).toBe('ok,ok');
    await writeFile(join(world.directory, 'good.json'), JSON.stringify(good));
    const { versions } = aws.secrets.get(LEASE)!;
    put(LEASE, versions.at(-2)!.value);
    expect(await status('--manifest', 'good.json')).toBe('ok,older');
    const changed = versions[3]!.value.replace(/"sig":"../, '"sig":"AB');
    put(LEASE, changed);
    expect(await status()).toMatch(/^ok,(unverified|malformed)$/);
    const other = { ...good, secrets: good.secrets.slice(1) };
    await writeFile(join(world.directory, 'other.json'), JSON.stringify(other));
    const changedManifest = await world.cloud('preflight', '--manifest', 'other.json');
    expect(changedManifest).toMatchObject({ code: 3, stdout: '' });
    await world.configure({ ...AWS, license_deployment_id: 'acme-test' });
    const foreign = await world.cloud('preflight', '--manifest', 'good.json');
    expect(foreign.stderr).toMatch(
      /^error invalid_data: the manifest does not belong to acme prod with/,
    );
    put(LEASE, versions[3]!.value);
    expect(await status()).toBe('ok,other_deployment');
    put(KEYS, 'canary-not-json');
    put(LEASE, 'canary-password');
    expect(await status()).toBe('malformed,unverified');
    aws.denied.add('GetSecretValue');
    expect(await status()).toBe('denied,denied');
    const noManifest = await world.cloud('preflight', '--manifest', 'cloud.yaml');
    expect(noManifest).toMatchObject({ code: 3 });
  },
);

test.runIf(isAtLength)(
  'cloud renew seeds and redeploys what is due, and prints nothing otherwise',
  async () => {
    const first = await seedBefore(6.9 * DAY);
    aws.addServices(NAMES, Date.now());
    const due = await world.ask<Status>(0, 'status');
    expect(due).toMatchObject({ action: 'renew', act_by: first.grace_ends_at });
    expect(due.services.map(({ tasks }) => tasks.current)).toEqual([2, 2, 2]);

    await world.ask(0, 'seed');
    const seeded = await world.ask<Status>(0, 'status');
    expect(seeded).toMatchObject({ action: 'redeploy', act_by: first.grace_ends_at });
    expect(seeded.services[0]).toMatchObject({
      role: 'api',
      lease_id: first.lease_id,
      tasks: { wanted: 2, current: 0, previous: 2 },
    });
    const shown = await world.cloud('status');
    expect(shown).toMatchObject({ code: 0, stderr: '' });
    expect(shown.stdout).toContain(
      `Act by ${first.grace_ends_at}: service-local cloud redeploy --customer acme --env prod --wait\n`,
    );
    expect(shown.stdout).toContain('the tasks themselves were not queried.');

    const renewed = await world.ask<Renewed>(0, 'renew');
    expect(renewed).toMatchObject({ status: 'redeployed', redeployed: NAMES, manifest: null });
    const now = await world.ask<Status>(0, 'status');
    expect(now).toMatchObject({ action: 'none', act_by: renewed.lease.grace_ends_at });
    const quiet = await world.cloud('renew');
    expect(quiet).toEqual({ code: 0, stdout: '', stderr: '' });

    const again = await seedBefore(6.9 * DAY);
    const all = await world.ask<Renewed>(0, 'renew');
    expect(all).toMatchObject({ status: 'renewed', redeployed: NAMES });
    expect(all.manifest).toMatchObject({ lease_id: all.lease.lease_id });
    expect(all.lease.lease_id).not.toBe(again.lease_id);
  },
);

test.runIf(isAtLength)(
  'cloud renew issues one lease when the clock of this machine is wrong',
  async () => {
    await world.configure({ ...AWS, services: { type: 'none' } });
    const renewed = async (): Promise<string[]> => {
      const { status } = await world.ask<Renewed>(0, 'renew');
      return [status, (await world.cloud('renew')).stderr];
    };
    for (const days of [-20, 1]) {
      aws.secrets.clear();
      const before = await world.issued();
      world.test.now = Date.now() + days * DAY;
      const told = /^The clock of this machine shows \S+, but the server reports \S+\. Using/;
      expect(await renewed()).toEqual(['renewed', expect.stringMatching(told)]);
      expect(await world.issued()).toHaveLength(before.length + 1);
    }
    // No lease outlasts its contract, so renewing near its end would only cause redeployments.
    const ends = world.test.now + DAY;
    await world.test.execute(`UPDATE contracts SET ends_at = ${ends}`);
    await world.ask(0, 'seed');
    world.test.now = ends - DAY / 8;
    const before = await world.issued();
    expect(await renewed()).toEqual(['not_due', expect.stringContaining('would not last longer')]);
    await world.test.execute(`UPDATE contracts SET ends_at = ${Date.UTC(2099, 0)}`);
    expect((await renewed())[0]).toBe('renewed');
    expect(await world.issued()).toHaveLength(before.length + 1);
  },
);

test.runIf(isAtLength)(
  'cloud renew replaces an earlier lease that was restored as the current one',
  async () => {
    const first = await world.ask<SeedManifest>(0, 'seed');
    aws.addServices(NAMES, Date.now());
    // The lease of a task is inferred from times, so the two leases must have different ones.
    await vi.waitUntil(() => Date.now() > Date.parse(first.issued_at) + 5);
    const second = await world.ask<SeedManifest>(0, 'seed');
    const secret = aws.secrets.get(LEASE)!;
    Object.assign(secret, { current: first.lease_id, previous: second.lease_id });
    expect(await world.ask<Status>(4, 'status')).toMatchObject({
      action: 'renew',
      act_by: null,
      secrets: [{ status: 'ok' }, { status: 'older' }],
      services: NAMES.map((name) => ({ name, tasks: { unclear: 2, current: 0 }, lease_id: null })),
    });
    expect(await world.ask(4, 'preflight')).toMatchObject({ ok: false });
    expect(await world.ask<Renewed>(0, 'renew')).toMatchObject({ redeployed: NAMES });
    expect(await world.ask<Status>(0, 'status')).toMatchObject({ action: 'none' });
  },
);

test.runIf(isAtLength)(
  'cloud redeploy waits for all services and names one that did not start',
  async () => {
    await world.ask(0, 'seed');
    aws.addServices(NAMES, Date.now() - DAY);
    const unknown = await world.ask<Status>(4, 'status');
    expect(unknown).toMatchObject({ action: 'redeploy', act_by: null });
    const waited = await world.cloud('redeploy', '--wait');
    expect(waited.code).toBe(0);
    expect(waited.stderr).toContain('api acme-api: redeployed, 2 of 2 tasks\n');
    expect(await world.ask<Status>(0, 'status')).toMatchObject({ action: 'none' });

    await world.cloud('redeploy');
    expect(await world.ask<Status>(0, 'status')).toMatchObject({ action: 'wait' });
    aws.isHealthy = false;
    const failed = await world.cloud('redeploy', '--wait');
    expect(failed).toMatchObject({ code: 1, stdout: '' });
    expect(failed.stderr).toMatch(/error rollout_failed: .* did not start: tasks failed to start/);
    aws.isHealthy = true;
    aws.addServices(NAMES, Date.now() - DAY);
    const before = await world.issued();
    expect(await world.ask<Renewed>(0, 'renew')).toMatchObject({ status: 'redeployed' });
    expect(await world.issued()).toEqual(before);
    // Without a lease in the store, redeploying would replace licensed tasks by unlicensed ones.
    aws.secrets.delete(LEASE);
    const refused = await world.cloud('redeploy');
    expect(refused).toMatchObject({ code: 4, stdout: '' });
    expect(refused.stderr).toMatch(/^error license_invalid: \S+lease is missing\n/);
    aws.denied.add('GetSecretValue');
    const unseen = await world.cloud('redeploy');
    expect(unseen.stderr).toContain(
      'You may not read the secrets, so they were not checked before redeploying.',
    );
    aws.services.delete('acme-worker');
    const gone = await world.cloud('redeploy');
    expect(gone.stderr).toMatch(
      /^error not_found: the ECS cluster acme has no active service acme-worker/,
    );
  },
);

test('cloud iam prints AWS policies with the least permissions', async () => {
  const key = 'arn:aws:kms:eu-west-1:123456789012:key/1';
  await world.configure({ ...AWS, store: { type: 'aws', region: 'eu-west-1', kms_key: key } });
  const policies = await world.ask<Record<string, { Statement: Record<string, unknown>[] }>>(
    0,
    'iam',
    '--account',
    '123456789012',
  );
  const secrets = [KEYS, LEASE].map(
    (name) => `arn:aws:secretsmanager:eu-west-1:123456789012:secret:${name}-??????`,
  );
  expect(policies['seed']!.Statement).toMatchObject([
    { Action: ['secretsmanager:CreateSecret', 'secretsmanager:PutSecretValue'], Resource: secrets },
    { Action: ['kms:GenerateDataKey', 'kms:Decrypt'], Resource: key },
  ]);
  expect(policies['tasks']!.Statement).toMatchObject([
    { Action: ['secretsmanager:GetSecretValue'], Resource: secrets },
    { Action: ['kms:Decrypt'] },
  ]);
  const service = 'arn:aws:ecs:eu-west-1:123456789012:service/acme';
  expect(policies['redeploy']!.Statement).toMatchObject([
    { Resource: NAMES.map((name) => `${service}/${name}`) },
    { Action: ['ecs:ListTasks'] },
    { Action: ['ecs:DescribeTasks'], Resource: 'arn:aws:ecs:eu-west-1:123456789012:task/acme/*' },
  ]);
  expect(await world.cloud('iam', '--account', '12')).toMatchObject({ code: 2 });
  await world.ask(0, 'seed');
  expect(aws.secrets.get(LEASE)!.kmsKeyId).toBe(key);
});

test('errors in cloud_file are reported without quoting the file', async () => {
  await world.configure({ ...AWS, store: { type: 'aws', access_key: 'canary-key' } });
  const wrong = await world.cloud('seed');
  expect(wrong).toMatchObject({ code: 2, stdout: '' });
  expect(wrong.stderr).toMatch(
    /customers\.acme\.prod\.store: .*access_key.*; provide credentials through the environment/,
  );
  expect(wrong.stderr).not.toContain('canary');
  for (const [install, told] of [
    [{ ...AWS, store: { type: 'aws', kms_key: '*' } }, /store\.kms_key: must be the id/],
    [{ ...AWS, store: { type: 'directory' } }, /services\.type: must match store\.type/],
    [
      { ...AWS, store: { type: 'kubernetes', cluster: 'nowhere' }, services: { type: 'none' } },
      /^error not_found: \S+clusters\.yaml has no cluster "nowhere"/,
    ],
  ] as const) {
    await world.configure(install);
    expect((await world.cloud('seed')).stderr).toMatch(told);
  }
  // The YAML parser quotes the file in its errors.
  for (const text of [
    'customers: *canary',
    'customers: !canary canary',
    'customers: "canary',
    'x',
  ]) {
    await writeFile(join(world.directory, 'cloud.yaml'), text);
    const { code, stderr } = await world.cloud('seed');
    expect([code, stderr]).toEqual([2, expect.not.stringContaining('canary')]);
  }
  await world.configure(AWS);
  const nobody = await world.cloud('seed', '--env', 'prd');
  expect(nobody.stderr).toMatch(
    /^error not_found: .* has no environment of acme "prd"\n→ Did you mean prod\?/,
  );
  const nowhere = await world.cloud('seed', '--config', 'nowhere.yaml');
  expect(nowhere).toMatchObject({ code: 3 });
});
