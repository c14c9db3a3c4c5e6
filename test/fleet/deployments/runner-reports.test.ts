import { randomUUID } from 'node:crypto';
import zlib from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { packColumns } from '../../../src/base/packed-columns.ts';
import { packageVersion } from '../../../src/base/package-version.ts';
import { RUNNER_PROTOCOL } from '../../../src/base/runner-protocol.ts';
import { connectAsRunner } from '../../../src/client/runner.ts';
import { adoptDatabase } from '../../../src/identity/adopt.ts';
import { ServiceError } from '../../../src/base/errors.ts';
import { replace } from '../../replace.ts';
import { listen } from '../../server/listening.ts';
import { batchOf, newProductionWorld, STATE, type ProductionWorld } from './world.ts';

let world: ProductionWorld;
beforeAll(async () => {
  world = await newProductionWorld();
});
afterAll(() => world.close());

const FENCED = { status: 409, body: { code: 'conflict', reason: 'fenced' } };

const columnsOf = (bars: number): number[][] =>
  [1_700_000_000_000, 1, 2, 0.5, 1.5, 9].map((value, place) =>
    Array.from({ length: bars }, (_, at) => (place === 0 ? value + at * 60_000 : value)),
  );

async function deployed(slug: string) {
  await world.newBot(slug);
  return world.deploy(slug, { cluster: 'trading', namespace: slug });
}

