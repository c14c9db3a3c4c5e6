import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { formatTime } from '../../../../src/lease/time.ts';
import { stateHash, type SessionState } from '../../../../src/events/session-state.ts';
import { clientOrderId } from '../../../../src/trading/venue.ts';
import { MINUTE } from '../../../../src/base/durations.ts';
import { KEY, keysetOf, leaseOf, newLicensePlace } from '../../../gate/license-place.ts';
import { sleepMachine } from '../../../sleep-machine.ts';
import type { TestExchange } from '../../test-exchange.ts';
import { ACTS, BTC, CREDENTIALS, DEPLOYMENT, newWorld, soon, TOKEN, VENUE_TIMES } from './world.ts';
import { isAtLength } from '../../../length.ts';

/** A runner queries the account before it trades at the exchange. */
const countOpened = ({ asked }: TestExchange): number =>
  asked.filter((call) => call === 'GET /account').length;

test.concurrent('places the orders of its strategy, reports every event, and leaves no order open', async (context) => {
  const world = await newWorld(context);
  const { exchange, server, bar } = world;
  const run = await world.begin();
  await bar(ACTS.buy);
  await bar(ACTS.limit);
  await vi.waitFor(() => expect(exchange.orders).toHaveLength(2), soon);
  await vi.waitFor(() => expect(server.state?.positions).toEqual({ [BTC]: 1 }), soon);
  expect(exchange.orders.map(({ clientOrderId: id }) => id)).toEqual([
    clientOrderId(DEPLOYMENT, 1),
    clientOrderId(DEPLOYMENT, 2),
  ]);
  await vi.waitFor(async () => {
    const ready = await run.get('/readyz');
    expect([ready.status, await ready.json()]).toEqual([200, { status: 'ready', missing: {} }]);
  }, soon);
  expect((await run.get('/livez')).status).toBe(200);
  const metrics = await (await run.get('/metrics')).text();
  expect(metrics).toContain('service_local_run_orders_total{outcome="filled"} 1');
  expect(metrics).toContain(`service_local_run_position{symbol="${BTC}"} 1`);

  run.stop();
  expect(await run.done).toMatchObject({
    outcome: 'stopped',
    verified: true,
    orders: [{ order: 2, symbol: BTC, verified: true }],
  });
  expect(exchange.orders.map(({ status }) => status)).toEqual(['filled', 'canceled']);
  expect(server.reports.at(-1)).toMatchObject({
    status: 'ended',
    ended: { outcome: 'stopped', verified: true, error: null },
  });
  expect(server.state).toMatchObject({ status: 'running', working: [], positions: { [BTC]: 1 } });
});

test
  .runIf(isAtLength)
  .concurrent(
    'applies thresholds as soon as the server sends them, and a permit allows one order',
    async (context) => {
      const { server, exchange, bar, begin } = await newWorld(context);
      const max_order_value = {
        value: 1,
        level: 'firm',
        subject: 'firm',
        version: 3,
        sessions: 1,
      } as const;
      server.controls = { ...server.controls, thresholds: { max_order_value } };
      const run = await begin();
      const eventsOf = (kind: string) => server.events.filter((event) => event.kind === kind);
      await bar(ACTS.buy);
      await vi.waitFor(() => expect(eventsOf('order.denied')).toHaveLength(1), soon);
      expect(eventsOf('order.denied')[0]!.payload).toMatchObject({
        reason: 'threshold_order_value',
      });
      expect(eventsOf('risk.thresholds_set')[0]!.payload).toEqual({
        thresholds: { max_order_value },
      });
      const permit = {
        override_id: 'o',
        symbol: BTC,
        side: 'buy',
        max_quantity: 1,
        worst_price: null,
        controls: ['threshold_order_value'],
        expires_at: Date.now() + 60_000,
      } as const;
      server.controls = {
        ...server.controls,
        permits: [{ ...permit, controls: [...permit.controls] }],
      };
      await vi.waitFor(() => expect(eventsOf('risk.override_granted')).toHaveLength(1), soon);
      await bar(ACTS.buy);
      await vi.waitFor(() => expect(exchange.orders).toHaveLength(1), soon);
      await vi.waitFor(() => expect(eventsOf('risk.override_used')).toHaveLength(1), soon);
      expect(eventsOf('risk.override_used')[0]!.payload).toMatchObject({
        override_id: 'o',
        order: 2,
      });
      run.stop();
      await run.done;
    },
  );

