import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import S3rver from 's3rver';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { jobName } from '../../../src/deploy/searches/search-job.ts';
import { connectSearchJobs } from '../../../src/deploy/searches/search-jobs.ts';
import { writeOwnBot } from '../../backtest/shards/own-bot.ts';
import { podSecurityFaults, type PodSpec } from '../kubernetes/pod-security.ts';
import { startSearchCluster, type SearchCluster } from './search-cluster.ts';

const SMA = join(import.meta.dirname, '../../../examples/sma-crossover.yaml');
const GRID = ['-p', 'fast=5:15:5', '-p', 'slow=20:60:20'];
/** A real cluster for the last test, whose namespace `default` must allow Jobs. */
const REAL = process.env['SERVICE_LOCAL_TEST_KUBECONFIG'];
const KEYS = { AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'S3RVER' };

let cluster: SearchCluster;
beforeAll(async () => {
  cluster = await startSearchCluster();
});
afterEach(() => {
  cluster.onPod = cluster.runPod;
});
afterAll(() => cluster.close());

function sweep(place: string, ...more: string[]) {
  const out = join(cluster.directory, place);
  return cluster.run(['backtest', 'sweep', SMA, ...GRID, '--out', out, ...more]);
}

test('a sweep on a cluster equals one on this machine, although each pod is killed once', async () => {
  const started = new Map<string, number>();
  cluster.onPod = async (command, index) => {
    const key = `${command.at(-1)} ${index}`;
    started.set(key, (started.get(key) ?? 0) + 1);
    return started.get(key) === 1 ? 137 : cluster.runPod(command, index);
  };
  const here = await sweep('here');
  const there = await sweep('there', '--on', 'cluster:lab');
  expect(there, there.stdout).toMatchObject({ code: 0 });
  expect(JSON.parse(there.stdout)).toEqual(JSON.parse(here.stdout));
  expect(await cluster.rowsOf('there')).toBe(await cluster.rowsOf('here'));
  expect([...started.values()]).toEqual([2, 2, 2]);

  const { server, controller, volume } = cluster;
  const { template, completions, completionMode } = controller.jobs[0]!.spec as {
    readonly template: { readonly spec: PodSpec };
    readonly completions: number;
    readonly completionMode: string;
  };
  expect({ completionMode, completions }).toEqual({ completionMode: 'Indexed', completions: 3 });
  expect(podSecurityFaults(template.spec)).toEqual([]);
  const [policy] = server.store.all('NetworkPolicy');
  const { name, uid } = controller.jobs[0]!.metadata;
  expect(policy).toMatchObject({
    metadata: { ownerReferences: [{ kind: 'Job', name, uid }] },
    // The kubelet mounts the volume, so the pods need no network.
    spec: { policyTypes: ['Ingress', 'Egress'], ingress: [], egress: [] },
  });
  const asked = server.asked.filter(({ method }) => method === 'PATCH');
  const applied = asked.filter(({ query }) => query.get('dryRun') === null);
  expect(asked.slice(0, 2).map(({ query }) => query.get('dryRun'))).toEqual(['All', 'All']);
  // No pod can start before its policy exists.
  expect(applied.map(({ path }) => path.split('/').at(-2))).toEqual([
    'networkpolicies',
    'jobs',
    'networkpolicies',
  ]);
  // The results are collected, so nothing is left but the time of the last use.
  expect(server.store.all('Job')).toEqual([]);
  expect(await readdir(volume)).toEqual(['used']);
});

const TPE = ['-p', 'fast=5:50', '-p', 'slow=20:200', '--search', 'tpe', '--trials', '20'];

test.each([
  ['sweep', TPE],
  ['sweep', [...TPE, '--prune']],
  ['walk-forward', [...GRID, '--train', '5y', '--test', '5y']],
  ['robustness', [...GRID, '--permutations', '19']],
])('%s %j has the same result on a cluster as on this machine', async (verb, options) => {
  const name = `${verb}-${options.length}`;
  const run = async (place: string, ...more: string[]) => {
    const out = join(cluster.directory, `${name}-${place}`);
    const result = await cluster.run(['backtest', verb, SMA, ...options, '--out', out, ...more]);
    expect(result, result.stdout).toMatchObject({ code: 0 });
    return JSON.parse(result.stdout) as unknown;
  };
  const there = await run('there', '--on', 'cluster:lab');
  expect(there).toEqual(await run('here'));
  if (verb === 'sweep') {
    expect(await cluster.rowsOf(`${name}-there`)).toBe(await cluster.rowsOf(`${name}-here`));
  }
  expect(cluster.server.store.all('Job')).toEqual([]);
});

