import { mkdtemp, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ServiceError } from '../../../src/base/errors.ts';
import { chooseCluster, readClusters } from '../../../src/deploy/kubernetes/clusters-file.ts';

const GOOD = {
  kubeconfig: 'kube/config',
  context: 'prod',
  owner: 'customer',
  namespace: 'bots',
  image: 'registry.example/service-local:1.0.0',
  control_url: 'https://bots.example',
};

async function written(value: unknown): Promise<{ directory: string; file: string }> {
  const directory = await mkdtemp(join(tmpdir(), 'clusters-'));
  const file = join(directory, 'clusters.yaml');
  await writeFile(file, typeof value === 'string' ? value : JSON.stringify(value));
  return { directory, file };
}

function failure(act: () => unknown): ServiceError {
  try {
    act();
  } catch (error) {
    if (error instanceof ServiceError) return error;
  }
  throw new Error('it should have failed');
}

test('resolves the path of a kubeconfig relative to the clusters file', async () => {
  const { directory, file } = await written({
    prod: GOOD,
    home: { ...GOOD, kubeconfig: '~/.kube/config', control_url: 'http://bots.trading.svc:8787' },
    here: { ...GOOD, kubeconfig: undefined, context: undefined, in_cluster: true },
  });

  expect(readClusters(file)).toMatchObject({
    prod: { ...GOOD, kubeconfig: join(directory, 'kube/config') },
    home: { kubeconfig: join(homedir(), '.kube/config') },
    here: { in_cluster: true },
  });
  expect(readClusters(join(directory, 'none.yaml'))).toEqual({});
});

test('rejects credentials in the clusters file without repeating them', async () => {
  const canary = 'canary-9f2c';
  const files = [
    { prod: { ...GOOD, token: canary } },
    { prod: { ...GOOD, kubeconfig: { users: [{ token: canary }] } } },
    { prod: { ...GOOD, control_url: `https://user:${canary}@bots.example` } },
    `prod: {token: ${canary}\n  image: [`,
  ];

  for (const value of files) {
    const { file } = await written(value);
    const error = failure(() => readClusters(file));
    expect(error).toMatchObject({ code: 'invalid_setting' });
    expect(JSON.stringify([error, error.message, error.problems, error.remedy])).not.toContain(
      canary,
    );
  }
});

test.for([
  [{ prod: { ...GOOD, token: 'x' } }, /prod: .*"token"; keep credentials in the kubeconfig/],
  [
    { prod: { ...GOOD, in_cluster: true } },
    /prod: must have exactly one of kubeconfig and in_cluster/,
  ],
  [{ prod: { ...GOOD, owner: 'me' } }, /prod\.owner/],
  [{ prod: { ...GOOD, namespace: 'Bots' } }, /must be a valid namespace name/],
  [{ prod: { ...GOOD, control_url: 'ftp://bots' } }, /prod\.control_url/],
  [{ prod: { ...GOOD, egress: [{ cidr: 'here', ports: [1] }] } }, /prod\.egress\.0\.cidr/],
  [{ prod: { ...GOOD, resources: { cpu: 'much', memory: '1Gi' } } }, /such as 500m/],
] as const)('names the problem of the clusters file %j', async ([value, message]) => {
  const { file } = await written(value);

  expect(failure(() => readClusters(file)).problems).toEqual([
    expect.objectContaining({ file, message: expect.stringMatching(message) as string }),
  ]);
});

test('chooses the only cluster without a name, and asks for one if there are several', async () => {
  const one = readClusters((await written({ prod: GOOD })).file);

  expect(chooseCluster(one, undefined)).toBe('prod');
  expect(failure(() => chooseCluster(one, 'prd'))).toMatchObject({
    reason: 'unknown_cluster',
    remedy: 'Did you mean prod?',
  });
  expect(failure(() => chooseCluster({ ...one, test: one['prod']! }, undefined))).toMatchObject({
    remedy: 'Specify one of prod, test.',
  });
  expect(failure(() => chooseCluster({}, undefined))).toMatchObject({ reason: 'no_cluster' });
});