test.concurrent('a halt ends the deployment for good, and a restarted process sends no request to the exchange', async (context) => {
  const world = await newWorld(context);
  const { exchange, server, bar } = world;
  const run = await world.begin();
  await bar(ACTS.limit);
  await vi.waitFor(() => expect(exchange.orders).toHaveLength(1), soon);
  server.command = 'halt';
  expect(await run.done).toMatchObject({ outcome: 'halted', verified: true });
  expect(exchange.orders[0]!.status).toBe('canceled');
  expect(server.reports.at(-1)!.ended).toEqual({
    outcome: 'halted',
    verified: true,
    orders: [{ order: 1, symbol: BTC, verified: true }],
    error: null,
  });
  expect(server.state).toMatchObject({ status: 'halted', working: [] });
  expect(server.events.find(({ kind }) => kind === 'control.halted')?.payload).toMatchObject({
    reason: 'a test',
    by: 'administrator:a',
  });

  const opened = countOpened(exchange);
  const again = world.run();
  await again.logged('the deployment has ended (halted): nothing is left to do');
  expect((await again.get('/readyz')).status).toBe(200);
  again.stop();
  expect(await again.done).toEqual({ outcome: 'ended' });
  expect(countOpened(exchange)).toBe(opened);

  const written = [
    ...readdirSync(join(world.directory, 'state', 'runner')).map((name) =>
      readFileSync(join(world.directory, 'state', 'runner', name), 'latin1'),
    ),
    ...[run, again].map(({ log }) => log.join('\n')),
    JSON.stringify(server.reports),
  ].join('\n');
  for (const canary of [TOKEN, ...Object.values(CREDENTIALS)])
    expect(written).not.toContain(canary);
});

test
  .runIf(isAtLength)
  .concurrent(
    'keeps running until the venue confirms that no order is open, however long that takes',
    async (context) => {
      const world = await newWorld(context);
      const { exchange, server, bar } = world;
      const run = await world.begin({ times: { cancelWithinMs: 200 } });
      await bar(ACTS.limit);
      await vi.waitFor(() => expect(exchange.orders).toHaveLength(1), soon);
      await vi.waitFor(() => expect(server.state?.working[0]).toBeDefined(), soon);
      for (const call of ['DELETE /order', 'GET /openOrders']) {
        exchange.faults.add({ on: call, action: { kind: 'lost_before' } });
      }
      server.command = 'halt';
      await run.logged('orders may still be open at the venue');
      const { length } = server.reports;
      await vi.waitFor(() => expect(server.reports.length).toBeGreaterThan(length + 2), soon);
      expect(server.reports.at(-1)).toMatchObject({ status: 'halting', ended: null });
      expect(exchange.orders[0]!.status).toBe('new');
      exchange.faults.clear();
      expect(await run.done).toMatchObject({ outcome: 'halted', verified: true });
      expect(exchange.orders[0]!.status).toBe('canceled');
    },
  );

test
  .runIf(isAtLength)
  .concurrent(
    'reports an order that may be open as not verified, and the next process cancels it',
    async (context) => {
      const world = await newWorld(context);
      const { exchange, server, bar } = world;
      const run = await world.begin({ times: { cancelWithinMs: 300 } });
      await bar(ACTS.limit);
      await vi.waitFor(() => expect(exchange.orders).toHaveLength(1), soon);
      await vi.waitFor(() => expect(server.state?.working[0]).toBeDefined(), soon);
      for (const call of ['DELETE /order', 'GET /openOrders']) {
        exchange.faults.add({ on: call, action: { kind: 'lost_before' } });
      }
      server.command = 'halt';
      await run.logged('ending: halted');
      run.stop();
      expect(await run.done).toMatchObject({ outcome: 'halted', verified: false });
      expect(server.reports.at(-1)!.ended).toMatchObject({
        verified: false,
        orders: [{ order: 1, verified: false }],
      });
      expect(exchange.orders[0]!.status).toBe('new');
      exchange.faults.clear();
      const next = world.run();
      await vi.waitFor(() => expect(exchange.orders[0]!.status).toBe('canceled'), soon);
      expect(await next.done).toMatchObject({ outcome: 'halted', verified: true });
    },
  );

