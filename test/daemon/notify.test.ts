import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openNotifier } from '../../daemon/notify.ts';
import { listenAt } from './service-manager.ts';

let directory: string;
beforeEach(() => (directory = mkdtempSync(join(tmpdir(), 'service-local-notify-'))));
afterEach(() => rmSync(directory, { recursive: true }));

it.each([
  ['in a file system', () => join(directory, 'notify')],
  ['in none', () => `@service-local-${process.pid}`],
])('a service manager with a socket %s is notified', async (_, name) => {
  const manager = listenAt(name());
  const env = { NOTIFY_SOCKET: name(), WATCHDOG_USEC: '3000000', PATH: '/bin' };
  const warned: string[] = [];
  const notifier = await openNotifier(env, (text) => warned.push(text));
  expect(env).toEqual({ PATH: '/bin' });
  expect(notifier?.watchdogMs).toBe(3000);
  notifier?.notify('READY=1\nSTATUS=à jour');
  notifier?.notify('STOPPING=1');
  expect(await manager.next()).toBe('READY=1\nSTATUS=à jour');
  expect(await manager.next()).toBe('STOPPING=1');
  notifier?.close();
  manager.close();
  expect(warned).toEqual([]);
});

it('warns once if the service manager cannot be notified', async () => {
  const warned: string[] = [];
  const warn = (text: string): number => warned.push(text);
  const gone = join(directory, 'gone');
  const notifier = await openNotifier({ NOTIFY_SOCKET: gone }, warn);
  notifier?.notify('READY=1');
  notifier?.notify('STOPPING=1');
  notifier?.close();
  expect(warned).toEqual([`the service manager at ${gone} could not be notified: ENOENT`]);
  for (const unknown of ['vsock:2:1234', 'notify', '@', `/${'a'.repeat(107)}`]) {
    warned.length = 0;
    expect(await openNotifier({ NOTIFY_SOCKET: unknown }, warn)).toBeUndefined();
    expect(warned).toHaveLength(1);
  }
});

it('opens no notifier without a socket, and no watchdog for another process', async () => {
  expect(await openNotifier({}, expect.unreachable)).toBeUndefined();
  const path = join(directory, 'notify');
  const manager = listenAt(path);
  const env = { NOTIFY_SOCKET: path, WATCHDOG_USEC: '3000000', WATCHDOG_PID: '1' };
  const notifier = await openNotifier(env, expect.unreachable);
  expect(notifier?.watchdogMs).toBeUndefined();
  notifier?.close();
  manager.close();
});
