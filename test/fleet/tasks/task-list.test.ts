import { describe, expect, it } from 'vitest';
import { listTasks } from '../../../src/fleet/tasks/task-list.ts';
import { openStorage, type Storage } from '../../../src/storage/storage.ts';
import { mainlyOn, newTables } from '../../storage/databases.ts';
import { makeSessions } from '../halts/sessions.ts';

/** By task, in the order in which they were queued; undefined without a result. */
const SHARPES = [1.25, undefined, -0.5, 0.1 + 0.2, 0.1 + 0.2, undefined, 1e-7, 30];

async function withRuns(
  kind: Storage['kind'],
  work: (storage: Storage, ids: readonly string[]) => Promise<void>,
): Promise<void> {
  const database = await newTables(kind);
  const storage = await openStorage(database.location);
  try {
    const made = await makeSessions(storage, { count: SHARPES.length });
    await storage.write(async (tx) => {
      for (const [i, { task_id }] of made.entries()) {
        const sharpe = SHARPES[i];
        const result_summary = JSON.stringify({ metrics: { sharpe: sharpe ?? null } });
        await tx
          .updateTable('bot_deployments')
          .set(sharpe === undefined ? {} : { result_summary })
          .set({ created_at: i })
          .where('task_id', '=', task_id)
          .execute();
        await tx
          .updateTable('tasks')
          .set({ created_at: i })
          .where('task_id', '=', task_id)
          .execute();
      }
    });
    await work(
      storage,
      made.map(({ task_id }) => task_id),
    );
  } finally {
    await storage.close();
    await database.remove();
  }
}

describe.each(mainlyOn('sqlite'))('a list of tasks on %s', (kind) => {
  it('by a figure has every task once over its pages, the best first and those without it last', () =>
    withRuns(kind, async (storage, ids) => {
      const seen: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await listTasks(storage, {}, { limit: 3, cursor, sort: 'sharpe' });
        seen.push(...page.items.map(({ task_id }) => task_id));
        cursor = page.next_cursor ?? undefined;
      } while (cursor !== undefined);
      const order = [7, 0, 4, 3, 6, 2, 5, 1].map((place) => ids[place]);
      expect(seen).toEqual(order);
    }));

  it('begins with the oldest task or the newest, within the given times', () =>
    withRuns(kind, async (storage, ids) => {
      const between = { since: 2, until: 5 };
      for (const [sort, order] of [
        ['oldest', [2, 3, 4]],
        ['newest', [4, 3, 2]],
      ] as const) {
        const { items } = await listTasks(storage, between, { limit: 10, sort });
        expect(items.map(({ task_id }) => task_id)).toEqual(order.map((place) => ids[place]));
      }
    }));

  it('selects the canceled tasks that a halt ended', () =>
    withRuns(kind, async (storage, ids) => {
      const [halted, canceled] = ids as [string, string];
      const halt = {
        scope: 'all',
        bot_id: null,
        requested_by: 'operator',
        requested_at: 1,
      } as const;
      await storage.write(async (tx) => {
        const ended = await tx
          .updateTable('tasks')
          .set({ status: 'canceled', worker_id: null, ended_at: 2 })
          .where('task_id', 'in', [canceled, halted])
          .returning(['task_id', 'deployment_id'])
          .execute();
        const { deployment_id } = ended.find(({ task_id }) => task_id === halted)!;
        const halt_id = 'it';
        await tx
          .insertInto('halts')
          .values({ halt_id, reason: 'a test', ...halt })
          .execute();
        await tx
          .insertInto('halted_deployments')
          .values({ halt_id, deployment_id, orders: null, first_seq: 1, last_seq: 2 })
          .execute();
      });
      const request = { limit: 10, sort: 'newest' } as const;
      const { items } = await listTasks(storage, { status: 'halted' }, request);
      expect(items.map(({ task_id }) => task_id)).toEqual([halted]);
    }));

  it('rejects the cursor of a list in another order', () =>
    withRuns(kind, async (storage) => {
      const { next_cursor } = await listTasks(storage, {}, { limit: 2, sort: 'sharpe' });
      const other = { limit: 2, cursor: next_cursor!, sort: 'max_drawdown' } as const;
      await expect(listTasks(storage, {}, other)).rejects.toMatchObject({
        code: 'invalid_request',
      });
    }));
});
