import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import S3rver from 's3rver';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { jobName, searchJob } from '../../../src/deploy/searches/search-job.ts';
import { connectSearchJobs } from '../../../src/deploy/searches/search-jobs.ts';
import { inProcess } from '../../cli/in-process.ts';
import { isAtLength } from '../../length.ts';
import { startApiServer, type TestApiServer } from '../kubernetes/api-server.ts';
import { podSecurityFaults, type PodSpec } from '../kubernetes/pod-security.ts';
import { startJobController, type JobController } from './job-controller.ts';

const SMA = join(import.meta.dirname, '../../../examples/sma-crossover.yaml');
const GRID = ['-p', 'fast=5:15:5', '-p', 'slow=20:60:20'];
/** A real cluster for the last test, whose namespace `default` must allow Jobs. */
const REAL = process.env['SERVICE_LOCAL_TEST_KUBECONFIG'];
const KEYS = { AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'S3RVER' };

let directory: string;
let server: TestApiServer;
let controller: JobController;
let clusters: string;
/** Whether each pod fails at its first start. */
let isFaulty = false;
const started = new Map<string, number>();

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'service-local-on-cluster-'));
  await mkdir(join(directory, 'volume'));
  server = await startApiServer();
  server.addNamespace('bots');
  const kubeconfig = await server.writeKubeconfig(directory);
  const own = { kubeconfig, owner: 'own', namespace: 'bots', image: 'registry.invalid/sl:1' };
  const volume = { store: join(directory, 'volume'), claim: 'searches' };
  const cluster = { ...own, control_url: 'https://bots.example' };
  clusters = join(directory, 'clusters.yaml');
  await writeFile(
    clusters,
    JSON.stringify({ lab: { ...cluster, searches: volume }, bare: cluster }),
  );
  controller = startJobController(server.store, runPod);
});
afterAll(async () => {
  controller.close();
  await server.close();
  await rm(directory, { recursive: true });
});

/** Runs the command of a pod in this process. */
async function runPod([, ...words]: readonly string[], index: number): Promise<number | null> {
  const [run, shard, store, manifest] = words as [string, string, string, string];
  const key = `${manifest} ${index}`;
  started.set(key, (started.get(key) ?? 0) + 1);
  if (isFaulty && started.get(key) === 1) return 137;
  const place = store === '/searches' ? join(directory, 'volume') : store;
  const env = { JOB_COMPLETION_INDEX: String(index) };
  return (await inProcess([run, shard, place, manifest], { env })).code;
}

function sweep(place: string, ...more: string[]) {
  const words = ['backtest', 'sweep', SMA, ...GRID, '--out', join(directory, place), '--json'];
  return inProcess([...words, ...more], {
    env: {
      SERVICE_LOCAL_HOME: join(directory, 'home'),
      SERVICE_LOCAL_CLUSTERS_FILE: clusters,
    },
  });
}

const rowsOf = (place: string) => readFile(join(directory, place, 'trials.csv'), 'utf8');

test('a sweep on a cluster equals one on this machine, although each pod is killed once', async () => {
  isFaulty = true;
  const here = await sweep('here');
  const there = await sweep('there', '--on', 'cluster:lab');
  isFaulty = false;
  expect(there, there.stdout).toMatchObject({ code: 0 });
  expect(JSON.parse(there.stdout)).toEqual(JSON.parse(here.stdout));
  expect(await rowsOf('there')).toBe(await rowsOf('here'));
  expect([...started.values()].every((times) => times === 2)).toBe(true);

  const [job] = controller.jobs;
  const { template, completions, completionMode } = job!.spec as {
    readonly template: { readonly spec: PodSpec };
    readonly completions: number;
    readonly completionMode: string;
  };
  expect({ completionMode, completions }).toEqual({ completionMode: 'Indexed', completions: 3 });
  expect(podSecurityFaults(template.spec)).toEqual([]);
  const asked = server.asked.filter(({ method }) => method === 'PATCH');
  expect(asked.map(({ query }) => query.get('dryRun'))).toEqual(['All', null]);
  // The results are collected, so nothing is left.
  expect(server.store.all('Job')).toEqual([]);
  expect(await readdir(join(directory, 'volume'))).toEqual([]);
});

test('a Job whose pods keep failing ends the sweep with the command that shows why', async () => {
  const own = controller;
  own.close();
  controller = startJobController(server.store, () => Promise.resolve(1));
  const { code, stdout } = await sweep('failing', '--on', 'cluster:lab');
  controller.close();
  controller = startJobController(server.store, runPod);
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject({
    error: {
      code: 'strategy_failed',
      message: expect.stringMatching(/^the Job search-\w+ failed: /),
      remedy: expect.stringContaining('kubectl --namespace bots logs job/search-'),
    },
  });
});

test.each([
  ['cluster:none', 6, 'the server has no cluster "none"'],
  ['cluster:bare', 6, 'the cluster bare has no store for searches'],
  ['moon', 2, '"moon" is not a place for trials'],
])('--on %s is rejected with the reason', async (place, code, message) => {
  const result = await sweep('rejected', '--on', place);
  expect(result.code).toBe(code);
  expect(result.stdout).toContain(JSON.stringify(message).slice(1, -1));
});

test.runIf(isAtLength)('a sweep on a cluster keeps its inputs and results in S3', async () => {
  const s3 = new S3rver({
    port: 0,
    silent: true,
    directory: join(directory, 's3'),
    configureBuckets: [{ name: 'searches', configs: [] }],
  });
  const { port } = await s3.run();
  const { lab } = JSON.parse(await readFile(clusters, 'utf8')) as { readonly lab: object };
  const endpoint = `http://127.0.0.1:${port}`;
  const place = { store: 's3://searches/team', endpoint, region: 'us-east-1', secret: 'keys' };
  await writeFile(clusters, JSON.stringify({ lab: { ...lab, searches: place } }));
  Object.assign(process.env, KEYS, { AWS_ENDPOINT_URL_S3: endpoint, AWS_REGION: 'us-east-1' });
  try {
    const there = await sweep('s3-there', '--on', 'cluster:lab');
    expect(there, there.stdout).toMatchObject({ code: 0 });
    expect(await rowsOf('s3-there')).toBe(await rowsOf('here'));
  } finally {
    for (const name of [...Object.keys(KEYS), 'AWS_ENDPOINT_URL_S3', 'AWS_REGION']) {
      delete process.env[name];
    }
    await s3.close();
  }
});

test.runIf(REAL)('a real API server accepts the Job of a search', async () => {
  const searches = { store: 's3://searches/team', secret: 'keys', parallelism: 1 };
  const image = 'registry.invalid/sl:1';
  const definition = {
    kubeconfig: REAL!,
    owner: 'own' as const,
    namespace: 'default',
    image,
    control_url: 'https://bots.example',
    searches,
  };
  const plan = { digest: 'a'.repeat(64), shards: ['b'.repeat(64), 'c'.repeat(64)], definition };
  const jobs = connectSearchJobs(definition, { name: 'real', signal: AbortSignal.timeout(60_000) });
  const name = jobName(plan);
  await jobs.start(searchJob(plan));
  expect(await jobs.status(name)).toEqual({ failure: undefined, failedIndexes: undefined });
  await jobs.remove(name);
  await jobs.close();
});
