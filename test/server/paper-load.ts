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

/** Bars and lags are of the period in which all sessions ran, without the start. */
export interface PaperLoadReport {
  readonly sessions: number;
  /** Length of the period, s. */
  readonly seconds: number;
  /** Bars that each session must have recorded, if none is late. */
  readonly due: number;
  /** Bars recorded by all sessions, each exactly once and in order. */
  readonly bars: number;
  /** Bars of the session with the fewest. */
  readonly fewest: number;
  /** Events of whole logs, including the start. */
  readonly events: number;
  readonly barsPerSecond: number;
  /**
   * How late a bar was recorded, in multiples of the time between two bars, by percentile. A bar is due
   * by the pace of its session, counted from its most punctual bar. The first bar that is missing at the
   * end counts with its lag so far.
   */
  readonly lag: { readonly median: number; readonly p99: number; readonly worst: number };
  /** Resident memory of each worker at each tenth of the time, MiB. */
  readonly memory: readonly (readonly number[])[];
}

/** Bars that a session may lack at the end of the period: one that is under way, and one of rounding. */
const SPARE_BARS = 2;
/** Highest ratio of the memory in the last third of the period to that in the middle third. */
const MOST_GROWTH = 1.1;
/** Memory of shorter runs is still that of the start. */
const SHORTEST_FOR_MEMORY_S = 120;

/** Names what a load exceeded: bars, lag or memory. */
export function findOverload({
  due,
  fewest,
  lag,
  memory,
  seconds,
}: Omit<PaperLoadReport, 'sessions' | 'bars' | 'events' | 'barsPerSecond'>): readonly string[] {
  const found: string[] = [];
  if (fewest < due - SPARE_BARS) {
    found.push(`a session recorded ${fewest} bars, but ${due} were due`);
  }
  if (lag.p99 >= 1) found.push(`1 % of the bars were at least ${lag.p99.toFixed(2)} bars late`);
  if (seconds < SHORTEST_FOR_MEMORY_S) return found;
  const third = Math.floor(memory.length / 3);
  for (const worker of memory[0]!.keys()) {
    const mean = (some: PaperLoadReport['memory']): number =>
      some.reduce((sum, sample) => sum + sample[worker]!, 0) / some.length;
    const [middle, last] = [mean(memory.slice(third, -third)), mean(memory.slice(-third))];
    if (last > MOST_GROWTH * middle) {
      const sizes = `from ${middle.toFixed(0)} to ${last.toFixed(0)} MiB`;
      found.push(`the memory of worker ${worker + 1} grew ${sizes}`);
    }
  }
  return found;
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
  let from = 0;
  try {
    for (const slug of slugs) await startSession(server.url, authorization, slug, plan.speed);
    await using(database, (storage) => allRunning(storage, sessions));
    from = Date.now();
    for (let sample = 0; sample < SAMPLES; sample += 1) {
      await sleep((seconds * 1000) / SAMPLES);
      memory.push(await Promise.all(workers.map(({ pid }) => residentMb(pid))));
    }
  } finally {
    await Promise.all(workers.map((worker) => worker.stop()));
    await server.stop();
  }
  return using(database, (storage) => examine(storage, plan, from, memory));
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

/** @param from start of the period, ms since the Unix epoch. */
async function examine(
  storage: Storage,
  { sessions, speed, seconds }: PaperLoadPlan,
  from: number,
  memory: PaperLoadReport['memory'],
): Promise<PaperLoadReport> {
  const barMs = MINUTE_MS / speed;
  const until = from + seconds * 1000;
  const bots = await storage.read.selectFrom('bots').select(['bot_id', 'slug']).execute();
  assert.equal(bots.length, sessions, 'bots');
  const lags: number[] = [];
  let events = 0;
  let bars = 0;
  let fewest = Infinity;
  for (const { bot_id, slug } of bots) {
    const { fault, head } = await verifyEvents(storage.read, bot_id);
    assert.ok(fault === undefined, `the log of ${slug} has a fault: ${JSON.stringify(fault)}`);
    events += head.seq;
    const recorded = await barsOf(storage, bot_id);
    const [first] = recorded;
    assert.ok(first !== undefined, `${slug} has no bar`);
    for (const [place, { time }] of recorded.entries()) {
      assert.equal(time, first.time + place * MINUTE_MS, `the time of bar ${place} of ${slug}`);
    }
    const times = recorded.map(({ recorded_at }) => recorded_at);
    const inPeriod = times.filter((at) => at >= from && at < until).length;
    bars += inPeriod;
    fewest = Math.min(fewest, inPeriod);
    lags.push(...lagsOf(times, { barMs, from, until }));
  }
  lags.sort((a, b) => a - b);
  const at = (share: number): number => lags[Math.floor(share * (lags.length - 1))]!;
  const lag = { median: at(0.5), p99: at(0.99), worst: at(1) };
  const due = Math.floor((seconds * 1000) / barMs);
  const barsPerSecond = bars / seconds;
  return { sessions, seconds, due, bars, fewest, events, barsPerSecond, lag, memory };
}

interface Period {
  readonly barMs: number;
  readonly from: number;
  readonly until: number;
}

/** Lags of the bars of one session in a period, and of its first bar after them that was due there. */
function lagsOf(times: readonly number[], { barMs, from, until }: Period): readonly number[] {
  const origin = Math.min(...times.map((at, place) => at - place * barMs));
  const lags: number[] = [];
  let next = 0;
  for (const [place, at] of times.entries()) {
    if (at >= until) break;
    next = place + 1;
    if (at >= from) lags.push((at - origin - place * barMs) / barMs);
  }
  const missing = (until - origin - next * barMs) / barMs;
  return missing > 0 ? [...lags, missing] : lags;
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
