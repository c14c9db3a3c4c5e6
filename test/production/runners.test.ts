import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { batchOf, newProductionWorld, STATE, type ProductionWorld } from './world.ts';

let world: ProductionWorld;
beforeAll(async () => {
  world = await newProductionWorld();
});
afterAll(() => world.close());

const FENCED = { status: 409, body: { code: 'conflict', reason: 'fenced' } };

async function deployed(slug: string) {
  await world.newBot(slug);
  return world.deploy(slug, { cluster: 'trading', namespace: slug });
}

describe('of the runners of a deployment', () => {
  it('one has the claim at a time, and who had it before has it no more', async () => {
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
    // A claim that is over is still the last one's, while nobody else has asked for it.
    world.now += 60_000;
    expect(await other.report()).toMatchObject({ epoch: 2 });
    expect(await world.stateOf('claims', deployment_id)).toMatchObject({
      runner: { status: 'trading', epoch: 2, claimed: true, venue: { open_orders: 0 } },
    });
  });

  it('the claim is free at once when its holder has left', async () => {
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

  it('each batch is recorded once, in its order, and nothing that is not theirs to tell', async () => {
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
    ] as const) {
      const events = [{ kind, occurred_at: 0, payload }];
      const answer = await one.send({ batch: { ...batchOf(3), events } });
      expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
    }
    const long = {
      ...batchOf(3),
      events: Array.from({ length: 512 }, () => batchOf(3).events[1]!),
    };
    expect(await one.report({ batch: long })).toMatchObject({ recorded: 3 });
  });

  it('each comes with the token of its deployment', async () => {
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
    expect(await world.post(path, {})).toMatchObject({ status: 400 });
    expect(
      await world.instance('0198c0de-0000-7000-8000-000000000000').send({}, token),
    ).toMatchObject({
      status: 404,
    });
  });

  it('who is halted is told so, and what ends its orders is recorded', async () => {
    const { deployment_id, task_id } = await deployed('halted');
    const one = world.instance(deployment_id);
    await one.report();
    const halting = world.halt('/bots/halted/halt');
    await expect.poll(async () => (await one.report()).command, { interval: 10 }).toBe('halt');
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
});
