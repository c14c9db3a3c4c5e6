import { readdir, readFile, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ServiceError } from '../../../src/base/errors.ts';
import { verifyHalt } from '../../../src/fleet/halts/verify-halt.ts';
import { readRunConfig } from '../../../src/trading/host/pod/run-config.ts';
import type { ProductionDeployment } from '../../../src/api/deployments.ts';
import { tradingDocument } from '../../server/trader.ts';
import {
  batchOf,
  newProductionWorld,
  patiently,
  STATE,
  type Deployed,
  type ProductionWorld,
} from './world.ts';
import { isAtLength } from '../../length.ts';

let world: ProductionWorld;
beforeEach(async () => {
  world = await newProductionWorld();
  await world.newBot('sma');
});
afterEach(() => world.close());

const STOPPED = { outcome: 'stopped' as const, verified: true, orders: [], error: null };
const DOWN = new ServiceError('cluster_unavailable', 'the cluster does not answer');

const kindsOf = async (task_id: string): Promise<readonly string[]> =>
  (await world.eventsOf('sma', task_id))
    .map(({ kind }) => kind)
    .filter((kind) => kind.startsWith('deploy'));

/** Resolves when the deployment is as it should be. */
const until = (deployment_id: string, expected: object): Promise<void> =>
  patiently(async () => expect(await world.stateOf('sma', deployment_id)).toMatchObject(expected));

