import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { beforeAll, describe, expect, test } from 'vitest';
import { verb as serverVerb } from '../../src/cli/verbs/server.ts';
import { verb as workerVerb } from '../../src/cli/verbs/worker.ts';
import { readChannelsFile } from '../../src/fleet/notifications/channels-file.ts';
import { readKnowledgeFile } from '../../src/research/knowledge/knowledge-file.ts';
import { readClusters } from '../../src/deploy/kubernetes/clusters-file.ts';
import { resolveSettings } from '../../src/base/resolve-settings.ts';
import { environmentName, SETTING_KEYS, type Settings } from '../../src/base/settings.ts';
import { readExchanges } from '../../src/trading/venues/exchanges-file.ts';
import { packageVersion } from '../../src/base/package-version.ts';
import { podSecurityFaults, type PodSpec } from '../deploy/kubernetes/pod-security.ts';
import { validatorOf } from '../deploy/kubernetes/schemas.ts';
import { isAtLength, some } from '../length.ts';
import { CHART, EXAMPLES, render, runHelm, template, type Rendered } from './helm.ts';
import { VALUES } from './values.ts';

type Name = keyof typeof VALUES;
const NAMES = Object.keys(VALUES) as Name[];

interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly secretKeyRef: { readonly name: string; readonly key: string } };
}

interface Container {
  readonly name: string;
  readonly image: string;
  readonly args: readonly string[];
  readonly env: readonly Variable[];
  readonly envFrom?: readonly { readonly secretRef: { readonly name: string } }[];
  readonly securityContext: { readonly readOnlyRootFilesystem: boolean };
  readonly volumeMounts: readonly {
    readonly name: string;
    readonly mountPath: string;
    readonly readOnly?: boolean;
  }[];
}

type Pod = PodSpec & {
  readonly automountServiceAccountToken: boolean;
  readonly initContainers?: readonly Container[];
  readonly containers: readonly Container[];
  readonly volumes: readonly { readonly name: string }[];
};

interface Workload extends Rendered {
  readonly spec: {
    readonly template: {
      readonly metadata: Readonly<
        Record<'labels' | 'annotations', Readonly<Record<string, string>>>
      >;
      readonly spec: Pod;
    };
  };
}

interface Policy extends Rendered {
  readonly spec: {
    readonly egress: readonly { readonly ports?: readonly { readonly port: number }[] }[];
  };
}

const rendered = {} as Record<Name, readonly Rendered[]>;
beforeAll(async () => {
  await Promise.all(
    NAMES.map(async (name) => {
      rendered[name] = await render(VALUES[name]);
    }),
  );
});

function ofKind(name: Name, kind: string): readonly Rendered[] {
  return rendered[name].filter((object) => object.kind === kind);
}

function workloads(name: Name): readonly Workload[] {
  return ofKind(name, 'Deployment') as readonly Workload[];
}

interface CronJob extends Rendered {
  readonly spec: {
    readonly schedule: string;
    readonly concurrencyPolicy: string;
    readonly jobTemplate: { readonly spec: { readonly template: Workload['spec']['template'] } };
  };
}

/** Templates of the Jobs that cron jobs create. */
function jobTemplates(name: Name): readonly Pick<Workload, 'metadata' | 'spec'>[] {
  const jobs = ofKind(name, 'CronJob') as readonly CronJob[];
  return jobs.map(({ metadata, spec }) => ({ metadata, spec: spec.jobTemplate.spec }));
}

function podOf(name: Name, component: string): Pod {
  return workloads(name).find(
    ({ metadata }) => metadata.labels['app.kubernetes.io/component'] === component,
  )!.spec.template.spec;
}

function environmentOf(pod: Pod): Record<string, string> {
  const { env } = pod.containers[0]!;
  return Object.fromEntries(env.map(({ name, value = 'from a secret' }) => [name, value]));
}

function settingsOf(name: Name, component: string): Settings {
  return resolveSettings('/', environmentOf(podOf(name, component))).values;
}

