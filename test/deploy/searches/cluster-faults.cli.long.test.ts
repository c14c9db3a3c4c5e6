import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import S3rver from 's3rver';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { BASIC_ENV, BIN } from '../../cli/service-local.ts';
import type { Stored } from '../kubernetes/store.ts';
import { startSearchCluster, type SearchCluster } from './search-cluster.ts';

const SMA = join(import.meta.dirname, '../../../examples/sma-crossover.yaml');
/** Nine trials in three shards. */
const GRID = ['-p', 'fast=5:15:5', '-p', 'slow=20:60:20'];
const DIGEST = /^[0-9a-f]{64}$/;

let cluster: SearchCluster;
beforeAll(async () => {
  cluster = await startSearchCluster();
});
afterEach(() => {
  cluster.onPod = cluster.runPod;
});
afterAll(() => cluster.close());

const wordsOf = (place: string): string[] => {
  const out = join(cluster.directory, place);
  return ['backtest', 'sweep', SMA, ...GRID, '--out', out, '--on', 'cluster:lab'];
};

const sweep = (place: string) => cluster.run(wordsOf(place));

/** Rows of the sweep on this machine. */
async function rowsHere(): Promise<string> {
  const out = join(cluster.directory, 'here');
  await cluster.run(['backtest', 'sweep', SMA, ...GRID, '--out', out]);
  return cluster.rowsOf('here');
}

const completionsOf = ({ spec }: Stored) => spec!['completions'];

test('a sweep whose pods fail names the log, and the next one runs only the missing shards', async () => {
  const { store } = cluster.server;
  cluster.onPod = async (command, index) => (index === 1 ? 1 : cluster.runPod(command, index));
  const { code, stdout } = await sweep('resumed');
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject({
    error: {
      code: 'strategy_failed',
      message: expect.stringMatching(/^the Job search-\w+ failed: /),
      remedy: expect.stringContaining('kubectl --namespace bots logs job/search-'),
    },
  });
  expect(store.all('Job')).toEqual([]);
  const failed = cluster.controller.jobs.at(-1)!;

  // A killed command leaves its Job, and others leave searches that are never continued.
  cluster.onPod = () => new Promise(() => {});
  store.put({ ...failed, metadata: { ...failed.metadata, name: 'search-left' } });
  const { volume } = cluster;
  const old = 'f'.repeat(64);
  await mkdir(join(volume, old, 'results'), { recursive: true });
  await writeFile(join(volume, 'used', old), '');
  const lastWeek = new Date(Date.now() - 8 * 86_400_000);
  await utimes(join(volume, 'used', old), lastWeek, lastWeek);
  let others: string[] = [];
  cluster.onPod = async (command, index) => {
    others = store.all('Job').map(({ metadata }) => metadata.name);
    return cluster.runPod(command, index);
  };
  expect(await sweep('resumed')).toMatchObject({ code: 0 });
  const resumed = cluster.controller.jobs.at(-1)!;
  expect(others).toEqual([resumed.metadata.name]);
  expect([failed, resumed].map(completionsOf)).toEqual([3, 1]);
  expect(await cluster.rowsOf('resumed')).toBe(await rowsHere());
  expect((await readdir(volume)).filter((name) => DIGEST.test(name))).toEqual([]);
});

test('a sweep whose store is lost ends, and the next one computes everything again', async () => {
  const { volume } = cluster;
  cluster.onPod = async (command, index) => {
    await rename(volume, `${volume}-away`).catch(() => {});
    return cluster.runPod(command, index);
  };
  expect(await sweep('lost')).toMatchObject({ code: 1 });
  cluster.onPod = cluster.runPod;
  await rm(volume, { recursive: true, force: true });
  await mkdir(volume);
  const again = await sweep('lost');
  expect(again, again.stdout).toMatchObject({ code: 0 });
  expect(await cluster.rowsOf('lost')).toBe(await rowsHere());
});

test('a shard whose strategy could not start runs again with the next command', async () => {
  cluster.onPod = async ([, , , , manifest], index) => {
    const { volume } = cluster;
    const { search, shards } = JSON.parse(await readFile(join(volume, manifest!), 'utf8')) as {
      readonly search: string;
      readonly shards: readonly string[];
    };
    await mkdir(join(volume, search, 'results'), { recursive: true });
    const path = join(volume, search, 'results', `${shards[index]}.failure`);
    await writeFile(path, JSON.stringify({ failure: 'out of memory' }));
    return 0;
  };
  const { code, stdout } = await sweep('again');
  expect(code).toBe(1);
  expect(stdout).toContain('a worker of the search failed: out of memory');
  cluster.onPod = cluster.runPod;
  expect(await sweep('again')).toMatchObject({ code: 0 });
  expect(await cluster.rowsOf('again')).toBe(await rowsHere());
});

