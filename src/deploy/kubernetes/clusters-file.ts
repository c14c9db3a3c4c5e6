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
  /** Anywhere but the node's own addresses when there is none. */
  cidr: z.union([z.cidrv4(), z.cidrv6()]).optional(),
  ports: z.array(port).min(1).max(20),
});

/** Unknown fields are refused, and with them tokens and keys: these stay in the kubeconfig. */
const definitionSchema = z
  .strictObject({
    /** Relative to the file, or below `~/`. */
    kubeconfig: z.string().min(1).optional(),
    /** Of the kubeconfig; its current one when none is named. */
    context: z.string().min(1).optional(),
    /** The server runs in the cluster, and uses what the cluster gave its pod. */
    in_cluster: z.literal(true).optional(),
    owner: z.enum(['own', 'customer']),
    namespace: z.string().regex(DNS_LABEL, 'must be the name of a namespace'),
    /** Of the runner. */
    image: z.string().regex(/^[\w][\w./:@-]{0,511}$/, 'must be the name of an image'),
    /** How the runner reaches the server, seen from within the cluster. */
    control_url: plainUrl,
    storage_class: z.string().min(1).max(253).optional(),
    /** `ReadWriteOncePod` keeps two pods apart even on one node, where the driver can do it. */
    access_mode: z.enum(['ReadWriteOnce', 'ReadWriteOncePod']).optional(),
    resources: z
      .strictObject({
        cpu: z.string().regex(QUANTITY, 'must be a quantity such as 500m'),
        memory: z.string().regex(QUANTITY, 'must be a quantity such as 512Mi'),
      })
      .optional(),
    /** Where a runner may connect to besides DNS; by default the ports of exchanges and that of `control_url`. */
    egress: z.array(egressSchema).max(50).optional(),
  })
  .refine(({ kubeconfig, in_cluster }) => (kubeconfig === undefined) === (in_cluster === true), {
    message: 'needs either kubeconfig or in_cluster',
  })
  .refine(({ context, kubeconfig }) => context === undefined || kubeconfig !== undefined, {
    message: 'context goes with kubeconfig',
    path: ['context'],
  });

const fileSchema = z.record(
  z.string().regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'must be a name in lower case'),
  definitionSchema,
);

/** A cluster that bots are deployed to, and how they run there. */
export type ClusterDefinition = z.output<typeof definitionSchema>;

export type Clusters = Readonly<Record<string, ClusterDefinition>>;

/** What a runner may connect to: a range of addresses, and TCP ports there. */
export type Egress = z.output<typeof egressSchema>;

/**
 * Reads a YAML or JSON file of clusters by name; there are none where there is no file. Paths in the
 * result are absolute.
 * @throws ServiceError `invalid_setting` with every problem.
 */
export function readClusters(file: string): Clusters {
  const clusters = readYamlFile(file, {
    schema: fileSchema,
    refuse: (problems) => invalid(file, problems),
    secretsHint: 'credentials belong into the kubeconfig',
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
  return new ServiceError('invalid_setting', `clusters_file ${file} cannot be used`, {
    problems,
    remedy:
      'Correct it: NAME: {kubeconfig: PATH, owner: own or customer, namespace: …, image: …, control_url: …}, without any credentials.',
  });
}

/**
 * The cluster that was asked for; the only one when none was named.
 * @throws ServiceError `conflict`
 */
export function chooseCluster(clusters: Clusters, name: string | undefined): string {
  const names = Object.keys(clusters);
  if (names.length === 0) {
    throw new ServiceError('conflict', 'the server knows no cluster to deploy to', {
      reason: 'no_cluster',
      remedy:
        'Name one in its clusters_file (~/.service-local/clusters.yaml where nothing else is said), and restart it; docs/how-to/production.md shows one.',
    });
  }
  if (name === undefined && names.length > 1) {
    throw new ServiceError('conflict', 'the server knows several clusters', {
      reason: 'unknown_cluster',
      remedy: `Name one of ${names.join(', ')}.`,
    });
  }
  const chosen = name ?? names[0]!;
  if (Object.hasOwn(clusters, chosen)) return chosen;
  const suggestion = closest(chosen, names);
  throw new ServiceError('conflict', `the server knows no cluster ${JSON.stringify(chosen)}`, {
    reason: 'unknown_cluster',
    remedy: suggestion ? `Did you mean ${suggestion}?` : `Name one of ${names.join(', ')}.`,
  });
}
