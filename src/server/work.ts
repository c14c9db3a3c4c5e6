import { createTestBot } from '../compliance/tests/test-bot.ts';
import { ServiceError } from '../base/errors.ts';
import { licenseFiles } from '../gate/license-files.ts';
import type { Log } from '../base/log.ts';
import type { Settings } from '../base/settings.ts';
import { startDeploymentControllers } from '../fleet/deployments/controller.ts';
import { openClusters } from '../fleet/deployments/cluster-connections.ts';
import type { ProductionService } from '../fleet/deployments/production-service.ts';
import type { Storage } from '../storage/storage.ts';
import { ShardRunner } from '../fleet/searches/shard-runner.ts';
import { watchTasks } from '../fleet/tasks/task-notices.ts';
import { startTaskRunner, type TaskRunner } from '../fleet/tasks/task-runner.ts';
import type { TaskService } from '../fleet/tasks/tasks.ts';
import { readExchanges } from '../trading/venues/exchanges-file.ts';
import { liveMarkets, type LiveMarkets } from '../trading/live-markets.ts';

export interface Work {
  readonly tasks: TaskService & Pick<TaskRunner, 'wake' | 'release'>;
  readonly production: ProductionService;
  readonly stop: () => Promise<void>;
}

export function startWork(
  storage: Storage,
  settings: Settings,
  env: NodeJS.ProcessEnv,
  log: Log,
): Work {
  const { tasks, production, close } = servicesOf(storage, settings, env, log);
  // A process without clusters leaves deployments to processes that have them.
  const hasClusters = Object.keys(production.clusters).length > 0;
  const { wake, release, stop } = startTaskRunner(tasks, {
    workers: settings.workers,
    paperSessions: settings.paper_sessions,
    timeoutMs: settings.strategy_timeout_seconds * 1000,
    controllers: hasClusters
      ? startDeploymentControllers(production, {
          most: settings.production_deployments,
          onEnded: () => wake(),
        })
      : undefined,
    testBot: createTestBot(tasks),
    log,
  });
  const stopWatching = watchTasks({
    failed: ({ task_id, bot_id }, { code, message }) =>
      log.warn(
        `task ${task_id} of bot ${bot_id} failed: ${code}: ${message}; see \`service-local tasks get ${task_id}\``,
      ),
  });
  const shards = new ShardRunner(tasks, { workers: settings.workers, log });
  return {
    tasks: {
      ...tasks,
      release,
      wake() {
        wake();
        shards.wake();
      },
    },
    production,
    async stop() {
      await Promise.all([stop(), shards.stop()]);
      stopWatching();
      await close();
    },
  };
}

/**
 * Runs tasks in this process, or leaves them to workers if the setting `server_tasks` is off.
 * @throws ServiceError `invalid_setting` if no workers can use the database.
 */
export function startOwnWork(
  storage: Storage,
  settings: Settings,
  env: NodeJS.ProcessEnv,
  log: Log,
): Work {
  if (settings.server_tasks) return startWork(storage, settings, env, log);
  if (storage.kind === 'sqlite') {
    throw new ServiceError(
      'invalid_setting',
      'server_tasks is off, but workers cannot use a SQLite database',
      {
        remedy: 'Set server_tasks to true, or use a PostgreSQL database with workers.',
      },
    );
  }
  const none = (): void => {};
  const { tasks, production, close } = servicesOf(storage, settings, env, log);
  return { tasks: { ...tasks, wake: none, release: none }, production, stop: close };
}

interface OwnServices {
  readonly tasks: TaskService & { readonly live: LiveMarkets };
  readonly production: ProductionService;
  readonly close: () => Promise<void>;
}

/** @throws ServiceError `invalid_setting` for invalid exchanges, clusters or pins. */
function servicesOf(
  storage: Storage,
  settings: Settings,
  env: NodeJS.ProcessEnv,
  log: Log,
): OwnServices {
  const exchanges = readExchanges(settings.exchanges_file);
  const connections = openClusters(settings.clusters_file);
  const live = liveMarkets(exchanges, log);
  const customCode = settings.custom_code
    ? {
        memoryMb: settings.custom_code_memory_mb,
        timeoutMs: settings.strategy_timeout_seconds * 1000,
      }
    : undefined;
  const catalogueDir = settings.catalogue_dir;
  const registry = { storage, clock: Date.now, customCode };
  return {
    tasks: { ...registry, catalogueDir, archiveDir: settings.event_archive_dir, live },
    production: {
      ...registry,
      clusters: connections.clusters,
      cluster: connections.cluster,
      exchanges,
      log,
      licenseRoot: licenseFiles(settings.home, env).pin,
      licenseProduct: settings.license_product,
    },
    async close() {
      await Promise.all([connections.close(), live.stop()]);
    },
  };
}
