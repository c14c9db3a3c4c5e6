import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { holdLock } from '../../../base/file-lock.ts';
import { ServiceError } from '../../../base/errors.ts';
import type { GateStatus } from '../../../gate/decide.ts';
import { openLicenseGate, type LicenseGate } from '../../../gate/gate.ts';
import { licenseFiles } from '../../../gate/license-files.ts';
import type { Log } from '../../../base/log.ts';
import { startTelemetry } from '../../../base/telemetry.ts';
import type { Settings } from '../../../base/settings.ts';
import { openExchangeVenue } from '../../venues/exchange-venue.ts';
import { openBot, openFeed } from './deployed-bot.ts';
import type { RunConfig } from './run-config.ts';
import { serveHealth } from './health-server.ts';
import { openJournal } from './runner-journal.ts';
import { createRunnerMetrics } from './runner-metrics.ts';
import { connectToServer } from './server-connection.ts';
import { trade } from './trade.ts';
import type { RunEnd, VenueTimes, RunnerView } from './trade-options.ts';

export interface RunOptions {
  readonly settings: Settings;
  readonly env: NodeJS.ProcessEnv;
  readonly log: Log;
  /** Aborted to end the process in good order. */
  readonly stop: AbortSignal;
  readonly venueTimes?: VenueTimes;
  readonly onView?: (view: RunnerView) => void;
}

/** `ended`: the deployment had already ended, and nothing was done. */
export type RunResult = RunEnd | { readonly outcome: 'ended' };

/**
 * Runs a deployment until it ends or is stopped.
 *
 * @throws ServiceError `conflict`, reason `locked`, when another process runs it in the same
 *   directory; as `openJournal` and `openBot`.
 */
export async function runDeployment(config: RunConfig, options: RunOptions): Promise<RunResult> {
  const { settings, env, log, stop } = options;
  const { deployment_id, version, venue, health } = config;
  // The directory itself may belong to root, like a volume of Kubernetes.
  const directory = join(config.state_dir, 'runner');
  const closing = new AbortController();
  const opened: (() => unknown)[] = [() => closing.abort()];
  let view: RunnerView | undefined;
  try {
    const lock = await lockDirectory(directory);
    opened.push(() => lock.release());
    const metrics = createRunnerMetrics(() => view?.times() ?? NO_TIMES);
    opened.push(await startTelemetry({ env, role: 'runner', log, metrics: metrics.values }));
    const missing = () => view?.missing() ?? { session: 'not restored yet' };
    let isOver = false;
    if (health !== undefined) {
      const server = await serveHealth(health, () => (isOver ? {} : missing()), metrics);
      opened.push(() => server.close());
      log.info(`health: ${server.url}`);
    }
    const limits = {
      memoryMb: settings.custom_code_memory_mb,
      timeoutMs: settings.strategy_timeout_seconds * 1000,
    };
    const bot = await openBot(config, limits, closing.signal);
    opened.push(() => bot.close());
    const owner = { deployment_id, version, spec_hash: bot.hash, venue: venue.type };
    const journal = await openJournal(directory, owner);
    opened.push(() => journal.close());
    if (journal.end !== undefined) {
      isOver = true;
      log.info(`the deployment has ended (${journal.end.outcome}): nothing is left to do`);
      // A process that exits would be started again.
      await aborted(stop);
      return { outcome: 'ended' };
    }
    const gate = await openGate(config, settings, env, log);
    if (gate !== undefined) opened.push(() => gate.close());
    return await trade({
      config,
      bot,
      journal,
      gate,
      metrics,
      log,
      stop,
      instanceId: randomUUID(),
      catalogueDir: settings.catalogue_dir,
      timeoutMs: limits.timeoutMs,
      venueTimes: options.venueTimes,
      connections: { openExchangeVenue, openFeed, connectToServer },
      onView(its) {
        view = its;
        options.onView?.(its);
      },
    });
  } finally {
    for (const close of opened.toReversed()) await close();
  }
}

const NO_TIMES = { bar: undefined, report: undefined, venue: undefined };

async function lockDirectory(directory: string) {
  try {
    return await holdLock(join(directory, 'runner.lock'), 0);
  } catch (error) {
    if (!(error instanceof ServiceError && error.reason === 'locked')) throw error;
    throw new ServiceError('conflict', `another process uses the log in ${directory}`, {
      reason: 'locked',
      remedy: 'Stop that process first: two processes must never trade for one deployment.',
      cause: error,
    });
  }
}

/** An exchange needs a license; a simulated venue checks one only if it was delivered. */
async function openGate(
  { venue }: RunConfig,
  { home, license_enforcement_enabled, license_product: product }: Settings,
  env: NodeJS.ProcessEnv,
  log: Log,
): Promise<LicenseGate | undefined> {
  const isWanted = venue.type === 'exchange' || Boolean(env['SERVICE_LICENSE_LEASE_PATH']);
  if (!isWanted || !license_enforcement_enabled) return undefined;
  const logStatus = ({ state, reason, refused }: GateStatus): void => {
    for (const { path, detail } of refused.filter((one) => one.reason !== 'missing')) {
      log.warn(`${path} is not accepted: ${detail}`);
    }
    log[state === 'valid' ? 'info' : 'warn'](
      `the license is ${state}${reason === null ? '' : ` (${reason})`}`,
    );
  };
  const gate = await openLicenseGate({
    files: licenseFiles(home, env),
    product,
    enforced: true,
    onChange: logStatus,
    warn: (text) => log.warn(text),
  });
  logStatus(gate.status());
  return gate;
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  // A promise alone does not keep the process running.
  const hold = setInterval(() => {}, 60_000);
  await new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
  clearInterval(hold);
}
