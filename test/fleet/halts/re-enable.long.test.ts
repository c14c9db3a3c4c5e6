import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { createBot } from '../../../src/fleet/registry/bots.ts';
import type { BotEvent } from '../../../src/events/event.ts';
import { readEvents } from '../../../src/events/read-events.ts';
import { reEnableBot } from '../../../src/fleet/halts/re-enable.ts';
import { createLog } from '../../../src/base/log.ts';
import { replayRun } from '../../../src/fleet/parity/replay.ts';
import { openStorage, type Storage } from '../../../src/storage/storage.ts';
import { startPaper, stopPaper } from '../../../src/fleet/tasks/paper.ts';
import { startTaskRunner, type TaskRunner } from '../../../src/fleet/tasks/task-runner.ts';
import { getTask, type TaskService } from '../../../src/fleet/tasks/tasks.ts';
import { DATABASES, newTables, type TestDatabase } from '../../storage/databases.ts';
import { fillCatalogue, tradingDocument } from '../tasks/market.ts';

const DAYS_PER_SECOND = 86_400;
const ADA = 'administrator:ada';

let catalogueDir: string;
beforeAll(async () => {
  catalogueDir = await mkdtemp(join(tmpdir(), 'service-local-latch-test-'));
  await fillCatalogue(catalogueDir, 1);
});
afterAll(() => rm(catalogueDir, { recursive: true }));

/** A bot that is latched by the second order to buy. */
function latching(slug: string): ReturnType<typeof tradingDocument> {
  const document = tradingDocument(slug, 'sma_crossover', { fast: 1, slow: 2 });
  const spec = document['spec'] as { readonly risk: object };
  const repeated_execution = { count: 2, seconds: 31_536_000 };
  return { ...document, spec: { ...spec, risk: { ...spec.risk, repeated_execution } } };
}

describe.each(DATABASES)('a bot that was latched, on %s', (kind) => {
  let database: TestDatabase;
  let storage: Storage;
  let service: TaskService;
  let runner: TaskRunner;
  let bot_id: string;
  beforeEach(async () => {
    database = await newTables(kind);
    storage = await openStorage(database.location);
    service = { storage, clock: Date.now, catalogueDir };
    ({ bot_id } = await createBot(service, 'operator', { document: latching('often') }));
    runner = run();
  });
  afterEach(async () => {
    await runner.stop();
    await storage.close();
    await database.remove();
  });

  const run = (): TaskRunner =>
    startTaskRunner(service, {
      workers: 1,
      paperSessions: 10,
      timeoutMs: 5000,
      log: createLog(() => {}, false),
    });
  const start = (speed: number | 'max') => startPaper(service, ADA, 'often', { speed });
  const reEnable = (reason: string) => reEnableBot(service, ADA, 'often', reason);
  const told = async (task_id: string): Promise<BotEvent[]> => {
    const { events } = await readEvents(storage.read, bot_id, { after_seq: 0, limit: 5000 });
    return events.filter(({ run_id }) => run_id === task_id);
  };
  const until = (what: () => Promise<void>): Promise<void> =>
    vi.waitFor(what, { timeout: 20_000, interval: 150 });
  const ended = (task_id: string): Promise<void> =>
    until(async () =>
      expect(await getTask(storage.read, task_id)).not.toMatchObject({ ended_at: null }),
    );
  const kindsOf = (events: readonly BotEvent[]): string[] => events.map((event) => event.kind);

  it('a bot stays latched after a restart and for other sessions until a person re-enables it', async () => {
    const { task_id } = await start(DAYS_PER_SECOND * 60);
    await until(async () => expect(kindsOf(await told(task_id))).toContain('account.latched'));
    await runner.stop();
    const before = await told(task_id);
    runner = run();
    runner.wake();
    const isDenied = ({ kind: its }: BotEvent): boolean => its === 'order.denied';
    await until(async () =>
      expect((await told(task_id)).slice(before.length).some(isDenied)).toBe(true),
    );
    const latched = { reason: 'latched', message: /2 orders to buy SPX within 31536000 s/ };
    await expect(start('max')).rejects.toMatchObject({
      code: 'conflict',
      reason: latched.reason,
      message: expect.stringMatching(latched.message) as string,
    });
    await stopPaper(service, ADA, task_id);
    await ended(task_id);
    await expect(start('max')).rejects.toMatchObject({ reason: 'latched' });

    const events = await told(task_id);
    const at = events.findIndex(({ kind: its }) => its === 'account.latched');
    expect(events[at]!.payload).toMatchObject({ symbol: 'SPX', side: 'buy', count: 2 });
    expect(kindsOf(events.slice(at + 1))).not.toContain('account.latched');
    expect(kindsOf(events.slice(at + 1))).not.toContain('order.submitted');
    const reasons = events.filter(isDenied).map(({ payload }) => payload['reason']);
    expect(new Set(reasons)).toEqual(new Set(['repeated_execution']));

    // Each is in the write that records what it is about.
    const alerts = events.filter(({ kind: its }) => its === 'alert.raised');
    const ofLatch = { control: 'repeated_execution', severity: 'critical', count: 1 };
    expect(alerts.map(({ payload }) => payload)).toContainEqual({
      ...ofLatch,
      event_seq: events[at]!.seq,
      latency_ms: expect.toSatisfy((ms: number) => ms >= 0 && ms <= 5000) as number,
    });
    expect(alerts.map(({ payload }) => payload)).toContainEqual(
      expect.objectContaining({ control: 'repeated_execution', severity: 'warning' }),
    );

    const { latches } = await reEnable('the feed is mended');
    expect(latches).toMatchObject([
      { event_seq: events[at]!.seq, run_id: task_id, side: 'buy', count: 2, active: false },
    ]);
    const [audit] = await storage.read
      .selectFrom('audit_entries')
      .select(['actor', 'target', 'details'])
      .where('action', '=', 'bots.re_enable')
      .execute();
    expect(audit).toMatchObject({ actor: ADA, target: `bot:${bot_id}` });
    expect(JSON.parse(audit!.details)).toMatchObject({ reason: 'the feed is mended' });
    await expect(reEnable('again')).rejects.toMatchObject({ reason: 'not_latched' });

    // Earlier executions no longer count, and the bot can be latched again.
    const { task_id: next } = await start('max');
    runner.wake();
    await ended(next);
    expect(kindsOf(await told(next))).toContain('order.submitted');
    await expect(start('max')).rejects.toMatchObject({ reason: 'latched' });
  });

  it('a bot continues to trade in the latched session after it is re-enabled, and a re-run gives the same events', async () => {
    const { task_id } = await start(DAYS_PER_SECOND * 60);
    const latched = async (): Promise<number> =>
      kindsOf(await told(task_id)).filter((its) => its === 'account.latched').length;
    await until(async () => expect(await latched()).toBe(1));
    await reEnable('the feed is mended');
    await until(async () => expect(await latched()).toBe(2));
    await stopPaper(service, ADA, task_id);
    await ended(task_id);
    const kinds = kindsOf(await told(task_id));
    expect(kinds.filter((its) => its === 'control.latch_lifted')).toHaveLength(1);
    // No person has reviewed the second latch.
    await expect(start('max')).rejects.toMatchObject({ reason: 'latched' });
    expect(await replayRun(service, 'often', task_id)).toMatchObject({ matches: true });
  });
});
