import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { DAY } from '../../../../src/base/durations.ts';
import type { SessionState } from '../../../../src/events/session-state.ts';
import { barsFromRows } from '../../../../src/market/bars.ts';
import { loadDataset } from '../../../../src/market/load-dataset.ts';
import { parseTimeframe } from '../../../../src/market/timeframe.ts';
import { liveFeed } from '../../../../src/trading/live-feed.ts';
import type { ExchangeBar } from '../../../../src/trading/venues/market-data.ts';
import type { SessionWork } from '../../../../src/trading/host/threads/session-work.ts';
import {
  runSession,
  type UnnumberedBatch,
} from '../../../../src/trading/host/threads/threaded-session.ts';
import {
  INPUT_KINDS,
  inputEvent,
  parseInput,
  type SessionEvent,
} from '../../../../src/trading/session-events.ts';
import { fillCatalogue, tradingDocument } from '../../../fleet/tasks/market.ts';
import { strategyThat } from '../../sandbox/bundles.ts';
import { SCRATCH } from '../../../scratch.ts';

const BEGINNING: SessionState = {
  status: 'running',
  time: null,
  seq: 0,
  cash: 100_000,
  equity: 100_000,
  positions: {},
  working: [],
};

const DOCUMENT = tradingDocument('crash', 'sma_crossover', { fast: 2, slow: 4 });

class Crash extends Error {}

let catalogueDir: string;
/** The same for all runs. */
let dataset: ReturnType<typeof loadDataset> | undefined;
beforeAll(async () => {
  catalogueDir = mkdtempSync(join(SCRATCH, 'service-local-threaded-'));
  await fillCatalogue(catalogueDir, 1);
});
afterAll(() => rmSync(catalogueDir, { recursive: true }));

/** Durable writes. */
interface Disk {
  readonly events: SessionEvent[];
  state: SessionState;
  batches: number;
}

/** Runs the session on a disk; `onWrite` is called before and after each durable write. */
function run(
  disk: Disk,
  onWrite: (when: 'before' | 'after') => void,
  stop = new AbortController().signal,
  document: SessionWork['document'] = DOCUMENT,
  live?: Parameters<typeof runSession>[1]['live'],
  changes: Partial<SessionWork> = {},
) {
  const work: SessionWork = {
    runId: 'crash',
    document,
    // A finite speed writes a batch for each step.
    input: live ? { speed: 1, live: { exchange: 'x' } } : { speed: 1e12, to: '2000-01-21' },
    recorded: { state: disk.state, batches: disk.batches },
    catalogueDir,
    timeoutMs: 60_000,
    directory: join(catalogueDir, 'result'),
    ...changes,
  };
  const inputs = async function* () {
    for (const { kind, payload } of disk.events.slice()) {
      const known = INPUT_KINDS.find((one) => one === kind);
      if (known !== undefined) yield parseInput(known, JSON.stringify(payload));
    }
  };
  const record = async ({ events, state }: UnnumberedBatch): Promise<void> => {
    onWrite('before');
    disk.events.push(...events);
    disk.state = state;
    disk.batches += 1;
    onWrite('after');
  };
  return runSession(work, {
    inputs: inputs(),
    readSupervision: async () => ({ thresholds: {}, permits: [], latches_lifted: 0 }),
    load: (options) => (dataset ??= loadDataset(options)),
    live: live ?? (() => Promise.reject(new Error('no live bars'))),
    record,
    stop,
    gone: new AbortController().signal,
  });
}

// Events without a time of the data have that of the clock.
beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }));
afterEach(() => void vi.useRealTimers());

const newDisk = (): Disk => ({ events: [], state: BEGINNING, batches: 0 });

test('a crash before or after any durable write loses and repeats nothing', async () => {
  const whole = newDisk();
  let writes = 0;
  await run(whole, (when) => (writes += when === 'before' ? 1 : 0));
  expect(writes).toBeGreaterThan(15);
  expect(whole.events.some(({ kind }) => kind === 'order.filled')).toBe(true);
  for (let failing = 1; failing <= writes; failing += 1) {
    for (const moment of ['before', 'after'] as const) {
      const disk = newDisk();
      let count = 0;
      const crash = (when: 'before' | 'after'): void => {
        if (when === 'before') count += 1;
        if (count === failing && when === moment) throw new Crash();
      };
      await expect(run(disk, crash)).rejects.toThrow(Crash);
      await run(disk, () => {});
      expect(disk.events).toEqual(whole.events);
      expect(disk.state).toEqual(whole.state);
    }
  }
});

