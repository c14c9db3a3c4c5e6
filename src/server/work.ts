import { ServiceError } from '../errors.ts';
import type { Log } from '../log.ts';
import type { Settings } from '../settings.ts';
import { openOwnStorage, ownStorage } from '../storage/location.ts';
import type { Storage } from '../storage/storage.ts';
import { startTaskRunner, type TaskRunner } from '../tasks/runner.ts';
import type { TaskService } from '../tasks/tasks.ts';
import { readExchanges } from '../trading/exchanges-file.ts';
import { liveMarkets, type LiveMarkets } from '../trading/live-thread.ts';

/** The tasks of a database, and who works on them in this process. */
export interface Work {
  readonly tasks: TaskService & Pick<TaskRunner, 'wake' | 'release'>;
  /** Gives back what it is at. */
  readonly stop: () => Promise<void>;
}

/** Works on them, as a worker does. */
function startWork(storage: Storage, settings: Settings, log: Log): Work {
  const service = serviceOf(storage, settings, log);
  const { wake, release, stop } = startTaskRunner(service, {
    workers: settings.workers,
    paperSessions: settings.paper_sessions,
    timeoutMs: settings.strategy_timeout_seconds * 1000,
    log,
  });
  return {
    tasks: { ...service, wake, release },
    async stop() {
      await stop();
      await service.live.stop();
    },
  };
}

/**
 * What a server has to do with tasks: it works on them or, where the setting says so, leaves them to
 * workers.
 * @throws ServiceError `invalid_setting` when there can be no workers.
 */
export function startOwnWork(storage: Storage, settings: Settings, log: Log): Work {
  if (settings.server_tasks) return startWork(storage, settings, log);
  if (storage.kind === 'sqlite') {
    throw new ServiceError('invalid_setting', 'nobody would do the tasks: server_tasks is off', {
      remedy: 'Leave it on; only the servers of a PostgreSQL can leave tasks to workers.',
    });
  }
  const none = (): void => {};
  const service = serviceOf(storage, settings, log);
  return {
    tasks: { ...service, wake: none, release: none },
    stop: () => service.live.stop(),
  };
}

/** @throws ServiceError `invalid_setting` for exchanges that cannot be. */
function serviceOf(
  storage: Storage,
  settings: Settings,
  log: Log,
): TaskService & { readonly live: LiveMarkets } {
  const live = liveMarkets(readExchanges(settings.exchanges_file), log);
  const customCode = settings.custom_code
    ? {
        memoryMb: settings.custom_code_memory_mb,
        timeoutMs: settings.strategy_timeout_seconds * 1000,
      }
    : undefined;
  const catalogueDir = settings.catalogue_dir;
  return { storage, clock: Date.now, catalogueDir, customCode, live };
}

export interface RunningWorker {
  /** Which database it works on, without the password. */
  readonly database: string;
  /** Gives back what it is at, and closes the database. */
  readonly stop: () => Promise<void>;
}

/**
 * Works on tasks as a server does, and serves nothing. Workers and servers need to know nothing of
 * one another: what has to be done, and who does it, is in the database.
 *
 * @throws ServiceError `invalid_setting`, also where the database is a file; `storage_unavailable`.
 */
export async function startWorker(
  settings: Settings,
  env: NodeJS.ProcessEnv,
  log: Log,
): Promise<RunningWorker> {
  if (!env['DATABASE_URL']) {
    throw new ServiceError('invalid_setting', 'a worker needs the PostgreSQL of its servers', {
      remedy:
        'Set DATABASE_URL to that of the server. One that keeps its data in a SQLite file works on its tasks itself, so many at a time as its --workers says.',
    });
  }
  const { name: database } = ownStorage(settings.home, env);
  const storage = await openOwnStorage(settings.home, env, (error) =>
    log.warn({ err: error, msg: 'a connection to the database broke' }),
  );
  try {
    const work = startWork(storage, settings, log);
    log.info(`working on the tasks of ${database}`);
    return {
      database,
      async stop() {
        await work.stop();
        await storage.close();
      },
    };
  } catch (error) {
    await storage.close();
    throw error;
  }
}
