import type { BacktestJob } from '../job.ts';
import { canonicalDigest } from '../run-lock.ts';

/**
 * Digest of everything that decides a trial but its parameters: engine, strategy, bars and configuration.
 * Unlike the lock of a run, it does not cover the text of the spec, so that a changed description, gate or
 * path to the same data is not a new trial. A bot with models is an exception: only the text of its spec
 * contains their inputs and outputs.
 */
export function trialLock({ lock, config, barMs, instruments }: BacktestJob): string {
  const { engine, strategy, data, warm_up, models } = lock;
  return canonicalDigest({
    engine,
    strategy,
    data,
    warm_up,
    ...(models && { models, spec: lock.spec }),
    // Canonical JSON has no infinite numbers, so an infinite risk limit becomes null.
    config: JSON.parse(JSON.stringify(config)) as unknown,
    bar_ms: barMs,
    symbols: instruments.map(({ symbol }) => symbol),
  });
}
