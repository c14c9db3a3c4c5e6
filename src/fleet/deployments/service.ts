import type { BotRegistry } from '../registry/bots.ts';
import type { Cluster } from '../../deploy/kubernetes/cluster.ts';
import type { ClusterDefinition, Clusters } from '../../deploy/kubernetes/clusters-file.ts';
import type { Log } from '../../base/log.ts';
import type { Exchanges } from '../../trading/venues/exchanges-file.ts';

/** What production deployments work with. */
export interface ProductionService extends BotRegistry {
  readonly clusters: Clusters;
  readonly exchanges: Exchanges;
  /**
   * The connection to a cluster by its name, which all that is deployed there shares.
   * @throws ServiceError `conflict` for one that this server does not know, or cannot ask.
   */
  readonly cluster: (name: string) => Cluster;
  readonly log: Pick<Log, 'warn' | 'error'>;
  /** Fingerprint of the root that this server pins, and so do the runners that it deploys. */
  readonly licenseRoot?: string | undefined;
  /** Product that the leases of deployed runners must be for. */
  readonly licenseProduct?: string | undefined;
  /** Time between two reports of a runner, s; 5 by default. */
  readonly reportSeconds?: number | undefined;
}

/** The connections of a process, each made when it is asked for first. */
export interface Connections {
  readonly cluster: ProductionService['cluster'];
  readonly close: () => Promise<void>;
}

/** @param choose @throws ServiceError for a name that there is not. */
export function connections(
  clusters: Clusters,
  choose: (clusters: Clusters, name: string) => string,
  connect: (definition: ClusterDefinition, name: string) => Cluster,
): Connections {
  const open = new Map<string, Cluster>();
  return {
    cluster(name) {
      let cluster = open.get(name);
      if (cluster === undefined) {
        cluster = connect(clusters[choose(clusters, name)]!, name);
        open.set(name, cluster);
      }
      return cluster;
    },
    async close() {
      await Promise.all([...open.values()].map((cluster) => cluster.close()));
    },
  };
}
