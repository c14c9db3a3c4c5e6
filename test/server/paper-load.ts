import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { readEvents } from '../../src/events/read-events.ts';
import { verifyEvents } from '../../src/events/verify-events.ts';
import type { Storage } from '../../src/storage/storage.ts';
import type { TestDatabase } from '../storage/databases.ts';
import { startServer, startWorker } from './running.ts';
import { using } from './torture.ts';
import { addTrader, tradingDocument } from './trader.ts';

export interface PaperLoadPlan {
  readonly sessions: number;
  /** Multiple of the pace of the market; bars are one minute long. */
  readonly speed: number;
  /** Time for which all sessions run, s. */
  readonly seconds: number;
  readonly workers: number;
  /** Directory with the one-minute bars of `LONG`. */
  readonly catalogueDir: string;
}

export interface PaperLoadReport {
  readonly sessions: number;
  /** Bars recorded by all sessions, each exactly once and in order. */
  readonly bars: number;
  readonly events: number;
  /** Recorded bars per second of the time for which all sessions ran. */
  readonly barsPerSecond: number;
  /**
   * How late a bar was recorded, in multiples of the time between two bars, by percentile. A bar is due
   * at the time of the first bar of its session plus the time of its pace.
   */
  readonly lag: { readonly median: number; readonly p99: number; readonly worst: number };
  /** Resident memory of each worker at each tenth of the time, MiB. */
  readonly memory: readonly (readonly number[])[];
}

const MINUTE_MS = 60_000;
const PAGE = 1000;
const SAMPLES = 10;
/** Time for all sessions to start, ms. */
const START_MS = 300_000;

/**
 * Runs paper sessions of as many bots on workers, and checks that every log is intact and holds every bar
 * of its session exactly once.
 *
 * @param database an empty PostgreSQL database
 * @throws Error that describes what was lost or doubled
 */
export async function runPaperLoad(
  database: TestDatabase,
  plan: PaperLoadPlan,
): Promise<PaperLoadReport> {
  const { sessions, seconds, workers: count, catalogueDir } = plan;
  const authorization = await using(database, (storage) => addTrader(storage, Date.now()));
  const args = ['--catalogue-dir', catalogueDir];
  const server = await startServer(database, [...args, '--server-tasks', 'false']);
  const share = String(Math.ceil(sessions / count));
  const workers = await Promise.all(
    Array.from({ length: count }, () =>
      startWorker(database, [...args, '--paper-sessions', share]),
    ),
  );
  const slugs = Array.from({ length: sessions }, (_, i) => `load-${i}`);
  const memory: number[][] = [];
  try {
    for (const slug of slugs) await startSession(server.url, authorization, slug, plan.speed);
    await using(database, (storage) => allRunning(storage, sessions));
    for (let sample = 0; sample < SAMPLES; sample += 1) {
      await sleep((seconds * 1000) / SAMPLES);
      memory.push(await Promise.all(workers.map(({ pid }) => residentMb(pid))));
    }
  } finally {
    await Promise.all(workers.map((worker) => worker.stop()));
    await server.stop();
  }
  return using(database, (storage) => examine(storage, plan, memory));
}

async function startSession(
  url: string,
  authorization: string,
  slug: string,
  speed: number,
): Promise<void> {
  const send = async (path: string, body: object): Promise<void> => {
    const answer = await fetch(url + path, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    assert.ok(answer.ok, `POST ${path}: ${answer.status} ${await answer.text()}`);
  };
  await send('/bots', { document: tradingDocument(slug, 'LONG', '1m', 5) });
  await send(`/bots/${slug}/paper/start`, { speed });
}

async function allRunning({ read }: Storage, sessions: number): Promise<void> {
  const until = performance.now() + START_MS;
  for (;;) {
    const { count } = await read
      .selectFrom('trading_sessions')
      .select(({ fn }) => fn.countAll().as('count'))
      .where('steps', '>', 0)
      .executeTakeFirstOrThrow();
    if (Number(count) === sessions) return;
    assert.ok(performance.now() < until, `only ${count} of ${sessions} sessions have started`);
    await sleep(250);
  }
}

async function residentMb(pid: number): Promise<number> {
  const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))!;
  return Math.round(Number(kib) / 1024);
}

async function examine(
  storage: Storage,
  { sessions, speed, seconds }: PaperLoadPlan,
  memory: PaperLoadReport['memory'],
): Promise<PaperLoadReport> {
  const barMs = MINUTE_MS / speed;
  const bots = await storage.read.selectFrom('bots').select(['bot_id', 'slug']).execute();
  assert.equal(bots.length, sessions, 'bots');
  const lags: number[] = [];
  let bars = 0;
  let events = 0;
  for (const { bot_id, slug } of bots) {
    const { fault, head } = await verifyEvents(storage.read, bot_id);
    assert.ok(fault === undefined, `the log of ${slug} has a fault: ${JSON.stringify(fault)}`);
    events += head.seq;
    const recorded = await barsOf(storage, bot_id);
    const [first] = recorded;
    assert.ok(first !== undefined, `${slug} has no bar`);
    for (const [place, { time, recorded_at }] of recorded.entries()) {
      assert.equal(time, first.time + place * MINUTE_MS, `the time of bar ${place} of ${slug}`);
      lags.push((recorded_at - first.recorded_at - place * barMs) / barMs);
    }
    bars += recorded.length;
  }
  lags.sort((a, b) => a - b);
  const at = (share: number): number => lags[Math.floor(share * (lags.length - 1))]!;
  return {
    sessions,
    bars,
    events,
    barsPerSecond: bars / seconds,
    lag: { median: at(0.5), p99: at(0.99), worst: at(1) },
    memory,
  };
}

interface RecordedBar {
  readonly time: number;
  readonly recorded_at: number;
}

async function barsOf({ read }: Storage, bot_id: string): Promise<readonly RecordedBar[]> {
  const bars: RecordedBar[] = [];
  for (let after_seq = 0; ;) {
    const { events } = await readEvents(read, bot_id, {
      after_seq,
      kinds: ['data.bars'],
      limit: PAGE,
    });
    for (const { seq, occurred_at, recorded_at } of events) {
      bars.push({ time: occurred_at, recorded_at });
      after_seq = seq;
    }
    if (events.length < PAGE) return bars;
  }
}
