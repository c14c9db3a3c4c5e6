import type { RunnerAnswer } from '../../../../src/api/runners.ts';
import { expect, test, vi } from 'vitest';
import { ServiceError } from '../../../../src/base/errors.ts';
import { MINUTE } from '../../../../src/base/durations.ts';
import { eventOfAnswer } from '../../../../src/trading/host/pod/server-connection.ts';
import { clientOrderId, type VenueOrder } from '../../../../src/trading/venue.ts';
import { newScript, unavailable, until, type Script } from './scripted.ts';
import { ACTS, BTC, DEPLOYMENT } from './world.ts';

const statuses = ({ orders }: Script) => [...orders.values()].map(({ status }) => status);
const ANSWER = {
  epoch: 1,
  claim_seconds: 30,
  report_seconds: 5,
  command: 'trade',
  halt: null,
  controls: { thresholds: {}, permits: [], latches_lifted: 0 },
} satisfies Omit<RunnerAnswer, 'recorded'>;
const never = new Promise<never>(() => {});

test('a halt does not wait for an order that is being placed, nor for queued bars', async () => {
  const script = await newScript();
  const asked: string[] = [];
  script.moment = async (what, when) => {
    if (when === 'before') asked.push(what);
    // The order is placed, and its answer is lost.
    if (what === 'place' && when === 'after') await never;
  };
  const life = await script.start();
  script.closes.push(ACTS.limit);
  await until(() => asked.includes('place'));
  for (let i = 0; i < 20_000; i += 1) script.closes.push(ACTS.buy - 1);
  await until(() => life.state()?.time !== null);
  script.command = 'halt';
  const { outcome, verified, steps } = await life.done;
  expect({ outcome, verified }).toEqual({ outcome: 'halted', verified: true });
  expect(steps).toBeLessThan(20_000);
  expect(statuses(script)).toEqual(['canceled']);
});

test('an order that could not be placed in time is canceled, and no order is placed while trading is not permitted', async () => {
  const script = await newScript();
  let isAway = true;
  script.moment = async (what) => {
    if (what === 'place' && isAway) {
      script.mayTrade = false;
      throw unavailable();
    }
  };
  const life = await script.start({ placeWithinMs: 300 });
  script.closes.push(ACTS.buy);
  await until(() => !script.mayTrade);
  isAway = false;
  await until(() => life.state()?.working.length === 0);
  script.mayTrade = true;
  script.closes.push(ACTS.buy);
  await until(() => script.orders.size > 0);
  expect([...script.orders.values()]).toMatchObject([{ order: 2, status: 'filled' }]);
  life.stop();
  expect(await life.done).toMatchObject({ verified: true, state: { positions: { [BTC]: 1 } } });
});

test('late bars are processed, but place no orders', async () => {
  const script = await newScript();
  script.begin -= 3 * MINUTE;
  script.closes.push(ACTS.buy, ACTS.limit, ACTS.buy - 1);
  const life = await script.start();
  await until(() => life.hasTakenAll());
  script.closes.push(ACTS.buy);
  await until(() => script.orders.size > 0);
  expect([...script.orders.values()]).toMatchObject([{ order: 3, status: 'filled' }]);
  expect(life.log.join()).toContain('new orders are denied: stale_data');
  expect(life.view.missing()).toEqual({});
  const later = performance.now() + 4 * MINUTE;
  vi.spyOn(performance, 'now').mockReturnValue(later);
  const { feed } = life.view.missing();
  vi.restoreAllMocks();
  expect(feed).toMatch(/^no bars for \d+ s$/);
});

const failFullDisk: Script['moment'] = async (what) => {
  if (what === 'append') throw new ServiceError('storage_unavailable', 'the disk is full');
};
const FULL_DISK = {
  outcome: 'failed',
  verified: false,
  error: { code: 'storage_unavailable' },
} as const;

test('with a full disk, a runner sends no order, cancels open orders, and ends as not verified', async () => {
  const script = await newScript();
  const life = await script.start();
  script.closes.push(ACTS.limit);
  await until(() => script.orders.size === 1);
  script.moment = failFullDisk;
  script.closes.push(ACTS.buy);
  expect(await life.done).toMatchObject(FULL_DISK);
  expect(statuses(script)).toEqual(['canceled']);
});

test('an end that cannot be recorded fails, and the next process records the last fills', async () => {
  const script = await newScript();
  const life = await script.start();
  script.closes.push(ACTS.limit);
  await until(() => statuses(script)[0] === 'open' && life.state()?.working.length === 1);
  script.moment = async (what, when) => {
    if (what === 'cancel' && when === 'before') script.fillOne();
    await failFullDisk(what, when);
  };
  script.command = 'stop';
  expect(await life.done).toMatchObject(FULL_DISK);
  expect(life.state()).toMatchObject({ positions: {} });
  await life.kill();
  script.moment = async () => {};
  expect(await (await script.start()).done).toMatchObject({
    outcome: 'stopped',
    verified: true,
    state: { status: 'halted', positions: { [BTC]: 1 }, working: [] },
  });
});