test('each generation of tpe is a Job that ends with it', async () => {
  const alive: number[] = [];
  cluster.onPod = (command, index) => {
    alive.push(cluster.server.store.all('Job').length);
    return cluster.runPod(command, index);
  };
  const out = join(cluster.directory, 'generations');
  const words = ['backtest', 'sweep', SMA, ...TPE, '--out', out, '--on', 'cluster:lab'];
  expect(await cluster.run(words)).toMatchObject({ code: 0 });
  // 16 trials in four shards, then four trials in one.
  expect(alive).toEqual([1, 1, 1, 1, 1]);
});

test('the own strategy of a bot runs in the pods', async () => {
  const bot = await writeOwnBot(cluster.directory);
  const run = async (place: string, ...more: string[]) => {
    const out = join(cluster.directory, place);
    const words = ['backtest', 'sweep', bot, '-p', 'day=1:6:1', '--out', out, ...more];
    expect(await cluster.run(words)).toMatchObject({ code: 0 });
    return cluster.rowsOf(place);
  };
  expect(await run('own-there', '--on', 'cluster:lab')).toBe(await run('own-here'));
});

test('a sweep on a cluster keeps its inputs and results in S3', async () => {
  const s3 = new S3rver({
    port: 0,
    silent: true,
    directory: join(cluster.directory, 's3'),
    configureBuckets: [{ name: 'searches', configs: [] }],
  });
  const { port } = await s3.run();
  const endpoint = `http://127.0.0.1:${port}`;
  const store = 's3://searches/team';
  await cluster.storeIn({ store, endpoint, region: 'us-east-1', secret: 'keys' });
  Object.assign(process.env, KEYS, { AWS_ENDPOINT_URL_S3: endpoint, AWS_REGION: 'us-east-1' });
  try {
    const there = await sweep('s3-there', '--on', 'cluster:lab');
    expect(there, there.stdout).toMatchObject({ code: 0 });
    expect(cluster.server.store.all('NetworkPolicy').at(-1)!.spec!['egress']).toMatchObject([
      { ports: [{ port: 53 }, { port: 53 }] },
      { ports: [{ port, protocol: 'TCP' }] },
    ]);
    await sweep('s3-here');
    expect(await cluster.rowsOf('s3-there')).toBe(await cluster.rowsOf('s3-here'));
    const left = await readdir(join(cluster.directory, 's3', 'searches'), { recursive: true });
    const objects = left.filter((path) => path.endsWith('_object'));
    expect(objects).toEqual([expect.stringMatching(/^team\/used\/[0-9a-f]{64}\._S3rver_object$/)]);
  } finally {
    for (const name of [...Object.keys(KEYS), 'AWS_ENDPOINT_URL_S3', 'AWS_REGION']) {
      delete process.env[name];
    }
    await s3.close();
    await cluster.storeIn({ store: cluster.volume, claim: 'searches' });
  }
});

test.runIf(REAL)('a real API server accepts the Job of a search', async () => {
  const searches = { store: 's3://searches/team', secret: 'keys', parallelism: 1 };
  const definition = {
    kubeconfig: REAL!,
    owner: 'own' as const,
    namespace: 'default',
    image: 'registry.invalid/sl:1',
    control_url: 'https://bots.example',
    searches,
  };
  const digest = 'a'.repeat(64);
  const plan = { digest, shards: ['b'.repeat(64), 'c'.repeat(64)], definition };
  const jobs = connectSearchJobs(definition, { name: 'real', signal: AbortSignal.timeout(60_000) });
  const name = jobName(plan);
  await jobs.start(plan);
  expect(await jobs.status(name)).toEqual({
    failure: undefined,
    failedIndexes: undefined,
    isComplete: false,
  });
  expect(await jobs.list(digest)).toEqual([name]);
  expect(await jobs.faults(name)).toEqual(expect.any(Array));
  await jobs.remove(name);
  await jobs.close();
});
