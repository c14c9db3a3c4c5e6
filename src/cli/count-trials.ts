import { CountedTrials } from '../backtest/ledger/counted-trials.ts';
import type { Context } from './verb.ts';

/** Counts the trials of a command. If the ledger cannot be used, a message says so. */
export function countTrials({ settings, message }: Context): CountedTrials {
  return new CountedTrials(settings.home, (fault) =>
    message(`warning: trials are not counted: ${fault.message}`),
  );
}