test('a runner that is stopped while another one has the claim waits for the claim before it leaves orders open', async () => {
  const script = await newScript();
  const first = await script.start();
  script.closes.push(ACTS.limit);
  await until(() => statuses(script)[0] === 'open' && first.state()?.working.length === 1);
  await first.kill();
  script.hasClaim = false;
  const second = await script.start();
  second.stop();
  await until(() => second.log.some((line) => line.includes('ending: stopped')));
  expect(statuses(script)).toEqual(['open']);
  script.hasClaim = true;
  expect(await second.done).toMatchObject({ outcome: 'stopped', verified: true });
  expect(statuses(script)).toEqual(['canceled']);
});

test('a strategy that throws ends the deployment and its open orders', async () => {
  const script = await newScript();
  script.closes.push(ACTS.limit, ACTS.fail);
  const life = await script.start();
  expect(await life.done).toMatchObject({
    outcome: 'failed',
    verified: true,
    error: { code: 'strategy_failed' },
    state: { status: 'failed', working: [] },
  });
  expect(statuses(script)).not.toContain('open');
});

test('all events are reported in parts after a long time without the server', async () => {
  const script = await newScript();
  script.hasClaim = false;
  const life = await script.start();
  for (let i = 0; i < 600; i += 1) script.closes.push(ACTS.buy - 1);
  life.post(eventOfAnswer({ ...ANSWER, recorded: 0 }));
  await until(() => life.hasTakenAll());
  expect(script.batches.size).toBe(0);
  script.hasClaim = true;
  const bars = (): number[] =>
    [...script.batches.values()].map(
      ({ events }) => events.filter(({ kind }) => kind === 'data.bars').length,
    );
  await until(() => bars().reduce((sum, count) => sum + count, 0) === 600);
  expect(Math.max(...bars())).toBeLessThanOrEqual(512);
});

test('books a correction whose sums a query has reported before', async () => {
  const script = await newScript();
  const life = await script.start({ reconcileMs: 20 });
  script.closes.push(ACTS.limit);
  await until(() => script.orders.size > 0);
  const [id, order] = [...script.orders][0]!;
  const { made: _made, ...report } = order;
  const partial = { ...report, filled: 0.5, cost: 25, time: Date.now() };
  const busted = { ...report, filled: 0.25, cost: 12.5, time: Date.now() + 1 };
  script.orders.set(id, { ...order, ...partial });
  script.send(partial);
  await until(() => life.state()?.working[0]?.filled === 0.5);
  // The next comparison queries the order before the stream reports the correction.
  script.orders.set(id, { ...order, ...busted });
  const find = Promise.withResolvers<void>();
  let finds = 0;
  script.moment = async (what, when) => {
    if (what === 'find' && when === 'after' && (finds += 1) === 2) find.resolve();
  };
  await find.promise;
  expect(life.state()?.working[0]?.filled).toBe(0.5);
  script.send({ ...busted, is_correction: true });
  await until(() => life.state()?.working[0]?.filled === 0.25);
  expect(life.state()?.positions).toEqual({ [BTC]: 0.25 });
});

test.each(['stopped', 'halted', 'failed'] as const)(
  'a runner that is %s leaves orders of an adopted copy of the server open',
  async (outcome) => {
    const script = await newScript();
    const life = await script.start();
    script.closes.push(ACTS.limit);
    await until(() => statuses(script).includes('open'));
    const [own] = script.orders.values();
    const client_order_id = clientOrderId(DEPLOYMENT, 1, 2);
    script.orders.set(client_order_id, { ...own!, client_order_id });
    if (outcome === 'halted') script.command = 'halt';
    else if (outcome === 'failed') script.closes.push(ACTS.fail);
    else life.stop();
    expect(await life.done).toMatchObject({ outcome, verified: true });
    expect(statuses(script)).toEqual(['canceled', 'open']);
    expect(life.log.join()).toContain('1 open orders belong to an adopted copy of the server');
  },
);

test('without its log, a runner cancels orders of its server that reach the venue after it found none', async () => {
  const script = await newScript();
  script.controls = { ...script.controls, database_epoch: 2 };
  const client_order_id = clientOrderId(DEPLOYMENT, 7, 2);
  const id = { order: 7, client_order_id };
  const made = { ...id, symbol: BTC, side: 'buy', type: 'limit', quantity: 1 } as VenueOrder;
  const nothing = { filled: 0, cost: 0, fee: 0, fee_units: 0 };
  const placed = { ...id, ...nothing, status: 'open', time: Date.now(), made } as const;
  script.moment = async (what, when) => {
    if (what !== 'openOrders' || when !== 'after' || script.orders.size > 0) return;
    script.orders.set(client_order_id, placed);
  };
  const life = await script.start({ settleMs: 500 });
  const error = new ServiceError('conflict', 'the log is lost', { reason: 'log_lost' });
  life.post({ kind: 'server_failed', error });
  expect(await life.done).toMatchObject({ outcome: 'failed', verified: true });
  expect(statuses(script)).toEqual(['canceled']);
});
