import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createAdaptorServer } from '@hono/node-server';
import { expect, test, vi, type TestContext } from 'vitest';
import { newProductionWorld, type Deployed } from '../../../fleet/deployments/world.ts';
import { SCRATCH } from '../../../scratch.ts';
import { startExchange } from '../../local-exchange.ts';
import { MINUTE } from '../../../../src/base/durations.ts';
import { BTC, runInProcess, SPEC, type Run } from './world.ts';
import { isAtLength } from '../../../length.ts';

/** Each time, all events are asked for. */
const patience = { timeout: 30_000, interval: 100 };

/** A server, the market whose bars its pods follow, and what a cluster would do with a deployment. */
async function newPods({ onTestFinished }: Pick<TestContext, 'onTestFinished'>) {
  const server = await newProductionWorld();
  const http = createAdaptorServer({ fetch: server.app.fetch });
  const market = await startExchange({ symbols: [BTC] });
  const directory = mkdtempSync(join(SCRATCH, 'service-local-pod-'));
  const pods: Run[] = [];
  onTestFinished(async () => {
    for (const pod of pods) pod.stop();
    await Promise.allSettled(pods.map(({ done }) => done));
    http.close();
    await market.close();
    await server.close();
    rmSync(directory, { recursive: true });
  });
  await once(http.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  Object.assign(server.services.production, {
    exchanges: { local: market.definition },
    reportSeconds: 1,
  });
  const strategy = { name: 'sma_crossover', params: { fast: 1, slow: 2 } };
  let time = Math.floor(Date.now() / MINUTE) * MINUTE - 100 * MINUTE;
  return {
    server,
    directory,
    create: async (risk: object = {}) => {
      const spec = { ...SPEC.spec, strategy, risk: { ...SPEC.spec.risk, ...risk } };
      const document = { ...SPEC, spec };
      expect(await server.post('/bots', { document })).toMatchObject({ status: 201 });
    },
    /** Starts the pod of a deployment that the cluster has got, and waits until it follows the market. */
    start: async ({ deployment_id }: Deployed): Promise<Run> => {
      const files = [...server.cluster.objects.values()].find(
        ({ kind, metadata }) =>
          kind === 'ConfigMap' &&
          metadata.labels!['service-local.dev/deployment'] === deployment_id,
      )!;
      const own = mkdtempSync(join(directory, 'pod-'));
      for (const [name, text] of Object.entries(files['data'] as Record<string, string>)) {
        writeFileSync(join(own, name), text);
      }
      const token_file = join(own, 'token');
      writeFileSync(token_file, server.cluster.token(deployment_id));
      const config = join(own, 'run.json');
      const run = JSON.parse((files['data'] as Record<string, string>)['run.json']!) as object;
      const here = { state_dir: join(own, 'state'), control: { url, token_file } };
      writeFileSync(config, JSON.stringify({ ...run, ...here, health: { port: 0 } }));
      const pod = runInProcess(config, own);
      pods.push(pod);
      await market.subscribed(BTC, pods.length);
      return pod;
    },
    /** Streams closed bars, and resolves when the server has recorded them. */
    bars: async ({ task_id }: Deployed, closes: readonly number[]) => {
      const events = await server.eventsOf('told', task_id);
      const before = events.filter(({ kind }) => kind === 'data.bars').length;
      for (const close of closes) {
        const texts = [close, close, close, close, 1].map(String) as never;
        await market.stream(BTC, time, texts);
        time += MINUTE;
      }
      const open = [1, 1, 1, 1, 1].map(String) as never;
      await market.stream(BTC, time, open);
      return vi.waitFor(async () => {
        const all = await server.eventsOf('told', task_id);
        const taken = all.filter(({ kind }) => kind === 'data.bars').length;
        expect(taken).toBe(before + closes.length);
        return all;
      }, patience);
    },
  };
}

test('runs a deployment of a server, reports its events to the server, and ends by a halt', async (context) => {
  const { server, create, start, bars } = await newPods(context);
  await create();
  const deployed = await server.deploy('told');
  const { deployment_id, task_id } = deployed;
  const pod = await start(deployed);
  const events = await bars(deployed, [100, 90, 110, 120, 80]);
  expect(events.map(({ kind }) => kind)).toContain('order.filled');
  expect(await server.stateOf('told', deployment_id)).toMatchObject({
    runner: { status: 'trading', denying: null, epoch: 1, claimed: true },
  });

  const report = await server.halt('/bots/told/halt');
  expect(await pod.done).toMatchObject({ outcome: 'halted', verified: true });
  expect(JSON.stringify(report)).toContain(deployment_id);
  expect(await server.ended(task_id)).toMatchObject({ status: 'canceled' });
});

test.runIf(isAtLength)(
  'losses of a deployment count against the limits of its replacement',
  async (context) => {
    const { server, create, start, bars } = await newPods(context);
    await create({ max_drawdown_pct: 0.5 });
    const old = await server.deploy('told');
    const first = await start(old);
    // It buys at 110, sells at 66 after a loss of 40 %, and has no position then.
    await bars(old, [100, 90, 110, 110, 66, 66]);
    const { body } = await server.post('/bots/told/deploy', { cluster: 'trading', replace: true });
    const next = body as Deployed;
    expect(await first.done).toMatchObject({ outcome: 'stopped', verified: true });
    await server.ended(old.task_id);
    await vi.waitFor(async () => {
      const state = await server.stateOf('told', next.deployment_id);
      expect(state.applied_at).not.toBeNull();
      expect(state.opening).toMatchObject({
        cash: expect.closeTo(600) as number,
        risk: { peak_equity: 1000, day: expect.stringMatching(/^\d{4}-/) as string },
      });
    }, patience);
    await start(next);
    // Its averages continue from the bars before. It buys at 80, sells at 60: another 15 % of the 1,000
    // are lost, and it may not buy again.
    const after = await bars(next, [66, 66, 80, 80, 60, 60, 70, 80]);
    const denied = after.filter(({ kind }) => kind === 'order.denied');
    expect(denied.map(({ payload }) => payload['reason'])).toContain('max_drawdown_pct');
    expect(after.filter(({ kind }) => kind === 'order.filled')).toHaveLength(2);
  },
);
