import type { Outcome } from '../backtest.ts';
import type { BacktestJob } from '../job.ts';
import type { TrialLedger } from './trial-ledger.ts';

/**
 * Runs a backtest and records its trial before the caller sees the result. A run that fails counts
 * without a Sharpe ratio; an aborted one does not count.
 */
export async function countedRun(
  job: BacktestJob,
  ledger: Pick<TrialLedger, 'record'>,
  run: () => Promise<Outcome>,
  signal: AbortSignal | undefined,
): Promise<Outcome> {
  const record = (sharpe: number | null): void =>
    ledger.record(job, 'backtest', [{ params: job.params, sharpe }]);
  let outcome: Outcome;
  try {
    outcome = await run();
  } catch (error) {
    if (!signal?.aborted) record(null);
    throw error;
  }
  record(outcome.summary.risk.sharpe);
  return outcome;
}
