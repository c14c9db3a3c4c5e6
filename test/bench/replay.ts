import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { createBot } from '../../src/fleet/registry/bots.ts';
import { readRows } from '../../src/events/read-events.ts';
import { replayRun } from '../../src/fleet/parity/replay.ts';
import { openStorage } from '../../src/storage/storage.ts';
import { startPaper } from '../../src/fleet/tasks/paper.ts';
import { play, tradingDocument } from '../fleet/parity/play.ts';
import { newSqlite } from '../storage/databases.ts';
import { documentOn, fillCatalogue } from '../fleet/tasks/market.ts';
import { figure, median, round, type Figure } from './figure.ts';

const BARS = 50_000;
const ROUNDS = 5;
const PAGE = 1000;

/** A session made again in its thread, against reading its events and parsing them, and no more. */
export async function replay(): Promise<Figure[]> {
  const database = await newSqlite();
  const catalogueDir = await mkdtemp(join(tmpdir(), 'service-local-bench-replay-'));
  const storage = await openStorage(database.location);
  try {
    await fillCatalogue(catalogueDir, BARS);
    const service = { storage, clock: Date.now, catalogueDir };
    const long = documentOn('long', 'LONG', '1m');
    const trading = tradingDocument('long', 10);
    const document = { ...long, spec: { ...(trading['spec'] as object), ...dataOf(long) } };
    const { bot_id } = await createBot(service, 'operator', { document });
    const { task_id } = await startPaper(service, 'operator', 'long', { speed: 'max' });
    await play(service, task_id, { end: 'success' });

    const times = { floor: [] as number[], ours: [] as number[] };
    const delay = monitorEventLoopDelay({ resolution: 5 });
    for (let turn = 0; turn <= ROUNDS; turn += 1) {
      let begin = performance.now();
      for (let after_seq = 0, more = true; more; after_seq += PAGE) {
        const { rows } = await readRows(storage.read, bot_id, { after_seq, limit: PAGE });
        for (const { payload } of rows) JSON.parse(payload);
        more = rows.length === PAGE;
      }
      const floor = performance.now() - begin;
      delay.enable();
      begin = performance.now();
      const { matches, bars } = await replayRun(service, 'long', task_id);
      const ours = performance.now() - begin;
      delay.disable();
      if (!matches || bars !== BARS) throw new Error('it was not the same again');
      // The first round is for compiling.
      if (turn === 0) continue;
      times.floor.push(floor);
      times.ours.push(ours);
    }
    const [floor, ours] = [median(times.floor), median(times.ours)];
    const text = (ms: number): string => `${round(BARS / ms)} k bars/s`;
    const p99 = delay.percentile(99) / 1e6;
    return [
      figure('replay of a session of 50 k bars', [text(floor), text(ours)], floor / ours),
      figure('wait for the event loop meanwhile, p99', ['50 ms', `${round(p99)} ms`], p99 / 50, {
        atMost: 1,
      }),
    ];
  } finally {
    await storage.close();
    await database.remove();
    await rm(catalogueDir, { recursive: true });
  }
}

function dataOf(document: Readonly<Record<string, unknown>>): object {
  const { data, universe } = document['spec'] as {
    readonly data: object;
    readonly universe: object;
  };
  return { data, universe };
}