test('a stopped session is halted, and stays halted after a crash', async () => {
  const disk = newDisk();
  const stop = new AbortController();
  let writes = 0;
  const stopLater = (when: 'before' | 'after'): void => {
    writes += when === 'before' ? 1 : 0;
    if (writes === 8) stop.abort();
  };
  const ended = await run(disk, stopLater, stop.signal);
  expect(ended).toMatchObject({ isStopped: true });
  expect(disk.state).toMatchObject({ status: 'halted', working: [] });
  const { length } = disk.events;
  const again = await run(disk, () => {});
  expect(again).toMatchObject({ isStopped: true });
  expect(disk.events).toHaveLength(length);
});

test('a session whose account is lost ends at once, and writes that only once', async () => {
  // The first order buys many times the volume of a bar.
  const slippage = { model: 'volume_share', impact: 0.9 };
  const account = { model: 'margin', initial: 0.5, maintenance: 0.25 };
  const engine = { cash: '1000000', slippage, account };
  const spec = { ...(DOCUMENT['spec'] as object), engine };
  const disk = { ...newDisk(), state: { ...BEGINNING, cash: 1e6, equity: 1e6 } };
  const written: SessionState['status'][] = [];
  const note = (when: 'before' | 'after'): void => {
    if (when === 'after') written.push(disk.state.status);
  };
  await run(disk, note, new AbortController().signal, { ...DOCUMENT, spec });
  expect(written.filter((status) => status !== 'running')).toEqual(['ruined']);
});

test('a step of custom code whose orders take too long to repeat ends the session, not one of a built-in strategy', async () => {
  const disk = newDisk();
  const { signal } = new AbortController();
  const limit = { timeoutMs: 1 };
  await run(disk, () => {}, signal, DOCUMENT, undefined, limit);
  expect(disk.state.status).toBe('running');

  const text = strategyThat(
    `for (let i = 0; i < 5000; i += 1)
      broker.order({ instrument: instruments[0], side: 'buy', quantity: 1e-6, type: 'limit', limit: 1 });`,
  );
  const spec = { ...(DOCUMENT['spec'] as object), strategy: { module: './own.ts' } };
  const customCode = { memoryMb: 256, timeoutMs: 60_000 };
  const changes = { ...limit, files: { 'own.ts': text }, customCode };
  const running = run(newDisk(), () => {}, signal, { ...DOCUMENT, spec }, undefined, changes);
  await expect(running).rejects.toMatchObject({ code: 'strategy_timeout' });
});

/** A port with live bars of an exchange that streams daily bars with these closes, but returns no past ones. */
function portOf(closes: readonly number[]): MessagePort {
  const { port1, port2 } = new MessageChannel();
  const closed = new AbortController();
  const bars: ExchangeBar[] = closes.map((close, day) => ({
    time: Date.UTC(2026, 0, 5) + day * DAY,
    open: close,
    high: close,
    low: close,
    close,
    volume: 1,
  }));
  const exchange = {
    check: async () => {},
    checkHistory: async () => {},
    offers: () => true,
    pageSize: 1000,
    watch: async () => [bars.shift() ?? (await new Promise<never>(() => {}))],
    history: () => Promise.reject(new Error('the exchange does not answer')),
    time: async () => undefined,
    drop() {},
    close: async () => {},
  };
  port1.on('close', () => closed.abort());
  port1.once('message', async (after: number | undefined) => {
    const options = { exchange, symbols: ['SPX'], timeframe: parseTimeframe('1d'), after };
    const warmUp = { bars: 4, longer: {} };
    const items = liveFeed({ ...options, warmUp, signal: closed.signal });
    try {
      for await (const item of items) port1.postMessage({ item });
    } catch (error) {
      if (!closed.signal.aborted) throw error;
    }
  });
  return port2;
}

test('a session killed within the bars before its first step does not trade by them if they cannot be fetched again', async () => {
  const old = [9, 8, 7, 6].map((price, day) => {
    return [Date.UTC(2025, 5, 1) + day * DAY, price, price, price, price, 1] as const;
  });
  const part = { kind: 'data.warm_up', bars: { SPX: barsFromRows(old) } } as const;
  const disk = { ...newDisk(), events: [inputEvent(part, 0)] };
  const stop = new AbortController();
  const count = (): number => disk.events.filter(({ kind }) => kind === 'data.bars').length;
  const stopLater = (): void => {
    if (count() === 3) stop.abort();
  };
  await run(disk, stopLater, stop.signal, DOCUMENT, async () => portOf([50, 60, 70, 80]));
  expect(disk.events.slice(1).map(({ kind }) => kind)).toEqual([
    'data.warm_up',
    'data.bars',
    'data.bars',
    'data.bars',
  ]);
  expect(disk.events[1]!.payload).toEqual({ columns: {} });
  expect(disk.state.working).toEqual([]);
});
