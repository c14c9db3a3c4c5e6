import { parseAllDocuments } from 'yaml';
import { describe, expect, test } from 'vitest';
import {
  manifests,
  resourceName,
  runnerSecret,
  type KubernetesObject,
} from '../../../src/deploy/kubernetes/manifests.ts';
import { renderYaml } from '../../../src/deploy/kubernetes/render.ts';
import { testPlan } from './plan.ts';
import { podSecurityFaults, type PodSpec } from './pod-security.ts';
import { validatorOf } from './schemas.ts';

interface Spec {
  readonly template: { readonly spec: PodSpec & Readonly<Record<string, unknown>> };
}

function only(objects: readonly KubernetesObject[], kind: string): KubernetesObject {
  return objects.find((object) => object.kind === kind)!;
}

function podOf(objects: readonly KubernetesObject[]): Spec['template']['spec'] {
  return (only(objects, 'Deployment')['spec'] as Spec).template.spec;
}

const PLANS = {
  full: testPlan({ storage_class: 'fast', access_mode: 'ReadWriteOncePod' }),
  bare: testPlan({
    files: { 'run.json': '{}', 'bot.json': '{}' },
    credentials_secret: null,
    lease_secret: null,
    resources: { cpu: '1', memory: '1Gi' },
    egress: [{ cidr: '10.0.0.0/8', ports: [443] }],
  }),
};

