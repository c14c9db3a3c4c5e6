/** How long the server keeps rows that are of no use after some time, and the job that deletes them. */
import { DAY, HOUR, MINUTE } from '../base/durations.ts';
import type { Log } from '../base/log.ts';
import { expireSearches } from '../fleet/searches/searches.ts';
import { purgeDeliveries } from '../fleet/notifications/deliveries.ts';
import { deleteOldUnsaved } from '../fleet/registry/unsaved-bundles.ts';
import { deleteOldFiles } from '../fleet/tasks/task-files.ts';
import type { IdentityStore } from '../identity/context.ts';
import { purgeDevices } from '../identity/devices.ts';
import { purgeKnownNetworks } from '../identity/failed-tries.ts';
import { purgeSessions } from '../identity/login-sessions.ts';
import { purgeChallenges } from '../identity/passkey-proof.ts';
import { eraseAnswers } from '../identity/renew-lease.ts';
import { purgeStepUps } from '../identity/step-up.ts';
import { clearAbandonedPassages } from '../research/knowledge/documents.ts';
import type { Db } from '../storage/tables.ts';
import { purgeSizeSamples, sampleSizes } from '../storage/table-sizes.ts';
import { purgeIdempotencyKeys } from './idempotency.ts';

const EVERY_MS = 10 * MINUTE;
const MEASURED_EVERY_MS = HOUR;

/** Lives that a setting decides. */
export interface Lives {
  /** 0 keeps the files of tasks, and the unsaved code of backtests, for good. */
  readonly task_file_days: number;
}

/** Rows whose life ends. `docs/how-to/retention.md` states the life of each, under this name. */
export const RETENTIONS = [
  inOneWrite('answers to lease renewals', eraseAnswers),
  inOneWrite('device proofs and enrollment codes', purgeDevices),
  inOneWrite('idempotency keys', purgeIdempotencyKeys),
  inOneWrite('login sessions', purgeSessions),
  inOneWrite('passkey challenges', purgeChallenges),
  inOneWrite('known networks', purgeKnownNetworks),
  inOneWrite('step-ups', purgeStepUps),
  { name: 'searches and their shards', end: expireSearches },
  {
    name: 'files of tasks',
    async end({ storage, clock }, { task_file_days }) {
      if (task_file_days > 0) await deleteOldFiles(storage, clock() - task_file_days * DAY);
    },
  },
  {
    name: 'unsaved code of backtests',
    async end({ storage, clock }, { task_file_days }) {
      if (task_file_days > 0) await deleteOldUnsaved(storage, clock() - task_file_days * DAY);
    },
  },
  inOneWrite('notifications', purgeDeliveries),
  inOneWrite('samples of table sizes', purgeSizeSamples),
  { name: 'passages of abandoned uploads', end: clearAbandonedPassages },
] as const satisfies readonly Retention[];

interface Retention {
  readonly name: string;
  readonly end: (store: IdentityStore, lives: Lives) => Promise<void>;
}

function inOneWrite(name: string, purge: (tx: Db, now: number) => Promise<void>): Retention {
  return { name, end: ({ storage, clock }) => storage.write((tx) => purge(tx, clock())) };
}

/**
 * Deletes rows whose life has ended, now and every ten minutes, and measures the tables every hour.
 * @returns a function that stops the job.
 */
export function startRetention(store: IdentityStore, lives: Lives, log: Log): () => Promise<void> {
  let isStopping = false;
  let running = Promise.resolve();
  let measuredAt = -Infinity;
  const run = async (): Promise<void> => {
    for (const { name, end } of RETENTIONS as readonly Retention[]) {
      if (isStopping) return;
      await end(store, lives).catch((error: unknown) =>
        log.warn({ err: error, msg: `expired rows could not be deleted: ${name}` }),
      );
    }
    if (performance.now() - measuredAt >= MEASURED_EVERY_MS) {
      measuredAt = performance.now();
      await sampleSizes(store.storage, store.clock()).catch((error: unknown) =>
        log.warn({ err: error, msg: 'the tables could not be measured' }),
      );
    }
    await store.storage.eraseTraces().catch((error: unknown) => {
      log.warn({ err: error, msg: 'deleted rows could not be erased from the log of SQLite' });
    });
  };
  const start = (): void => void (running = running.then(run));
  start();
  const timer = setInterval(start, EVERY_MS).unref();
  return async () => {
    isStopping = true;
    clearInterval(timer);
    await running;
  };
}