describe('the runners of a deployment', () => {
  it('the runners of a deployment hold the claim one at a time, and lose it to the next holder', async () => {
    const { deployment_id } = await deployed('claims');
    const [one, other] = [world.instance(deployment_id), world.instance(deployment_id)];
    expect(await one.report()).toMatchObject({
      epoch: 1,
      claim_seconds: 30,
      report_seconds: 5,
      command: 'trade',
      halt: null,
      recorded: 0,
    });
    world.now += 20_000;
    const refused = await other.send();
    expect(refused).toMatchObject(FENCED);
    expect(refused.headers.get('retry-after')).toBe('10');
    await one.report();
    world.now += 29_000;
    expect(await other.send()).toMatchObject(FENCED);
    world.now += 1000;
    expect(await other.report()).toMatchObject({ epoch: 2 });
    expect(await one.send({ batch: batchOf(1) })).toMatchObject(FENCED);
    expect(await other.report({ batch: batchOf(1) })).toMatchObject({ recorded: 1 });
    // An expired claim remains with its last holder until another runner requests it.
    world.now += 60_000;
    expect(await other.report()).toMatchObject({ epoch: 2 });
    expect(await world.stateOf('claims', deployment_id)).toMatchObject({
      runner: { status: 'trading', epoch: 2, claimed: true, venue: { open_orders: 0 } },
    });
  });

  it('the runners of a deployment leave the claim free at once when its holder has ended', async () => {
    const { deployment_id } = await deployed('leaves');
    const [one, other] = [world.instance(deployment_id), world.instance(deployment_id)];
    await one.report();
    const ended = { outcome: 'stopped' as const, verified: true, orders: [], error: null };
    await one.report({ status: 'ended', ended });
    expect(await other.report()).toMatchObject({ epoch: 2, command: 'trade' });
    expect(await world.stateOf('leaves', deployment_id)).toMatchObject({
      status: 'running',
      runner: { ended: null },
    });
  });

  it('the runners of a deployment have each batch recorded once and in order, and no event of other kinds', async () => {
    const { deployment_id, task_id } = await deployed('batches');
    const one = world.instance(deployment_id);
    await one.report();
    expect(await one.report({ batch: batchOf(2) })).toMatchObject({ recorded: 0 });
    expect(await one.report({ batch: batchOf(1) })).toMatchObject({ recorded: 1 });
    expect(await one.report({ batch: batchOf(1) })).toMatchObject({ recorded: 1 });
    expect(await one.report({ batch: batchOf(2) })).toMatchObject({ recorded: 2 });
    const kinds = (await world.eventsOf('batches', task_id)).map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === 'data.bars')).toHaveLength(2);
    expect(kinds.filter((kind) => kind === 'session.state')).toHaveLength(2);
    const snapshot = await world.get('/bots/batches/state/snapshot');
    expect(snapshot.body).toMatchObject({
      state: { sessions: { [task_id]: { deployment_id, ...STATE } } },
    });
    for (const [kind, payload] of [
      ['bot.archived', {}],
      ['run.ended', {}],
      ['session.state', STATE],
      ['control.halted', { scope: 'bot' }],
      ['data.bars', { time: '2026-01-02T03:04:05Z', bars: { SPX: [1, 2, 3] } }],
      ['strategy.log', { lines: 'one' }],
      ['strategy.other', {}],
      ['data.warm_up', { bars: { SPX: [1, 2, 3] } }],
      ['data.warm_up', { columns: { SPX: 'AAAA' } }],
      ['data.warm_up', { columns: { SPX: packColumns([[1], [1], [1], [1], [1]]) } }],
      ['data.warm_up', { columns: { SPX: packColumns(columnsOf(4001)) } }],
    ] as const) {
      const events = [{ kind, occurred_at: 0, payload }];
      const answer = await one.send({ batch: { ...batchOf(3), events } });
      expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
    }
    const warmUpOf = (payload: Record<string, unknown>) => ({
      kind: 'data.warm_up',
      occurred_at: 0,
      payload,
    });
    const rows = warmUpOf({ bars: { SPX: [[1_700_000_000_000, 1, 2, 0.5, 1.5, 9]] } });
    const columns = { SPX: packColumns(columnsOf(4000)) };
    const longer = warmUpOf({ columns, timeframe: '1d', continues: true });
    const long = {
      ...batchOf(3),
      events: Array.from({ length: 512 }, () => batchOf(3).events[1]!)
        .with(0, rows)
        .with(1, longer)
        .with(2, warmUpOf({ columns: {} }))
        .with(3, { kind: 'strategy.log', occurred_at: 0, payload: { lines: ['one'] } }),
    };
    expect(await one.report({ batch: long })).toMatchObject({ recorded: 3 });
  });

  it('the runners of a deployment have columns of bars unpacked only in few events of one symbol each', async () => {
    const { deployment_id } = await deployed('columns');
    const one = world.instance(deployment_id);
    await one.report();
    const packed = packColumns(columnsOf(4000));
    const warmUp = (columns: Record<string, string>) => ({
      kind: 'data.warm_up',
      occurred_at: 0,
      payload: { columns },
    });
    const many = Object.fromEntries(Array.from({ length: 400 }, (_, at) => [`S${at}`, packed]));
    const zstdDecompressSync = vi.fn<typeof zlib.zstdDecompressSync>(zlib.zstdDecompressSync);
    onTestFinished(replace(zlib, { zstdDecompressSync }));
    for (const events of [
      [warmUp(many)],
      Array.from({ length: 513 }, () => warmUp({ SPX: packed })),
    ]) {
      const answer = await one.send({ batch: { ...batchOf(1), events } });
      expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
    }
    expect(zstdDecompressSync).not.toHaveBeenCalled();
    const events = [warmUp({ SPX: packed }), warmUp({ SPX: 'AAAA' }), warmUp({ SPX: packed })];
    expect(await one.send({ batch: { ...batchOf(1), events } })).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/batch/events/1/payload' }] },
    });
    expect(zstdDecompressSync).toHaveBeenCalledTimes(2);
  });

  it('the runners of a deployment keep their claim when they request it again, and their reported end', async () => {
    const { deployment_id } = await deployed('twice');
    const one = world.instance(deployment_id);
    expect(await one.report()).toMatchObject({ epoch: 1 });
    // The runner repeats a report that got no answer in time, although the server had accepted it.
    expect(await one.report({ epoch: null })).toMatchObject({ epoch: 1 });
    const orders = [{ order: 1, symbol: 'SPX', verified: true }];
    const ended = { outcome: 'stopped' as const, verified: true, orders, error: null };
    await one.report({ status: 'ended', ended });
    await one.report();
    expect(await world.stateOf('twice', deployment_id)).toMatchObject({
      runner: { claimed: false, ended: { outcome: 'stopped', verified: true, orders } },
    });
  });

  it('the runners of a deployment hold the claim one at a time after one of them has failed', async () => {
    const { deployment_id } = await deployed('cleans-up');
    const [one, next] = [world.instance(deployment_id), world.instance(deployment_id)];
    await one.report();
    // The deployment cannot end before.
    world.cluster.fail = new ServiceError('cluster_unavailable', 'the cluster does not answer');
    const error = { code: 'failure', message: 'its disk is full' };
    const ended = { outcome: 'failed' as const, verified: false, orders: [], error };
    await one.report({ status: 'ended', ended });
    expect(await next.report()).toMatchObject({ epoch: 2, command: 'stop' });
    await next.report();
    expect(await world.instance(deployment_id).send()).toMatchObject(FENCED);
    world.cluster.fail = undefined;
  });

  it('the runners of a deployment do not trade after one of them has failed, even before the deployment has ended', async () => {
    const { deployment_id, task_id } = await deployed('fails');
    const [one, other] = [world.instance(deployment_id), world.instance(deployment_id)];
    await one.report();
    world.cluster.fail = new ServiceError('cluster_unavailable', 'the cluster does not answer');
    const error = { code: 'strategy_failed', message: 'it threw' };
    const ended = { outcome: 'failed' as const, verified: false, orders: [], error };
    await one.report({ status: 'ended', ended });
    expect(await other.report()).toMatchObject({ epoch: 2, command: 'stop' });
    const stopped = { ...ended, outcome: 'stopped' as const, verified: true, error: null };
    await other.report({ status: 'ended', ended: stopped });
    expect(await world.instance(deployment_id).send()).toMatchObject({ status: 404 });
    world.cluster.fail = undefined;
    expect(await world.ended(task_id)).toMatchObject({
      status: 'failed',
      error: { code: 'strategy_failed' },
    });
    const last = (await world.eventsOf('fails', task_id)).find(
      ({ kind }) => kind === 'deploy.ended',
    );
    expect(last!.payload).toMatchObject({ verified: true });
  });

  it('the runners of a deployment cannot record events or states that could not be read later', async () => {
    const { deployment_id } = await deployed('poison');
    const one = world.instance(deployment_id);
    await one.report();
    const batch = batchOf(1);
    const [bars, fill] = batch.events as [(typeof batch.events)[0], (typeof batch.events)[0]];
    const working = { order: 1, symbol: 'SPX' };
    for (const change of [
      { events: [{ ...fill, occurred_at: 9e15 }] },
      { events: [{ ...bars, payload: { time: STATE.time } }] },
      { events: [{ ...bars, payload: { time: 'soon', bars: {} } }] },
      { state: { ...STATE, positions: { '\ud800': 1 } } },
      { state: { ...STATE, working: [working] } },
    ]) {
      const answer = await one.send({ batch: { ...batch, ...change } as typeof batch });
      expect([change, answer]).toMatchObject([change, { status: 400 }]);
    }
    expect(await one.report({ batch })).toMatchObject({ recorded: 1 });
  });

  it('the runners of a deployment must send the token of their deployment', async () => {
    const { deployment_id } = await deployed('tokens');
    const token = world.cluster.token(deployment_id);
    const one = world.instance(deployment_id);
    for (const wrong of ['wrong', `${token}x`]) {
      expect(await one.send({}, wrong)).toMatchObject({
        status: 401,
        body: { code: 'not_authenticated' },
      });
    }
    const path = `/deployments/${deployment_id}/runner`;
    expect(await world.send('POST', path, { body: {} })).toMatchObject({ status: 401 });
    // The token is checked before the body, since checking bars takes seconds.
    expect(await world.post(path, {})).toMatchObject({ status: 401 });
    expect(await one.send({ status: 'unknown' as 'trading' })).toMatchObject({ status: 400 });
    expect(
      await world.instance('0198c0de-0000-7000-8000-000000000000').send({}, token),
    ).toMatchObject({
      status: 404,
    });
  });

  it('the runners of a deployment receive a halt, and have the end of their orders recorded', async () => {
    const { deployment_id, task_id } = await deployed('halted');
    const one = world.instance(deployment_id);
    await one.report();
    const halting = world.halt('/bots/halted/halt');
    await expect.poll(async () => (await one.report()).command, { interval: 30 }).toBe('halt');
    const answer = await one.report({ status: 'halting', batch: batchOf(1) });
    expect(answer).toMatchObject({ recorded: 1, halt: { scope: 'bot', reason: 'a test' } });
    const orders = [{ order: 1, symbol: 'SPX', verified: true }];
    const ended = { outcome: 'halted' as const, verified: true, orders, error: null };
    await one.report({ status: 'ended', ended });
    expect(await halting).toMatchObject({
      verified: true,
      deployments: [{ deployment_id, target: 'k8s', status: 'halted', faults: [], orders }],
    });
    expect(await one.send()).toMatchObject({ status: 404 });
    expect(await world.ended(task_id)).toMatchObject({
      status: 'canceled',
      ended_by_halt: { scope: 'bot' },
    });
    const kinds = (await world.eventsOf('halted', task_id)).map(({ kind }) => kind);
    expect(kinds.slice(-3)).toEqual(['deploy.scaled_down', 'deploy.ended', 'run.ended']);
  });

  it('the runners of a deployment stop all trading with a database once one knows of an adopted copy, until the database is adopted', async () => {
    const { identity } = world.services;
    const { deployment_id } = await deployed('copied');
    const one = world.instance(deployment_id);
    expect((await one.report()).controls).not.toHaveProperty('database_epoch');
    const refused = {
      status: 409,
      body: { code: 'database_not_adopted', reason: 'superseded' },
    };
    expect(await one.send({ database_epoch: 2 })).toMatchObject(refused);
    // Also of a runner that knows nothing of it, and of what is to start.
    expect(await one.send()).toMatchObject(refused);
    await world.newBot('later');
    const start = { cluster: 'trading', namespace: 'later' };
    expect(await world.post('/bots/later/deploy', start)).toMatchObject(refused);
    expect(await world.get('/readyz')).toMatchObject({
      body: { missing: [{ part: 'trading', reason: 'superseded' }, { part: 'signing_key' }] },
    });
    // A halt is heard all the same.
    expect(await adoptDatabase(identity)).toMatchObject({ epoch: 3, superseded_by: null });
    expect(await one.report({ database_epoch: 2 })).toMatchObject({
      command: 'trade',
      controls: { database_epoch: 3 },
    });
    await identity.storage.write((tx) =>
      tx.updateTable('database_identity').set({ epoch: 1 }).execute(),
    );
  });

  it('the runners of a deployment are halted even by a server whose database is not adopted', async () => {
    const { storage } = world.services.identity;
    const { deployment_id } = await deployed('held');
    const one = world.instance(deployment_id);
    await one.report();
    const supersededBy = (epoch: number | null) =>
      storage.write((tx) =>
        tx.updateTable('database_identity').set({ superseded_by: epoch }).execute(),
      );
    await supersededBy(2);
    const halting = world.halt('/bots/held/halt');
    await vi.waitFor(async () => expect(await one.report()).toMatchObject({ command: 'halt' }));
    const ended = { outcome: 'halted' as const, verified: true, orders: [], error: null };
    await one.report({ status: 'ended', ended });
    await halting;
    await supersededBy(null);
  });

  it('a runner of another protocol is refused with the remedy, but still receives a halt', async () => {
    const { deployment_id } = await deployed('versions');
    const own = { ...RUNNER_PROTOCOL };
    const listening = await listen(world.app);
    const runner = connectAsRunner({
      url: listening.url,
      token: () => world.cluster.token(deployment_id),
    });
    const report = {
      instance_id: randomUUID(),
      epoch: null,
      status: 'trading',
      denying: null,
      batch: null,
      venue: { connected: true, open_orders: 0, checked_at: null },
      ended: null,
    } as const;
    const send = (epoch: number | null) => runner.report(deployment_id, { ...report, epoch });
    try {
      const { epoch } = await send(null);
      expect(await world.stateOf('versions', deployment_id)).toMatchObject({
        runner: { version: packageVersion() },
      });
      Object.assign(RUNNER_PROTOCOL, { oldest: 2, newest: 3 });
      const late = await world.send('POST', `/deployments/${deployment_id}/runner`, {
        headers: { authorization: `Bearer ${world.cluster.token(deployment_id)}` },
        body: report,
      });
      expect(late).toMatchObject({
        status: 409,
        body: { code: 'incompatible_version', reason: 'runner_too_old' },
      });
      Object.assign(RUNNER_PROTOCOL, { oldest: 0, newest: 0 });
      await expect(send(epoch)).rejects.toMatchObject({
        code: 'incompatible_version',
        remedy: expect.stringContaining('Upgrade') as string,
      });
      const halting = world.halt('/bots/versions/halt');
      await vi.waitFor(async () => expect(await send(epoch)).toMatchObject({ command: 'halt' }));
      const ended = { outcome: 'halted', verified: true, orders: [], error: null } as const;
      await runner.report(deployment_id, { ...report, epoch, status: 'ended', ended });
      await halting;
    } finally {
      Object.assign(RUNNER_PROTOCOL, own);
      listening.close();
    }
  });
});
