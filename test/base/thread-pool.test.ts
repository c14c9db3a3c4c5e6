import { once } from 'node:events';
import type { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { releaseThread, acquireThread } from '../../src/base/thread-pool.ts';

const FILE = new URL(
  `data:text/javascript,${encodeURIComponent(
    "import { parentPort, threadId } from 'node:worker_threads';" +
      "parentPort.on('message', (request) => { if (request === 'end') process.exit(); parentPort.postMessage([request, threadId]); });",
  )}`,
);

async function ask(thread: Worker, request: string): Promise<unknown> {
  const answer = once(thread, 'message');
  thread.postMessage(request);
  return (await answer)[0];
}

test('a released thread is acquired again, unless it has ended or another one is idle', async () => {
  const [first, second] = [acquireThread(FILE), acquireThread(FILE)];
  const ids = [first.threadId, second.threadId];
  expect(await ask(first, 'a')).toEqual(['a', ids[0]]);
  expect(await ask(second, 'b')).toEqual(['b', ids[1]]);
  releaseThread(FILE, first);
  releaseThread(FILE, second);
  const again = acquireThread(FILE);
  expect(await ask(again, 'c')).toEqual(['c', ids[0]]);
  releaseThread(FILE, again);
  const ended = once(again, 'exit');
  again.postMessage('end');
  await ended;
  const other = acquireThread(FILE);
  expect(await ask(other, 'd')).toEqual(['d', other.threadId]);
  expect(ids).not.toContain(other.threadId);
  await other.terminate();
});