test
  .runIf(isAtLength)
  .concurrent(
    'a strategy that fails on a simulated venue leaves no order working in its log',
    async (context) => {
      const world = await newWorld(context);
      const { server, bar } = world;
      const config = world.change({ bundle: './bundle.json', venue: { type: 'simulated' } });
      const run = await world.begin({ config });
      await bar(ACTS.limit);
      await bar(ACTS.fail);
      expect(await run.done).toMatchObject({
        outcome: 'failed',
        error: { code: 'strategy_failed' },
        state: { status: 'failed', working: [] },
      });
      expect(server.state).toMatchObject({ status: 'failed', working: [] });
      expect(server.events.map(({ kind }) => kind)).toContain('order.canceled');
    },
  );

test
  .runIf(isAtLength)
  .concurrent('fails if its log is lost, and leaves no order open', async (context) => {
    const world = await newWorld(context);
    const { exchange, server, bar } = world;
    const run = await world.begin();
    await bar(ACTS.buy);
    await vi.waitFor(() => expect(server.state?.positions).toEqual({ [BTC]: 1 }), soon);
    run.stop();
    await run.done;
    exchange.open({ clientOrderId: clientOrderId(DEPLOYMENT, 7), side: 'sell' }, BTC, 200);
    rmSync(join(world.directory, 'state'), { recursive: true });
    expect(await world.run().done).toMatchObject({
      outcome: 'failed',
      verified: true,
      error: { code: 'conflict', reason: 'log_lost' },
    });
    expect(exchange.orders.at(-1)).toMatchObject({ status: 'canceled' });
    expect(server.reports.at(-1)!.ended).toMatchObject({ outcome: 'failed', verified: true });
  });

test
  .runIf(isAtLength)
  .concurrent(
    'a strategy from a bundle of files trades on a simulated venue, in a process of its own',
    async (context) => {
      const world = await newWorld(context);
      const { server, bar } = world;
      const config = world.change({
        bundle: './bundle.json',
        venue: { type: 'simulated' },
        opening: { cash: 500, positions: { [BTC]: { quantity: 2, price: 100 } } },
      });
      const run = await world.begin({ config });
      await bar(ACTS.sell);
      await bar(ACTS.limit);
      await bar(100);
      await vi.waitFor(() => expect(server.state?.working).toMatchObject([{ order: 2 }]), soon);
      expect(server.state).toMatchObject({ cash: 603, positions: { [BTC]: 1 } });
      server.command = 'halt';
      expect(await run.done).toMatchObject({
        outcome: 'halted',
        orders: [{ order: 2, symbol: BTC, verified: true }],
      });
      expect(server.state).toMatchObject({ status: 'halted', working: [] });
      expect(world.exchange.orders).toEqual([]);
    },
  );

test
  .runIf(isAtLength)
  .concurrent(
    'a second process of a deployment is rejected by the lock, or by the claim, before it trades',
    async (context) => {
      const world = await newWorld(context);
      const { exchange, server, bar } = world;
      const first = await world.begin();
      await expect(world.run().done).rejects.toMatchObject({
        code: 'conflict',
        reason: 'locked',
        exitCode: 6,
      });
      const opened = countOpened(exchange);
      const elsewhere = world.change({ state_dir: './elsewhere' });
      expect(await world.run({ config: elsewhere }).done).toMatchObject({ outcome: 'fenced' });
      expect(countOpened(exchange)).toBe(opened);

      // One that lost its claim leaves what is open to the other.
      await bar(ACTS.limit);
      await vi.waitFor(() => expect(exchange.orders).toHaveLength(1), soon);
      server.fence();
      expect(await first.done).toMatchObject({ outcome: 'fenced' });
      expect(exchange.orders[0]!.status).toBe('new');
    },
  );

