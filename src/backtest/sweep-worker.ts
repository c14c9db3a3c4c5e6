import { isDeepStrictEqual } from 'node:util';
import { parentPort, workerData } from 'node:worker_threads';
import { EngineMemory } from '../engine/memory.ts';
import { ServiceError } from '../errors.ts';
import { loadStrategy } from './strategy-source.ts';
import type { StrategySource } from './strategy-source.ts';
import { runTrial } from './trial.ts';
import type { Trial, TrialSetup } from './trial.ts';

/** One thread of a sweep: answers each trial of a chunk with its result, and asks for the next. */
const { source, setup } = workerData as { source: StrategySource; setup: TrialSetup };
const { strategy, files } = loadStrategy(source);
if (!isDeepStrictEqual(files, source.files)) {
  throw new ServiceError('invalid_strategy', 'the strategy changed while the sweep was running', {
    remedy: 'Start the sweep again.',
  });
}

const memory = new EngineMemory();
parentPort!.on('message', async (chunk: readonly Trial[]) => {
  for (const trial of chunk) {
    parentPort!.postMessage(await runTrial(setup, strategy, trial, memory));
  }
  parentPort!.postMessage('next');
});
parentPort!.postMessage('next');
