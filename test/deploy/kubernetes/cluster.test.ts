/**
 * With SERVICE_LOCAL_TEST_KUBECONFIG, the first group of tests runs against the cluster of that
 * kubeconfig and creates its own namespaces.
 */
import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  ApiException,
  AppsV1Api,
  CoreV1Api,
  KubeConfig,
  type V1Deployment,
  type V1DeploymentSpec,
} from '@kubernetes/client-node';
import { parse } from 'yaml';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ServiceError } from '../../../src/base/errors.ts';
import type { Cluster, ClusterState } from '../../../src/deploy/kubernetes/cluster.ts';
import { stateOf } from '../../../src/deploy/kubernetes/cluster-state.ts';
import type { ClusterDefinition } from '../../../src/deploy/kubernetes/clusters-file.ts';
import { connectCluster } from '../../../src/deploy/kubernetes/connect.ts';
import {
  manifests,
  resourceName,
  runnerSecret,
  type DeployPlan,
} from '../../../src/deploy/kubernetes/manifests.ts';
import { USUAL_PACE, type Pace } from '../../../src/deploy/kubernetes/rest.ts';
import { validatorOf } from './schemas.ts';
import { startApiServer, type Asked, type TestApiServer } from './api-server.ts';
import { testPlan } from './plan.ts';
import { isAtLength, some } from '../../length.ts';

const CANARY = 'canary-runner-token';
const REAL = process.env['SERVICE_LOCAL_TEST_KUBECONFIG'];
const QUICK: Pace = {
  ...USUAL_PACE,
  requestMs: 2000,
  backoff: { shortestMs: 1, longestMs: 10 },
  eventsMs: 20,
};

let server: TestApiServer;
let definition: ClusterDefinition;
let core: CoreV1Api;
let apps: AppsV1Api;
const ending = new AbortController();

beforeAll(async () => {
  server = await startApiServer();
  const file = await server.writeKubeconfig(await mkdtemp(join(tmpdir(), 'kube-')));
  definition = definitionOf(REAL ?? file);
  const config = new KubeConfig();
  config.loadFromFile(REAL ?? file);
  core = config.makeApiClient(CoreV1Api);
  apps = config.makeApiClient(AppsV1Api);
});

afterAll(async () => {
  ending.abort();
  await server.close();
});

function definitionOf(kubeconfig: string): ClusterDefinition {
  return {
    kubeconfig,
    owner: 'own',
    namespace: 'bots',
    image: 'registry.invalid/service-local:1',
    control_url: 'https://bots.example',
  };
}

async function refusalOf(action: Promise<unknown>): Promise<ServiceError> {
  const outcome = await action.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (outcome instanceof ServiceError) return outcome;
  throw new Error(`no ServiceError but ${String(outcome)}`);
}

interface Followed {
  readonly states: readonly ClusterState[];
  /** Resolves with the first state that satisfies the condition, starting with the current state. */
  readonly until: (isIt: (state: ClusterState) => boolean) => Promise<ClusterState>;
  readonly stop: () => Promise<void>;
}

