/** The hosted side of the simulated day: a server, and workers that share its database. */
import { createApp } from '../../src/server/app.ts';
import { createMetrics } from '../../src/server/metrics.ts';
import type { App, Services } from '../../src/server/services.ts';
import { ServiceError } from '../../src/base/errors.ts';
import type { Log } from '../../src/base/log.ts';
import { startDeploymentControllers } from '../../src/fleet/deployments/controller.ts';
import { startTaskRunner } from '../../src/fleet/tasks/task-runner.ts';
import type { LiveMarkets } from '../../src/trading/live-markets.ts';
import type { Cluster } from '../../src/deploy/kubernetes/cluster.ts';
import { openStorage } from '../../src/storage/storage.ts';
import { USUAL_POLICY } from '../identity/policy.ts';
import { chatOf, notifierOf } from '../server/idle-tasks.ts';
import { OPEN_GATE } from '../server/open-gate.ts';

export interface HostOptions {
  /** Database file. */
  readonly file: string;
  readonly cluster: Cluster;
  readonly live: LiveMarkets;
  readonly log: Log;
}

const CLUSTERS: Services['production']['clusters'] = {
  trading: {
    in_cluster: true,
    owner: 'own',
    namespace: 'bots',
    image: 'registry.example/service-local:1',
    control_url: 'https://service-local.example',
  },
};

/** Starts a server in the current process; its tasks are left to the workers. */
export async function startServer({ file, cluster, live, log }: HostOptions): Promise<App> {
  const storage = await openStorage({ file });
  const clock = Date.now;
  const identity = {
    storage,
    clock,
    policy: USUAL_POLICY,
    signer: new ServiceError('license_lease_unavailable', 'there is no signing key'),
  };
  return createApp({
    identity,
    origins: ['https://service-local.example'],
    isProxy: () => false,
    gate: OPEN_GATE,
    tasks: { storage, clock, live, catalogueDir: '/nowhere', wake() {}, release() {} },
    production: productionOf({ storage, clock }, cluster, log),
    federation: { isEmpty: true, search: async () => [] },
    chat: chatOf(identity),
    notifier: notifierOf(identity),
    stopping: new AbortController().signal,
    log,
    metrics: createMetrics(identity),
  });
}

/** Starts a worker in the current process, which controls the deployments that it claims. */
export async function startWorker({ file, cluster, live, log }: HostOptions): Promise<void> {
  // A worker with a database of its own would not expect others to claim its tasks.
  const storage = { ...(await openStorage({ file })), kind: 'postgres' as const };
  const clock = Date.now;
  const production = productionOf({ storage, clock }, cluster, log);
  const controllers = startDeploymentControllers(production, {
    most: 10,
    onEnded: () => runner.wake(),
  });
  const runner = startTaskRunner(
    { storage, clock, live, catalogueDir: '/nowhere' },
    { workers: 1, paperSessions: 10, timeoutMs: Infinity, controllers, log },
  );
}

function productionOf(
  registry: Pick<Services['production'], 'storage' | 'clock'>,
  cluster: Cluster,
  log: Log,
): Services['production'] {
  return {
    ...registry,
    clusters: CLUSTERS,
    exchanges: { exchange: { ccxt: 'binance' } },
    cluster: () => cluster,
    log,
  };
}
