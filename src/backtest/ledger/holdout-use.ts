import type { BacktestJob } from '../job.ts';
import { areTogether, scopeOf } from './earlier-trials.ts';
import type { LedgerRecord, OpeningRecord } from './ledger-entry.ts';
import type { Holdout } from '../summary.ts';
import { trialLock } from './trial-lock.ts';

/** The record of a run over the holdout of a job. */
export function openingOf(job: BacktestJob, { from, to }: Holdout, by: string): OpeningRecord {
  return { kind: 'holdout_opened', by, lock: trialLock(job), ...scopeOf(job), from, to };
}

/** Returns a holdout with the number of its openings and of the trials that included its bars. */
export function withUse(
  holdout: Holdout,
  records: Iterable<LedgerRecord>,
  period: OpeningRecord,
): Holdout {
  let opened = 0;
  let trials = 0;
  for (const record of records) {
    if (!areTogether(record, period)) continue;
    if (record.kind === 'trials') trials += record.count;
    else opened += 1;
  }
  return { ...holdout, opened, trials };
}
