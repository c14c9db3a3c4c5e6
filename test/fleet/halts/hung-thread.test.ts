import { once } from 'node:events';
import threads from 'node:worker_threads';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { HaltReport } from '../../../src/api/halts.ts';
import type { BotState } from '../../../src/events/bot-state.ts';
import { startTaskRunner, type TaskRunner } from '../../../src/fleet/tasks/task-runner.ts';
import { newTestApp, type TestApp } from '../../server/in-process.ts';
import { replace } from '../../replace.ts';
import { tradingDocument } from '../../server/trader.ts';
import { fillCatalogue } from '../tasks/market.ts';

const BLOCKED = new URL('./blocked-thread.ts', import.meta.url).href;

/** Loads `blocked-thread.ts` into session threads, so that a test can make them hang. */
class BlockableWorker extends threads.Worker {
  constructor(...[file, options]: ConstructorParameters<typeof threads.Worker>) {
    const isSessionThread = String(file).includes('paper-thread');
    super(file, { ...options, ...(isSessionThread && { execArgv: ['--import', BLOCKED] }) });
  }
}

let restore: () => void;
let server: TestApp;
let runner: TaskRunner;
let authorization: string;

beforeEach(async () => {
  restore = replace(threads, { Worker: BlockableWorker });
  server = await newTestApp();
  const { tasks, log } = server.services;
  authorization = await server.bearer('read', 'write', 'trade', 'halt');
  await fillCatalogue(tasks.catalogueDir, 1);
  runner = startTaskRunner(tasks, { workers: 1, paperSessions: 9, timeoutMs: 600_000, log });
});
afterEach(async () => {
  await runner.stop();
  await server.close();
  restore();
});

async function call<T>(method: string, path: string, body?: object): Promise<T> {
  const answer = await server.send(method, path, { headers: { authorization }, body });
  expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300);
  return answer.body as T;
}

/** Starts a session on a bot of its own, a bar each 50 ms. */
async function start(slug: string): Promise<string> {
  await call('POST', '/bots', { document: tradingDocument(slug, 'SPX', '1d', 1) });
  const body = { speed: 86_400 * 20 };
  return (await call<{ task_id: string }>('POST', `/bots/${slug}/paper/start`, body)).task_id;
}

/** Newest bars that the session has recorded. */
async function timeOf(slug: string, task_id: string): Promise<string | null> {
  const path = `/bots/${slug}/state/snapshot`;
  const { state } = await call<{ state: BotState }>('GET', path);
  return state.sessions[task_id]!.time;
}

// As the app of the test knows nothing of the runner, it is as though it were elsewhere.
it('another server halts a session whose thread hangs, and the other sessions of the thread restart', async () => {
  const [hung, other] = [await start('hung'), await start('other')];
  const haveBegun = async (): Promise<void> => {
    expect(await timeOf('hung', hung)).not.toBeNull();
    expect(await timeOf('other', other)).not.toBeNull();
  };
  await vi.waitFor(haveBegun, WITHIN);
  const blocked = new BroadcastChannel('blocked');
  new BroadcastChannel('block').postMessage('now');
  await once(blocked, 'message');
  blocked.close();

  const report = await call<HaltReport>('POST', '/bots/hung/halt', { reason: 'it hangs' });
  expect(report).toMatchObject({ verified: true, deployments: [{ task_id: hung }] });
  const since = await timeOf('other', other);
  await vi.waitFor(async () => expect(await timeOf('other', other)).not.toBe(since), WITHIN);
  expect(server.log.join()).toContain(`paper session ${other} restarts`);
});

const WITHIN = { timeout: 20_000, interval: 50 };
