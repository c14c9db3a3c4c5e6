import { createHash } from 'node:crypto';
import type { Egress } from './clusters-file.ts';

/** Input of the manifests of one deployment of one version of a bot. */
export interface DeployPlan {
  readonly deployment_id: string;
  readonly bot_id: string;
  readonly slug: string;
  readonly version: number;
  /** Hash of the spec as authored. */
  readonly spec_hash: string;
  readonly namespace: string;
  readonly image: string;
  /** Files that the runner reads. They contain no secrets. */
  readonly files: {
    readonly 'run.json': string;
    readonly 'bot.json': string;
    readonly 'bundle.json'?: string;
  };
  /** Name of the Secret with `apiKey`, `secret` and other credentials that the exchange needs. */
  readonly credentials_secret: string | null;
  /** Name of the Secret with `lease` and `public_key`. */
  readonly lease_secret: string | null;
  /** Fingerprint of the root that the runner's gate pins; ignored without `lease_secret`. */
  readonly license_root?: string | undefined;
  /** Product that the lease must be for; defaults to the setting of the runner. */
  readonly license_product?: string | undefined;
  readonly storage_class?: string | undefined;
  readonly access_mode?: 'ReadWriteOnce' | 'ReadWriteOncePod' | undefined;
  readonly resources?: { readonly cpu: string; readonly memory: string } | undefined;
  readonly egress?: readonly Egress[] | undefined;
  readonly control_url: string;
  /** Collector of traces and metrics. */
  readonly otlp_endpoint?: string | undefined;
}

export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly [field: string]: unknown;
}

const RUN_DIRECTORY = '/etc/service-local/run';
const TOKEN_DIRECTORY = '/etc/service-local/runner';
const CREDENTIALS_DIRECTORY = '/etc/service-local/credentials';
const LICENSE_DIRECTORY = '/etc/service-local/license';
const STATE_DIRECTORY = '/var/lib/service-local';
const HEALTH_PORT = 8080;
/** A user ID that no node uses, so that a process that escapes the container owns no files there. */
const USER_ID = 10_001;
/** Time for the exchange to confirm that working orders are canceled. */
const GRACE_SECONDS = 60;
const DEFAULT_RESOURCES = { cpu: '500m', memory: '512Mi' };
/** Ports of the exchanges that ccxt supports; some stream on 8443 or 9443. */
const EXCHANGE_PORTS = [443, 8443, 9443];
/** Clouds serve the credentials of a machine on a link-local address. */
const LINK_LOCAL = ['169.254.0.0/16'];
const LINK_LOCAL_6 = ['fe80::/10'];

/** Ports of name servers, for a network policy. */
export const DNS_PORTS = [
  { port: 53, protocol: 'UDP' },
  { port: 53, protocol: 'TCP' },
];

/** All addresses but link-local ones, for a network policy. */
export const PUBLIC_ADDRESSES = [
  { ipBlock: { cidr: '0.0.0.0/0', except: LINK_LOCAL } },
  { ipBlock: { cidr: '::/0', except: LINK_LOCAL_6 } },
  // Some network plugins do not apply `ipBlock` to pods.
  { namespaceSelector: {} },
];

export const LABEL_PREFIX = 'service-local.dev';
const DEPLOYMENT_LABEL = `${LABEL_PREFIX}/deployment`;

/** Name of every object of a deployment; the ConfigMap and the Secret add a suffix. */
export function resourceName({
  slug,
  deployment_id,
}: Pick<DeployPlan, 'slug' | 'deployment_id'>): string {
  // A UUIDv7 begins with the time and ends with random digits.
  const id = deployment_id.replaceAll('-', '').slice(-8).toLowerCase();
  return `bot-${slug.slice(0, 40).replace(/-+$/, '')}-${id}`;
}

export function labelSelector({ deployment_id }: Pick<DeployPlan, 'deployment_id'>): string {
  return `${DEPLOYMENT_LABEL}=${deployment_id}`;
}

/**
 * All objects of a deployment except the Secret with the runner's token, in the order to apply them.
 * The pod meets the Pod Security Standard `restricted`
 * (https://kubernetes.io/docs/concepts/security/pod-security-standards/).
 */
