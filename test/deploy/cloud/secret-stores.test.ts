import { hash, randomUUID } from 'node:crypto';
import { mkdtemp, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { openAwsStore } from '../../../src/deploy/cloud/aws-store.ts';
import { directoryStore } from '../../../src/deploy/cloud/directory-store.ts';
import { kubernetesStore } from '../../../src/deploy/cloud/kubernetes-store.ts';
import { connectRest, USUAL_PACE } from '../../../src/deploy/kubernetes/rest.ts';
import { startApiServer, type TestApiServer } from '../kubernetes/api-server.ts';
import { startAwsEmulator, type AwsEmulator } from './aws-emulator.ts';
import { secretStoreContract } from './secret-store-contract.ts';

const WRITES = ['CreateSecret', 'PutSecretValue'];
const NAME = 'service/customer/acme/prod/license/lease';

secretStoreContract('a directory', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'service-local-secrets-'));
  return {
    store: directoryStore(join(directory, 'secrets')),
    keepsPrevious: false,
    close: () => rm(directory, { recursive: true }),
  };
});

secretStoreContract('AWS Secrets Manager', async () => {
  const aws = await startAws();
  const setDenied = (action: string, isDenied: boolean): unknown =>
    isDenied ? aws.denied.add(action) : aws.denied.delete(action);
  return {
    store: await openAwsStore({}),
    keepsPrevious: true,
    loseAnswer: () => aws.faults.push({ actions: WRITES, kind: 'lost' }),
    throttle: () => aws.faults.push({ actions: WRITES, kind: 'throttled' }),
    denyReading: (isDenied) => setDenied('GetSecretValue', isDenied),
    denyWriting: (isDenied) => setDenied('PutSecretValue', isDenied),
    async close() {
      vi.unstubAllEnvs();
      await aws.close();
    },
  };
});

secretStoreContract('a Secret of Kubernetes', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'service-local-secrets-'));
  const server = await startApiServer();
  server.addNamespace('bots');
  const deny = (method: string) => (isDenied: boolean) => {
    const message = 'secrets is forbidden: User "ci" cannot do that';
    const answer = { status: 403, message };
    if (isDenied) server.fail(answer, { matches: (asked) => asked.method === method });
    else server.recover();
  };
  const matches = ({ method }: TestApiServer['asked'][0]): boolean => method === 'PATCH';
  // As each installation has its own Secret, so has each pair of names.
  const open = (object: string) => kubernetesStore(place, object);
  const place = { rest: await connectTo(server, directory), cluster: 'test', namespace: 'bots' };
  const objectOf = (name: string): string => `license-${name.split('/')[3]!}`;
  return {
    store: {
      ...open(''),
      put: (name, ...rest) => open(objectOf(name)).put(name, ...rest),
      current: (name) => open(objectOf(name)).current(name),
    },
    keepsPrevious: false,
    loseAnswer: () => server.fail('cut', { times: 1, matches }),
    throttle: () => server.fail({ status: 429 }, { times: 1, matches }),
    denyReading: deny('GET'),
    denyWriting: deny('PATCH'),
    async close() {
      await server.close();
      await rm(directory, { recursive: true });
    },
  };
});

async function connectTo(server: TestApiServer, directory: string) {
  const kubeconfig = await server.writeKubeconfig(directory);
  const definition = { kubeconfig, owner: 'customer', namespace: 'bots', image: 'x' } as const;
  const { signal } = new AbortController();
  const pace = { ...USUAL_PACE, backoff: { shortestMs: 1, longestMs: 5 } };
  return connectRest({ ...definition, control_url: 'https://x' }, { name: 'test', signal, pace });
}

async function startAws(): Promise<AwsEmulator> {
  const aws = await startAwsEmulator();
  for (const [name, value] of Object.entries(aws.env)) vi.stubEnv(name, value);
  return aws;
}

afterEach(() => vi.unstubAllEnvs());

test('the directory store writes private files, rejects links and leaves no other files', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'service-local-secrets-'));
  await directoryStore(directory).put(NAME, 'one', '');
  await directoryStore(directory).put(NAME, 'two', '');
  const { mode } = await stat(join(directory, NAME));
  expect(mode & 0o777).toBe(0o600);
  expect(await readdir(join(directory, 'service/customer/acme/prod/license'))).toEqual(['lease']);
  await rm(join(directory, NAME));
  await writeFile(join(directory, 'other'), 'canary');
  await symlink(join(directory, 'other'), join(directory, NAME));
  const store = directoryStore(directory);
  await expect(store.current(NAME)).rejects.toMatchObject({ code: 'invalid_data' });
  await expect(store.put(NAME, 'three', '')).rejects.toMatchObject({ code: 'invalid_data' });
  await rm(directory, { recursive: true });
});

test('AWS rejects a reused token, and writes to a secret that is scheduled for deletion', async () => {
  const aws = await startAws();
  const store = await openAwsStore({});
  const token = randomUUID();
  await store.put(NAME, 'canary-one', token);
  const reused = store.put(NAME, 'canary-two', token);
  await expect(reused).rejects.toMatchObject({ code: 'conflict', reason: 'token_reused' });
  aws.secrets.get(NAME)!.isDeleted = true;
  const deleted = store.put(NAME, 'canary-two', randomUUID());
  await expect(deleted).rejects.toMatchObject({ code: 'conflict', reason: 'cloud_refused' });
  await expect(deleted).rejects.toThrow(expect.not.stringContaining('canary'));
  store.close();
  await aws.close();
});

test('the AWS store reports a missing region, missing credentials and an unreachable server', async () => {
  const aws = await startAws();
  const put = async (change: Record<string, string | undefined>): Promise<unknown> => {
    for (const [name, value] of Object.entries(change)) vi.stubEnv(name, value);
    const store = await openAwsStore({});
    return store.put(NAME, 'canary', hash('sha256', 'canary')).finally(() => store.close());
  };
  const none = { AWS_CONFIG_FILE: '/dev/null', AWS_SHARED_CREDENTIALS_FILE: '/dev/null' };
  await expect(put({ ...none, AWS_REGION: undefined })).rejects.toMatchObject({
    code: 'invalid_setting',
  });
  const nobody = { AWS_REGION: 'eu-west-1', AWS_ACCESS_KEY_ID: undefined };
  await expect(put(nobody)).rejects.toMatchObject({
    code: 'not_allowed',
    reason: 'no_credentials',
  });
  await aws.close();
  await expect(put({ AWS_ACCESS_KEY_ID: 'AKIAEMULATOR' })).rejects.toMatchObject({
    code: 'cloud_unavailable',
  });
});
