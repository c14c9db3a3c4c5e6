import { Registry } from 'prom-client';
import { ServiceError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { serveProbes, type ProbeAnswer } from '../base/probe-server.ts';
import { addRuntimeMetrics } from '../base/runtime-metrics.ts';
import { startTelemetry } from '../base/telemetry.ts';
import type { Settings } from '../base/settings.ts';
import { tradingHold } from '../storage/database-identity.ts';
import { openConfiguredStorage, describeStorage } from '../storage/storage-location.ts';
import type { Storage } from '../storage/storage.ts';
import { watchDatabase } from './database-watch.ts';
import { createProcessMetrics, type ProcessMetrics } from './process-metrics.ts';
import { startWork } from './work.ts';

/** Address for health and metrics; port 0 chooses a free one. */
interface Place {
  readonly host: string;
  readonly port: number;
}

export interface RunningWorker {
  /** Name of its database, without the password. */
  readonly database: string;
  readonly url: string;
  /** Releases its tasks, and closes the database. */
  readonly stop: () => Promise<void>;
}

/**
 * Runs tasks as a server does, and serves only its health and metrics. Workers and servers need no
 * knowledge of each other: the database holds the tasks and their claims.
 *
 * @throws ServiceError `invalid_setting`, also if the database is a file; `storage_unavailable`.
 */
export async function startWorker(
  settings: Settings,
  place: Place,
  env: NodeJS.ProcessEnv,
  log: Log,
): Promise<RunningWorker> {
  if (!env['DATABASE_URL']) {
    throw new ServiceError(
      'invalid_setting',
      'a worker needs the PostgreSQL database of its servers',
      {
        remedy:
          'Set DATABASE_URL as on the server. A server with a SQLite file runs its tasks itself, up to --workers at a time.',
      },
    );
  }
  const { name: database } = describeStorage(settings.home, env);
  const storage = await openConfiguredStorage(settings.home, env, (error) =>
    log.warn({ err: error, msg: 'a database connection failed' }),
  );
  const ends: (() => unknown)[] = [() => storage.close()];
  const stop = async (): Promise<void> => {
    for (const end of ends.toReversed()) await end();
  };
  try {
    const register = new Registry();
    addRuntimeMetrics(register);
    const metrics = createProcessMetrics(register, storage, Date.now);
    ends.push(metrics.close);
    const values = async () => {
      await metrics.refresh();
      return register.getMetricsAsJSON();
    };
    ends.push(await startTelemetry({ env, role: 'worker', log, metrics: values }));
    ends.push(await watchDatabase(storage, metrics, log));
    const probes = await serveProbes(
      place,
      {
        '/healthz': () => ({ status: 200, body: { status: 'ok' } }),
        '/readyz': () => readiness(storage, metrics),
        '/metrics': async () => {
          await metrics.refresh();
          return { status: 200, body: await register.metrics(), contentType: register.contentType };
        },
      },
      'Set --host to an address of this machine and --port to a free port; 0 chooses one.',
    );
    ends.push(() => probes.close());
    const work = startWork(storage, settings, env, log);
    ends.push(() => work.stop());
    log.info(`health and metrics at ${probes.url}`);
    log.info(`running tasks of ${database}`);
    return { database, url: probes.url, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Same format as the readiness of a server. */
async function readiness(
  storage: Storage,
  { checkStorage }: Pick<ProcessMetrics, 'checkStorage'>,
): Promise<ProbeAnswer> {
  try {
    if (!(await checkStorage())) return UNAVAILABLE;
    const fault = await storage.schemaFault();
    if (fault !== undefined) return unavailable(fault.message, fault.reason);
    const hold = await tradingHold(storage.read);
    if (hold === undefined) return { status: 200, body: { status: 'ready', missing: [] } };
    const missing = [
      { part: 'trading', detail: 'the database is not adopted', reason: hold.reason },
    ];
    return { status: 200, body: { status: 'degraded', missing } };
  } catch {
    return UNAVAILABLE;
  }
}

function unavailable(detail: string, reason?: string): ProbeAnswer {
  return {
    status: 503,
    body: { status: 'unavailable', missing: [{ part: 'storage', detail, reason }] },
  };
}

const UNAVAILABLE = unavailable('the database does not respond');