test.concurrent('places no orders while the server is unreachable, and reports all events later', async (context) => {
  const world = await newWorld(context);
  const { exchange, server, bar } = world;
  const run = await world.begin();
  await vi.waitFor(() => expect(server.reports.at(-1)?.status).toBe('trading'), soon);
  // Shortened only here, so that a busy machine does not end the claim before.
  server.claimSeconds = 0.6;
  const { length } = server.reports;
  await vi.waitFor(() => expect(server.reports.length).toBeGreaterThan(length + 1), soon);
  server.isAway = true;
  await run.logged('new orders are denied: control_unreachable');
  await vi.waitFor(async () => expect((await run.get('/readyz')).status).toBe(503), soon);
  for (let i = 0; i < 20; i += 1) await bar(i === 10 ? ACTS.buy : 100);
  server.isAway = false;
  server.claimSeconds = 30;
  await run.logged('new orders are accepted again');
  await bar(ACTS.sell);
  await vi.waitFor(() => {
    expect(server.events.filter(({ kind }) => kind === 'data.bars')).toHaveLength(21);
  }, soon);
  expect(exchange.orders).toEqual([]);
  const denied = server.events.filter(({ kind }) => kind === 'order.denied');
  expect(denied.map(({ payload }) => payload['reason'])).toContain('control_unreachable');
  await bar(ACTS.buy);
  await vi.waitFor(() => expect(exchange.orders).toHaveLength(1), soon);
});

test.concurrent('denies orders once its lease has expired, until it has a new one', async (context) => {
  const world = await newWorld(context);
  const { exchange, server, bar } = world;
  const place = newLicensePlace();
  context.onTestFinished(() => place.remove());
  const { lease, keyset } = place.files;
  const lasting = (id: string, seconds: number): string =>
    leaseOf(id, 0, {
      issued_at: formatTime(Math.floor(Date.now() / 1000 - 60) * 1000),
      ttl_seconds: 60 + seconds,
      grace_period_seconds: 0,
      entitlements: ['live_trading'],
    });
  place.put(keyset, keysetOf(KEY));
  place.put(lease, lasting('first', 600));
  const run = await world.begin({
    env: { SERVICE_LICENSE_LEASE_PATH: lease, SERVICE_LICENSE_PUBLIC_KEY_PATH: keyset },
  });
  await bar(ACTS.buy);
  await vi.waitFor(() => expect(exchange.orders).toHaveLength(1), soon);
  // The first lease must not expire before its order, however long the start takes.
  place.put(lease, lasting('second', 3));
  await run.logged('new orders are denied: license_invalid');
  await bar(ACTS.buy);
  await vi.waitFor(() => {
    expect(server.events.at(-1)?.payload).toMatchObject({ reason: 'license_invalid', order: 2 });
  }, soon);
  place.put(lease, lasting('third', 600));
  await run.logged('new orders are accepted again');
  await bar(ACTS.sell);
  await vi.waitFor(() => expect(exchange.orders).toHaveLength(2), soon);
});

test
  .runIf(isAtLength)
  .concurrent('processes and reports new bars while the venue does not answer', async (context) => {
    const world = await newWorld(context);
    const { exchange, server, bar } = world;
    const run = await world.begin();
    await bar(100);
    exchange.faults.add({ on: 'GET /order', action: { kind: 'lost_before' } });
    await bar(ACTS.buy);
    for (let i = 0; i < 5; i += 1) await bar(100);
    await vi.waitFor(() => {
      expect(server.events.filter(({ kind }) => kind === 'data.bars')).toHaveLength(7);
    }, soon);
    expect(exchange.orders).toEqual([]);
    exchange.faults.clear();
    await vi.waitFor(() => expect(server.state?.positions).toEqual({ [BTC]: 1 }), soon);
    expect(exchange.orders).toHaveLength(1);
    run.stop();
    expect(await run.done).toMatchObject({ verified: true });
  });

