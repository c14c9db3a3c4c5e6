import { CountedTrials } from '../backtest/ledger/counted-trials.ts';
import { captureFrom } from '../backtest/ledger/trial-ledger.ts';
import type { BacktestJob } from '../backtest/job.ts';
import { ServiceError } from '../base/errors.ts';
import type { SearchPlace } from './search-place.ts';
import type { Context } from './verb.ts';

/** Counts the trials of a command. If the ledger cannot be used, a message says so. */
export function countTrials({ settings, message }: Context): CountedTrials {
  return new CountedTrials(settings.home, (fault) =>
    message(`warning: trials are not counted: ${fault.message}`),
  );
}

/**
 * Captures the trials that are recorded now: on the server for a search on other machines, which the server
 * counts for all users, otherwise on this machine.
 */
export async function captureTrials(
  context: Context,
  place: SearchPlace | undefined,
  counted: CountedTrials,
  job: BacktestJob,
): Promise<ReturnType<CountedTrials['capture']>> {
  if (place === undefined) return counted.capture(job);
  const { readServerEntries } = await import('./server-ledger.ts');
  try {
    const { entries } = await readServerEntries(context);
    const earlierThan = captureFrom(entries, job);
    return (own) => ({ ...job.lock, trials: earlierThan(own) });
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    // At the end, a warning says that the server does not count the trials.
    return counted.capture(job);
  }
}
