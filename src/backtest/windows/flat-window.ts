import type { RunResult } from '../../engine/run-result.ts';
import { defineStrategy } from '../../engine/strategy.ts';
import { execute, type ExecuteOptions } from '../execute.ts';
import type { BacktestJob } from '../job.ts';
import type { Search } from '../search/plan-search.ts';

/** Why no trial of a training window could be chosen, so that its test window is flat. */
export interface FlatReason {
  readonly reason: 'constraints_not_met' | 'all_trials_failed';
  readonly detail: string;
}

/** @param search without a best trial */
export function flatReasonOf({ goal, results, trials }: Search): FlatReason {
  if (results.failed === trials.count) {
    const detail = `all trials failed; the first error is: ${results.firstError}`;
    return { reason: 'all_trials_failed', detail };
  }
  const conditions = goal.constraints.map((one) => `${one.name}${one.op}${one.threshold}`);
  return { reason: 'constraints_not_met', detail: `no trial meets ${conditions.join(', ')}` };
}

const NEVER_TRADES = defineStrategy({
  name: 'never_trades',
  description: 'Holds cash.',
  params: {},
  create: () => ({ onBar() {} }),
});

/** Runs over the bars of a job without a position. */
export function runFlat(
  { instruments, config }: BacktestJob,
  cash: number,
  options: ExecuteOptions,
): Promise<RunResult> {
  const setup = { instruments, strategy: NEVER_TRADES, params: {} };
  return execute({ ...setup, config: { ...config, cash } }, options);
}
