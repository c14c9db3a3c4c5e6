import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { barsFromRows } from '../../src/market/bars.ts';
import { importBars } from '../../src/market/catalogue.ts';
import { addToken } from '../../src/identity/tokens.ts';
import { inProcess } from '../cli/in-process.ts';
import { newWorld, type World } from '../identity/people.ts';
import type { Kline } from '../../src/compliance/venue/klines.ts';
import { startExchange, type LocalExchange } from '../trading/local-exchange.ts';
import { startServer, type RunningServer } from './running.ts';

const START = Date.UTC(2026, 0, 5);
const MINUTE = 60_000;
const BTC = 'BTC/USDT';
const at = (minute: number): number => START + minute * MINUTE;

const RISK = [
  'max_order_value',
  'max_order_qty',
  'price_collar_bps',
  'max_messages_per_second',
  'max_position_pct',
  'max_daily_loss_pct',
  'max_drawdown_pct',
  'max_instruments',
];

function documentOf(slug: string, symbol: string, timeframe = '1m'): object {
  return {
    apiVersion: 'bots/v1',
    kind: 'Bot',
    metadata: { name: 'Live', slug },
    spec: {
      kind: 'trading',
      universe: { symbols: [symbol], currency: 'USDT' },
      data: { source: 'catalog://RECORDED', timeframe },
      strategy: { name: 'sma_crossover', params: { fast: 2, slow: 4 } },
      risk: Object.fromEntries(RISK.map((limit) => [limit, { unlimited: 'it is a test' }])),
    },
  };
}

/** Bar of a minute; the price moves in waves. */
function klineOf(minute: number): Kline {
  const price = (of: number): number => 100 + 10 * Math.sin(of / 2);
  const [first, last] = [price(minute), price(minute + 1)];
  const digits = [first, Math.max(first, last), Math.min(first, last), last, 5];
  return digits.map((value) => value.toFixed(8)) as unknown as Kline;
}

let world: World;
let market: LocalExchange;
let directory: string;
let token: string;
let server: RunningServer;
let subscribed = 0;

beforeAll(async () => {
  world = await newWorld('sqlite');
  world.now = Date.now();
  const { id } = await world.newPerson();
  const scopes = ['read', 'write', 'trade'] as const;
  const terms = { label: 'test', scopes, expires_in_seconds: 3600 };
  const { storage, clock } = world.identity;
  ({ token } = await storage.write((tx) => addToken(tx, clock(), 'operator', id, terms)));
  directory = await mkdtemp(join(tmpdir(), 'service-local-live-'));
  market = await startExchange({ symbols: [BTC] });
  market.stopClockAt(at(0));
  const exchanges = {
    local: market.definition,
    gone: { ...market.definition, urls: { public: 'http://127.0.0.1:1' } },
  };
  await writeFile(join(directory, 'exchanges.yaml'), JSON.stringify(exchanges));
  server = await start();
});
afterAll(async () => {
  await server.stop();
  await market.close();
  await world.close();
  await rm(directory, { recursive: true });
});

const start = (): Promise<RunningServer> =>
  startServer(world.database, ['--exchanges-file', join(directory, 'exchanges.yaml')], {
    SERVICE_LOCAL_CATALOGUE_DIR: join(directory, 'catalogue'),
  });

