import type { BotRegistry } from '../registry/bots.ts';
import type { ClusterConnections } from './cluster-connections.ts';
import type { Log } from '../../base/log.ts';
import type { Exchanges } from '../../trading/venues/exchanges-file.ts';

/** What production deployments work with. */
export interface ProductionService
  extends BotRegistry, Pick<ClusterConnections, 'clusters' | 'cluster'> {
  readonly exchanges: Exchanges;
  readonly log: Pick<Log, 'warn' | 'error'>;
  /** Fingerprint of the root that this server pins, and so do the runners that it deploys. */
  readonly licenseRoot?: string | undefined;
  /** Product that the leases of deployed runners must be for. */
  readonly licenseProduct?: string | undefined;
  /** Time between two reports of a runner, s; 5 by default. */
  readonly reportSeconds?: number | undefined;
}
