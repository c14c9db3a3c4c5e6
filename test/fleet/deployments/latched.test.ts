import { afterEach, beforeEach, expect, it } from 'vitest';
import { setThreshold } from '../../../src/fleet/thresholds/thresholds.ts';
import { tradingDocument } from '../../server/trader.ts';
import { batchOf, newProductionWorld, STATE, type ProductionWorld } from './world.ts';

let world: ProductionWorld;
beforeEach(async () => {
  world = await newProductionWorld();
});
afterEach(() => world.close());

it('a latch in production prevents deployments of the bot until a person re-enables it', async () => {
  await world.newBot('sma');
  const { deployment_id, task_id } = await world.deploy('sma');
  const runner = world.instance(deployment_id);
  await runner.report();
  const batch = batchOf(1);
  const payload = {
    seq: 2,
    time: STATE.time,
    kind: 'account.latched',
    order: 1,
    symbol: 'SPX',
    control: 'repeated_execution',
    side: 'buy',
    count: 5,
    seconds: 60,
  };
  const latched = { kind: 'account.latched', occurred_at: Date.parse(STATE.time), payload };
  const made_at = world.now - 1500;
  await runner.report({ batch: { ...batch, made_at, events: [...batch.events, latched] } });
  const told = await world.eventsOf('sma', task_id);
  const { seq } = told.find(({ kind }) => kind === 'account.latched')!;
  expect(told.filter(({ kind }) => kind === 'alert.raised')).toMatchObject([
    {
      payload: {
        control: 'repeated_execution',
        severity: 'critical',
        event_seq: seq,
        count: 1,
        latency_ms: 1500,
      },
    },
  ]);

  const again = { cluster: 'trading', replace: true };
  expect(await world.post('/bots/sma/deploy', again)).toMatchObject({
    status: 409,
    body: { reason: 'latched', remedy: expect.stringContaining('bots re-enable sma ') as string },
  });
  const path = '/bots/sma/re-enable';
  expect(await world.post(path, { reason: 'it is mended' })).toMatchObject({
    status: 200,
    body: { latches: [{ run_id: task_id, symbol: 'SPX', count: 5, active: true }] },
  });
  expect(await world.post(path, { reason: 'again' })).toMatchObject({
    status: 409,
    body: { reason: 'not_latched' },
  });
  expect((await world.post('/bots/sma/deploy', again)).status).toBe(202);
});

it('a bot is not deployed to an exchange outside its permitted venues', async () => {
  const document = tradingDocument('abroad', 'SPX', '1d', 1);
  const spec = document['spec'] as { readonly risk: object };
  const risk = { ...spec.risk, permitted: { venues: ['kraken'] } };
  await world.post('/bots', { document: { ...document, spec: { ...spec, risk } } });
  const venue = { type: 'exchange', credentials_secret: 'keys' };
  const body = { cluster: 'trading', exchange: 'binance', lease_secret: 'lease', venue };
  expect(await world.post('/bots/abroad/deploy', body)).toMatchObject({
    status: 422,
    body: { errors: [{ code: 'venue_not_permitted', pointer: '/spec/risk/permitted/venues' }] },
  });
  // Nothing of it leaves this program.
  expect((await world.post('/bots/abroad/deploy', { cluster: 'trading' })).status).toBe(202);
});

it('a bot without attribution denies orders and is not deployed while thresholds exist', async () => {
  await world.newBot('sma');
  const runner = world.instance((await world.deploy('sma')).deployment_id);
  expect(await runner.report()).toMatchObject({ controls: { thresholds: {} } });
  await setThreshold(world.services.tasks, 'administrator:ada', {
    level: 'trader',
    subject: 'ada',
    currency: 'USD',
    limits: { max_order_value: 1e9 },
    rationale: 'a test',
  });
  const none = { value: 0, level: 'trader', subject: '', version: 1, sessions: 1 };
  expect(await runner.report()).toMatchObject({
    controls: { thresholds: { max_messages_per_second: none } },
  });
  const again = { cluster: 'trading', replace: true };
  expect(await world.post('/bots/sma/deploy', again)).toMatchObject({
    status: 409,
    body: { reason: 'unattributed', remedy: expect.stringContaining('{trader: …}') as string },
  });
});
