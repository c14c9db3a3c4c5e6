import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { createBot } from '../../../src/fleet/registry/bots.ts';
import type { BotEvent } from '../../../src/events/event.ts';
import { readEvents } from '../../../src/events/read-events.ts';
import { createLog } from '../../../src/base/log.ts';
import { replayRun } from '../../../src/fleet/parity/replay.ts';
import {
  authorizeOverride,
  listOverrides,
  requestOverride,
  verifyOverride,
} from '../../../src/fleet/thresholds/overrides.ts';
import { listThresholds, setThreshold } from '../../../src/fleet/thresholds/thresholds.ts';
import { openStorage, type Storage } from '../../../src/storage/storage.ts';
import { startPaper, stopPaper } from '../../../src/fleet/tasks/paper.ts';
import { startTaskRunner, type TaskRunner } from '../../../src/fleet/tasks/task-runner.ts';
import { getTask, type TaskService } from '../../../src/fleet/tasks/tasks.ts';
import { DATABASES, newTables, type TestDatabase } from '../../storage/databases.ts';
import { fillCatalogue, tradingDocument } from '../tasks/market.ts';

const [ADA, BOB, EVE] = ['administrator:ada', 'administrator:bob', 'administrator:eve'] as const;

let catalogueDir: string;
beforeAll(async () => {
  catalogueDir = await mkdtemp(join(tmpdir(), 'service-local-risk-test-'));
  await fillCatalogue(catalogueDir, 1);
});
afterAll(() => rm(catalogueDir, { recursive: true }));

/** A bot that trades all the time, for a trader of a desk. */
function document(slug: string): ReturnType<typeof tradingDocument> {
  const made = tradingDocument(slug, 'sma_crossover', { fast: 1, slow: 2 });
  const attribution = { trader: 'grace', desk: 'index' };
  return { ...made, spec: { ...(made['spec'] as object), attribution } };
}

