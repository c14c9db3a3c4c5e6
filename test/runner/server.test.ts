import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createAdaptorServer } from '@hono/node-server';
import { expect, test, vi } from 'vitest';
import { newProductionWorld } from '../production/world.ts';
import { SCRATCH } from '../scratch.ts';
import { startExchange } from '../trading/exchange.ts';
import { MINUTE } from '../../src/market/time.ts';
import { BTC, runInProcess, SPEC } from './world.ts';

/** Each time, all events are asked for. */
const patience = { timeout: 10_000, interval: 200 };

test('it runs what a server has deployed, shows what it does there, and ends by a halt', async ({
  onTestFinished,
}) => {
  const server = await newProductionWorld();
  const http = createAdaptorServer({ fetch: server.app.fetch });
  const market = await startExchange([BTC], 0);
  const directory = mkdtempSync(join(SCRATCH, 'service-local-pod-'));
  onTestFinished(async () => {
    http.close();
    await market.close();
    await server.close();
    rmSync(directory, { recursive: true });
  });
  await once(http.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  Object.assign(server.services.production, { exchanges: { local: market.definition } });
  const strategy = { name: 'sma_crossover', params: { fast: 1, slow: 2 } };
  const document = { ...SPEC, spec: { ...SPEC.spec, strategy } };
  expect(await server.post('/bots', { document })).toMatchObject({ status: 201 });
  const { deployment_id, task_id } = await server.deploy('told');

  const files = [...server.cluster.objects.values()].find(({ kind }) => kind === 'ConfigMap')!;
  for (const [name, text] of Object.entries(files['data'] as Record<string, string>)) {
    writeFileSync(join(directory, name), text);
  }
  const token_file = join(directory, 'token');
  writeFileSync(token_file, server.cluster.token(deployment_id));
  const config = join(directory, 'run.json');
  const run = JSON.parse((files['data'] as Record<string, string>)['run.json']!) as object;
  const here = { state_dir: join(directory, 'state'), control: { url, token_file } };
  writeFileSync(config, JSON.stringify({ ...run, ...here, health: { port: 0 } }));

  const pod = runInProcess(config, directory);
  await market.subscribed(BTC, 1);
  const closes = [100, 90, 110, 120, 80, 130];
  const begin = Math.floor(Date.now() / MINUTE) * MINUTE - 100 * MINUTE;
  for (const [i, close] of closes.entries()) {
    const texts = [close, close, close, close, 1].map(String) as never;
    await market.tell(BTC, begin + i * MINUTE, texts, i < closes.length - 1);
  }
  await vi.waitFor(async () => {
    const events = await server.eventsOf('told', task_id);
    expect(events.filter(({ kind }) => kind === 'data.bars')).toHaveLength(closes.length - 1);
    expect(events.map(({ kind }) => kind)).toContain('order.filled');
  }, patience);
  expect(await server.stateOf('told', deployment_id)).toMatchObject({
    runner: { status: 'trading', denying: null, epoch: 1, claimed: true },
  });

  const report = await server.halt('/bots/told/halt');
  expect(await pod.done).toMatchObject({ outcome: 'halted', verified: true });
  expect(JSON.stringify(report)).toContain(deployment_id);
  expect(await server.ended(task_id)).toMatchObject({ status: 'canceled' });
  expect(readdirSync(join(directory, 'state'))).toEqual(['runner']);
});
