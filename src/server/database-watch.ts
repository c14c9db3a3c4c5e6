import { sql } from 'kysely';
import { notifyAlert } from '../events/raised-alerts.ts';
import type { Log } from '../base/log.ts';
import { CLOCK_TOLERANCE_MS } from '../storage/clock-tolerance.ts';
import {
  databaseIdentity,
  notAdopted,
  recordPlace,
  tradingHold,
} from '../storage/database-identity.ts';
import type { Storage } from '../storage/storage.ts';
import type { Db } from '../storage/tables.ts';
import type { ProcessMetrics } from './process-metrics.ts';

const POLL_INTERVAL_MS = 5_000;

/**
 * Checks, now and periodically, whether this process may trade with its database, whether it still
 * knows the schema and whether their clocks agree. Changes are logged, counted as alerts and exported as metrics. Records the place of
 * a database on which no server was started yet.
 *
 * @returns a function that stops the checks.
 * @throws ServiceError `storage_unavailable`
 */
export async function watchDatabase(
  storage: Storage,
  metrics: ProcessMetrics,
  log: Log,
): Promise<() => Promise<void>> {
  await recordPlace(storage);
  let isHeld = false;
  let isSkewed = false;
  let isOutdated = false;
  const check = async (): Promise<void> => {
    const hold = await tradingHold(storage.read);
    metrics.held.set(hold === undefined ? 0 : 1);
    metrics.epoch.set((await databaseIdentity(storage.read)).epoch);
    if (hold !== undefined && !isHeld) {
      const { message, remedy } = notAdopted(hold);
      log.error(`${message}. ${remedy}`);
      notifyAlert({ control: 'database_not_adopted', severity: 'critical', latency_ms: null });
    } else if (hold === undefined && isHeld) log.info('the database is adopted: trading resumes');
    isHeld = hold !== undefined;

    const fault = await storage.schemaFault();
    if (fault !== undefined && !isOutdated) log.error(`${fault.message}. ${fault.remedy}`);
    isOutdated = fault !== undefined;

    const skew = storage.kind === 'postgres' ? await clockSkew(storage.read) : 0;
    if (skew === undefined) return;
    metrics.clockSkew.set(skew / 1000);
    const wasSkewed = isSkewed;
    isSkewed = Math.abs(skew) > CLOCK_TOLERANCE_MS;
    if (isSkewed && !wasSkewed) {
      log.error(
        `the clock of this machine is ${Math.abs(skew) / 1000} s ${skew > 0 ? 'ahead of' : 'behind'} that of PostgreSQL: synchronize both`,
      );
      notifyAlert({ control: 'clock_skew', severity: 'critical', latency_ms: null });
    }
  };
  await check();
  let checking: Promise<void> | undefined;
  const timer = setInterval(() => {
    // Health checks report a database that does not respond.
    checking ??= check()
      .catch(() => {})
      .finally(() => (checking = undefined));
  }, POLL_INTERVAL_MS).unref();
  return async () => {
    clearInterval(timer);
    await checking;
  };
}

/** Longest round trip for a measurement; the database may have read its clock at any time within it. */
const LONGEST_ROUND_TRIP_MS = 1_000;

/**
 * Lead of this process's clock over the database's clock, ms; undefined if the database responds too
 * slowly to measure it.
 */
async function clockSkew(db: Db): Promise<number | undefined> {
  const asked = performance.now();
  const { rows } = await sql<{
    readonly now: number;
  }>`select cast(extract(epoch from clock_timestamp()) * 1000 as bigint) as now`.execute(db);
  const roundTripMs = performance.now() - asked;
  if (roundTripMs > LONGEST_ROUND_TRIP_MS) return undefined;
  return Math.round(Date.now() - roundTripMs / 2 - rows[0]!.now);
}