test
  .runIf(isAtLength)
  .concurrent(
    'an order that waits to be sent is not sent once the claim is over',
    async (context) => {
      const world = await newWorld(context);
      const { exchange, server, bar } = world;
      // The order waits longer than the claim lasts, and much longer than a busy machine takes to report.
      const run = await world.begin({ times: { ...VENUE_TIMES, timeoutMs: 20_000 } });
      await bar(100);
      const before = exchange.asked.length;
      exchange.fail('GET /order', { kind: 'slow', ms: 3000 });
      await bar(ACTS.buy);
      await exchange.receives('GET /order', before);
      server.claimSeconds = 0.5;
      const { length } = server.reports;
      await vi.waitFor(() => expect(server.reports.length).toBeGreaterThan(length + 1), soon);
      server.isAway = true;
      await run.logged('the order may no longer be sent');
      expect(exchange.orders).toEqual([]);
      server.isAway = false;
      server.claimSeconds = 30;
      await vi.waitFor(() => expect(exchange.orders).toHaveLength(1), soon);
    },
  );

// It moves the clock of the whole process.
test('an order that waited while the machine slept is canceled, not sent', async (context) => {
  const world = await newWorld(context);
  const { exchange, server, bar } = world;
  const run = await world.begin();
  await bar(100);
  const before = exchange.asked.length;
  exchange.fail('GET /order', { kind: 'slow', ms: 300 });
  await bar(ACTS.buy);
  await exchange.receives('GET /order', before);
  const wake = sleepMachine(2 * MINUTE);
  context.onTestFinished(wake);
  await vi.waitFor(() => {
    expect(server.events.find(({ kind }) => kind === 'order.canceled')?.payload).toMatchObject({
      order: 1,
      reason: 'not_at_venue',
    });
  }, soon);
  expect(exchange.orders).toEqual([]);
  await bar(ACTS.buy);
  await vi.waitFor(() => expect(exchange.orders).toHaveLength(1), soon);
  run.stop();
  await run.done;
});

test
  .runIf(isAtLength)
  .concurrent('denies orders while the venue holds less cash than the session', async (context) => {
    const world = await newWorld(context);
    const { exchange, server, bar } = world;
    exchange.setBalance('USDT', 900);
    const run = await world.begin();
    await run.logged('new orders are denied: reconcile_mismatch');
    await bar(ACTS.buy);
    await vi.waitFor(() => {
      expect(server.events.at(-1)?.payload).toMatchObject({ reason: 'reconcile_mismatch' });
    }, soon);
    expect(server.events.find(({ kind }) => kind === 'venue.mismatch')?.payload).toEqual({
      mismatches: [{ kind: 'cash', expected: 1000, held: 900 }],
    });
    exchange.setBalance('USDT', 1000);
    await run.logged('new orders are accepted again');
  });

test
  .runIf(isAtLength)
  .concurrent(
    'a withdrawal latches the session until a person re-enables the bot, even after a restart',
    async (context) => {
      const world = await newWorld(context);
      const { exchange, server, bar } = world;
      const times = { reconcileMs: 100, confirmMs: 50 };
      const run = await world.begin({ times });
      await bar(ACTS.buy);
      await vi.waitFor(() => expect(server.state?.positions).toEqual({ [BTC]: 1 }), soon);
      await vi.waitFor(() => expect(server.reports.at(-1)?.status).toBe('trading'), soon);
      // A trade by hand: what was held is sold.
      exchange.setBalance('BTC', 0);
      exchange.setBalance('USDT', 1000);
      await run.logged('latched: 10.1 % of the equity is missing');
      await run.logged('new orders are denied: reconcile_mismatch');
      await vi.waitFor(() => {
        const kinds = server.events.map(({ kind }) => kind);
        expect(kinds).toContain('venue.mismatch');
        expect(kinds.filter((kind) => kind === 'account.latched')).toHaveLength(1);
      }, soon);
      // Returning what was missing is not enough.
      exchange.setBalance('BTC', 1);
      exchange.setBalance('USDT', 900);
      await run.logged('the holdings at the venue match the session');
      run.stop();
      await run.done;
      const again = await world.begin({ times });
      await vi.waitFor(() => {
        expect(server.reports.at(-1)).toMatchObject({ denying: 'reconcile_mismatch' });
      }, soon);
      server.controls = { ...server.controls, latches_lifted: 1 };
      await again.logged('a person has lifted the latch');
      await bar(ACTS.sell);
      await vi.waitFor(() => expect(server.state?.positions).toEqual({}), soon);
      again.stop();
      await again.done;
    },
  );

