import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { appendEvents } from '../../../src/events/append.ts';
import { archiveEvents } from '../../../src/server/event-archives.ts';
import { makeSessions, STATE } from '../../fleet/halts/sessions.ts';
import { SCRATCH } from '../../scratch.ts';
import { newTestApp } from '../in-process.ts';
import { newSignedIn, type Visitor } from './visitor.ts';

async function show(visitor: Visitor, path: string): Promise<string> {
  const { status, text } = await visitor.open(path);
  expect([path, status]).toEqual([path, 200]);
  return text;
}

test('the page of a bot shows a session whose first events are archived, and its trades once the files are available', async () => {
  const server = await newTestApp();
  const { visitor } = await newSignedIn(server);
  const { tasks } = server.services;
  const { storage } = tasks;
  const [open, ended] = await makeSessions(storage, { count: 2, slug: 'old' });
  const { bot_id, task_id, deployment_id } = ended!;
  const [month, later] = [server.now + 1000, server.now + 2000];
  const run = { version: 1, occurred_at: later, run_id: task_id };
  const tradedRun = { ...run, run_id: open!.task_id };
  const fill = { order: 1, symbol: 'SPX', side: 'buy', quantity: 2, price: 1234.5, fee: 1 };
  const filled = { kind: 'order.filled', time: new Date(server.now).toISOString(), ...fill };
  const state = { deployment_id: open!.deployment_id, ...STATE };
  await storage.write((tx) =>
    appendEvents(tx, open!.bot_id, server.now, [
      { kind: 'order.filled', ...tradedRun, payload: filled },
    ]),
  );
  await storage.write((tx) =>
    appendEvents(tx, open!.bot_id, later, [
      { kind: 'session.state', ...tradedRun, payload: state },
    ]),
  );
  await storage.write(async (tx) => {
    await appendEvents(tx, bot_id, later, [
      { kind: 'session.state', ...run, payload: { deployment_id, ...STATE } },
      { kind: 'run.ended', ...run, payload: { deployment_id, status: 'success' } },
    ]);
    const change = { ended_at: later, status: 'success' as const, worker_id: null };
    await tx.updateTable('tasks').set(change).where('task_id', '=', task_id).execute();
  });
  const directory = await mkdtemp(join(SCRATCH, 'old-sessions-'));
  const archive = { storage, directory, clock: () => server.now };
  for (const one of [open!, ended!]) {
    await archiveEvents(archive, one.bot_id, month, () => {});
  }
  const REMEDIES: Readonly<Record<string, RegExp>> = {
    'old-0': /The trades of this session cannot be listed[\s\S]*event_archive_dir/,
    'old-1': /The trades of this session cannot be listed[\s\S]*events restore/,
  };
  for (const [slug, one] of Object.entries({ 'old-0': open!, 'old-1': ended! })) {
    const text = await show(visitor, `/console/bots/${slug}`);
    expect(text).toContain('100,321.25');
    expect(text).toMatch(REMEDIES[slug]!);
    expect(await show(visitor, `/console/bots/${slug}/trades?session=${one.task_id}`)).toContain(
      'The trades of this session cannot be listed',
    );
  }
  const statusOf = async (events: string, run_id: string): Promise<number> =>
    (await visitor.open(`/bots/old-1/state/${events}?run_id=${run_id}`)).status;
  for (const events of ['events', 'events/stream']) {
    expect(await statusOf(events, task_id)).toBe(410);
    expect(await statusOf(events, open!.task_id), 'a session of another bot').toBe(404);
    expect(await statusOf(events, 'bogus')).toBe(404);
  }
  expect(await show(visitor, '/console/bots/old-0')).toContain('Stop the session');
  Object.assign(tasks, { archiveDir: directory });
  const trades = await show(visitor, '/console/bots/old-0/trades');
  expect(trades).toContain('1,234.5');
  expect(trades).not.toContain('cannot be listed');
  await rm(directory, { recursive: true });
  await server.close();
});