describe.for(NAMES)('with %s values', (name) => {
  test('every object is as the schemas of Kubernetes want it', async () => {
    const faults = await Promise.all(
      rendered[name].map(async (object) =>
        (await validatorOf(object.apiVersion, object.kind))(object).map(
          (fault) => `${object.kind} ${object.metadata.name}: ${fault}`,
        ),
      ),
    );
    expect(faults.flat()).toEqual([]);
    const keys = rendered[name].map(({ kind, metadata }) =>
      [kind, metadata.namespace, metadata.name].join('/'),
    );
    expect(new Set(keys).size).toBe(keys.length);
  });

  test.runIf(isAtLength || name === 'default')(
    'helm lint --strict reports no warning and no error',
    async () => {
      const { status, stdout } = await runHelm(['lint', '--strict', CHART], VALUES[name]);
      expect(stdout).not.toMatch(/WARNING|ERROR/);
      expect(status).toBe(0);
    },
  );

  test('pods meet the standard `restricted`, and write only where they may', () => {
    for (const { spec } of workloads(name)) {
      const pod = spec.template.spec;
      expect(podSecurityFaults(pod)).toEqual([]);
      expect(pod.containers.map(({ securityContext }) => securityContext)).toEqual([
        expect.objectContaining({ readOnlyRootFilesystem: true }),
      ]);
      const { volumeMounts, env } = pod.containers[0]!;
      expect(pod.volumes.map((volume) => volume.name)).toEqual(
        volumeMounts.map((mount) => mount.name),
      );
      const paths = env.flatMap(({ value }) => (value?.startsWith('/') ? [value] : []));
      const unmounted = paths.filter(
        (path) => !volumeMounts.some(({ mountPath }) => `${path}/`.startsWith(`${mountPath}/`)),
      );
      expect(unmounted).toEqual([]);
    }
  });

  test('no secret is written down', () => {
    expect(ofKind(name, 'Secret')).toEqual([]);
    const variables = workloads(name).flatMap(({ spec }) => spec.template.spec.containers[0]!.env);
    const secret = variables.filter(
      ({ name: variable, value }) =>
        /DATABASE_URL|KEY|TOKEN|PASSWORD|SECRET|PEM/.test(variable) && !value?.startsWith('/'),
    );
    expect(new Set(secret.map((variable) => variable.name))).toEqual(new Set(['DATABASE_URL']));
    expect(secret.filter(({ valueFrom }) => valueFrom === undefined)).toEqual([]);
  });

  test('every setting is one, and its value good', () => {
    const known = new Set(SETTING_KEYS.map((key) => environmentName(key)));
    for (const { spec } of workloads(name)) {
      const env = environmentOf(spec.template.spec);
      const own = Object.keys(env).filter((variable) => variable.startsWith('SERVICE_LOCAL_'));
      expect(own.filter((variable) => !known.has(variable))).toEqual([]);
      const { home, workers } = resolveSettings('/', env).values;
      expect([home, workers > 0]).toEqual(['/var/lib/service-local', true]);
    }
  });

  test('a selector of pods selects only those of one component', () => {
    const selectors = rendered[name].flatMap(({ kind, metadata, ...rest }) => {
      const { spec } = rest as { spec?: Record<string, { matchLabels?: object }> };
      const selector = spec?.['podSelector'] ?? spec?.['selector'];
      return selector === undefined
        ? []
        : [[kind, metadata.labels, selector.matchLabels ?? selector] as const];
    });
    expect(selectors.length).toBeGreaterThan(1);
    for (const [kind, labels, selector] of selectors) {
      const chosen = [...workloads(name), ...jobTemplates(name)].filter(({ spec }) =>
        Object.entries(selector).every(
          ([key, value]) => spec.template.metadata.labels[key] === value,
        ),
      );
      const components = chosen.map(({ metadata }) => metadata.labels);
      expect([kind, components]).toEqual([
        kind,
        [
          expect.objectContaining({
            'app.kubernetes.io/component': labels['app.kubernetes.io/component'],
          }),
        ],
      ]);
    }
  });
});

