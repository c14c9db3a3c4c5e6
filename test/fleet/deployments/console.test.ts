import { afterAll, beforeAll, expect, it } from 'vitest';
import { newSignedIn, type Visitor } from '../../server/console/visitor.ts';
import { batchOf, newProductionWorld, patiently, type ProductionWorld } from './world.ts';

let world: ProductionWorld;
let visitor: Visitor;
beforeAll(async () => {
  world = await newProductionWorld();
  ({ visitor } = await newSignedIn(world));
  await world.newBot('sma');
});
afterAll(() => world.close());

async function show(path: string): Promise<string> {
  const { status, text } = await visitor.open(path);
  expect([path, status]).toEqual([path, 200]);
  expect(text).not.toMatch(/undefined|NaN|\[object/);
  return text;
}

it('the console shows the cluster, pods and runner of a deployment, and stops it', async () => {
  const { task_id, deployment_id } = await world.deploy('sma');
  expect(await show('/console/bots/sma')).toContain('has not reported yet');
  const one = world.instance(deployment_id);
  await one.report();
  await one.report({ batch: batchOf(1), status: 'denying', denying: 'license_invalid' });
  world.cluster.show(deployment_id, { phase: 'degraded', message: 'no image <b>' });
  await patiently(async () => expect(await show('/console/bots/sma')).toContain('no image &lt;b'));
  for (const path of ['/console/bots/sma', `/console/tasks/${task_id}`]) {
    const text = await show(path);
    for (const shown of ['degraded', 'pod-1', 'license_invalid', 'trading', '0 open orders']) {
      expect([path, shown, text.includes(shown)]).toEqual([path, shown, true]);
    }
  }
  expect(await show('/console/bots/sma/events?show=production')).toContain('deploy.applied');
  expect(await show('/console/bots/sma/runs')).toContain('Stop the production of 20');
  const stop = `/console/bots/sma/deploy/${task_id}/stop`;
  expect((await visitor.submit(stop)).location).toBe('/console/bots/sma/runs');
  expect(await one.report()).toMatchObject({ command: 'stop' });
  const ended = { outcome: 'stopped' as const, verified: true, orders: [], error: null };
  await one.report({ status: 'ended', ended });
  await world.ended(task_id);
  expect(await show(`/console/tasks/${task_id}`)).toContain('verified');
});