export function manifests(plan: DeployPlan): readonly KubernetesObject[] {
  const name = resourceName(plan);
  const files = configMap(plan);
  return [
    {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: metadata(plan, name),
      automountServiceAccountToken: false,
    },
    files,
    {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: metadata(plan, name),
      spec: {
        accessModes: [plan.access_mode ?? 'ReadWriteOnce'],
        resources: { requests: { storage: '1Gi' } },
        ...(plan.storage_class === undefined ? {} : { storageClassName: plan.storage_class }),
      },
    },
    {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: metadata(plan, name),
      spec: {
        podSelector: { matchLabels: { [DEPLOYMENT_LABEL]: plan.deployment_id } },
        policyTypes: ['Ingress', 'Egress'],
        ingress: [{ ports: [{ port: HEALTH_PORT, protocol: 'TCP' }] }],
        egress: egressRules(plan),
      },
    },
    deployment(plan, files.metadata.name),
  ];
}

/** The token with which the runner authenticates; separate so that printed plans do not contain it. */
export function runnerSecret(plan: DeployPlan, token: string): KubernetesObject {
  const name = runnerSecretName(plan);
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: metadata(plan, name),
    type: 'Opaque',
    data: { token: Buffer.from(token).toString('base64') },
  };
}

export function runnerSecretName(plan: Pick<DeployPlan, 'slug' | 'deployment_id'>): string {
  return `${resourceName(plan)}-runner`;
}

function metadata(plan: DeployPlan, name: string): KubernetesObject['metadata'] {
  return {
    name,
    namespace: plan.namespace,
    labels: labelsOf(plan),
    annotations: annotationsOf(plan),
  };
}

function labelsOf(plan: DeployPlan): Record<string, string> {
  return {
    'app.kubernetes.io/name': 'service-local-bot',
    'app.kubernetes.io/instance': resourceName(plan),
    'app.kubernetes.io/component': 'runner',
    'app.kubernetes.io/managed-by': 'service-local',
    'app.kubernetes.io/version': String(plan.version),
    [`${LABEL_PREFIX}/bot`]: plan.bot_id,
    [`${LABEL_PREFIX}/version`]: String(plan.version),
    [DEPLOYMENT_LABEL]: plan.deployment_id,
  };
}

function annotationsOf(plan: DeployPlan): Record<string, string> {
  return {
    [`${LABEL_PREFIX}/slug`]: plan.slug,
    [`${LABEL_PREFIX}/spec-hash`]: plan.spec_hash,
  };
}

const FILES = ['run.json', 'bot.json', 'bundle.json'];

/** Immutable and named by its hash, so that a pod always reads the files it was created with. */
function configMap(plan: DeployPlan): KubernetesObject {
  const hash = createHash('sha256').update(JSON.stringify(plan.files, FILES)).digest('hex');
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: metadata(plan, `${resourceName(plan)}-${hash.slice(0, 10)}`),
    immutable: true,
    data: plan.files,
  };
}

export function portOf(url: string): number {
  const { port, protocol } = new URL(url);
  return Number(port) || (protocol === 'https:' ? 443 : 80);
}

/** Allows DNS to any address, because clusters run it in pods or on the node. */
function egressRules({ egress, control_url, otlp_endpoint }: DeployPlan): object[] {
  const own = [control_url, otlp_endpoint].filter((url) => url !== undefined).map(portOf);
  const allowed = egress ?? [{ ports: [...new Set([...EXCHANGE_PORTS, ...own])] }];
  return [
    { ports: DNS_PORTS },
    ...allowed.map(({ cidr, ports }) => ({
      ports: ports.map((each) => ({ port: each, protocol: 'TCP' })),
      to: cidr === undefined ? PUBLIC_ADDRESSES : [{ ipBlock: { cidr } }],
    })),
  ];
}