describe('the chart', () => {
  test('leaves tasks to workers, and to servers when there are none', () => {
    const { server_tasks: withWorkers } = settingsOf('default', 'server');
    const { server_tasks: alone } = settingsOf('minimal', 'server');
    expect([withWorkers, alone]).toEqual([false, true]);
    expect(workloads('minimal').length).toBe(1);
    const commands = workloads('default').map(
      ({ spec }) => spec.template.spec.containers[0]!.args[0],
    );
    expect(commands).toEqual(['server', 'worker']);
  });

  test('has workers answer probes and Prometheus at a port of their own', () => {
    const worker = workloads('default').find(({ metadata }) => metadata.name.endsWith('-worker'))!;
    const { metadata, spec } = worker.spec.template;
    const [container] = spec.containers;
    expect(container).toMatchObject({
      args: ['worker', '--log-json', '--host', '0.0.0.0', '--port', '8788'],
      ports: [{ name: 'metrics', containerPort: 8788 }],
      startupProbe: { httpGet: { path: '/healthz', port: 'metrics' } },
      livenessProbe: { httpGet: { path: '/healthz', port: 'metrics' } },
      readinessProbe: { httpGet: { path: '/readyz', port: 'metrics' } },
    });
    expect(metadata.annotations).toMatchObject({
      'prometheus.io/scrape': 'true',
      'prometheus.io/port': '8788',
      'prometheus.io/path': '/metrics',
    });
  });

  test('probes servers at their port, and checks the database only for readiness', () => {
    expect(podOf('default', 'server').containers[0]).toMatchObject({
      ports: [{ name: 'http', containerPort: 8787 }],
      startupProbe: { httpGet: { path: '/healthz', port: 'http' } },
      livenessProbe: { httpGet: { path: '/healthz', port: 'http' } },
      readinessProbe: { httpGet: { path: '/readyz', port: 'http' } },
    });
  });

  test('allows one pod of each component to be evicted at a time, and those that are not ready', () => {
    const budget = { maxUnavailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow' };
    expect(ofKind('default', 'PodDisruptionBudget')).toMatchObject([
      { metadata: { name: 'release-service-local-server' }, spec: budget },
      { metadata: { name: 'release-service-local-worker' }, spec: budget },
    ]);
    expect(ofKind('minimal', 'PodDisruptionBudget')).toEqual([]);
  });

  test('opens only the ports of DNS, the database, the web, the collector and API servers', () => {
    const portsOf = (name: Name) =>
      (ofKind(name, 'NetworkPolicy') as readonly Policy[]).map(({ spec }) =>
        spec.egress.flatMap(({ ports = [] }) => ports.map(({ port }) => port)),
      );
    expect(portsOf('default')).toEqual([
      [53, 53, 5432, 443],
      [53, 53, 5432, 443],
    ]);
    expect(portsOf('public licensing')[0]).toEqual([53, 53, 6432, 443]);
    expect(portsOf('deployments')[0]).toEqual([53, 53, 5432, 443, 4318, 6443]);
    expect(ofKind('minimal', 'NetworkPolicy')).toEqual([]);
  });

  test('names the collector of traces and the Secret with its headers, for servers and workers', () => {
    const variables = [
      { name: 'OTEL_EXPORTER_OTLP_ENDPOINT', value: 'http://collector.monitoring:4318' },
      {
        name: 'OTEL_EXPORTER_OTLP_HEADERS',
        valueFrom: { secretKeyRef: { name: 'collector', key: 'headers' } },
      },
    ];
    for (const component of ['server', 'worker']) {
      const { env } = podOf('deployments', component).containers[0]!;
      expect(env).toEqual(expect.arrayContaining(variables));
    }
    expect(JSON.stringify(rendered.default)).not.toContain('OTEL_');
  });

  test('reads the database from a Secret, and checks its certificate with the authority that is named', () => {
    const { containers, volumes } = podOf('public licensing', 'worker');
    const secretKeyRef = { name: 'postgres-app', key: 'uri' };
    expect(containers[0]!.env).toContainEqual({
      name: 'DATABASE_URL',
      valueFrom: { secretKeyRef },
    });
    expect(volumes).toContainEqual(
      expect.objectContaining({
        name: 'database',
        secret: expect.objectContaining({ secretName: 'postgres-ca' }) as object,
      }),
    );
  });

  test('gives servers and workers the same settings', () => {
    const given = {
      license_ttl_max_seconds: 7_776_000,
      strategy_timeout_seconds: 2.5,
      custom_code: true,
      custom_code_memory_mb: 1024,
      license_clone_policy: 'refuse',
      catalogue_dir: '/var/lib/service-local/catalogue',
    };
    expect(settingsOf('public licensing', 'worker')).toMatchObject(given);
    expect(settingsOf('public licensing', 'server')).toMatchObject({
      ...given,
      server_host: '0.0.0.0',
      server_public_url: 'https://bots.example.com',
    });
  });

  test('archives events in a volume that workers can read, and only where there is one', () => {
    const directory = '/var/lib/service-local/event-archive';
    const [job] = ofKind('public licensing', 'CronJob') as readonly CronJob[];
    const { schedule, concurrencyPolicy } = job!.spec;
    expect({ schedule, concurrencyPolicy }).toEqual({
      schedule: '30 3 1 * *',
      concurrencyPolicy: 'Forbid',
    });
    const pod = jobTemplates('public licensing')[0]!.spec.template.spec;
    expect(podSecurityFaults(pod)).toEqual([]);
    expect(pod.automountServiceAccountToken).toBe(false);
    const [archive, verify] = [pod.initContainers![0]!, pod.containers[0]!];
    expect([archive.args, verify.args]).toEqual([
      ['events', 'archive', '--json'],
      ['events', 'verify', '--json'],
    ]);
    expect(archive.env).toEqual(verify.env);
    expect(environmentOf(pod)).toEqual(environmentOf(podOf('public licensing', 'worker')));
    expect(settingsOf('public licensing', 'worker').event_archive_dir).toBe(directory);
    const mount = { name: 'archive', mountPath: directory };
    const mounted: readonly (readonly [Container, boolean])[] = [
      [archive, false],
      [verify, false],
      [podOf('public licensing', 'server').containers[0]!, false],
      [podOf('public licensing', 'worker').containers[0]!, true],
    ];
    for (const [{ volumeMounts }, readOnly] of mounted) {
      expect(volumeMounts).toContainEqual({ ...mount, readOnly });
    }
    const claim = { persistentVolumeClaim: { claimName: 'event-archive' } };
    expect(pod.volumes).toContainEqual({ name: 'archive', ...claim });
    expect(ofKind('default', 'CronJob')).toEqual([]);
    expect(JSON.stringify(podOf('default', 'worker').volumes)).not.toContain('archive');
  });

  test('can give every setting that server and worker take', async () => {
    const schema = JSON.parse(await readFile(join(CHART, 'values.schema.json'), 'utf8')) as {
      properties: { settings: { properties: object } };
    };
    const own = Object.keys(environmentOf(podOf('public licensing', 'server')));
    const given = [
      ...Object.keys(schema.properties.settings.properties),
      ...SETTING_KEYS.filter((key) => own.includes(environmentName(key))),
    ];
    const taken = [...(serverVerb.settings ?? []), ...(workerVerb.settings ?? [])];
    expect(taken.filter((key) => !given.includes(key))).toEqual([]);
    expect(given.filter((key) => !SETTING_KEYS.includes(key as keyof Settings))).toEqual([]);
  });

  test('pins the root of the license only where the values name one', () => {
    const pinsOf = (name: Name): readonly (string | undefined)[] =>
      ['server', 'worker'].map(
        (component) => environmentOf(podOf(name, component))['SERVICE_LICENSE_ROOT'],
      );
    const { root } = VALUES.deployments.license;
    expect(pinsOf('deployments')).toEqual([root, root]);
    expect(pinsOf('default')).toEqual([undefined, undefined]);
  });

  test('mounts the signing key for servers alone', () => {
    const [server, worker] = ['server', 'worker'].map((component) =>
      JSON.stringify(podOf('public licensing', component)),
    );
    expect(server).toContain('"value":"/etc/service-local/signing/private_key.pem"');
    expect(server).toContain('"secretName":"signing"');
    expect(worker).not.toContain('signing');
    expect(JSON.stringify(rendered.default)).not.toContain('PRIVATE_KEY');
  });

  test('writes files that the server can read', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'service-local-chart-'));
    const written = async (name: Name, file: string): Promise<string> => {
      const [map] = ofKind(name, 'ConfigMap') as readonly (Rendered & {
        readonly data: Readonly<Record<string, string>>;
      })[];
      const path = join(directory, `${name}-${file}`);
      await writeFile(path, map!.data[file]!);
      return path;
    };
    expect(readExchanges(await written('public licensing', 'exchanges.yaml'))).toMatchObject({
      binance: { ccxt: 'binance' },
    });
    const knowledge = readKnowledgeFile(await written('public licensing', 'knowledge.yaml'));
    expect(knowledge).toMatchObject(VALUES['public licensing'].knowledge);
    const notifications = readChannelsFile(await written('public licensing', 'notifications.yaml'));
    expect(notifications).toMatchObject(VALUES['public licensing'].notifications);
    expect(podOf('public licensing', 'server').containers[0]!.envFrom).toEqual([
      { secretRef: { name: 'research' } },
    ]);
    expect(podOf('public licensing', 'worker').containers[0]!.envFrom).toBeUndefined();
    expect(readClusters(await written('default', 'clusters.yaml'))).toEqual({});
    expect(readClusters(await written('deployments', 'clusters.yaml'))).toEqual({
      tokyo: VALUES.deployments.clusters.tokyo,
      here: {
        in_cluster: true,
        owner: 'own',
        namespace: 'bots',
        image: 'service-local:1.2.3',
        control_url: 'http://release-service-local.trading.svc:8787',
        otlp_endpoint: 'http://collector.monitoring:4318',
        storage_class: 'fast',
      },
    });
  });

  test('gives access to the cluster only for deployments', () => {
    const access = (name: Name): readonly unknown[] => [
      ...[...ofKind(name, 'Role'), ...ofKind(name, 'RoleBinding')].map(
        ({ kind, metadata }) => `${kind} in ${metadata.namespace}`,
      ),
      ...workloads(name).map(({ spec }) => spec.template.spec.automountServiceAccountToken),
    ];
    expect(access('default')).toEqual([false, false]);
    expect(access('deployments')).toEqual([
      'Role in bots',
      'Role in bots-staging',
      'RoleBinding in bots',
      'RoleBinding in bots-staging',
      true,
      true,
    ]);
    expect(ofKind('deployments', 'ClusterRole')).toEqual([]);
  });

  test('grants exactly the access that the documented role lists', async () => {
    const known = parse(await readFile(join(EXAMPLES, 'kubernetes-role.yaml'), 'utf8')) as object;
    for (const role of ofKind('deployments', 'Role')) {
      expect(role).toMatchObject({ rules: (known as { rules: unknown }).rules });
    }
  });

  test('has the version of the package, and pins the image by digest if there is one', async () => {
    expect(await readFile(join(CHART, 'Chart.yaml'), 'utf8')).toContain(
      `appVersion: ${packageVersion()}\n`,
    );
    const image = (name: Name): string => podOf(name, 'server').containers[0]!.image;
    expect(image('default')).toBe(`service-local:${packageVersion()}`);
    expect(image('public licensing')).toBe(
      `registry.example:5000/service-local@sha256:${'a'.repeat(64)}`,
    );
  });

  test('names only existing verbs in its notes', async () => {
    const notes = await readFile(join(CHART, 'templates/NOTES.txt'), 'utf8');
    const verbs = [...notes.matchAll(/(?: {5}|-- )service-local ([a-z]+(?: [a-z]+)*)/g)].map(
      ([, words]) => words!.replaceAll(' ', '/'),
    );
    expect(verbs).toContain('identity/administrators/add');
    const root = join(import.meta.dirname, '../../src/cli/verbs');
    expect(verbs.filter((verb) => !existsSync(join(root, `${verb}.ts`)))).toEqual([]);
  });
});