test
  .runIf(isAtLength)
  .concurrent(
    'denies orders once it sees an order of an adopted copy of its server, and leaves that order open',
    async (context) => {
      const world = await newWorld(context);
      const { exchange, server, bar } = world;
      const foreign = clientOrderId(DEPLOYMENT, 1, 2);
      exchange.open({ clientOrderId: foreign, side: 'buy' }, BTC, 50);
      const run = await world.begin();
      await run.logged('new orders are denied: superseded');
      await bar(ACTS.buy);
      await vi.waitFor(async () => {
        const metrics = await (await run.get('/metrics')).text();
        expect(metrics).toContain('service_local_run_orders_total{outcome="denied"} 1');
      }, soon);
      expect(exchange.orders.map(({ clientOrderId: id, status }) => [id, status])).toEqual([
        [foreign, 'new'],
      ]);
      await vi.waitFor(() => {
        expect(server.events.find(({ kind }) => kind === 'venue.foreign')?.payload).toEqual({
          order: 1,
          client_order_id: foreign,
          epoch: 2,
        });
      }, soon);
      expect(server.reports.at(-1)).toMatchObject({ database_epoch: 2, denying: 'superseded' });

      // Its server is adopted, too: orders of it have the new epoch from then on.
      server.controls = { ...server.controls, database_epoch: 3 };
      await run.logged('new orders are accepted again');
      await bar(ACTS.buy);
      const next = clientOrderId(DEPLOYMENT, 2, 3);
      await vi.waitFor(() => expect(exchange.orders.at(-1)!.clientOrderId).toBe(next), soon);
      await vi.waitFor(() => {
        const denied = server.events.find(({ kind }) => kind === 'order.denied');
        expect(denied?.payload).toMatchObject({ order: 1, reason: 'superseded' });
      }, soon);
      run.stop();
      await run.done;
    },
  );

test
  .runIf(isAtLength)
  .concurrent(
    'an answer with an older database epoch than the newest known one renews no permission',
    async (context) => {
      const world = await newWorld(context);
      const { server, bar } = world;
      server.claimSeconds = 1;
      server.controls = { ...server.controls, database_epoch: 2 };
      const run = await world.begin();
      await bar(100);
      await vi.waitFor(() => expect(server.reports.at(-1)!.database_epoch).toBe(2), soon);
      server.controls = { ...server.controls, database_epoch: 1 };
      await run.logged('but a copy of it with epoch 2 was adopted');
      await run.logged('new orders are denied: control_unreachable');
      server.controls = { ...server.controls, database_epoch: 2 };
      run.stop();
      await run.done;
    },
  );

test
  .runIf(isAtLength)
  .concurrent(
    'places no order twice after it was killed before the response to an order is recorded',
    async (context) => {
      const world = await newWorld(context);
      const { exchange, server, bar } = world;
      const child = await world.beginProcess();
      exchange.fail('POST /order', { kind: 'lost_after' });
      const before = exchange.asked.length;
      await bar(ACTS.buy);
      await exchange.receives('POST /order', before);
      await child.kill();
      server.expireClaim();
      expect(exchange.orders).toHaveLength(1);
      const run = await world.begin();
      await run.logged('resumed: 1 steps');
      await vi.waitFor(() => expect(server.state?.working).toEqual([]), soon);
      expect(exchange.orders).toHaveLength(1);
      await bar(ACTS.buy);
      await vi.waitFor(() => expect(server.state?.positions).toEqual({ [BTC]: 2 }), soon);
      expect(exchange.balances('bot').get('BTC')).toBe(2);
      const ids = exchange.orders.map(({ clientOrderId: id }) => id);
      expect(new Set(ids).size).toBe(ids.length);
      run.stop();
      const { state } = (await run.done) as { readonly state: SessionState };
      expect(stateHash(await world.replayed())).toBe(stateHash(state));
    },
  );
