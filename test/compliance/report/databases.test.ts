import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { exampleDocument } from '../../../src/api/bots.ts';
import { deriveReport } from '../../../src/compliance/report/derive.ts';
import { countEvents } from '../../../src/compliance/report/event-counts.ts';
import { periodOf, rangeOf } from '../../../src/compliance/report/period.ts';
import { freezeReport, getFrozenReport } from '../../../src/compliance/report/freeze.ts';
import { appendEvents } from '../../../src/events/append.ts';
import { haltBot } from '../../../src/fleet/halts/halt.ts';
import { setThreshold } from '../../../src/fleet/thresholds/thresholds.ts';
import { openStorage, type Storage } from '../../../src/storage/storage.ts';
import { CREATED } from '../../events/bots.ts';
import { makeSessions, type MadeSession } from '../../fleet/halts/sessions.ts';
import { mainlyOn, newTables, type TestDatabase } from '../../storage/databases.ts';

const NOW = CREATED.occurred_at + 60_000;

describe.each(mainlyOn('sqlite'))('a validation report on %s', (kind) => {
  let database: TestDatabase;
  let storage: Storage;
  let session: MadeSession;

  beforeEach(async () => {
    database = await newTables(kind);
    storage = await openStorage(database.location);
    [session] = (await makeSessions(storage, { count: 1 })) as [MadeSession];
    const document = JSON.stringify(exampleDocument('bot-0', 10));
    await storage.write((tx) => tx.updateTable('bot_versions').set({ document }).execute());
  });

  afterEach(async () => {
    await storage.close();
    await database.remove();
  });

  const service = (now: number) => ({
    storage,
    clock: () => now,
    wake() {},
    release() {},
    log: { warn() {} },
  });

  test('has the same figures for the same events, and keeps its frozen content', async () => {
    const { bot_id, task_id } = session;
    const event = (of: string, reason?: string) => ({
      kind: of,
      version: 1,
      run_id: task_id,
      occurred_at: NOW,
      payload: { seq: 1, kind: of, ...(reason && { reason }) },
    });
    const many = Array.from({ length: 5 }, () => event('order.denied', 'price_collar_bps'));
    const others = [event('order.submitted'), event('order.denied', 'max_order_value')];
    const alert = (latency_ms?: number) => ({
      ...event('alert.raised'),
      payload: { control: 'loss_day', severity: 'critical', latency_ms },
    });
    const alerts = [alert(12.5), alert(5001), alert(1e-7), alert()];
    await storage.write((tx) => appendEvents(tx, bot_id, NOW, [...many, ...others, ...alerts]));
    await haltBot(service(NOW + 250), 'operator', bot_id, 'it buys too much');

    const report = await deriveReport(service(NOW + 500), 'bot-0', undefined);
    const paper = { environment: 'paper', missed: null };
    expect(report.pretrade.breaches.value).toEqual([
      { control: 'max_order_value', ...paper, count: 1, blocked: 1 },
      { control: 'price_collar_bps', ...paper, count: 5, blocked: 5 },
    ]);
    expect(report.monitoring.alerts.value).toMatchObject({
      latency_unknown: 1,
      latency_max_ms: 5001,
      over_5s: 1,
    });
    const range = await rangeOf(storage.read, bot_id, periodOf(undefined, NOW + 500));
    const whole = await countEvents(storage, bot_id, range);
    expect(await countEvents(storage, bot_id, range, 2)).toEqual(whole);
    // The session started before sessions recorded a trader, desk or client.
    const nobody = { with_trader: 0, with_desk: 0, with_client: 0, attributed: 0, pct: 0 };
    expect(report.kill.attribution_coverage.value).toEqual({ orders: 1, with_run: 1, ...nobody });
    const gapsOf = ({ generated_by: { gaps } }: typeof report) => gaps.map(({ id }) => id);
    expect(gapsOf(report)).toContain('unattributed_orders');
    expect(report.kill.live_activations.value).toMatchObject({
      total: 1,
      items: [{ bot: 'bot-0', targets: { paper: 1 }, orders: 2, unconfirmed: 0, ended_ms: 0 }],
    });
    const { items } = report.kill.live_activations.value as { items: { latched_ms: number }[] };
    expect(items[0]!.latched_ms).toBeGreaterThanOrEqual(0);
    expect(gapsOf(report)).toContain('no_thresholds');

    const subjects = { currency: 'USD', client: null, trader: 'grace', desk: null, symbols: [] };
    await storage.write((tx) =>
      tx
        .updateTable('trading_sessions')
        .set({ subjects: JSON.stringify(subjects) })
        .execute(),
    );
    const set = (level: 'firm' | 'desk', subject: string, now: number) =>
      setThreshold(service(now), 'administrator:ada', {
        level,
        subject,
        currency: 'USD',
        limits: { max_order_value: 9 },
        rationale: 'a test',
      });
    await set('firm', 'firm', NOW + 300);
    await set('desk', 'index', NOW + 301);
    const later = await deriveReport(service(NOW + 500), 'bot-0', undefined);
    expect(later.kill.attribution_coverage.value).toMatchObject({ with_trader: 1, pct: 100 });
    expect(later.risk_controls.slice(-2)).toMatchObject([
      {
        id: 'threshold_firm_firm_USD',
        articles: ['15(5)'],
        facts: { value: { value: { max_order_value: 9 }, since_version: 1 } },
      },
      { id: 'overrides', articles: ['15(6)'] },
    ]);
    expect(gapsOf(later)).not.toContain('no_thresholds');
    expect(gapsOf(later)).not.toContain('unattributed_orders');
    expect(gapsOf(later)).toContain('unnamed_desk');

    await storage.write(async (tx) => {
      const row = { password_hash: '', totp_secret: '', totp_last_step: 0, disabled_at: null };
      await tx
        .insertInto('administrators')
        .values({ administrator_id: 'ada', name: 'ada', created_at: NOW, ...row })
        .execute();
    });
    const human = { '/kill/policy_ref': 'Policy 7' };
    const frozen = await freezeReport(service(NOW + 1000), 'ada', bot_id, { human });
    expect(frozen.report.kill.policy_ref).toMatchObject({
      value: 'Policy 7',
      by: 'ada (administrator:ada)',
    });
    expect(frozen.report.pretrade.breaches.hash).toBe(report.pretrade.breaches.hash);
    expect(await getFrozenReport(storage.read, 'bot-0', 1)).toEqual(frozen);
    const again = freezeReport(service(NOW + 1000), 'ada', bot_id, {});
    await expect(again).rejects.toMatchObject({ code: 'conflict', reason: 'superseded' });
  });
});