async function call<T>(method: string, path: string, body?: object): Promise<T> {
  const answer = await fetch(`${server.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  return (await answer.json()) as T;
}

interface Event {
  readonly kind: string;
  readonly run_id: string;
  readonly payload: { readonly time: string; readonly bars: Record<string, number[]> };
}

/** Events of a run with these kinds. */
async function eventsOf(slug: string, task_id: string, kinds: string): Promise<Event[]> {
  const path = `/bots/${slug}/state/events?limit=1000&kind=${kinds}`;
  const { items } = await call<{ items: Event[] }>('GET', path);
  return items.filter(({ run_id }) => run_id === task_id);
}

/** Resolves when this number of steps is recorded. */
const recorded = (slug: string, task_id: string, steps: number): Promise<void> =>
  vi.waitFor(async () => expect(await eventsOf(slug, task_id, 'data.bars')).toHaveLength(steps), {
    timeout: 20_000,
    interval: 150,
  });

const ended = (task_id: string): Promise<void> =>
  vi.waitFor(
    async () => expect(await call('GET', `/tasks/${task_id}`)).toMatchObject({ status: 'success' }),
    { timeout: 20_000, interval: 150 },
  );

/** Advances the market bar by bar, with each bar announced. */
async function pass(from: number, to: number): Promise<void> {
  for (let minute = from; minute <= to; minute += 1) {
    market.stopClockAt(at(minute) + 1);
    await market.stream(BTC, at(minute), klineOf(minute));
  }
}

/** Advances the market while no client is connected. */
function passUnheard(from: number, to: number): void {
  for (let minute = from; minute <= to; minute += 1) market.keep(BTC, at(minute), klineOf(minute));
  market.stopClockAt(at(to) + 1);
}

/** Resolves when a client connects again. */
async function heard(): Promise<void> {
  subscribed += 1;
  await market.subscribed(BTC, subscribed);
}

test('a live session trades through a lost connection and a crash like a backtest of the same bars', async () => {
  await call('POST', '/bots', { document: documentOf('live', BTC) });
  const env = { ...server.env, SERVICE_LOCAL_TOKEN: token };
  const how = ['--live', '--exchange', 'local', '--detach', '--json'];
  const { stdout, stderr } = await inProcess(['bots', 'paper', 'start', 'live', ...how], { env });
  expect(stderr).toBe('');
  const { task_id } = JSON.parse(stdout) as { task_id: string };
  await heard();
  await pass(0, 9);
  market.cut();
  passUnheard(10, 12);
  await heard();
  await pass(12, 14);
  await recorded('live', task_id, 14);
  await server.kill();
  passUnheard(15, 20);
  server = await start();
  await heard();
  await pass(20, 40);
  await recorded('live', task_id, 40);
  await call('POST', `/bots/live/paper/stop/${task_id}`);
  await ended(task_id);

  expect(await eventsOf('live', task_id, 'data.gap,data.refused')).toEqual([]);
  const steps = await eventsOf('live', task_id, 'data.bars');
  const rows = steps.map(({ payload: { time, bars } }) => [Date.parse(time), ...bars[BTC]!]);
  expect(rows.map(([time]) => time)).toEqual(Array.from({ length: 40 }, (_, minute) => at(minute)));
  await importBars(join(directory, 'catalogue'), barsFromRows(rows as never), {
    symbol: 'RECORDED',
    timeframe: '1m',
    hasVolume: true,
    origin: 'a session',
    importedAt: '2026-01-05T00:00:00Z',
  });
  const { task_id: backtest } = await call<{ task_id: string }>('POST', '/bots/live/backtest', {});
  await ended(backtest);
  const [live, again] = await Promise.all(
    [task_id, backtest].map((id) => call<Summary>('GET', `/tasks/${id}/result`)),
  );
  expect(live!.orders.filled).toBeGreaterThan(3);
  expect(live!.hashes.events).toBe(again!.hashes.events);
});

test('losses of a live session count towards the limits of the next one', async () => {
  await call('POST', '/bots', { document: documentOf('lossy', BTC) });
  const follow = async (from: number, to: number) => {
    const { task_id } = await call<{ task_id: string }>('POST', '/bots/lossy/paper/start', {
      live: { exchange: 'local' },
    });
    await heard();
    await pass(from, to);
    await recorded('lossy', task_id, to - from);
    await call('POST', `/bots/lossy/paper/stop/${task_id}`);
    await ended(task_id);
    const states = await eventsOf('lossy', task_id, 'session.state');
    return states.map(({ payload }) => payload as unknown as Account);
  };
  // The bot buys while the price rises, and the session ends while it falls.
  const { equity, carry } = (await follow(41, 56)).at(-1)!;
  const used = carry!.risk.peak_equity / equity;
  expect(used).toBeGreaterThan(1.001);
  const next = (await follow(57, 59)).find((state) => state.carry !== undefined)!;
  expect(next.carry!.risk.peak_equity / next.cash).toBeCloseTo(used);
});

interface Account {
  readonly cash: number;
  readonly equity: number;
  readonly carry?: { readonly risk: { readonly peak_equity: number } };
}

interface Summary {
  readonly orders: { readonly filled: number };
  readonly hashes: { readonly events: string };
}

describe('the start of a live session', () => {
  beforeEach(() => {
    vi.setConfig({ testTimeout: 20_000 });
  });

  test.each([
    ['of an exchange that is not in the file', BTC, '1m', { exchange: 'locl' }, 409, /local\?/],
    ['that names none of several exchanges', BTC, '1m', {}, 409, /local, gone/],
    ['of a symbol that the exchange lacks', 'DOGE/USDT', '1m', { exchange: 'local' }, 422, /DOGE/],
    ['of a timeframe that the exchange lacks', BTC, '10m', { exchange: 'local' }, 422, /10m/],
    ['of an exchange that does not answer', BTC, '1m', { exchange: 'gone' }, 503, /gone/],
  ])('refuses a session %s', async (what, symbol, timeframe, live, status, told) => {
    const slug = what.replaceAll(' ', '-');
    await call('POST', '/bots', { document: documentOf(slug, symbol, timeframe) });
    const answer = await call<object>('POST', `/bots/${slug}/paper/start`, { live });
    expect(answer).toMatchObject({ status });
    expect(JSON.stringify(answer)).toMatch(told);
    expect(await call('GET', `/bots/${slug}/deployments`)).toMatchObject({ items: [] });
  });

  test('refuses a session with a past window or a speed', async () => {
    await call('POST', '/bots', { document: documentOf('window', BTC) });
    const body = { live: {}, speed: 2, from: '2026-01-01' };
    expect(await call('POST', '/bots/window/paper/start', body)).toMatchObject({ status: 400 });
  });
});
