import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { earlierTrials } from '../../src/backtest/ledger/earlier-trials.ts';
import { NO_KEYS, packTrials } from '../../src/backtest/ledger/packed-trials.ts';
import { countTrials, readTrials } from '../../src/fleet/tasks/trial-entries.ts';
import { newTestApp, type Answer, type TestApp } from './in-process.ts';

let server: TestApp;
let authorization: string;
beforeAll(async () => {
  server = await newTestApp();
  authorization = await server.bearer('read', 'write');
});
afterAll(() => server.close());

const SCOPE = {
  family: 'sma_crossover',
  symbols: ['SPX'],
  bar_ms: 86_400_000,
  from: '2005-01-03T00:00:00.000Z',
  to: '2015-01-02T00:00:00.000Z',
};
const packed = (sharpe: number, key = 1): string =>
  packTrials(new Map([[key.toString(16).padStart(16, '0'), sharpe]]));
const REPORT = { lock: 'e'.repeat(64), ...SCOPE, trials: packed(0.5) };

const report = (change: object): Promise<Answer> =>
  server.send('POST', '/trials', {
    headers: { authorization },
    body: { ...REPORT, ...change },
  });
const earlier = async (scope = SCOPE) => {
  const own = { lock: 'a'.repeat(64), scope, keys: [] };
  return (await countTrials(server.services.tasks.storage.read, own)).earlier;
};

test.each([
  ['end before they begin', { from: SCOPE.to, to: SCOPE.from }],
  ['have part of a millisecond per bar', { bar_ms: 0.5 }],
  ['have bars of ages', { bar_ms: 1e16 }],
  ['have a Sharpe ratio whose square is infinite', { trials: packed(1e200) }],
])('trials that %s are not recorded', async (_, change) => {
  expect(await report(change)).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
  expect(await earlier()).toMatchObject({ count: 0 });
});

test.each(['/trials', '/bots/own/backtest'])(
  'the large bodies of %s are read only from authenticated callers',
  async (path) => {
    const body = ' '.repeat(1024 * 1024 + 1);
    const send = (headers: Readonly<Record<string, string>>): Promise<Answer> =>
      server.send('POST', path, { headers, body });
    expect(await send({})).toMatchObject({ status: 401 });
    expect(await send({ authorization })).toMatchObject({ status: 413 });
  },
);

test('an entry with a negative window leaves the figures of others defined', async () => {
  expect(await report({})).toMatchObject({ status: 204 });
  expect(await report({ trials: packed(3, 2) })).toMatchObject({ status: 204 });
  // The columns overlap with the scope, as those of an entry from 2015 to 2005 do.
  const [from, to] = [Date.parse(SCOPE.to), Date.parse(SCOPE.from)];
  const reversed = `window_from = ${from}, window_to = ${to}`;
  await server.execute(`update trial_entries set ${reversed} where seq = 2`);
  expect(await earlier()).toMatchObject({ sharpe_count: 1, sharpe_mean: 0.5 });
});

test('a page of large entries is read in parts', async () => {
  const keys = Array.from({ length: 100 }, (_, at) => at.toString(16).padStart(16, '0'));
  const trials = packTrials(new Map(keys.map((key) => [key, 0])));
  for (let at = 10; at < 50; at += 1) {
    expect(await report({ lock: String(at).repeat(32), trials })).toMatchObject({ status: 204 });
  }
  let rowsRead = 0;
  const counted = server.services.tasks.storage.read.withPlugin({
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      rowsRead += result.rows.length;
      return result;
    },
  });
  const most = { count: 1000, bytes: 3.5 * trials.length };
  const { entries, hasMore } = await readTrials(counted, 2, most);
  expect(entries.map(({ seq }) => seq)).toEqual([3, 4, 5]);
  expect(hasMore).toBe(true);
  expect(rowsRead).toBeLessThan(20);
  const all = await readTrials(counted, 2, { count: 40, bytes: 1e9 });
  expect([all.entries.length, all.hasMore]).toEqual([40, false]);
  expect(await readTrials(counted, 2, { count: 39, bytes: 1e9 })).toMatchObject({ hasMore: true });
});

test('trials that are reported at once are recorded once, and reported again write nothing', async () => {
  const { storage } = server.services.tasks;
  const write = vi.spyOn(storage, 'write');
  const change = { lock: 'b'.repeat(64), trials: packed(1, 7) };
  await Promise.all([report(change), report(change), report(change)]);
  const { entries } = await readTrials(storage.read, 0, { count: 1000, bytes: 1e9 });
  expect(entries.filter(({ lock }) => lock === change.lock)).toHaveLength(1);
  write.mockClear();
  expect(await report(change)).toMatchObject({ status: 204 });
  expect(write).not.toHaveBeenCalled();
});

test('the server computes the figures that a machine computes from the entries', async () => {
  const scope = { ...SCOPE, family: 'rsi_reversion' };
  const window = { from: '2008-01-02T00:00:00.000Z', to: '2009-01-02T00:00:00.000Z' };
  for (const [index, sharpe] of [0.1, 0.7, -0.3, 0.2].entries()) {
    const change = { ...scope, ...(index > 1 && window), trials: packed(sharpe, 10 + index) };
    expect(await report(change)).toMatchObject({ status: 204 });
  }
  // The entry of a backtest is not packed.
  await server.execute(
    "update trial_entries set packed = null, sharpe = -0.3 where trial_key = '000000000000000c'",
  );
  const most = { count: 1000, bytes: 1e6 };
  const { entries } = await readTrials(server.services.tasks.storage.read, 0, most);
  const figures = earlierTrials(entries, scope, { lock: 'a'.repeat(64), keys: NO_KEYS });
  expect(figures).toMatchObject({ count: 4, sharpe_count: 4 });
  expect(await earlier(scope)).toEqual(figures);
});
