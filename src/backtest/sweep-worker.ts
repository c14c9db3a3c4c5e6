import { parentPort, workerData } from 'node:worker_threads';
import { loadStrategy } from './strategy-source.ts';
import type { StrategySource } from './strategy-source.ts';
import { runTrial } from './trial.ts';
import type { Trial, TrialSetup } from './trial.ts';

/** One thread of a sweep: answers each chunk of trials with their results. */
const { source, setup } = workerData as { source: StrategySource; setup: TrialSetup };
const { strategy } = loadStrategy(source);

parentPort!.on('message', async (chunk: readonly Trial[]) => {
  const results = [];
  for (const trial of chunk) results.push(await runTrial(setup, strategy, trial));
  parentPort!.postMessage(results);
});
parentPort!.postMessage([]);
