import { isDeepStrictEqual } from 'node:util';
import { parentPort, workerData } from 'node:worker_threads';
import { EngineMemory } from '../../engine/memory.ts';
import { SharedComputations } from '../../engine/series/shared-computations.ts';
import { lateError } from '../../engine/strategy-error.ts';
import { ServiceError } from '../../base/errors.ts';
import { runStrategy } from '../../base/strategy-guard.ts';
import { PermutedBars } from '../robustness/permuted-bars.ts';
import { loadStrategy } from '../strategy-source.ts';
import { runTrial } from './trial.ts';
import type { TrialThreadData, TrialThreadMessage, TrialThreadRequest } from './trial-thread.ts';
import type { Trial, TrialSetup } from './trial.ts';

/** A thread of searches: posts the result of each trial of a chunk, then the end of the chunk. */
const { source, timeoutMs, columnBytes } = workerData as TrialThreadData;
const { strategy, files } = runStrategy(Math.ceil(timeoutMs), () => loadStrategy(source));
if (!isDeepStrictEqual(files, source.files)) {
  throw new ServiceError('invalid_strategy', 'the strategy changed while the search was running', {
    remedy: 'Start the command again, and do not change the strategy until it has finished.',
  });
}

/** Error in a promise or timer of the strategy in the current trial. */
let late: ServiceError | undefined;
const failLate = (error: unknown): void => {
  late ??= lateError(error, {
    strategy: strategy.name,
    done: limited.at(-1)!.instruments[0]!.bars.length,
  });
};
process.on('uncaughtException', failLate);
process.on('unhandledRejection', failLate);

const shared = {
  memory: new EngineMemory(),
  computations: new SharedComputations(columnBytes),
};
let limited: readonly TrialSetup[] = [];
let permutedBars: PermutedBars | undefined;
/** The setup of the last trial, and what decides its bars; undefined after a change of setups. */
let last: (Pick<Trial, 'permutation' | 'rung'> & { readonly setup: TrialSetup }) | undefined;
const use = (setups: readonly TrialSetup[]): void => {
  // The watchdog starts a thread for each trial. Built-in strategies always return, so they need none.
  limited =
    'module' in source ? setups : setups.map((setup) => ({ ...setup, timeoutMs: Infinity }));
  permutedBars = undefined;
  last = undefined;
};
const setupOf = ({ permutation, rung }: Trial): TrialSetup => {
  if (last !== undefined && permutation === last.permutation && rung === last.rung) {
    return last.setup;
  }
  // They belong to other bars.
  shared.computations.clear();
  const setup = limited.at(rung ?? -1)!;
  last = { permutation, rung, setup };
  if (permutation === undefined) return setup;
  permutedBars ??= new PermutedBars(setup.instruments, setup.permutationSeed!);
  last = { permutation, rung, setup: { ...setup, instruments: permutedBars.permute(permutation) } };
  return last.setup;
};
const post = (message: TrialThreadMessage): void => parentPort!.postMessage(message);
parentPort!.on('message', async (request: TrialThreadRequest) => {
  if ('setups' in request) return use(request.setups);
  for (const trial of request.chunk) {
    late = undefined;
    const result = await runTrial(setupOf(trial), strategy, trial, shared);
    const failed = late as ServiceError | undefined;
    post(failed === undefined ? result : { ...trial, error: failed.message });
  }
  post('done');
});
post('ready');
