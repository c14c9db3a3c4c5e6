import { setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import type { Progress } from '../../fleet/tasks/lifecycle.ts';
import type { ErrorData } from '../../base/error-data.ts';
import { toErrorData } from '../../base/error-data.ts';
import type { ConformanceResult } from '../conformance/run-conformance.ts';
import type { StressResult } from '../stress/run.ts';
import { runTest, type TestWork } from './test-work.ts';

/** Messages of a test thread: its progress, then its result or error. */
export type TestMessage =
  | { readonly progress: Progress }
  | { readonly done: ConformanceResult | StressResult }
  | { readonly error: ErrorData; readonly bug?: unknown };

/** Priority (nice value, at most 19) below the trading threads of the same process. */
const BELOW_TRADING = 10;

function send(message: TestMessage): void {
  parentPort!.postMessage(message);
}

// On Linux this changes only this thread; on other systems it would change the whole process.
if (process.platform === 'linux') setPriority(BELOW_TRADING);

try {
  send({ done: await runTest(workerData as TestWork, (progress) => send({ progress })) });
} catch (error) {
  send(toErrorData(error));
}
