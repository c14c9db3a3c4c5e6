import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';

const [endThread, write] = ['base/end-thread.ts', 'market/write.ts'].map(
  (file) => new URL(`../../src/${file}`, import.meta.url).href,
);

/** Ends five threads, each while it writes one file after another. */
const PROGRAM = `
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { endThread } from '${endThread}';
const code = \`
  import { parentPort, workerData } from 'node:worker_threads';
  import { writeParquet } from '${write}';
  const write = () => writeParquet(workerData, { time: new Float64Array(20_000) }, ['time']);
  const writeOn = () => write().then(writeOn);
  await write();
  parentPort.postMessage('is writing');
  void writeOn();\`;
for (let i = 0; i < 5; i += 1) {
  const file = process.argv[1] + i;
  const thread = new Worker(new URL('data:text/javascript,' + encodeURIComponent(code)), { workerData: file });
  await once(thread, 'message');
  await endThread(thread);
}`;

test('a process continues after a thread was ended while DuckDB worked in it', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'service-local-duckdb-test-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const args = ['--input-type=module', '--eval', PROGRAM, '--', join(directory, 'thread')];
  const ended = await promisify(execFile)(process.execPath, args);
  expect(ended).toEqual({ stdout: '', stderr: '' });
});
