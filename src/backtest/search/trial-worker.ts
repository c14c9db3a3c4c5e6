import { isDeepStrictEqual } from 'node:util';
import { parentPort, workerData } from 'node:worker_threads';
import { lateError } from '../../engine/strategy-error.ts';
import { ServiceError } from '../../base/errors.ts';
import { runStrategy } from '../../base/strategy-guard.ts';
import { loadStrategy } from '../strategy-source.ts';
import { TrialSetups } from './trial-setups.ts';
import type { TrialResult } from './trial.ts';
import type { TrialThreadData, TrialThreadMessage, TrialThreadRequest } from './trial-thread.ts';

/** Least time between two messages with results, ms; each message wakes the main thread. */
const POST_MS = 50;

/** A thread of searches: posts the results of the trials of a chunk, then the end of the chunk. */
const { source, timeoutMs, columnBytes } = workerData as TrialThreadData;
const { strategy, files } = runStrategy(Math.ceil(timeoutMs), () => loadStrategy(source));
if (!isDeepStrictEqual(files, source.files)) {
  throw new ServiceError('invalid_strategy', 'the strategy changed while the search was running', {
    remedy: 'Start the command again, and do not change the strategy until it has finished.',
  });
}

const trials = new TrialSetups(strategy, columnBytes);
/** Error in a promise or timer of the strategy in the current trial. */
let late: ServiceError | undefined;
const failLate = (error: unknown): void => {
  late ??= lateError(error, { strategy: strategy.name, done: trials.bars });
};
process.on('uncaughtException', failLate);
process.on('unhandledRejection', failLate);

const post = (message: TrialThreadMessage): void => parentPort!.postMessage(message);
const isOwn = 'module' in source;
/** The clock without the guard that `strategy-guard.ts` puts on it. */
const clock = performance.now.bind(performance);
let posted = -Infinity;
parentPort!.on('message', async (request: TrialThreadRequest) => {
  if ('setups' in request) return trials.use(request.setups, isOwn);
  let results: TrialResult[] = [];
  for (const trial of request.chunk) {
    late = undefined;
    const result = await trials.run(trial);
    const failed = late as ServiceError | undefined;
    results.push(failed === undefined ? result : { ...trial, error: failed.message });
    // If the memory of an own strategy is full, the first trial without a result has used it.
    if (!isOwn && clock() - posted < POST_MS) continue;
    post(results);
    results = [];
    posted = clock();
  }
  if (results.length > 0) post(results);
  post('done');
});
post('ready');
