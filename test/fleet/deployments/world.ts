import { randomUUID } from 'node:crypto';
import { expect, vi } from 'vitest';
import type { HaltReport } from '../../../src/api/halts.ts';
import type { ProductionDeployment } from '../../../src/api/deployments.ts';
import type { RunnerAnswer, RunnerReport } from '../../../src/api/runners.ts';
import type { BotEvent } from '../../../src/api/bot-state.ts';
import type { TaskDetail } from '../../../src/api/tasks.ts';
import { startDeploymentControllers } from '../../../src/fleet/deployments/controller.ts';
import type { Services } from '../../../src/server/services.ts';
import { startTaskRunner, type TaskRunner } from '../../../src/fleet/tasks/task-runner.ts';
import { newTestApp, type Answer, type TestApp } from '../../server/in-process.ts';
import { tradingDocument } from '../../server/trader.ts';
import { newFakeCluster, type FakeCluster } from './fake-cluster.ts';

export interface Deployed {
  readonly task_id: string;
  readonly deployment_id: string;
}

/** A server with a cluster in memory that supervises the deployments there. */
export interface ProductionWorld extends TestApp {
  readonly cluster: FakeCluster;
  readonly runner: TaskRunner;
  readonly get: (path: string) => Promise<Answer>;
  readonly post: (path: string, body?: unknown) => Promise<Answer>;
  readonly newBot: (slug: string) => Promise<void>;
  /** Asks for a deployment, and resolves when it is applied. */
  readonly deploy: (slug: string, body?: object) => Promise<Deployed>;
  readonly stateOf: (slug: string, deployment_id: string) => Promise<ProductionDeployment>;
  /** Resolves with the task once it has ended. */
  readonly ended: (task_id: string) => Promise<TaskDetail>;
  readonly eventsOf: (slug: string, task_id: string) => Promise<readonly BotEvent[]>;
  readonly halt: (path: string) => Promise<HaltReport>;
  /** A process in the pod, that has asked for nothing yet. */
  readonly instance: (deployment_id: string) => Instance;
}

/** A runner, as the test plays it. */
export interface Instance {
  epoch: number | null;
  readonly send: (change?: Partial<RunnerReport>, token?: string) => Promise<Answer>;
  /** The same where it must be answered well. */
  readonly report: (change?: Partial<RunnerReport>) => Promise<RunnerAnswer>;
}

const CLUSTERS: Services['production']['clusters'] = {
  trading: {
    in_cluster: true,
    owner: 'own',
    namespace: 'bots',
    image: 'registry.example/service-local:1',
    control_url: 'https://service-local.example',
  },
  theirs: {
    in_cluster: true,
    owner: 'customer',
    namespace: 'bots',
    image: 'registry.example/service-local:1',
    control_url: 'https://service-local.example',
  },
};

export const STATE = {
  status: 'running' as const,
  time: '2026-01-02T00:00:00.000Z',
  seq: 2,
  cash: 90_000,
  equity: 100_000,
  positions: { SPX: 100 },
  working: [],
  messages: 1,
};

const VENUE = { connected: true, open_orders: 0, checked_at: '2026-01-02T03:04:05Z' };

export const patiently = <T>(what: () => Promise<T>): Promise<T> =>
  vi.waitFor(what, { timeout: 30_000, interval: 20 });

export async function newProductionWorld(gate?: Services['gate']): Promise<ProductionWorld> {
  const server = await newTestApp({}, gate);
  const { tasks, production, log } = server.services;
  const cluster = newFakeCluster();
  Object.assign(production, {
    clusters: CLUSTERS,
    exchanges: { binance: { ccxt: 'binance' } },
    cluster: () => cluster,
    log,
  });
  const controllers = startDeploymentControllers(production, {
    most: 10,
    onEnded: () => runner.wake(),
    retryMs: 5,
  });
  const options = { workers: 1, paperSessions: 10, timeoutMs: 5000, controllers, log };
  const runner = startTaskRunner(tasks, options);
  Object.assign(tasks, { wake: runner.wake, release: runner.release });
  const authorization = await server.bearer('read', 'write', 'trade', 'halt');
  const headers = { authorization };
  const world: ProductionWorld = {
    ...server,
    get now() {
      return server.now;
    },
    set now(ms) {
      server.now = ms;
    },
    cluster,
    runner,
    get: (path) => server.send('GET', path, { headers }),
    post: (path, body) => server.send('POST', path, { headers, body }),
    async newBot(slug) {
      const document = tradingDocument(slug, 'SPX', '1d', 1);
      expect((await world.post('/bots', { document })).status).toBe(201);
    },
    async deploy(slug, body = { cluster: 'trading' }) {
      const answer = await world.post(`/bots/${slug}/deploy`, body);
      expect(answer).toMatchObject({ status: 202 });
      const deployed = answer.body as Deployed;
      await patiently(async () =>
        expect(await world.stateOf(slug, deployed.deployment_id)).toMatchObject({
          applied_at: expect.any(String) as string,
        }),
      );
      return deployed;
    },
    async stateOf(slug, deployment_id) {
      const { body } = await world.get(`/bots/${slug}/deployments/${deployment_id}`);
      return body as ProductionDeployment;
    },
    ended: (task_id) =>
      patiently(async () => {
        const { body } = await world.get(`/tasks/${task_id}`);
        expect(body).not.toMatchObject({ ended_at: null });
        return body as TaskDetail;
      }),
    async eventsOf(slug, task_id) {
      const { body } = await world.get(`/bots/${slug}/state/events?limit=1000&run_id=${task_id}`);
      return (body as { readonly items: readonly BotEvent[] }).items;
    },
    async halt(path) {
      const { body } = await world.post(path, { reason: 'a test' });
      return body as HaltReport;
    },
    instance(deployment_id) {
      const instance_id = randomUUID();
      const instance: Instance = {
        epoch: null,
        send: (change = {}, token = cluster.token(deployment_id)) =>
          server.send('POST', `/deployments/${deployment_id}/runner`, {
            headers: { authorization: `Bearer ${token}` },
            body: {
              instance_id,
              epoch: instance.epoch,
              status: 'trading',
              denying: null,
              batch: null,
              venue: VENUE,
              ended: null,
              ...change,
            } satisfies RunnerReport,
          }),
        async report(change) {
          const answer = await instance.send(change);
          expect(answer).toMatchObject({ status: 200 });
          const body = answer.body as RunnerAnswer;
          instance.epoch = body.epoch;
          return body;
        },
      };
      return instance;
    },
    async close() {
      await runner.stop();
      await server.close();
    },
  };
  return world;
}

const FILL = { side: 'buy', quantity: 100, price: 100, position: 100 };

/** A batch of events, as a session of a few bars reports it. */
export function batchOf(number: number): NonNullable<RunnerReport['batch']> {
  const occurred_at = Date.parse(STATE.time);
  return {
    number,
    events: [
      {
        kind: 'data.bars',
        occurred_at,
        payload: { time: STATE.time, bars: { SPX: [100, 101, 99, 100.5, 1000] } },
      },
      {
        kind: 'order.filled',
        occurred_at,
        payload: {
          seq: 2,
          time: STATE.time,
          kind: 'order.filled',
          order: 1,
          symbol: 'SPX',
          ...FILL,
        },
      },
    ],
    state: STATE,
    steps: number,
  };
}