describe.each(DATABASES)('the server on %s', (kind) => {
  let database: TestDatabase;
  let storage: Storage;
  let service: TaskService;
  let runner: TaskRunner;
  let bot_id: string;
  beforeEach(async () => {
    database = await newTables(kind);
    storage = await openStorage(database.location);
    service = { storage, clock: Date.now, catalogueDir };
    ({ bot_id } = await createBot(service, 'operator', { document: document('busy') }));
    runner = startTaskRunner(service, {
      workers: 1,
      paperSessions: 10,
      timeoutMs: 5000,
      log: createLog(() => {}, false),
    });
  });
  afterEach(async () => {
    await runner.stop();
    await storage.close();
    await database.remove();
  });

  const start = async (speed: number | 'max'): Promise<string> => {
    const { task_id } = await startPaper(service, ADA, 'busy', { speed });
    runner.wake();
    return task_id;
  };
  const told = async (task_id: string, ...kinds: string[]): Promise<BotEvent[]> => {
    const range = { after_seq: 0, limit: 5000, ...(kinds.length > 0 && { kinds }) };
    const { events } = await readEvents(storage.read, bot_id, range);
    return events.filter(({ run_id }) => run_id === task_id);
  };
  const until = (what: () => Promise<void>): Promise<void> =>
    vi.waitFor(what, { timeout: 20_000, interval: 50 });
  const ended = (task_id: string): Promise<void> =>
    until(async () =>
      expect(await getTask(storage.read, task_id)).not.toMatchObject({ ended_at: null }),
    );
  const set = (level: 'desk' | 'trader' | 'firm', subject: string, limits: object | null) =>
    setThreshold(service, ADA, { level, subject, currency: 'USD', limits, rationale: 'a test' });

  it('the server keeps sessions within their shares of the tightest thresholds, and re-runs give the same events', async () => {
    await set('firm', 'firm', { max_gross_exposure: 4, max_order_value: 3 });
    await set('desk', 'index', { max_gross_exposure: 2 });
    await set('trader', 'ada', { max_order_value: 1 });
    const slow = await start(0.001);
    const task_id = await start('max');
    await ended(task_id);
    const [first] = await told(task_id, 'risk.thresholds_set');
    expect(first!.payload).toEqual({
      thresholds: {
        max_order_value: { value: 3, level: 'firm', subject: 'firm', version: 1, sessions: 2 },
        max_gross_exposure: { value: 1, level: 'desk', subject: 'index', version: 1, sessions: 2 },
      },
    });
    const reasons = (await told(task_id, 'order.denied')).map(({ payload }) => payload['reason']);
    expect(new Set(reasons)).toEqual(new Set(['threshold_order_value']));
    expect(await told(task_id, 'order.filled')).toEqual([]);
    expect(await replayRun(service, 'busy', task_id)).toMatchObject({ matches: true });
    await stopPaper(service, ADA, slow);

    await set('desk', 'index', null);
    await expect(set('desk', 'index', null)).rejects.toMatchObject({ code: 'not_found' });
    await expect(set('firm', 'index', {})).rejects.toMatchObject({ code: 'invalid_request' });
    expect(await listThresholds(storage.read)).toHaveLength(2);
    expect(await listThresholds(storage.read, { history: true })).toHaveLength(4);
  });

  it('the server starts no session without attribution while thresholds exist, and denies orders of running ones', async () => {
    const { spec, ...rest } = document('unnamed');
    const { attribution: _attribution, ...unnamed } = spec as Record<string, unknown>;
    await createBot(service, 'operator', { document: { ...rest, spec: unnamed } });
    const begin = () => startPaper(service, ADA, 'unnamed', { speed: 86_400 * 60 });
    const { task_id } = await begin();
    // A session of an earlier version, which recorded no subjects.
    const old = await begin();
    await storage.write((tx) =>
      tx
        .updateTable('trading_sessions')
        .set({ subjects: null })
        .where('task_id', '=', old.task_id)
        .execute(),
    );
    await setThreshold(service, ADA, {
      level: 'client',
      subject: 'eve',
      currency: 'EUR',
      limits: { max_order_value: 1 },
      rationale: 'a test',
    });
    await begin();
    await set('desk', 'credit', { max_order_value: 1e9 });
    await set('trader', 'ada', { max_order_value: 1e9 });
    await expect(begin()).rejects.toMatchObject({
      code: 'conflict',
      reason: 'unattributed',
      message: expect.stringContaining('names no desk and no trader') as unknown,
    });
    runner.wake();
    const { bot_id: unnamedId } = await getTask(storage.read, task_id);
    const of = async (run: string, what: string): Promise<BotEvent[]> => {
      const range = { after_seq: 0, limit: 5000, kinds: [what] };
      const { events } = await readEvents(storage.read, unnamedId, range);
      return events.filter(({ run_id }) => run_id === run);
    };
    for (const run of [task_id, old.task_id]) {
      await until(async () => expect(await of(run, 'order.denied')).not.toHaveLength(0));
      await stopPaper(service, ADA, run);
      await ended(run);
      const reasons = (await of(run, 'order.denied')).map(({ payload }) => payload['reason']);
      expect(new Set(reasons)).toEqual(new Set(['threshold_messages']));
      expect(await of(run, 'order.submitted')).toEqual([]);
    }
    const [settled] = await of(task_id, 'risk.thresholds_set');
    expect(settled!.payload['thresholds']).toMatchObject({
      max_messages_per_second: { value: 0, level: 'desk', subject: '' },
    });
    // A session that names them starts.
    await start('max');
  });

  it('the server lets one order pass that three persons have approved, and changes no limit', async () => {
    await set('firm', 'firm', { max_order_value: 3 });
    const task_id = await start(86_400 * 60);
    await until(async () => expect(await told(task_id, 'order.denied')).not.toHaveLength(0));
    const asked = {
      symbol: 'SPX',
      side: 'buy',
      max_quantity: 1e6,
      worst_price: null,
      controls: ['threshold_order_value'],
      reason: 'a test',
      valid_minutes: 15,
    } as const;
    const { override_id } = await requestOverride(service, ADA, 'busy', asked);
    const refused = (by: typeof ADA | typeof BOB | typeof EVE, how: typeof verifyOverride) =>
      how(service, by, override_id, 'why not').then(
        () => 'done',
        ({ reason }: { readonly reason: string }) => reason,
      );
    expect(await refused(EVE, authorizeOverride)).toBe('not_verified');
    expect(await refused(ADA, verifyOverride)).toBe('same_person');
    await verifyOverride(service, BOB, override_id, 'it is hedged');
    expect(await refused(EVE, verifyOverride)).toBe('decided');
    expect(await refused(BOB, authorizeOverride)).toBe('same_person');
    expect(await refused(ADA, authorizeOverride)).toBe('same_person');
    expect(await told(task_id, 'order.filled')).toEqual([]);
    const other = await requestOverride(service, ADA, 'busy', asked);
    const late = { ...service, clock: () => other.expires_at };
    const expired = verifyOverride(late, BOB, other.override_id, 'too late');
    await expect(expired).rejects.toMatchObject({ reason: 'expired' });
    const both = await Promise.allSettled(
      [EVE, 'administrator:dan' as const].map((by) =>
        authorizeOverride(service, by, override_id, 'agreed'),
      ),
    );
    expect(both).toMatchObject([{ status: 'fulfilled' }, { reason: { reason: 'decided' } }]);
    await until(async () => expect(await told(task_id, 'risk.override_used')).toHaveLength(1));
    await stopPaper(service, ADA, task_id);
    await ended(task_id);

    const [used] = await told(task_id, 'risk.override_used');
    const { items } = await listOverrides(storage.read, 'busy', { limit: 10 }, Date.now());
    expect(items).toMatchObject([
      { status: 'requested', used_at: null },
      { status: 'used', used_order: used!.payload['order'] },
    ]);
    // A holding may be sold at any value; nothing else was bought.
    const bought = (await told(task_id, 'order.filled')).filter(
      ({ payload }) => payload['side'] === 'buy',
    );
    expect(bought.length).toBeLessThanOrEqual(1);
    expect(await replayRun(service, 'busy', task_id)).toMatchObject({ matches: true });
    const audit = await storage.read
      .selectFrom('audit_entries')
      .select(['actor', 'action'])
      .where('action', 'like', 'risk.overrides.%')
      .orderBy('seq')
      .execute();
    expect(audit).toEqual([
      { actor: ADA, action: 'risk.overrides.requested' },
      { actor: BOB, action: 'risk.overrides.verified' },
      { actor: ADA, action: 'risk.overrides.requested' },
      { actor: EVE, action: 'risk.overrides.authorized' },
    ]);
  });
});
