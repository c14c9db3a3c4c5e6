import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { endThread } from '../../src/base/end-thread.ts';

const module = new URL('../../src/base/end-thread.ts', import.meta.url).href;

/** Starts a thread that runs `code` within `beforeThreadEnds`, and waits for its first message. */
async function startWork(code: string): Promise<Worker> {
  const program = `
    import { parentPort } from 'node:worker_threads';
    import { beforeThreadEnds } from '${module}';
    await beforeThreadEnds(async () => {
      parentPort.postMessage('begun');
      await new Promise((resolve) => parentPort.once('message', resolve));
      ${code}
    });
    parentPort.ref();
    parentPort.on('message', () => {});`;
  const thread = new Worker(new URL(`data:text/javascript,${encodeURIComponent(program)}`));
  thread.on('error', () => {});
  await once(thread, 'message');
  return thread;
}

test('a thread ends when its native work has finished', async () => {
  const thread = await startWork(`parentPort.postMessage('finished');`);
  const finished = once(thread, 'message');
  const ended = endThread(thread);
  thread.postMessage('finish');
  expect(await finished).toEqual(['finished']);
  await ended;
  expect(thread.threadId).toBe(-1);
});

test.each(['process.exit();', 'throw new RangeError();'])(
  'a thread that ends during its native work is not awaited further: %s',
  async (code) => {
    const thread = await startWork(code);
    const ended = endThread(thread);
    thread.postMessage('finish');
    await ended;
    expect(thread.threadId).toBe(-1);
    await endThread(thread);
  },
);