function deployment(plan: DeployPlan, files: string): KubernetesObject {
  const name = resourceName(plan);
  const { cpu, memory } = plan.resources ?? DEFAULT_RESOURCES;
  const volumes = [
    { name: 'run', at: RUN_DIRECTORY, source: { configMap: { name: files } } },
    { name: 'runner', at: TOKEN_DIRECTORY, source: secretVolume(runnerSecretName(plan)) },
    ...(plan.credentials_secret === null
      ? []
      : [
          {
            name: 'credentials',
            at: CREDENTIALS_DIRECTORY,
            source: secretVolume(plan.credentials_secret),
          },
        ]),
    ...(plan.lease_secret === null
      ? []
      : [{ name: 'license', at: LICENSE_DIRECTORY, source: secretVolume(plan.lease_secret) }]),
    {
      name: 'state',
      at: STATE_DIRECTORY,
      isWritten: true,
      source: { persistentVolumeClaim: { claimName: name } },
    },
    { name: 'tmp', at: '/tmp', isWritten: true, source: { emptyDir: { sizeLimit: '256Mi' } } },
  ];
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: metadata(plan, name),
    spec: {
      replicas: 1,
      // Removes the old pod before starting the new one, so that two pods never trade at once.
      strategy: { type: 'Recreate' },
      revisionHistoryLimit: 2,
      progressDeadlineSeconds: 300,
      selector: { matchLabels: { [DEPLOYMENT_LABEL]: plan.deployment_id } },
      template: {
        metadata: { labels: labelsOf(plan), annotations: annotationsOf(plan) },
        spec: {
          serviceAccountName: name,
          automountServiceAccountToken: false,
          enableServiceLinks: false,
          terminationGracePeriodSeconds: GRACE_SECONDS,
          securityContext: {
            runAsNonRoot: true,
            runAsUser: USER_ID,
            runAsGroup: USER_ID,
            fsGroup: USER_ID,
            fsGroupChangePolicy: 'OnRootMismatch',
            seccompProfile: { type: 'RuntimeDefault' },
          },
          containers: [
            {
              name: 'runner',
              image: plan.image,
              command: ['service-local', 'run', `${RUN_DIRECTORY}/run.json`, '--log-json'],
              env: [
                { name: 'HOME', value: '/tmp' },
                ...(plan.otlp_endpoint === undefined
                  ? []
                  : [{ name: 'OTEL_EXPORTER_OTLP_ENDPOINT', value: plan.otlp_endpoint }]),
                ...(plan.lease_secret === null
                  ? []
                  : [
                      { name: 'SERVICE_LICENSE_LEASE_PATH', value: `${LICENSE_DIRECTORY}/lease` },
                      {
                        name: 'SERVICE_LICENSE_PUBLIC_KEY_PATH',
                        value: `${LICENSE_DIRECTORY}/public_key`,
                      },
                      ...(plan.license_root === undefined
                        ? []
                        : [{ name: 'SERVICE_LICENSE_ROOT', value: plan.license_root }]),
                      ...(plan.license_product === undefined
                        ? []
                        : [{ name: 'SERVICE_LOCAL_LICENSE_PRODUCT', value: plan.license_product }]),
                    ]),
              ],
              ports: [{ name: 'health', containerPort: HEALTH_PORT, protocol: 'TCP' }],
              // Requests equal limits, so that other pods on the node do not slow this one down.
              resources: { requests: { cpu, memory }, limits: { cpu, memory } },
              startupProbe: probe('/livez', { periodSeconds: 2, failureThreshold: 60 }),
              livenessProbe: probe('/livez', { periodSeconds: 10, failureThreshold: 6 }),
              readinessProbe: probe('/readyz', { periodSeconds: 5, failureThreshold: 2 }),
              securityContext: {
                allowPrivilegeEscalation: false,
                readOnlyRootFilesystem: true,
                capabilities: { drop: ['ALL'] },
              },
              volumeMounts: volumes.map(({ name: volume, at, isWritten = false }) => ({
                name: volume,
                mountPath: at,
                ...(isWritten ? {} : { readOnly: true }),
              })),
            },
          ],
          volumes: volumes.map(({ name: volume, source }) => ({ name: volume, ...source })),
        },
      },
    },
  };
}

/** Mode 0440 lets the group set by `fsGroup` read the files. */
function secretVolume(secretName: string): object {
  return { secret: { secretName, optional: false, defaultMode: 0o440 } };
}

function probe(path: string, times: { periodSeconds: number; failureThreshold: number }): object {
  return { httpGet: { path, port: 'health' }, timeoutSeconds: 5, ...times };
}
