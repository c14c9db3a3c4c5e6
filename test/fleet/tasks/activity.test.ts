import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readEvents } from '../../../src/events/read-events.ts';
import { haltAll, haltBot } from '../../../src/fleet/halts/halt.ts';
import type { HaltService } from '../../../src/fleet/halts/halts.ts';
import { openStorage, type Storage } from '../../../src/storage/storage.ts';
import { readActivity } from '../../../src/fleet/tasks/activity.ts';
import { makeSessions } from '../halts/sessions.ts';
import { mainlyOn, newTables, type TestDatabase } from '../../storage/databases.ts';

const BY = 'administrator:ada';

let database: TestDatabase;
let storage: Storage;
let service: HaltService;

describe.each(mainlyOn('sqlite'))('bots on %s', (kind) => {
  beforeEach(async () => {
    database = await newTables(kind);
    storage = await openStorage(database.location);
    const clock = (): number => Date.UTC(2026, 0, 2);
    service = { storage, clock, release() {}, wake() {}, log: { warn() {} } };
  });
  afterEach(async () => {
    await storage.close();
    await database.remove();
  });

  it('the list of bots has their active deployments, halt and last ended deployment', async () => {
    const made = await makeSessions(storage, { count: 3 });
    const ids = made.map(({ bot_id }) => bot_id);
    const [first, second] = made as [(typeof made)[number], (typeof made)[number]];
    expect(await readActivity(storage.read, [])).toEqual(new Map());
    const { read } = storage;
    const noneOf = ({ task_id }: (typeof made)[number]) => ({
      running: 1,
      halted: null,
      last: null,
      sessions: [expect.objectContaining({ task_id, equity: 100_321.25 })],
    });
    expect([...(await readActivity(read, ids)).values()]).toEqual(made.map(noneOf));

    await haltBot(service, BY, first.bot_id, 'a test');
    const after = await readActivity(read, ids.slice(0, 2));
    expect(after.get(first.bot_id)).toMatchObject({
      running: 0,
      halted: 'bot',
      last: { deployment_id: first.deployment_id, status: 'halted' },
      sessions: [],
    });
    expect(after.get(second.bot_id)).toEqual(noneOf(second));
    await haltAll(service, BY, 'a test');
    expect((await readActivity(read, ids)).get(second.bot_id)).toMatchObject({ halted: 'all' });
  });

  it('the last events of a bot are read, of all kinds or of some', async () => {
    const [made] = await makeSessions(storage, { count: 1 });
    const last = async (limit: number, kinds?: readonly string[]): Promise<number[]> => {
      const request = { after_seq: 0, limit, last: true, ...(kinds && { kinds }) };
      const { events, head } = await readEvents(storage.read, made!.bot_id, request);
      expect(head.seq).toBe(5);
      return events.map(({ seq }) => seq);
    };
    expect(await last(2)).toEqual([4, 5]);
    expect(await last(2, ['run.queued', 'bot.created', 'version.created'])).toEqual([2, 3]);
    expect(await last(9, ['tick'])).toEqual([]);
  });
});