test.for(
  some(2, [
    ['a password', { database: { password: 'hunter2' } }, 'password'],
    ['a value that does not exist', { databse: {} }, 'databse'],
    ['a database by its URL', { database: { url: 'postgres://a:b@c/d' } }, 'url'],
    ['no database', { database: { existingSecret: '' } }, 'existingSecret'],
    ['a key by its text', { signingKey: { pem: '-----BEGIN' } }, 'pem'],
    ['a setting that does not exist', { settings: { worker: 2 } }, 'worker'],
    ['a setting that the chart sets', { settings: { server_port: 80 } }, 'server_port'],
    ['a setting with a wrong value', { settings: { license_clone_policy: 'no' } }, 'clone_policy'],
    ['an origin with a path', { server: { publicUrl: 'https://a.example/x' } }, 'publicUrl'],
    ['no server', { server: { replicas: 0 } }, 'replicas'],
    ['an Ingress without a host', { ingress: { enabled: true } }, 'host'],
    ['deployments without a namespace', { deployments: { namespaces: [] } }, 'namespaces'],
    ['a root that is not a fingerprint', { license: { root: 'A'.repeat(42) } }, 'root'],
    ['a collector with a password', { telemetry: { endpoint: 'http://a:b@c:4318' } }, 'endpoint'],
    ['port 0 for the database', { database: { port: 0 } }, 'port'],
    ['a short digest', { image: { digest: 'sha256:abc' } }, 'digest'],
    [
      'two clusters of one name',
      { deployments: { enabled: true }, clusters: { here: {} } },
      'clusters: here',
    ],
  ] as const),
)('the chart refuses %s', async ([, values, named]) => {
  const { status, stderr } = await template(values);
  expect(status).toBe(1);
  expect(stderr).toContain(named);
});
