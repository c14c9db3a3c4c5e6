import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { ServiceError } from '../../../../src/base/errors.ts';
import { createLog } from '../../../../src/base/log.ts';
import {
  connectToServer,
  type RunnerState,
} from '../../../../src/trading/host/pod/server-connection.ts';
import type { LifeEvent } from '../../../../src/trading/session-lifecycle.ts';
import type { SessionBatch } from '../../../../src/trading/session-events.ts';
import { STATE } from '../../../fleet/deployments/world.ts';
import { SCRATCH } from '../../../scratch.ts';
import { sleepMachine } from '../../../sleep-machine.ts';
import { startTestServer } from './test-server.ts';
import { soon, TOKEN } from './world.ts';

const FAILED = { kind: 'server_failed', error: expect.any(ServiceError) };

async function newConnection(
  nextBatch: () => Promise<SessionBatch | undefined>,
  { database_epoch }: Pick<RunnerState, 'database_epoch'> = {},
) {
  const server = await startTestServer(TOKEN);
  const directory = mkdtempSync(join(SCRATCH, 'service-local-connection-'));
  const closing = new AbortController();
  onTestFinished(async () => {
    closing.abort();
    await server.close();
    rmSync(directory, { recursive: true });
  });
  const token_file = join(directory, 'token');
  writeFileSync(token_file, TOKEN);
  const events: LifeEvent[] = [];
  const connection = connectToServer({
    control: { url: server.url, token_file },
    deploymentId: 'd',
    instanceId: '01980000-0000-7000-8000-000000000002',
    describeRunner: () => ({
      status: 'trading',
      denying: null,
      venue: { connected: true, open_orders: 0, checked_at: null },
      // The first report, which requests the claim, contains no epoch yet.
      ...(server.reports.length > 0 && { database_epoch }),
    }),
    nextBatch,
    onEvent: (event) => events.push(event),
    log: createLog(() => {}, true),
    signal: closing.signal,
  });
  return { server, connection, events };
}

test('receives a halt while the log cannot be read, and reports the end as not verified', async () => {
  const { server, connection, events } = await newConnection(async () => {
    throw new ServiceError('storage_unavailable', 'the disk is full');
  });
  await vi.waitFor(() => expect(events).toContainEqual(FAILED), soon);
  server.command = 'halt';
  await vi.waitFor(() => {
    expect(events.at(-1)).toMatchObject({ kind: 'answered', command: 'halt' });
  }, soon);
  const ended = { outcome: 'failed', verified: true, orders: [], error: null } as const;
  expect(await connection.end(ended, 1000)).toBeUndefined();
  expect(server.reports.at(-1)).toMatchObject({
    ended: { outcome: 'failed', verified: false },
    batch: null,
  });
  expect(events.filter(({ kind }) => kind === 'server_failed')).toHaveLength(1);
});

test('the end is reported after the whole log, even if the log could not be read for a while', async () => {
  const state = STATE;
  const batch: SessionBatch = { number: 1, events: [], state, steps: 1 };
  let isFull = false;
  const { server, connection, events } = await newConnection(async () => {
    if (isFull) throw new ServiceError('storage_unavailable', 'the disk is full');
    return server.reports.some((report) => report.batch !== null) ? undefined : batch;
  });
  isFull = true;
  await vi.waitFor(() => expect(events).toContainEqual(FAILED), soon);
  const { length } = server.reports;
  const ended = { outcome: 'stopped', verified: true, orders: [], error: null } as const;
  const end = connection.end(ended, 20_000);
  await vi.waitFor(() => expect(server.reports.length).toBeGreaterThan(length), soon);
  isFull = false;
  expect(await end).toMatchObject({ recorded: 1 });
  const [last, ended_at] = [server.reports.at(-2), server.reports.at(-1)];
  expect([last?.batch?.number, last?.ended, ended_at?.ended?.outcome]).toEqual([
    1,
    null,
    'stopped',
  ]);
});

test('the claim expires while the machine sleeps, although the clock of the process stops', async () => {
  const { connection } = await newConnection(async () => undefined);
  await vi.waitFor(() => expect(connection.mayTrade()).toBe(true), soon);
  const wake = sleepMachine(20_000);
  const mayTrade = connection.mayTrade();
  wake();
  expect(mayTrade).toBe(false);
  expect(connection.mayTrade()).toBe(true);
});

test('the claim starts when a report is sent, not when it is answered', async () => {
  const { server, connection } = await newConnection(async () => undefined);
  await vi.waitFor(() => expect(connection.mayTrade()).toBe(true), soon);
  let wake: (() => void) | undefined;
  const { promise: slept, resolve } = Promise.withResolvers<void>();
  server.onReport = () => {
    // The claim lasts 30 seconds from when the server received the report.
    wake ??= sleepMachine(25_000);
    resolve();
  };
  await slept;
  server.onReport = undefined;
  // The answer to the report that was under way says nothing of the time since the machine woke.
  const { length } = server.reports;
  server.hold = true;
  await vi.waitFor(() => expect(server.reports.length).toBeGreaterThan(length), soon);
  expect(connection.mayTrade()).toBe(false);
  server.hold = false;
  await vi.waitFor(() => expect(connection.mayTrade()).toBe(true), soon);
  wake!();
});

test('a runner reports its end only once to a server of which a copy was adopted', async () => {
  const { server, connection } = await newConnection(async () => undefined, { database_epoch: 2 });
  await vi.waitFor(() => expect(connection.hasClaim).toBe(true), soon);
  const ended = { outcome: 'failed', verified: true, orders: [], error: null } as const;
  expect(await connection.end(ended, 600_000)).toBeUndefined();
  expect(server.reports.filter((report) => report.ended !== null)).toHaveLength(1);
});