function follow(cluster: Cluster, plan: DeployPlan): Followed {
  const states: ClusterState[] = [];
  const stopping = new AbortController();
  let wake: () => void = () => undefined;
  const ended = cluster.watch(
    plan,
    (state) => {
      states.push(state);
      wake();
    },
    stopping.signal,
  );
  return {
    states,
    async until(isIt) {
      for (;;) {
        const last = states.at(-1);
        if (last !== undefined && isIt(last)) return last;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    async stop() {
      stopping.abort();
      await ended;
    },
  };
}

describe('any cluster', () => {
  let cluster: Cluster;
  let plan: DeployPlan;

  beforeEach(async () => {
    const namespace = `service-local-test-${randomUUID().slice(0, 8)}`;
    cluster = connectCluster(definition, {
      signal: ending.signal,
      name: 'own',
      pace: REAL === undefined ? QUICK : USUAL_PACE,
    });
    plan = testPlan({
      namespace,
      deployment_id: randomUUID(),
      credentials_secret: null,
      lease_secret: null,
    });
    await core.createNamespace({ body: { metadata: { name: namespace } } });
    server.kubelet.startsAs = 'image_pull';
  });

  afterEach(async () => {
    await core.deleteNamespace({ name: plan.namespace }).catch((error: unknown) => {
      if (!(error instanceof ApiException && error.code === 404)) throw error;
    });
    await cluster.close();
  });

  const deployed = async (): Promise<V1Deployment> =>
    apps.readNamespacedDeployment({ name: resourceName(plan), namespace: plan.namespace });

  const setElsewhere = async (change: Partial<V1DeploymentSpec>): Promise<void> => {
    const live = await deployed();
    Object.assign(live.spec!, change);
    // Without a resource version, the change also succeeds if the controller changed the object.
    delete live.metadata!.resourceVersion;
    await apps.replaceNamespacedDeployment({
      name: resourceName(plan),
      namespace: plan.namespace,
      body: live,
      fieldManager: 'someone-else',
    });
  };

  test('is unchanged when the same objects are applied again', async () => {
    const objects = [runnerSecret(plan, CANARY), ...manifests(plan)];
    await cluster.apply(objects);
    const before = await deployed();
    await cluster.apply(objects);
    const after = await deployed();

    expect(after.metadata!.generation).toBe(before.metadata!.generation);
    expect(after.metadata!.managedFields).toContainEqual(
      expect.objectContaining({ manager: 'service-local', operation: 'Apply' }),
    );
    const secret = await core.readNamespacedSecret({
      name: `${resourceName(plan)}-runner`,
      namespace: plan.namespace,
    });
    expect(Buffer.from(secret.data!['token']!, 'base64').toString()).toBe(CANARY);
  });

  test('shows what would change without changing anything', async () => {
    const objects = manifests(plan);
    const created = await cluster.diff(objects);
    expect(created.map(({ change }) => change)).toEqual(objects.map(() => 'create'));
    expect(await cluster.state(plan)).toMatchObject({ phase: 'missing', pods: [] });

    await cluster.apply(objects);
    expect((await cluster.diff(objects)).map(({ change, lines }) => [change, lines])).toEqual(
      objects.map(() => ['none', []]),
    );
    const next = manifests({ ...plan, image: 'registry.invalid/service-local:2' });
    const changed = (await cluster.diff(next)).find(({ change }) => change !== 'none');
    expect(changed).toMatchObject({
      kind: 'Deployment',
      change: 'change',
      lines: [
        '- spec.template.spec.containers[runner].image: "registry.invalid/service-local:1"',
        '+ spec.template.spec.containers[runner].image: "registry.invalid/service-local:2"',
      ],
    });
  });

  test('hides the values of Secrets in a diff', async () => {
    await cluster.apply([runnerSecret(plan, CANARY)]);
    const diff = await cluster.diff([runnerSecret(plan, `${CANARY}-2`)]);

    expect(diff).toMatchObject([
      { change: 'change', lines: ['- data.token: (not shown)', '+ data.token: (not shown)'] },
    ]);
  });

  test('removes fields that the manifests no longer contain', async () => {
    await cluster.apply(manifests({ ...plan, lease_secret: 'license' }));
    await cluster.apply(manifests(plan));

    const { volumes, containers } = (await deployed()).spec!.template.spec!;
    expect(volumes!.map(({ name }) => name)).toEqual(['run', 'runner', 'state', 'tmp']);
    expect(containers[0]!.env!.map(({ name }) => name)).toEqual(['HOME']);
  });

  test('keeps the fields of another manager and names that manager', async () => {
    await cluster.apply(manifests(plan));
    await setElsewhere({ revisionHistoryLimit: 7 });
    const error = await refusalOf(cluster.apply(manifests(plan)));

    expect(error).toMatchObject({ code: 'conflict', reason: 'field_conflict' });
    expect(error.message).toMatch(/\.spec\.revisionHistoryLimit.*someone-else/);
    expect((await deployed()).spec!.revisionHistoryLimit).toBe(7);
  });

  test('scales to zero even if another manager set the number, and stays there', async () => {
    await cluster.apply([runnerSecret(plan, CANARY), ...manifests(plan)]);
    await setElsewhere({ replicas: 2 });
    const followed = follow(cluster, plan);
    await cluster.scaleDown(plan);

    const down = await followed.until(({ phase }) => phase === 'scaled_down');
    expect(down).toMatchObject({ pods: [], version: 3, reason: null });
    await followed.stop();
    // A delayed process applies the manifests after the scale-down.
    const late = await refusalOf(cluster.apply(manifests(plan)));
    expect(late).toMatchObject({ code: 'conflict', reason: 'field_conflict' });
    expect((await deployed()).spec!.replicas).toBe(0);
    await cluster.scaleDown(testPlan({ ...plan, deployment_id: randomUUID() }));
  });

  test('reports an image that cannot be pulled', async () => {
    const followed = follow(cluster, plan);
    await followed.until(({ phase }) => phase === 'missing');
    await cluster.apply([runnerSecret(plan, CANARY), ...manifests(plan)]);

    const state = await followed.until(({ reason }) => reason === 'image_pull');
    expect(state).toMatchObject({ phase: 'degraded', version: 3, pods: [{ ready: false }] });
    expect(state.message).toMatch(/ErrImagePull|ImagePullBackOff/);
    await followed.stop();
  });

  test('names a missing Secret', async () => {
    await cluster.apply(manifests(plan));
    const followed = follow(cluster, plan);

    const state = await followed.until(({ reason }) => reason === 'missing_secret');
    expect(state.message).toContain(`"${resourceName(plan)}-runner" not found`);
    await followed.stop();
  });

  test('reports a deleted namespace and rejects further objects', async () => {
    await cluster.apply(manifests(plan));
    const followed = follow(cluster, plan);
    await followed.until(({ phase }) => phase !== 'missing');
    await core.deleteNamespace({ name: plan.namespace });

    await followed.until(
      ({ phase, reason }) => phase === 'missing' && reason === 'namespace_missing',
    );
    await followed.stop();
    const error = await refusalOf(cluster.apply(manifests(plan)));
    expect(error).toMatchObject({ code: 'conflict', reason: 'namespace_missing' });
    expect(await cluster.state(plan)).toMatchObject({ reason: 'namespace_missing' });
  });

  test('removes everything except the volume with the log', async () => {
    await cluster.apply([runnerSecret(plan, CANARY), ...manifests(plan)]);
    await cluster.remove(plan);
    await cluster.remove(plan);

    const { namespace } = plan;
    const left = await Promise.all([
      core.listNamespacedSecret({ namespace }),
      apps.listNamespacedDeployment({ namespace }),
      core.listNamespacedPersistentVolumeClaim({ namespace }),
    ]);
    const labelled = left.map(({ items }) =>
      items.filter(({ metadata }) => metadata!.name!.startsWith(resourceName(plan))),
    );
    expect(labelled.map((items) => items.length)).toEqual([0, 0, 1]);
  });
});

describe.skipIf(REAL !== undefined)('a cluster with faults', () => {
  let cluster: Cluster;
  const plan = testPlan({ credentials_secret: null, lease_secret: null, namespace: 'faults' });
  const objects = [runnerSecret(plan, CANARY), ...manifests(plan)];
  const open = (pace: Partial<Pace> = {}): Cluster =>
    connectCluster(definition, {
      signal: ending.signal,
      name: 'own',
      pace: { ...QUICK, ...pace },
    });
  const isApply = ({ method }: Asked): boolean => method === 'PATCH';
  const isPods = ({ path }: Asked): boolean => path.endsWith('/pods');

  beforeEach(() => {
    server.addNamespace('faults');
    server.kubelet.startsAs = 'ready';
    cluster = open();
  });

  afterEach(async () => {
    server.recover();
    server.cut();
    server.kubelet.lingers = false;
    server.kubelet.quota = undefined;
    await core.deleteNamespace({ name: 'faults' });
    await cluster.close();
  });

  test.for([
    ['429', { status: 429, headers: { 'retry-after': '0' } }],
    ['500', { status: 500 }],
    ['503', { status: 503 }],
    ['a cut line', 'cut'],
  ] as const)('retries after %s', async ([, answer]) => {
    server.fail(answer, { times: 3, matches: isApply });
    await cluster.apply(objects);

    expect(await cluster.state(plan)).toMatchObject({ version: 3 });
  });

  test.runIf(isAtLength)('waits as long as Retry-After says', async () => {
    server.fail({ status: 429, headers: { 'retry-after': '1' } }, { times: 1, matches: isApply });
    const from = performance.now();
    await cluster.apply(objects.slice(0, 1));

    expect(performance.now() - from).toBeGreaterThan(990);
  });

  test.for([
    ['answers 500', { status: 500, message: 'etcdserver: leader changed' }, /leader changed/],
    ['cuts every connection', 'cut', /is unavailable/],
    ['never responds', 'silent', /no response within 0\.05 s/],
  ] as const)(
    'is unavailable after several attempts if the server %s',
    async ([, answer, message]) => {
      const hurried = open({ requestMs: 50, attempts: 2 });
      server.fail(answer);
      const error = await refusalOf(hurried.apply(objects));
      await hurried.close();

      expect(error).toMatchObject({ code: 'cluster_unavailable', retryable: true });
      expect(error.message).toMatch(message);
    },
  );

  test('never quotes credentials in an error', async () => {
    const echo = `who says ${server.token} and ${Buffer.from(CANARY).toString('base64')}`;
    const errors: ServiceError[] = [];
    for (const status of [400, 401, 403, 422, 500]) {
      server.fail({ status, message: echo }, { times: QUICK.attempts, matches: isApply });
      errors.push(await refusalOf(cluster.apply(objects)));
      server.recover();
    }

    expect(errors.map(({ code, reason }) => reason ?? code)).toEqual([
      'cluster_refused',
      'cluster_credentials',
      'cluster_forbidden',
      'cluster_refused',
      'cluster_unavailable',
    ]);
    for (const { message, stack, problems, remedy, cause } of errors) {
      const all = JSON.stringify({ message, stack, problems, remedy, cause });
      expect(all).not.toContain(server.token);
      expect(all).not.toContain(Buffer.from(CANARY).toString('base64'));
    }
  });

  test.for([
    ['crash_loop', 'crash_loop', /stopped with exit code 1 \(Error\) after 1 restarts/],
    ['out_of_memory', 'out_of_memory', /exceeded its memory limit/],
    ['unschedulable', 'unschedulable', /Insufficient memory/],
    ['config_error', 'missing_secret', /secret "keys" not found/],
  ] as const)('reports the reason of a pod in the state %s', async ([state, reason, message]) => {
    const followed = follow(cluster, plan);
    await cluster.apply(objects);
    const ready = await followed.until(({ phase }) => phase === 'ready');
    expect(ready).toMatchObject({ reason: null, pods: [{ ready: true, phase: 'Running' }] });
    server.kubelet.set(state);

    const told = await followed.until((each) => each.reason === reason);
    expect(told).toMatchObject({ phase: 'degraded', pods: [{ ready: false, reason }] });
    expect(told.message).toMatch(message);
    server.kubelet.set('running');
    await followed.until((each) => each.reason === 'not_ready');
    server.kubelet.set('ready');
    await followed.until(({ phase }) => phase === 'ready');
    await followed.stop();
  });

  test('reports an exhausted quota and a rollout that exceeds its deadline', async () => {
    server.kubelet.quota = 0;
    const followed = follow(cluster, plan);
    await cluster.apply(objects);
    expect((await followed.until(({ reason }) => reason === 'quota')).message).toMatch(/pods=1/);

    server.kubelet.startsAs = 'running';
    server.kubelet.quota = undefined;
    server.kubelet.exceedDeadline();
    await followed.until(({ reason }) => reason === 'deadline_exceeded');
    await followed.stop();
  });

  test('starts a new version only after the old pod has stopped', async () => {
    server.kubelet.lingers = true;
    const followed = follow(cluster, plan);
    await cluster.apply(objects);
    const first = await followed.until(({ phase }) => phase === 'ready');
    const next = manifests({ ...plan, version: 4 });
    await cluster.apply(next);

    const between = await followed.until(({ pods }) => pods[0]?.phase === 'Terminating');
    expect(between).toMatchObject({ version: 4, pods: [{ name: first.pods[0]!.name }] });
    server.kubelet.finish();
    const last = await followed.until(
      ({ phase, pods }) => phase === 'ready' && pods[0]!.name !== first.pods[0]!.name,
    );
    expect(last.pods).toHaveLength(1);
    expect(server.kubelet.mostPods(resourceName(plan))).toBe(1);
    await cluster.scaleDown(plan);
    const down = await followed.until(({ pods }) => pods[0]?.phase === 'Terminating');
    expect(down).toMatchObject({ phase: 'progressing', reason: null });
    expect(down.message).toMatch(/ is still stopping$/);
    server.kubelet.finish();
    await followed.until(({ phase }) => phase === 'scaled_down');
    await followed.stop();
  });

  test('resumes an interrupted watch without listing again', async () => {
    await cluster.apply(objects);
    const followed = follow(cluster, plan);
    await followed.until(({ phase }) => phase === 'ready');
    await server.watched(2);
    server.bookmark();
    const asked = server.asked.length;
    server.cut();
    await server.watched(2);
    server.kubelet.set('crash_loop');
    await followed.until(({ reason }) => reason === 'crash_loop');

    const again = server.asked.slice(asked).filter(({ method }) => method === 'GET');
    expect(again.map(({ query }) => query.get('watch'))).toEqual(['true', 'true']);
    await followed.stop();
  });

  test('lists again when the version of a watch is too old', async () => {
    await cluster.apply(objects);
    const followed = follow(cluster, plan);
    await followed.until(({ phase }) => phase === 'ready');
    await server.watched(2);
    const asked = server.asked.length;
    server.expire();
    await server.watched(2);
    server.kubelet.set('crash_loop');
    await followed.until(({ reason }) => reason === 'crash_loop');

    const again = server.asked.slice(asked).map(({ query }) => query.has('watch'));
    expect(again.filter(Boolean)).toHaveLength(2);
    expect(again).toHaveLength(4);
    await followed.stop();
  });

  test.runIf(isAtLength)(
    'learns of a change from the next list when the watch stays silent',
    async () => {
      const impatient = open({ resyncMs: 200 });
      await impatient.apply(objects);
      const followed = follow(impatient, plan);
      await followed.until(({ phase }) => phase === 'ready');
      await server.watched(2);
      server.mute();
      server.kubelet.set('crash_loop');

      expect(await followed.until(({ reason }) => reason === 'crash_loop')).toMatchObject({
        phase: 'degraded',
      });
      await followed.stop();
      await impatient.close();
    },
  );

  test.for(some(1, ['cut', 'silent', { status: 500 }] as const))(
    'keeps the last state while the server is unreachable (%j)',
    async (answer) => {
      const impatient = open({ requestMs: 100 });
      await impatient.apply(objects);
      const followed = follow(impatient, plan);
      const before = await followed.until(({ phase }) => phase === 'ready');
      await server.watched(2);
      server.fail(answer);
      server.cut();

      const away = await followed.until(({ reason }) => reason === 'unreachable');
      expect(away).toMatchObject({ phase: 'ready', pods: before.pods, version: 3 });
      expect(away.message).toMatch(/^not seen since \d{4}-\d\d-\d\dT.*own is unavailable/);
      server.recover();
      expect(await followed.until(({ reason }) => reason === null)).toMatchObject({
        phase: 'ready',
      });
      await followed.stop();
      await impatient.close();
    },
  );

  test('follows changes without permission to watch', async () => {
    server.fail({ status: 403 }, { matches: ({ query }) => query.has('watch') });
    const impatient = open({ resyncMs: 50 });
    await impatient.apply(objects);
    const followed = follow(impatient, plan);
    await followed.until(({ phase }) => phase === 'ready');
    server.kubelet.set('crash_loop');

    await followed.until(({ reason }) => reason === 'crash_loop');
    expect(followed.states.map(({ reason }) => reason)).not.toContain('unreachable');
    await followed.stop();
    await impatient.close();
  });

  test('reports missing permission to list pods', async () => {
    server.fail({ status: 403, message: 'pods is forbidden' }, { matches: isPods });
    const followed = follow(cluster, plan);

    const { message, pods } = await followed.until(({ reason }) => reason === 'unreachable');
    expect(message).toMatch(/responded with 403: pods is forbidden/);
    expect(pods).toEqual([]);
    await followed.stop();
    expect(await refusalOf(cluster.state(plan))).toMatchObject({ reason: 'cluster_forbidden' });
  });

  test('rejects objects while the namespace is being deleted', async () => {
    const namespace = server.store.find('Namespace', '', 'faults')!;
    const deletionTimestamp = new Date().toISOString();
    server.store.put({ ...namespace, metadata: { ...namespace.metadata, deletionTimestamp } });

    expect(await refusalOf(cluster.apply(objects))).toMatchObject({
      reason: 'namespace_terminating',
    });
    expect(await cluster.state(plan)).toMatchObject({ reason: 'namespace_terminating' });
  });

  test('distinguishes an exceeded quota from missing permissions', async () => {
    server.fail({ status: 403, message: 'exceeded quota: storage' }, { matches: isApply });

    expect(await refusalOf(cluster.apply(objects))).toMatchObject({ reason: 'quota' });
  });

  test('needs exactly the permissions of the role in the examples', async () => {
    const from = server.asked.length;
    server.kubelet.startsAs = 'pending';
    await cluster.apply(objects);
    await cluster.diff(manifests(plan));
    const followed = follow(cluster, plan);
    await server.watched(2);
    server.kubelet.set('ready');
    await followed.until(({ phase }) => phase === 'ready');
    await cluster.scaleDown(plan);
    await cluster.remove(plan);
    await followed.until(({ phase }) => phase === 'missing');
    await followed.stop();

    const needed = server.asked.slice(from).flatMap(rightsOf);
    const file = await readFile('examples/kubernetes-role.yaml', 'utf8');
    const role = parse(file) as { rules: Record<'apiGroups' | 'resources' | 'verbs', string[]>[] };
    const given = role.rules.flatMap(({ apiGroups, resources, verbs }) =>
      verbs.map((verb) => `${apiGroups.join()}/${resources.join()} ${verb}`),
    );
    expect([...new Set(needed)].toSorted()).toEqual(given.toSorted());
    const validate = await validatorOf('rbac.authorization.k8s.io/v1', 'Role');
    expect(validate(role)).toEqual([]);
  });

  test('aborts requests in progress when it is closed', async () => {
    server.fail('silent');
    const waits = cluster.apply(objects).then(
      () => 'done',
      (error: unknown) => (error as Error).name,
    );
    const followed = follow(cluster, plan);
    await cluster.close();

    expect(await waits).toBe('AbortError');
    await followed.stop();
  });

  test('runs containers as test functions and stops them on scale-down', async () => {
    const seen: string[] = [];
    server.kubelet.startsAs = async ({ files, signal, ready }) => {
      seen.push(files['/etc/service-local/runner']!['token']!);
      if (seen.length === 1) return 3;
      ready(true);
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      seen.push('ended');
      return 0;
    };
    const followed = follow(cluster, plan);
    await cluster.apply(objects);
    const ready = await followed.until(({ phase }) => phase === 'ready');
    expect(ready.pods).toMatchObject([{ restarts: 1 }]);
    await cluster.scaleDown(plan);
    await followed.until(({ phase }) => phase === 'scaled_down');

    expect(seen).toEqual([CANARY, CANARY, 'ended']);
    await followed.stop();
  });
});

test('a deployment is scaled down only after the controller has observed the change', () => {
  const metadata = { name: 'bot', generation: 2 };
  const down = (observedGeneration: number, replicas: number): string =>
    stateOf(
      {
        deployment: { metadata, spec: { replicas: 0 }, status: { observedGeneration, replicas } },
        pods: [],
      },
      0,
    ).phase;

  expect([down(1, 0), down(2, 1), down(2, 0)]).toEqual([
    'progressing',
    'progressing',
    'scaled_down',
  ]);
});

/** The RBAC permissions that a request needs; reading the namespace itself is optional. */
function rightsOf({ method, path, query }: Asked): string[] {
  const [, group = '', resource, name] =
    /^\/apis?(?:\/([a-z.0-9]+))?\/v1\/namespaces\/[^/]+\/([a-z]+)(?:\/(.+))?$/.exec(path) ?? [];
  if (resource === undefined) return [];
  const reads = query.has('watch') ? 'watch' : name === undefined ? 'list' : 'get';
  const verbs = { GET: [reads], PATCH: ['create', 'patch'], DELETE: ['delete'] }[method] ?? [
    method,
  ];
  return verbs.map((verb) => `${group}/${resource} ${verb}`);
}

describe('a cluster that cannot be connected to', () => {
  test('causes an error that does not quote the kubeconfig', async () => {
    const file = join(await mkdtemp(join(tmpdir(), 'kube-')), 'config');
    await writeFile(file, `users: [{name: a, user: {token: ${CANARY}}\n  - [`);
    const connect = (): unknown => connectCluster(definitionOf(file), { signal: ending.signal });

    expect(connect).toThrow(/is not a valid kubeconfig$/);
  });

  test.for([
    [{ kubeconfig: '/nowhere/config' }, 'invalid_kubeconfig', /cannot be read: ENOENT/],
    [{ context: 'other' }, 'invalid_kubeconfig', /has no context "other"/],
    [{ kubeconfig: undefined, in_cluster: true }, 'not_in_cluster', /does not run in a cluster/],
  ] as const)('causes an error that names the reason: %j', ([change, reason, message]) => {
    const changed = { ...definition, ...change } as ClusterDefinition;
    const connect = (): unknown => connectCluster(changed, { signal: ending.signal });

    expect(connect).toThrow(message);
    expect(connect).toThrow(expect.objectContaining({ code: 'conflict', reason }) as Error);
  });
});
