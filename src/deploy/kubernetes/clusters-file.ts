import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { closest } from '../../base/closest.ts';
import { ServiceError } from '../../base/errors.ts';
import { plainUrl, readYamlFile } from '../../base/yaml-file.ts';

const DNS_LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const QUANTITY = /^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$/;

const port = z.int().min(1).max(65_535);

const egressSchema = z.strictObject({
  /** Defaults to all addresses except link-local ones. */
  cidr: z.union([z.cidrv4(), z.cidrv6()]).optional(),
  ports: z.array(port).min(1).max(20),
});

const searchesSchema = z
  .strictObject({
    /** `s3://BUCKET/PREFIX`, or the directory of this machine where the volume of `claim` is mounted. */
    store: z.string().min(1).max(1024),
    /** Name of the PersistentVolumeClaim that pods mount for a directory. */
    claim: z.string().min(1).max(253).optional(),
    /** Endpoint of a server that speaks the protocol of S3. */
    endpoint: plainUrl.optional(),
    region: z.string().min(1).max(64).optional(),
    /** Name of the Secret with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for the pods. */
    secret: z.string().min(1).max(253).optional(),
    /** Service account of the pods, for credentials by role. */
    service_account: z.string().min(1).max(253).optional(),
    /** Number of pods that run at once; 16 by default. */
    parallelism: z.int().min(1).max(10_000).optional(),
  })
  .refine(({ store, claim }) => store.startsWith('s3://') === (claim === undefined), {
    message: 'must have a claim if store is a directory, and none if it is s3://…',
    path: ['claim'],
  })
  .refine(
    ({ store, endpoint, region, secret }) =>
      store.startsWith('s3://') || (endpoint ?? region ?? secret) === undefined,
    {
      message: 'endpoint, region and secret require a store s3://…',
    },
  );

/** Rejects unknown fields, which also keeps tokens and keys out of the file. */
const definitionSchema = z
  .strictObject({
    /** Path relative to the clusters file, or starting with `~/`. */
    kubeconfig: z.string().min(1).optional(),
    /** Defaults to the current context of the kubeconfig. */
    context: z.string().min(1).optional(),
    /** Uses the service account of the pod that the server runs in. */
    in_cluster: z.literal(true).optional(),
    owner: z.enum(['own', 'customer']),
    namespace: z.string().regex(DNS_LABEL, 'must be a valid namespace name'),
    /** Container image of the runner. */
    image: z.string().regex(/^[\w][\w./:@-]{0,511}$/, 'must be a valid image name'),
    /** URL of the server as runners in the cluster reach it. */
    control_url: plainUrl,
    /** OTLP/HTTP address of the collector for traces and metrics of runners. */
    otlp_endpoint: plainUrl.optional(),
    storage_class: z.string().min(1).max(253).optional(),
    /** `ReadWriteOncePod` prevents two pods from sharing the volume even on one node, if supported. */
    access_mode: z.enum(['ReadWriteOnce', 'ReadWriteOncePod']).optional(),
    resources: z
      .strictObject({
        cpu: z.string().regex(QUANTITY, 'must be a quantity such as 500m'),
        memory: z.string().regex(QUANTITY, 'must be a quantity such as 512Mi'),
      })
      .optional(),
    /** Addresses that runners may connect to besides DNS; defaults to the ports of exchanges, `control_url` and `otlp_endpoint`. */
    egress: z.array(egressSchema).max(50).optional(),
    /** Where `--on cluster:NAME` keeps the inputs and results of searches, and how its pods run. */
    searches: searchesSchema.optional(),
  })
  .refine(({ kubeconfig, in_cluster }) => (kubeconfig === undefined) === (in_cluster === true), {
    message: 'must have exactly one of kubeconfig and in_cluster',
  })
  .refine(({ context, kubeconfig }) => context === undefined || kubeconfig !== undefined, {
    message: 'requires kubeconfig',
    path: ['context'],
  });

const fileSchema = z.record(
  z
    .string()
    .regex(
      /^[a-z0-9][a-z0-9_-]{0,63}$/,
      'must be a name of lower-case letters, digits, dashes and underscores',
    ),
  definitionSchema,
);

/** A cluster for deployments of bots, with the defaults for their pods. */
export type ClusterDefinition = z.output<typeof definitionSchema>;

export type Clusters = Readonly<Record<string, ClusterDefinition>>;

/** Addresses and TCP ports that a runner may connect to. */
export type Egress = z.output<typeof egressSchema>;

/**
 * Reads a YAML or JSON file of clusters by name; a missing file has no clusters. Paths in the result
 * are absolute.
 * @throws ServiceError `invalid_setting` with every problem.
 */
export function readClusters(file: string): Clusters {
  const clusters = readYamlFile(file, {
    schema: fileSchema,
    refuse: (problems) => invalid(file, problems),
    secretsHint: 'keep credentials in the kubeconfig',
  });
  return Object.fromEntries(
    Object.entries(clusters ?? {}).map(([name, { kubeconfig, ...rest }]) => [
      name,
      kubeconfig === undefined ? rest : { ...rest, kubeconfig: pathOf(kubeconfig, file) },
    ]),
  );
}

function pathOf(path: string, file: string): string {
  return path.startsWith('~/') ? join(homedir(), path.slice(2)) : resolve(dirname(file), path);
}

function invalid(file: string, problems: ServiceError['problems']): ServiceError {
  return new ServiceError('invalid_setting', `clusters_file ${file} is invalid`, {
    problems,
    remedy:
      'Correct the file. Each cluster has the form `NAME: {kubeconfig: PATH, owner: own or customer, namespace: …, image: …, control_url: …}` and contains no credentials.',
  });
}

/**
 * Without a name, returns the only cluster of the file.
 * @throws ServiceError `conflict`, reason `no_cluster` or `unknown_cluster`
 */
export function chooseCluster(clusters: Clusters, name: string | undefined): string {
  const names = Object.keys(clusters);
  if (names.length === 0) {
    throw new ServiceError('conflict', 'the server has no cluster to deploy to', {
      reason: 'no_cluster',
      remedy:
        'Add a cluster to the clusters_file of the server (default: ~/.service-local/clusters.yaml) and restart the server. docs/how-to/production.md has an example.',
    });
  }
  if (name === undefined && names.length > 1) {
    throw new ServiceError('conflict', 'the server has several clusters', {
      reason: 'unknown_cluster',
      remedy: `Specify one of ${names.join(', ')}.`,
    });
  }
  const chosen = name ?? names[0]!;
  if (Object.hasOwn(clusters, chosen)) return chosen;
  const suggestion = closest(chosen, names);
  throw new ServiceError('conflict', `the server has no cluster ${JSON.stringify(chosen)}`, {
    reason: 'unknown_cluster',
    remedy: suggestion ? `Did you mean ${suggestion}?` : `Specify one of ${names.join(', ')}.`,
  });
}
