import { setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import type { Progress } from '../../fleet/tasks/lifecycle.ts';
import type { ErrorData } from '../../base/error-data.ts';
import { toErrorData } from '../../base/error-data.ts';
import type { ConformanceResult } from '../conformance/run.ts';
import type { StressResult } from '../stress/run.ts';
import { doTest, type TestWork } from './test-work.ts';

/** What the thread of a test tells: how far it is, and last of all how it ended. */
export type TestMessage =
  | { readonly progress: Progress }
  | { readonly done: ConformanceResult | StressResult }
  | { readonly error: ErrorData; readonly bug?: unknown };

/** Of 19: what trades in the same process comes first. */
const BELOW_TRADING = 10;

function send(message: TestMessage): void {
  parentPort!.postMessage(message);
}

// On Linux that is about this thread alone; elsewhere it would be about all that the process does.
if (process.platform === 'linux') setPriority(BELOW_TRADING);

try {
  send({ done: await doTest(workerData as TestWork, (progress) => send({ progress })) });
} catch (error) {
  send(toErrorData(error));
}
