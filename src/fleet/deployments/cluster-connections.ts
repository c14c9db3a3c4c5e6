import type { Cluster } from '../../deploy/kubernetes/cluster.ts';
import {
  chooseCluster,
  readClusters,
  type Clusters,
} from '../../deploy/kubernetes/clusters-file.ts';
import { connectCluster } from '../../deploy/kubernetes/connect.ts';

/** The clusters of a process. Deployments in the same cluster share a connection. */
export interface ClusterConnections {
  readonly clusters: Clusters;
  /**
   * Connects at the first call for a cluster.
   * @throws ServiceError `conflict` for a cluster that is not in the file or cannot be reached.
   */
  readonly cluster: (name: string) => Cluster;
  /** Aborts pending requests and closes all connections. */
  readonly close: () => Promise<void>;
}

/** @throws ServiceError `invalid_setting` for a clusters file that cannot be used. */
export function openClusters(file: string): ClusterConnections {
  const clusters = readClusters(file);
  const ending = new AbortController();
  const open = new Map<string, Cluster>();
  return {
    clusters,
    cluster(name) {
      let cluster = open.get(name);
      if (cluster === undefined) {
        const definition = clusters[chooseCluster(clusters, name)]!;
        cluster = connectCluster(definition, { signal: ending.signal, name });
        open.set(name, cluster);
      }
      return cluster;
    },
    async close() {
      ending.abort();
      await Promise.all([...open.values()].map((cluster) => cluster.close()));
    },
  };
}