/** Holds up the next apply of an object of the kind, and of what comes after it. */
function heldUp(kind: string) {
  const { cluster } = world;
  const apply = cluster.apply.bind(cluster);
  const [reached, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  cluster.apply = async (objects) => {
    const isIt = objects.some((object) => object.kind === kind);
    if (!isIt) return apply(objects);
    cluster.apply = apply;
    reached.resolve();
    await goOn.promise;
    return apply(objects);
  };
  return { reached: reached.promise, goOn: goOn.resolve };
}

/** Returns a task to the queue, as if its controller were considered dead. */
const release = (task_id: string): Promise<void> =>
  world.execute(
    `update tasks set status = 'queued', worker_id = null, heartbeat_at = null where task_id = '${task_id}'`,
  );

const isRunning = (task_id: string): Promise<void> =>
  patiently(async () =>
    expect((await world.get(`/tasks/${task_id}`)).body).toMatchObject({ status: 'running' }),
  );

async function takeFrom(task_id: string): Promise<void> {
  await release(task_id);
  world.runner.wake();
}

const stop = (task_id: string) => world.post(`/bots/sma/deploy/stop/${task_id}`);

describe('a deployment', () => {
  it('is applied, controlled, and stopped once its orders are known to have ended', async () => {
    const { task_id, deployment_id } = await world.deploy('sma');
    const { cluster } = world;
    expect(cluster.asked.map((what) => what.split('/')[0])).toEqual([
      'apply Secret',
      'apply ServiceAccount',
      'apply ConfigMap',
      'apply PersistentVolumeClaim',
      'apply NetworkPolicy',
      'apply Deployment',
    ]);
    const one = world.instance(deployment_id);
    await one.report({ batch: null });
    await one.report({ batch: batchOf(1) });
    cluster.show(deployment_id, { phase: 'ready' });
    cluster.show(deployment_id, { phase: 'ready', observed_at: 5 });
    await until(deployment_id, { cluster_state: { phase: 'ready' } });
    const degraded = {
      phase: 'degraded',
      reason: 'crash_loop',
      message: 'it ends at once',
    } as const;
    cluster.show(deployment_id, degraded);
    cluster.show(deployment_id, { ...degraded, message: 'it ends at once, again' });
    await until(deployment_id, {
      cluster: 'trading',
      namespace: 'bots',
      cluster_state: { phase: 'degraded', reason: 'crash_loop', pods: [{ name: 'pod-1' }] },
    });
    expect((await world.get('/bots/sma')).body).toMatchObject({
      active_deployments: [{ deployment_id, target: 'k8s', status: 'running' }],
    });
    expect((await stop(task_id)).status).toBe(200);
    expect(await one.report()).toMatchObject({ command: 'stop' });
    const orders = [{ order: 3, symbol: 'SPX', verified: true }];
    await one.report({ status: 'ended', ended: { ...STOPPED, orders } });
    expect(await world.ended(task_id)).toMatchObject({ status: 'success', ended_by_halt: null });
    expect((await world.get(`/tasks/${task_id}/result`)).body).toMatchObject({
      outcome: 'stopped',
      verified: true,
      orders,
      account: { cash: STATE.cash, positions: { SPX: 100 } },
    });
    expect([...cluster.objects.keys()]).toEqual([expect.stringMatching(/^PersistentVolumeClaim/)]);
    expect(await kindsOf(task_id)).toEqual([
      'deploy.planned',
      'deploy.applied',
      'deploy.ready',
      'deploy.degraded',
      'deploy.scaled_down',
      'deploy.ended',
    ]);
    expect((await stop(task_id)).body).toMatchObject({ status: 'success' });
  });

  it('fails with the reason when it is stopped and its runner does not report', async () => {
    const { task_id, deployment_id } = await world.deploy('sma');
    await world.instance(deployment_id).report();
    await stop(task_id);
    world.now += 29_000;
    world.runner.wake();
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(world.cluster.asked).not.toContain('scale 0');
    world.now += 1000;
    expect(await world.ended(task_id)).toMatchObject({
      status: 'failed',
      error: { reason: 'orders_not_verified' },
    });
  });

  it('fails with the error of its failed runner', async () => {
    const { task_id, deployment_id } = await world.deploy('sma');
    const one = world.instance(deployment_id);
    await one.report();
    const error = { code: 'strategy_failed', message: 'it threw', reason: 'thrown' };
    await one.report({ status: 'ended', ended: { ...STOPPED, outcome: 'failed', error } });
    expect(await world.ended(task_id)).toMatchObject({
      status: 'failed',
      error: { code: 'strategy_failed', detail: 'it threw', reason: 'thrown' },
    });
  });

  it.runIf(isAtLength)(
    'fails with the error of a runner that could not record its end after a stop',
    async () => {
      const { task_id, deployment_id } = await world.deploy('sma');
      const one = world.instance(deployment_id);
      await one.report();
      await stop(task_id);
      const error = { code: 'storage_unavailable', message: 'the disk is full' };
      const ended = { ...STOPPED, outcome: 'failed', verified: false, error } as const;
      await one.report({ status: 'ended', ended });
      expect(await world.ended(task_id)).toMatchObject({
        status: 'failed',
        error: { code: 'storage_unavailable', detail: 'the disk is full' },
      });
    },
  );

  it('continues while the API server does not answer, and shows this in its status', async () => {
    world.cluster.fail = DOWN;
    const { body } = await world.post('/bots/sma/deploy', { cluster: 'trading' });
    const { task_id, deployment_id } = body as { task_id: string; deployment_id: string };
    await until(deployment_id, { cluster_state: { phase: 'missing', reason: 'unreachable' } });
    world.cluster.fail = undefined;
    await until(deployment_id, { cluster_state: { phase: 'progressing', reason: null } });
    expect(await kindsOf(task_id)).toEqual([
      'deploy.planned',
      'deploy.unreachable',
      'deploy.applied',
    ]);
  });

  it('fails with the reason of a cluster that rejects it, and leaves no objects there', async () => {
    world.cluster.apply = async () => {
      const reason = 'field_conflict';
      throw new ServiceError('conflict', 'spec.replicas is managed by other', { reason });
    };
    const { body } = await world.post('/bots/sma/deploy', { cluster: 'trading' });
    const { task_id } = body as { task_id: string };
    expect(await world.ended(task_id)).toMatchObject({
      status: 'failed',
      error: { code: 'conflict', reason: 'field_conflict' },
    });
    expect(world.cluster.asked).toEqual(['scale 0', 'remove']);
  });

  it.runIf(isAtLength)(
    'is applied again with a new token after it was deleted from the cluster',
    async () => {
      const { deployment_id } = await world.deploy('sma');
      const before = world.cluster.token(deployment_id);
      world.cluster.lose(deployment_id);
      await patiently(async () => expect(world.cluster.token(deployment_id)).not.toBe(before));
      expect(await world.instance(deployment_id).send({}, before)).toMatchObject({ status: 401 });
      expect(await world.instance(deployment_id).report()).toMatchObject({ command: 'trade' });
    },
  );

  it('is not applied again by a database that is not adopted', async () => {
    const { deployment_id } = await world.deploy('sma');
    await world.execute('update database_identity set superseded_by = 2');
    const asked = world.cluster.asked.length;
    world.cluster.lose(deployment_id);
    await until(deployment_id, {
      cluster_state: { message: expect.stringContaining('may be a copy') },
    });
    expect(world.cluster.asked).toHaveLength(asked);
    await world.execute('update database_identity set superseded_by = null');
    await patiently(async () => expect(world.cluster.asked.length).toBeGreaterThan(asked));
  });

  it('is not applied again while one of its pods is left', async () => {
    const { deployment_id } = await world.deploy('sma');
    const asked = world.cluster.asked.length;
    world.cluster.show(deployment_id, { phase: 'missing' });
    await until(deployment_id, { cluster_state: { phase: 'missing' } });
    expect(world.cluster.asked).toHaveLength(asked);
    world.cluster.lose(deployment_id);
    await until(deployment_id, { cluster_state: { phase: 'progressing' } });
  });

  it('is scaled down when its runner keeps reporting after a request to end', async () => {
    const { task_id, deployment_id } = await world.deploy('sma');
    const one = world.instance(deployment_id);
    await one.report();
    await stop(task_id);
    for (let seconds = 0; seconds < 60; seconds += 20) {
      world.now += 20_000;
      expect(await one.report({ status: 'stopping' })).toMatchObject({ command: 'stop' });
    }
    expect(await world.ended(task_id)).toMatchObject({
      status: 'failed',
      error: { reason: 'orders_not_verified' },
    });
  });

  it('leaves no objects of a delayed controller after another has ended it', async () => {
    const { cluster } = world;
    const late = heldUp('Deployment');
    const { body } = await world.post('/bots/sma/deploy', { cluster: 'trading' });
    const { task_id } = body as Deployed;
    await late.reached;
    await takeFrom(task_id);
    await patiently(async () => expect(cluster.objects.size).toBe(6));
    await stop(task_id);
    expect(await world.ended(task_id)).toMatchObject({ status: 'success' });
    expect(cluster.objects.size).toBe(1);
    const removed = cluster.asked.length;
    late.goOn();
    await patiently(async () => expect(cluster.asked.slice(removed).at(-1)).toBe('remove'));
    expect([...cluster.objects.values()].map(({ kind }) => kind)).not.toContain('Deployment');
  });

  it('gets a new token after a delayed controller has applied its own', async () => {
    const late = heldUp('Secret');
    const { body } = await world.post('/bots/sma/deploy', { cluster: 'trading' });
    const { task_id, deployment_id } = body as Deployed;
    await late.reached;
    await takeFrom(task_id);
    await until(deployment_id, { applied_at: expect.any(String) as string });
    const one = world.instance(deployment_id);
    await one.report();
    late.goOn();
    await patiently(async () => expect(await one.send()).toMatchObject({ status: 401 }));
    await patiently(async () => {
      world.cluster.show(deployment_id, { phase: 'degraded', message: String(Math.random()) });
      await one.report();
    });
  });

  it.runIf(isAtLength)(
    'gets a token whose write was not confirmed again, although it must end',
    async () => {
      const venue = { type: 'exchange', credentials_secret: 'keys' };
      const { body } = await world.post('/bots/sma/deploy', { cluster: 'trading', venue });
      const { task_id, deployment_id } = body as Deployed;
      await until(deployment_id, { applied_at: expect.any(String) as string });
      const one = world.instance(deployment_id);
      await one.report();
      await stop(task_id);
      const before = world.cluster.token(deployment_id);
      await world.execute('update production_deployments set token_applied_at = null');
      world.cluster.show(deployment_id, { phase: 'degraded' });
      await patiently(async () => expect(world.cluster.token(deployment_id)).not.toBe(before));
      expect(await one.report()).toMatchObject({ command: 'stop' });
    },
  );

  it('trades at an exchange in one namespace only, and elsewhere at a simulated venue', async () => {
    const venue = { type: 'exchange', credentials_secret: 'keys' };
    const at = (namespace: string, more: object) =>
      world.post('/bots/sma/deploy', { cluster: 'trading', namespace, ...more });
    expect(await at('one', { venue })).toMatchObject({ status: 202 });
    const refused = { status: 409, body: { reason: 'already_deployed' } };
    expect(await at('two', { venue })).toMatchObject(refused);
    expect(await at('two', { venue, replace: true })).toMatchObject(refused);
    expect(await at('two', {})).toMatchObject({ status: 202 });
  });

  it('is replaced after its orders have ended, and leaves its account to the replacement', async () => {
    const old = await world.deploy('sma');
    const one = world.instance(old.deployment_id);
    await one.report();
    await one.report({ batch: batchOf(1) });
    expect(await world.post('/bots/sma/deploy', { cluster: 'trading' })).toMatchObject({
      status: 409,
      body: { reason: 'already_deployed' },
    });
    const asked = { cluster: 'trading', replace: true, params: { slow: 3 } };
    const { body } = await world.post('/bots/sma/deploy', asked);
    const next = body as { task_id: string; deployment_id: string };
    expect(body).toMatchObject({ replaces: old.deployment_id, status: 'queued' });
    await until(next.deployment_id, { waits: true, status: 'pending', applied_at: null });
    expect(await world.post('/bots/sma/deploy', asked)).toMatchObject({ status: 409 });
    expect(await one.report()).toMatchObject({ command: 'stop' });
    expect(world.cluster.asked.filter((what) => /Deployment\//.test(what))).toHaveLength(1);
    await one.report({ status: 'ended', ended: STOPPED });
    expect(await world.ended(old.task_id)).toMatchObject({ status: 'success' });
    await until(next.deployment_id, { waits: false, cluster_state: { phase: 'progressing' } });
    const config = [...world.cluster.objects.values()].find(
      ({ kind, metadata }) =>
        kind === 'ConfigMap' &&
        metadata.labels!['service-local.dev/deployment'] === next.deployment_id,
    )!;
    const files = config['data'] as Readonly<Record<'run.json' | 'bot.json', string>>;
    expect(JSON.parse(files['run.json'])).toMatchObject({
      deployment_id: next.deployment_id,
      exchange: { name: 'binance', ccxt: 'binance' },
      venue: { type: 'simulated' },
      opening: { cash: STATE.cash, positions: { SPX: { quantity: 100, price: 100.5 } } },
    });
    const directory = dirname(world.services.tasks.catalogueDir);
    await writeFile(join(directory, 'run.json'), files['run.json']);
    expect(readRunConfig(join(directory, 'run.json'))).toMatchObject({
      bot: join(directory, 'bot.json'),
      control: { url: 'https://service-local.example' },
    });
    expect(JSON.parse(files['bot.json'])).toMatchObject({
      spec: { strategy: { params: { fast: 1, slow: 3 } } },
    });
  });

  /** A session that has lost 40 % of its highest equity. */
  const LOST = {
    ...STATE,
    cash: 50_000,
    equity: 60_000,
    carry: {
      marks: { SPX: 100 },
      risk: { peak_equity: 100_000, day_start_equity: 90_000, day: '2026-01-02' },
    },
  };
  /** Loses, is asked to stop, and ends. */
  const lose = async <T>({ deployment_id, task_id }: Deployed, ask: () => Promise<T>) => {
    const runner = world.instance(deployment_id);
    await runner.report();
    await runner.report({ batch: { ...batchOf(1), state: LOST } });
    const answer = await ask();
    await runner.report({ status: 'ended', ended: STOPPED });
    await world.ended(task_id);
    return answer;
  };

  it('counts earlier losses against its limits, in proportion to its own cash', async () => {
    const old = await world.deploy('sma');
    await lose(old, () => stop(old.task_id));
    const next = await world.deploy('sma');
    const { opening } = await world.stateOf('sma', next.deployment_id);
    expect(opening).toMatchObject({ positions: {}, risk: { day: '2026-01-02' } });
    const { cash, risk } = opening!;
    expect(risk!.peak_equity / cash).toBeCloseTo(100 / 60);
    expect(risk!.day_start_equity / cash).toBeCloseTo(90 / 60);
    await stop(next.task_id);
    await world.ended(next.task_id);
    const reset_losses = 'another strategy';
    const fresh = await world.deploy('sma', { cluster: 'trading', reset_losses });
    expect((await world.stateOf('sma', fresh.deployment_id)).opening).toBeNull();
  });

  it('counts earlier losses although the last deployment was canceled before it began', async () => {
    const old = await world.deploy('sma');
    await lose(old, () => stop(old.task_id));
    world.now += 1000;
    const { production } = world.services;
    const { cluster: connect } = production;
    const cluster = () => {
      throw DOWN;
    };
    Object.assign(production, { cluster });
    const { body } = await world.post('/bots/sma/deploy', { cluster: 'trading' });
    const { task_id } = body as Deployed;
    await isRunning(task_id);
    await release(task_id);
    await world.post(`/tasks/${task_id}/cancel`);
    expect(await world.ended(task_id)).toMatchObject({ status: 'canceled' });
    Object.assign(production, { cluster: connect });
    const next = await world.deploy('sma');
    const { opening } = await world.stateOf('sma', next.deployment_id);
    expect(opening!.risk!.peak_equity / opening!.cash).toBeCloseTo(100 / 60);
  });

  it('inherits losses and prices with the account that it continues, unless a person resets them', async () => {
    const continued = async (change: object): Promise<ProductionDeployment['opening']> => {
      const old = await world.deploy('sma', { cluster: 'trading', reset_losses: 'a test' });
      const request = { cluster: 'trading', replace: true, ...change };
      const { body } = await lose(old, () => world.post('/bots/sma/deploy', request));
      const next = body as Deployed;
      await until(next.deployment_id, { waits: false, applied_at: expect.any(String) as string });
      const { opening } = await world.stateOf('sma', next.deployment_id);
      await stop(next.task_id);
      await world.ended(next.task_id);
      return opening;
    };
    const positions = { SPX: { quantity: 100, price: 100 } };
    expect(await continued({})).toEqual({ cash: 50_000, positions, risk: LOST.carry.risk });
    expect(await continued({ reset_losses: 'a person has looked at it' })).toEqual({
      cash: 50_000,
      positions,
    });
  });

  it('is rejected, and stops nothing, if it cannot continue the account', async () => {
    const old = await world.deploy('sma');
    const one = world.instance(old.deployment_id);
    await one.report();
    await one.report({ batch: batchOf(1) });
    const document = tradingDocument('sma', 'LONG', '1d', 1);
    const updated = await world.send('PUT', '/bots/sma', {
      headers: { authorization: await world.bearer('write'), 'if-match': '*' },
      body: { document },
    });
    expect(updated.status).toBe(200);
    expect(
      await world.post('/bots/sma/deploy', { cluster: 'trading', replace: true }),
    ).toMatchObject({
      status: 422,
      body: { errors: [{ code: 'position_not_in_universe', pointer: '/spec/universe/symbols' }] },
    });
    expect(await one.report()).toMatchObject({ command: 'trade' });
    const venue = { type: 'exchange', credentials_secret: 'keys' };
    const elsewhere = {
      cluster: 'trading',
      lease_secret: 'lease',
      version: 1,
      venue,
      replace: true,
    };
    expect(await world.post('/bots/sma/deploy', elsewhere)).toMatchObject({
      status: 409,
      body: { reason: 'other_venue' },
    });
    expect(await one.report()).toMatchObject({ command: 'trade' });
  });

  it('does not begin if the deployment to replace was latched before it ended', async () => {
    const old = await world.deploy('sma');
    const one = world.instance(old.deployment_id);
    await one.report();
    const { body } = await world.post('/bots/sma/deploy', { cluster: 'trading', replace: true });
    const latched = {
      kind: 'account.latched',
      occurred_at: Date.parse(STATE.time),
      payload: { symbol: 'SPX', side: 'buy', count: 5, seconds: 60, control: 'repeated_execution' },
    };
    const batch = batchOf(1);
    await one.report({ batch: { ...batch, events: [...batch.events, latched] } });
    await one.report({ status: 'ended', ended: STOPPED });
    expect(await world.ended((body as Deployed).task_id)).toMatchObject({
      status: 'failed',
      error: { reason: 'latched' },
    });
  });

  it('has a price for each inherited position, however long ago its last bar was', async () => {
    const old = await world.deploy('sma');
    const one = world.instance(old.deployment_id);
    await one.report();
    await one.report({ batch: batchOf(1) });
    const bars = { NDX: [1, 1, 1, 1, 1] };
    for (let number = 2; number < 5; number += 1) {
      const events = Array.from({ length: 500 }, (_, i) => {
        const occurred_at = Date.parse(STATE.time) + (number * 500 + i) * 86_400_000;
        const time = new Date(occurred_at).toISOString();
        return { kind: 'data.bars', occurred_at, payload: { time, bars } };
      });
      await one.report({ batch: { number, events, state: STATE, steps: number } });
    }
    const { body } = await world.post('/bots/sma/deploy', { cluster: 'trading', replace: true });
    await one.report({ status: 'ended', ended: STOPPED });
    const { deployment_id } = body as Deployed;
    await until(deployment_id, { waits: false });
    const { opening } = await world.stateOf('sma', deployment_id);
    expect(opening).toMatchObject({ positions: { SPX: { price: 100.5 } } });
  });

  it('passes on the account of its predecessor when it is replaced before it has begun', async () => {
    const old = await world.deploy('sma');
    const one = world.instance(old.deployment_id);
    await one.report();
    await one.report({ batch: batchOf(1) });
    const replace = async (): Promise<Deployed> => {
      const { body } = await world.post('/bots/sma/deploy', {
        cluster: 'trading',
        replace: true,
      });
      return body as Deployed;
    };
    const { production } = world.services;
    const unknown = new ServiceError('conflict', 'there is no such cluster');
    const none = () => {
      throw unknown;
    };
    const { cluster: connect } = production;
    Object.assign(production, { cluster: none });
    const second = await replace();
    await one.report({ status: 'ended', ended: STOPPED });
    await world.ended(old.task_id);
    await isRunning(second.task_id);
    await release(second.task_id);
    const third = await replace();
    await world.ended(second.task_id);
    Object.assign(production, { cluster: connect });
    await until(third.deployment_id, { cluster_state: { phase: 'progressing' } });
    const config = [...world.cluster.objects.values()].find(({ kind }) => kind === 'ConfigMap')!;
    const { 'run.json': run } = config['data'] as Readonly<Record<'run.json', string>>;
    expect(JSON.parse(run)).toMatchObject({
      deployment_id: third.deployment_id,
      opening: { positions: { SPX: { quantity: 100 } } },
    });
  });

  it.runIf(isAtLength)(
    'begins although the deployment that it replaces is canceled after its controller died',
    async () => {
      const { production } = world.services;
      const { cluster: connect } = production;
      Object.assign(production, {
        cluster: () => {
          throw new ServiceError('conflict', 'there is no such cluster');
        },
      });
      const { body: old } = await world.post('/bots/sma/deploy', { cluster: 'trading' });
      const { task_id } = old as Deployed;
      await isRunning(task_id);
      const dead = `${hostname()}/${2 ** 30}/0198c0de-0000-7000-8000-00000000aaaa`;
      await world.execute(`update tasks set worker_id = '${dead}' where task_id = '${task_id}'`);
      const { body } = await world.post('/bots/sma/deploy', { cluster: 'trading', replace: true });
      expect((await world.post(`/tasks/${task_id}/cancel`)).status).toBe(200);
      Object.assign(production, { cluster: connect });
      world.runner.wake();
      const { deployment_id } = body as Deployed;
      await until(deployment_id, { waits: false, cluster_state: { phase: 'progressing' } });
    },
  );

  it('does not begin when the outcome of the deployment that it replaces is unknown', async () => {
    const old = await world.deploy('sma');
    const one = world.instance(old.deployment_id);
    await one.report();
    const { body } = await world.post('/bots/sma/deploy', { cluster: 'trading', replace: true });
    const orders = [{ order: 3, symbol: 'SPX', verified: false }];
    await one.report({ status: 'ended', ended: { ...STOPPED, verified: false, orders } });
    expect(await world.ended((body as { task_id: string }).task_id)).toMatchObject({
      status: 'failed',
      error: { reason: 'replaced_not_verified' },
    });
  });

  it.runIf(isAtLength)(
    'is canceled at once before it has begun, and otherwise ends like a stopped one',
    async () => {
      const old = await world.deploy('sma');
      const { body } = await world.post('/bots/sma/deploy', { cluster: 'trading', replace: true });
      const { task_id } = body as { task_id: string };
      expect((await world.post(`/tasks/${task_id}/cancel`)).body).toMatchObject({
        status: 'canceled',
      });
      // It was asked to stop, and no runner has ever had the claim.
      expect(await world.ended(old.task_id)).toMatchObject({ status: 'success' });
      const third = await world.deploy('sma');
      await world.post(`/tasks/${third.task_id}/cancel`);
      expect(await world.ended(third.task_id)).toMatchObject({ status: 'canceled' });
      expect(world.cluster.asked.slice(-2)).toEqual(['scale 0', 'remove']);
    },
  );
});

describe('a halt of a deployment', () => {
  const verified = async (halt_id: string) => {
    const { read } = world.services.tasks.storage;
    const halt = await read
      .selectFrom('halts')
      .selectAll()
      .where('halt_id', '=', halt_id)
      .executeTakeFirstOrThrow();
    return verifyHalt(read, halt, world.now);
  };
  const haltId = (): Promise<string> =>
    patiently(async () => {
      const { body } = await world.get('/halts');
      const [halt] = (body as { items: { halt_id: string }[] }).items;
      expect(halt).toBeDefined();
      return halt!.halt_id;
    });

  it('is verified at once if the runner has never traded, and leaves the objects scaled down', async () => {
    const { deployment_id, task_id } = await world.deploy('sma');
    const report = await world.halt('/bots/halt-all');
    expect(report).toMatchObject({ verified: true, deployments: [{ deployment_id, orders: [] }] });
    expect(world.cluster.asked.at(-1)).toBe('scale 0');
    expect(await world.ended(task_id)).toMatchObject({ status: 'canceled' });
    expect(await world.post('/bots/sma/deploy', { cluster: 'trading' })).toMatchObject({
      status: 409,
      body: { reason: 'halted' },
    });
  });

  it('ends the pod of a silent runner, and is not verified', async () => {
    const { deployment_id } = await world.deploy('sma');
    const one = world.instance(deployment_id);
    await one.report();
    await one.report({ batch: batchOf(1) });
    world.cluster.isStuck = true;
    const halting = world.halt('/bots/sma/halt');
    const halt_id = await haltId();
    expect(await verified(halt_id)).toMatchObject({
      verified: false,
      deployments: [
        {
          deployment_id,
          faults: expect.arrayContaining(['deployment_not_halted', 'orders_unknown', 'pod_left']),
        },
      ],
    });
    expect(await world.post('/bots/sma/resume', { reason: 'early' })).toMatchObject({
      status: 409,
      body: { reason: 'not_ended' },
    });
    world.now += 31_000;
    world.cluster.fail = DOWN;
    await patiently(async () =>
      expect((await verified(halt_id)).deployments[0]!.faults).toEqual(
        expect.arrayContaining(['runner_silent', 'pod_left', 'cluster_unreachable']),
      ),
    );
    world.cluster.fail = undefined;
    world.cluster.isStuck = false;
    const report = await halting;
    expect(report).toMatchObject({
      verified: false,
      in_force: true,
      deployments: [{ status: 'halted', faults: ['orders_unknown', 'runner_silent'] }],
    });
    expect(await world.halt('/bots/sma/halt')).toMatchObject({ verified: false, halt_id });
    expect((await world.post('/bots/sma/resume', { reason: 'looked at it' })).status).toBe(200);
  });

  describe('at an exchange', () => {
    const body = {
      cluster: 'trading',
      exchange: 'binance',
      lease_secret: 'lease',
      venue: { type: 'exchange', credentials_secret: 'keys' },
    };
    const open = { outcome: 'halted' as const, verified: false, error: null };
    const orders = (isVerified: boolean) => [{ order: 3, symbol: 'SPX', verified: isVerified }];

    /** A halt of a deployment whose exchange has not answered for a minute. */
    const halted = async () => {
      const deployed = await world.deploy('sma', body);
      const runner = world.instance(deployed.deployment_id);
      await runner.report();
      await runner.report({ batch: batchOf(1) });
      const halting = world.halt('/bots/sma/halt');
      const halt_id = await haltId();
      expect(await runner.report({ status: 'halting' })).toMatchObject({ command: 'halt' });
      for (let i = 0; i < 5; i += 1) {
        world.now += 20_000;
        await runner.report({ status: 'halting' });
        world.runner.wake();
      }
      return { ...deployed, runner, halting, halt_id };
    };

    it('keeps the pod canceling until no order is open, and is not verified before', async () => {
      const { task_id, deployment_id, runner, halting, halt_id } = await halted();
      await runner.report({ status: 'ended', ended: { ...open, orders: orders(false) } });
      world.now += 10 * 60_000;
      world.runner.wake();
      expect(await verified(halt_id)).toMatchObject({
        verified: false,
        deployments: [{ faults: expect.arrayContaining(['order_not_canceled']) as string[] }],
      });
      expect(world.cluster.asked).not.toContain('scale 0');
      // The cluster has started its container again.
      const next = world.instance(deployment_id);
      expect(await next.report()).toMatchObject({ command: 'halt' });
      const ended = { ...open, verified: true, orders: orders(true) };
      await next.report({ status: 'ended', ended });
      expect(await world.ended(task_id)).toMatchObject({ status: 'canceled' });
      expect(await verified(halt_id)).toMatchObject({ verified: true });
      expect(world.cluster.asked.at(-1)).toBe('scale 0');
      await halting;
    });

    it('restores the pod if it was deleted while orders may be open', async () => {
      const { task_id, deployment_id, runner, halting } = await halted();
      const before = world.cluster.asked.length;
      world.cluster.lose(deployment_id);
      await patiently(async () =>
        expect(world.cluster.asked.slice(before)).toContainEqual(
          expect.stringMatching(/^apply Deployment/),
        ),
      );
      await runner.report({ status: 'ended', ended: { ...open, verified: true, orders: [] } });
      expect(await world.ended(task_id)).toMatchObject({ status: 'canceled' });
      await halting;
    });

    it('ends as not verified when a person abandons its orders', async () => {
      const { task_id, halting, halt_id } = await halted();
      const path = `/bots/sma/deploy/stop/${task_id}?abandon=canceled%20by%20hand`;
      expect((await world.post(path)).status).toBe(200);
      world.now += 60_000;
      world.runner.wake();
      expect(await world.ended(task_id)).toMatchObject({ status: 'canceled' });
      expect(await verified(halt_id)).toMatchObject({ verified: false });
      expect(await kindsOf(task_id)).toContain('deploy.orders_abandoned');
      await halting;
    });
  });

  it.runIf(isAtLength)('covers a deployment that is being stopped', async () => {
    const { deployment_id, task_id } = await world.deploy('sma');
    const one = world.instance(deployment_id);
    await one.report();
    const remove = world.cluster.remove.bind(world.cluster);
    const [reached, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    world.cluster.remove = async (plan) => {
      reached.resolve();
      await goOn.promise;
      return remove(plan);
    };
    await stop(task_id);
    const orders = [{ order: 3, symbol: 'SPX', verified: false }];
    await one.report({ status: 'ended', ended: { ...STOPPED, verified: false, orders } });
    await reached.promise;
    const halting = world.halt('/bots/sma/halt');
    await haltId();
    goOn.resolve();
    expect(await halting).toMatchObject({
      verified: false,
      deployments: [{ deployment_id, status: 'halted', faults: ['order_not_canceled'] }],
    });
  });

  it.runIf(isAtLength)(
    'ends a waiting replacement together with the deployment that it replaces',
    async () => {
      const old = await world.deploy('sma');
      const one = world.instance(old.deployment_id);
      await one.report();
      const { body } = await world.post('/bots/sma/deploy', { cluster: 'trading', replace: true });
      const next = body as { deployment_id: string };
      const halting = world.halt('/bots/sma/halt');
      await expect.poll(async () => (await one.report()).command, { interval: 30 }).toBe('halt');
      const orders = [{ order: 3, symbol: 'SPX', verified: false }];
      await one.report({ status: 'ended', ended: { ...STOPPED, outcome: 'halted', orders } });
      expect((await halting).deployments).toEqual(
        expect.arrayContaining([
          expect.objectContaining({ deployment_id: next.deployment_id, faults: [] }),
          expect.objectContaining({
            deployment_id: old.deployment_id,
            faults: ['order_not_canceled'],
            orders,
          }),
        ]),
      );
    },
  );
});

describe('deploying', () => {
  it('rejects unknown, unlicensed, forbidden and unsuitable deployments', async () => {
    const refused = async (body: object, status: number, told: object, slug = 'sma') =>
      expect(await world.post(`/bots/${slug}/deploy`, body)).toMatchObject({ status, body: told });
    await refused({}, 409, { reason: 'unknown_cluster' });
    await refused({ cluster: 'tradnig' }, 409, { reason: 'unknown_cluster' });
    const at = { cluster: 'trading' };
    await refused({ ...at, exchange: 'bitget' }, 409, { reason: 'unknown_exchange' });
    await refused({ ...at, venue: { type: 'exchange' } }, 400, {
      errors: [{ pointer: '/venue/credentials_secret' }],
    });
    await refused({ ...at, params: { fsat: 1 } }, 422, { errors: [{ pointer: '/params/fsat' }] });
    await refused(at, 404, { code: 'not_found' }, 'nobody');
    await refused({ ...at, version: 7 }, 404, { code: 'not_found' });
    expect(world.cluster.asked).toEqual([]);
    expect((await world.get('/tasks')).body).toMatchObject({ items: [] });
  });

  it('deploys once for each Idempotency-Key', async () => {
    const headers = {
      authorization: await world.bearer('trade'),
      'idempotency-key': '0198c0de-0000-7000-8000-00000000ffff',
    };
    const body = { cluster: 'trading' };
    const ask = () => world.send('POST', '/bots/sma/deploy', { headers, body });
    const first = await ask();
    expect(first.status).toBe(202);
    expect(await ask()).toMatchObject({ status: 202, body: first.body });
    expect((await world.get('/tasks')).body).toMatchObject({ items: [{ kind: 'production' }] });
  });

  it("requires a license for a customer's cluster", async () => {
    const gate = {
      check: (feature: string) =>
        feature === 'live_trading'
          ? ({ allowed: true, status: 'valid' } as const)
          : ({ allowed: false, reason: 'entitlement_missing', detail: 'no' } as const),
    };
    Object.assign(world.services.gate, gate);
    expect(await world.post('/bots/sma/deploy', { cluster: 'theirs' })).toMatchObject({
      status: 403,
      body: {
        code: 'license_invalid',
        detail: expect.stringContaining('byoc_deployments') as string,
      },
    });
    const { body } = await world.post('/bots/sma/deploy', { cluster: 'trading', mode: 'render' });
    expect(body).toMatchObject({ mode: 'render' });
  });

  it('shows the planned changes without secrets, and stores no secret', async () => {
    const venue = { type: 'exchange', credentials_secret: 'binance-keys' };
    const asked = { cluster: 'trading', venue, lease_secret: 'lease' };
    const rendered = await world.post('/bots/sma/deploy', { ...asked, mode: 'render' });
    expect((rendered.body as { yaml: string }).yaml).toMatch(/kind: Deployment[^]*binance-keys/);
    const dry = await world.post('/bots/sma/deploy', { ...asked, mode: 'dry_run' });
    const changesOf = (answer: unknown): string[] =>
      (answer as { changes: { kind: string; change: string }[] }).changes.map(
        ({ kind, change }) => `${change} ${kind}`,
      );
    expect(changesOf(dry.body)).toContain('create Deployment');
    const { deployment_id, task_id } = await world.deploy('sma', asked);
    const again = await world.post('/bots/sma/deploy', {
      ...asked,
      params: { slow: 3 },
      mode: 'dry_run',
    });
    expect(changesOf(again.body)).toEqual([
      'none ServiceAccount',
      'create ConfigMap',
      'none PersistentVolumeClaim',
      'none NetworkPolicy',
      'none Deployment',
    ]);
    const { body: there } = await world.post('/bots/sma/deploy', { ...asked, mode: 'render' });
    expect((there as { yaml: string }).yaml).toContain(deployment_id);
    const one = world.instance(deployment_id);
    await one.report();
    await one.send({}, 'canary-of-a-runner');
    const token = world.cluster.token(deployment_id);
    await stop(task_id);
    await one.report({ status: 'ended', ended: STOPPED });
    await world.ended(task_id);
    const home = dirname(world.services.tasks.catalogueDir);
    const files = await readdir(home);
    const kept = await Promise.all(
      files
        .filter((name) => name !== 'catalogue')
        .map((name) => readFile(join(home, name), 'latin1')),
    );
    const written = [...kept, ...world.log, JSON.stringify([rendered.body, dry.body])].join('\n');
    expect(written).toContain('binance-keys');
    expect(written).not.toContain(token);
    expect(written).not.toContain(Buffer.from(token).toString('base64'));
    expect(written).not.toContain('canary-of-a-runner');
    const { read } = world.services.tasks.storage;
    const audit = await read.selectFrom('audit_entries').select('action').orderBy('seq').execute();
    expect(audit.map(({ action }) => action).slice(-2)).toEqual([
      'bots.deploy',
      'bots.deploy_stop',
    ]);
  });
});
