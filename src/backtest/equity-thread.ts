import { Worker } from 'node:worker_threads';
import { fromErrorData } from '../base/error-data.ts';
import { THREAD_ENV } from '../base/thread-env.ts';
import type { EquityFiles } from './equity-files.ts';
import type { EquityMessage } from './equity-thread-worker.ts';

const FILE = new URL(`./equity-thread-worker${import.meta.url.slice(-3)}`, import.meta.url);

/** Runs `writeEquity` in another thread, so that this one can write other files. */
export async function writeEquityInThread(files: EquityFiles): Promise<string> {
  const thread = new Worker(FILE, { workerData: files, env: THREAD_ENV });
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  thread.on('message', (message: EquityMessage) => {
    if ('hash' in message) resolve(message.hash);
    else reject(message.bug ?? fromErrorData(message.error));
  });
  thread.on('error', reject);
  thread.on('exit', (code) => {
    reject(new Error(`the thread that writes the equity ended with code ${code}`));
  });
  return promise;
}