test('a Job that is complete without results ends the sweep with the place to check', async () => {
  cluster.onPod = () => Promise.resolve(0);
  const { code, stdout } = await sweep('without');
  expect(code).toBe(6);
  expect(JSON.parse(stdout)).toMatchObject({
    error: {
      code: 'conflict',
      message: expect.stringMatching(
        /^the Job search-\w+ is complete, but its results are missing/,
      ),
      remedy: 'Mount the volume of the claim searches at this directory.',
    },
  });
});

/** Starts a sweep in a process of its own. */
function begin(place: string, variables: Readonly<Record<string, string>> = {}) {
  const child = spawn(process.execPath, [BIN, ...wordsOf(place)], {
    env: { ...BASIC_ENV, HOME: cluster.directory, ...cluster.env, ...variables },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  return { child, messages: text(child.stderr), exit: once(child, 'exit') };
}

test('Ctrl-C deletes the Job and keeps results for the next sweep', async () => {
  const second = Promise.withResolvers<void>();
  const release = Promise.withResolvers<number>();
  cluster.onPod = (command, index) => {
    if (index !== 1) return cluster.runPod(command, index);
    second.resolve();
    return release.promise;
  };
  const { child, exit } = begin('interrupted');
  await second.promise;
  child.kill('SIGINT');
  expect(await exit).toEqual([130, null]);
  release.resolve(1);
  expect(cluster.server.store.all('Job')).toEqual([]);
  cluster.onPod = cluster.runPod;
  expect(await sweep('interrupted')).toMatchObject({ code: 0 });
  expect(completionsOf(cluster.controller.jobs.at(-1)!)).toBe(2);
  expect(await cluster.rowsOf('interrupted')).toBe(await rowsHere());
});

test('a sweep waits for a store that does not answer', async () => {
  const options = {
    silent: true,
    directory: join(cluster.directory, 's3'),
    configureBuckets: [{ name: 'searches', configs: [] }],
  };
  const first = new S3rver({ port: 0, ...options });
  const { port } = await first.run();
  await first.close();
  const endpoint = `http://127.0.0.1:${port}`;
  const place = { store: 's3://searches/team', endpoint, region: 'us-east-1', secret: 'keys' };
  await cluster.storeIn(place);
  const variables = {
    AWS_ACCESS_KEY_ID: 'S3RVER',
    AWS_SECRET_ACCESS_KEY: 'S3RVER',
    AWS_ENDPOINT_URL_S3: endpoint,
    AWS_REGION: 'us-east-1',
  };
  Object.assign(process.env, variables);
  const second = new S3rver({ port, ...options });
  try {
    const { child, exit, messages } = begin('late', variables);
    await once(child.stderr, 'data');
    await second.run();
    expect(await exit, await messages).toEqual([0, null]);
    expect(await messages).toMatch(/^waiting for the store: /m);
    expect(await cluster.rowsOf('late')).toBe(await rowsHere());
  } finally {
    for (const name of Object.keys(variables)) delete process.env[name];
    await second.close();
    await cluster.storeIn({ store: cluster.volume, claim: 'searches' });
  }
});

test.each([
  ['image_pull', /ImagePull/],
  ['unschedulable', /nodes are available/],
  ['quota', /exceeded quota: pods=0/],
] as const)('a sweep prints that its pods wait: %s', async (why, reason) => {
  const { store, kubelet } = cluster.server;
  cluster.onPod = () => {
    const { name } = store.all('Job')[0]!.metadata;
    if (why === 'quota') {
      const involvedObject = { kind: 'Job', namespace: 'bots', name };
      const event = { involvedObject, type: 'Warning', reason: 'FailedCreate' };
      const metadata = { name: `${name}.quota`, namespace: 'bots' };
      const message = 'exceeded quota: pods=0';
      store.put({ apiVersion: 'v1', kind: 'Event', metadata, ...event, message });
    } else {
      kubelet.startsAs = why;
      const labels = { 'batch.kubernetes.io/job-name': name };
      const metadata = { name: `${name}-0`, namespace: 'bots', labels };
      const spec = { containers: [{ name: 'shard', image: 'registry.invalid/sl:1' }] };
      store.put({ apiVersion: 'v1', kind: 'Pod', metadata, spec, status: { phase: 'Pending' } });
    }
    return new Promise(() => {});
  };
  const { child, exit, messages } = begin(`waits-${why}`);
  child.stderr.on('data', (chunk: Buffer) => {
    if (chunk.toString().includes('warning: ')) child.kill('SIGINT');
  });
  expect(await exit).toEqual([130, null]);
  expect(await messages).toMatch(/^warning: pods of the Job search-\w+ wait: /m);
  expect(await messages).toMatch(reason);
  for (const one of [...store.all('Pod'), ...store.all('Event')]) store.remove(one);
});

test.each([
  ['cluster:none', 6, 'the server has no cluster "none"'],
  ['cluster:bare', 6, 'the cluster bare has no store for searches'],
  ['moon', 2, '"moon" is not a place for trials'],
])('--on %s is rejected with the reason', async (place, code, message) => {
  const result = await cluster.run([...wordsOf('rejected').slice(0, -1), place]);
  expect(result.code).toBe(code);
  expect(result.stdout).toContain(JSON.stringify(message).slice(1, -1));
});