describe('manifests', () => {
  test.for(Object.entries(PLANS))(
    'are valid by the published schemas for a %s plan',
    async ([, plan]) => {
      const objects = [...manifests(plan), runnerSecret(plan, 'token')];

      const faults = await Promise.all(
        objects.map(async (object) =>
          (await validatorOf(object.apiVersion, object.kind))(object).map(
            (fault) => `${object.kind}: ${fault}`,
          ),
        ),
      );
      expect(faults.flat()).toEqual([]);
      expect(objects.map(({ kind }) => kind)).toEqual([
        'ServiceAccount',
        'ConfigMap',
        'PersistentVolumeClaim',
        'NetworkPolicy',
        'Deployment',
        'Secret',
      ]);
    },
  );

  test('are invalid with unknown fields, wrong types or missing fields', async () => {
    const deployment = only(manifests(PLANS.full), 'Deployment');
    const validate = await validatorOf('apps/v1', 'Deployment');

    const { spec } = structuredClone(deployment) as unknown as { spec: Record<string, unknown> };
    expect(validate({ ...deployment, spec: { ...spec, replica: 1 } })).toEqual([
      'unknown field "spec.replica"',
    ]);
    expect(validate({ ...deployment, spec: { ...spec, replicas: '1' } })).toHaveLength(1);
    delete spec['selector'];
    expect(validate({ ...deployment, spec })).toHaveLength(1);
  });

  test.for(Object.entries(PLANS))(
    'meet the Pod Security Standard "restricted" for a %s plan',
    ([, plan]) => {
      const pod = podOf(manifests(plan));

      expect(podSecurityFaults(pod)).toEqual([]);
      expect(pod).toMatchObject({
        automountServiceAccountToken: false,
        containers: [{ securityContext: { readOnlyRootFilesystem: true } }],
      });
    },
  );

  test('are reported with each rule of the Pod Security Standard that they break', () => {
    const pod = podOf(manifests(PLANS.full));
    const [container] = pod.containers;
    const broken = (change: object): string[] =>
      podSecurityFaults({ ...pod, containers: [{ ...container!, ...change }] });
    const secured = (change: object): string[] =>
      broken({ securityContext: { ...container!.securityContext, ...change } });

    expect([
      ...podSecurityFaults({ ...pod, hostNetwork: true }),
      ...podSecurityFaults({ ...pod, volumes: [{ name: 'a', hostPath: { path: '/' } }] }),
      ...podSecurityFaults({ ...pod, securityContext: {} }),
      ...broken({ ports: [{ hostPort: 1 }] }),
      ...secured({ privileged: true }),
      ...secured({ allowPrivilegeEscalation: true }),
      ...secured({ runAsUser: 0 }),
      ...secured({ capabilities: { drop: [] } }),
      ...secured({ capabilities: { drop: ['ALL'], add: ['SYS_ADMIN'] } }),
    ]).toEqual([
      'host namespaces',
      'volume of type hostPath',
      'runner: runAsNonRoot',
      'runner: seccomp',
      'runner: host ports',
      'runner: privileged',
      'runner: privilege escalation',
      'runner: runs as root',
      'runner: capabilities',
      'runner: added capabilities',
    ]);
  });

  test('run one pod at a time and give it 60 s to cancel its orders', () => {
    const { spec } = only(manifests(PLANS.full), 'Deployment') as unknown as { spec: Spec };

    expect(spec).toMatchObject({ replicas: 1, strategy: { type: 'Recreate' } });
    expect(spec.template.spec).toMatchObject({ terminationGracePeriodSeconds: 60 });
  });

  test('require the Secrets of the plan to exist', () => {
    expect(podOf(manifests(PLANS.full)).volumes).toEqual(
      expect.arrayContaining([
        {
          name: 'credentials',
          secret: { secretName: 'binance-keys', optional: false, defaultMode: 0o440 },
        },
        {
          name: 'license',
          secret: { secretName: 'license', optional: false, defaultMode: 0o440 },
        },
      ]),
    );
  });

  test('give changed files a ConfigMap with another name', () => {
    const names = [PLANS.full, { ...PLANS.full, files: PLANS.bare.files }].map(
      (plan) => only(manifests(plan), 'ConfigMap').metadata.name,
    );

    expect(only(manifests(PLANS.full), 'ConfigMap')).toMatchObject({ immutable: true });
    expect(new Set(names).size).toBe(2);
  });

  test('allow connections only to the health port, and from the pod only to the web and the server', () => {
    const rules = (plan: typeof PLANS.full): unknown =>
      only(manifests(plan), 'NetworkPolicy')['spec'];

    expect(rules(PLANS.full)).toMatchObject({
      ingress: [{ ports: [{ port: 8080 }] }],
      egress: [
        { ports: [{ port: 53 }, { port: 53 }] },
        {
          // Binance streams on port 9443, OKX on 8443.
          ports: [{ port: 443 }, { port: 8443 }, { port: 9443 }],
          to: [
            { ipBlock: { except: ['169.254.0.0/16'] } },
            { ipBlock: { except: ['fe80::/10'] } },
            { namespaceSelector: {} },
          ],
        },
      ],
    });
    expect(rules(PLANS.bare)).toMatchObject({
      egress: [{}, { ports: [{ port: 443 }], to: [{ ipBlock: { cidr: '10.0.0.0/8' } }] }],
    });
  });

  test('name the collector of traces, and allow connections to its port', () => {
    const plan = testPlan({ otlp_endpoint: 'http://collector.monitoring:4318' });
    const [{ env }] = podOf(manifests(plan)).containers as unknown as [{ env: object[] }];
    expect(env).toContainEqual({
      name: 'OTEL_EXPORTER_OTLP_ENDPOINT',
      value: 'http://collector.monitoring:4318',
    });
    expect(only(manifests(plan), 'NetworkPolicy')['spec']).toMatchObject({
      egress: [{}, { ports: expect.arrayContaining([{ port: 4318, protocol: 'TCP' }]) as object }],
    });
  });

  test('have names of at most 63 characters even for the longest slug', () => {
    const slug = `${'a'.repeat(39)}-${'b'.repeat(24)}`;
    const name = resourceName(testPlan({ slug }));

    expect(name).toBe(`bot-${'a'.repeat(39)}-8d3a2b17`);
    expect(name.length).toBeLessThanOrEqual(63);
  });
});

describe('rendered YAML', () => {
  test('parses to the same objects', () => {
    const objects = manifests(PLANS.full);

    const documents = parseAllDocuments(renderYaml(objects)).map((one) => one.toJS() as unknown);
    expect(documents).toEqual(JSON.parse(JSON.stringify(objects)));
    // kubectl reads YAML 1.1, in which words such as `yes` are booleans.
    const old = parseAllDocuments(renderYaml(objects), { version: '1.1' });
    expect(old.map((one) => one.toJS() as unknown)).toEqual(documents);
  });

  test('hides the values of Secrets', () => {
    const yaml = renderYaml([runnerSecret(PLANS.full, 'canary-token')]);

    expect(yaml).toContain('token: (not shown)');
    expect(yaml).not.toContain(Buffer.from('canary-token').toString('base64'));
  });
});
