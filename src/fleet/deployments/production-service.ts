import type { BotRegistry } from '../registry/bots.ts';
import type { ClusterConnections } from './cluster-connections.ts';
import type { Log } from '../../base/log.ts';
import type { Exchanges } from '../../trading/venues/exchanges-file.ts';

export interface ProductionService
  extends BotRegistry, Pick<ClusterConnections, 'clusters' | 'cluster'> {
  readonly exchanges: Exchanges;
  readonly log: Pick<Log, 'warn' | 'error'>;
  /** Fingerprint of the license root that this server and its deployed runners pin. */
  readonly licenseRoot?: string | undefined;
  /** Product that the leases of deployed runners must name. */
  readonly licenseProduct?: string | undefined;
  /** Seconds between two reports of a runner; default 5. */
  readonly reportSeconds?: number | undefined;
}
