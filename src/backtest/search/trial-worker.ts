import { isDeepStrictEqual } from 'node:util';
import { parentPort, workerData } from 'node:worker_threads';
import { lateError } from '../../engine/strategy-error.ts';
import { ServiceError } from '../../base/errors.ts';
import { runStrategy } from '../../base/strategy-guard.ts';
import { loadStrategy } from '../strategy-source.ts';
import { TrialSetups } from './trial-setups.ts';
import type { TrialThreadData, TrialThreadMessage, TrialThreadRequest } from './trial-thread.ts';

/** A thread of searches: posts the result of each trial of a chunk, then the end of the chunk. */
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
parentPort!.on('message', async (request: TrialThreadRequest) => {
  if ('setups' in request) return trials.use(request.setups, 'module' in source);
  for (const trial of request.chunk) {
    late = undefined;
    const result = await trials.run(trial);
    const failed = late as ServiceError | undefined;
    post(failed === undefined ? result : { ...trial, error: failed.message });
  }
  post('done');
});
post('ready');
