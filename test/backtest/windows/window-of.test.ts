import { join } from 'node:path';
import { expect, test } from 'vitest';
import { backtest } from '../../../src/backtest/backtest.ts';
import type { BacktestJob } from '../../../src/backtest/job.ts';
import { windowOf } from '../../../src/backtest/windows/window-of.ts';
import { loadBot } from '../../../src/bots/load-bot.ts';
import { prepare } from '../../../src/bots/prepare.ts';
import { parseWindow } from '../../../src/market/bar-time.ts';

const FILE = join(import.meta.dirname, '../../../examples/sma-crossover.yaml');

async function jobOf(from?: string, to?: string): Promise<BacktestJob> {
  const bot = loadBot(FILE, { params: {}, from, to });
  return (await prepare(bot, { catalogueDir: '/nowhere', assertions: [] })).job;
}

test('a window of a job gives the run, data and warm-up of a job prepared for these dates', async () => {
  const cut = windowOf(await jobOf(), parseWindow('2004-03-01', '2005-02-28'));
  const prepared = await jobOf('2004-03-01', '2005-02-28');

  const [one, other] = await Promise.all(
    [cut, prepared].map((job) => backtest(job, { runId: 'test', timeoutMs: 10_000 })),
  );
  expect(one!.result.trades.length).toBeGreaterThan(2);
  expect([...one!.result.journal.events()]).toEqual([...other!.result.journal.events()]);
  expect(cut.lock.data).toEqual(prepared.lock.data);
  expect(cut.lock.warm_up).toEqual(prepared.lock.warm_up);
  expect(cut.lock.warm_up).toBeDefined();
});

test('a window of a window equals the window of the whole job', async () => {
  const job = await jobOf();
  const inner = parseWindow('2004-03-01', '2005-02-28');
  const outer = windowOf(job, parseWindow('2002-01-01', '2008-12-31'));
  expect(windowOf(outer, inner).lock).toEqual(windowOf(job, inner).lock);
});

test('a window that begins with the data has no warm-up', async () => {
  const job = await jobOf();
  const cut = windowOf(job, { to: Date.UTC(2005, 0, 1) });
  expect(cut.lock.warm_up).toBeUndefined();
  expect(cut.instruments[0]!.warmUp).toHaveLength(0);
  expect(cut.instruments[0]!.bars.time.at(-1)).toBeLessThan(Date.UTC(2005, 0, 1));
  expect(cut.instruments[0]!.bars.time.buffer).toBe(job.instruments[0]!.bars.time.buffer);
});

test('a window without bars is rejected with the symbol and the dates', async () => {
  const job = await jobOf();
  expect(() => windowOf(job, parseWindow('1980-01-01', '1980-12-31'))).toThrow(
    'SPX has no bars from 1980-01-01 and before 1981-01-01',
  );
});
