import { parentPort, workerData } from 'node:worker_threads';
import { toErrorData, type ErrorData } from '../base/error-data.ts';
import { writeEquity, type EquityFiles } from './equity-files.ts';

export type EquityMessage =
  | { readonly hash: string }
  | { readonly error: ErrorData; readonly bug?: Error };

async function write(): Promise<EquityMessage> {
  try {
    return { hash: await writeEquity(workerData as EquityFiles) };
  } catch (error) {
    return toErrorData(error);
  }
}

parentPort!.postMessage(await write());
