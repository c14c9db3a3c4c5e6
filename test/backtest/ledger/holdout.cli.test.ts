import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Summary } from '../../../src/backtest/summary.ts';
import type { SweepDocument } from '../../../src/backtest/search/sweep-document.ts';
import { inProcess } from '../../cli/in-process.ts';
import { serviceLocal } from '../../cli/service-local.ts';
import { isAtLength } from '../../length.ts';

const EXAMPLES = join(import.meta.dirname, '../../../examples');

let home: string;
let bot: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'service-local-holdout-'));
  bot = join(home, 'bot.yaml');
  const spec = readFileSync(join(EXAMPLES, 'sma-crossover.yaml'), 'utf8');
  const data = `{ holdout: 2y, source: ${join(EXAMPLES, 'data/sp500-daily.csv')}, timeframe: 1d }`;
  writeFileSync(bot, spec.replace(/^ {2}data:.*\n(?: {4}.*\n)*/m, `  data: ${data}\n`));
});
afterEach(() => rmSync(home, { recursive: true }));

const cli = (...args: string[]) =>
  inProcess([...args, '--json'], { cwd: home, env: { SERVICE_LOCAL_HOME: join(home, 'home') } });

async function json<T>(...args: string[]): Promise<T> {
  const { code, stdout, stderr } = await cli(...args);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  return JSON.parse(stdout) as T;
}
const backtest = (...args: string[]) => json<Summary>('backtest', bot, '--out=run', ...args);

const HOLDOUT = {
  period: '2y',
  from: '2018-04-18T00:00:00.000Z',
  to: '2020-04-17T00:00:00.000Z',
};

test('a backtest ends before the holdout and says so', async () => {
  const { stdout, stderr } = await cli('backtest', bot, '--out=run');
  const { window, holdout } = JSON.parse(stdout) as Summary;
  expect(stderr).toContain('note: the last 2y, 2018-04-18 to 2020-04-17, is held out');
  expect(window.to).toBe('2018-04-17T00:00:00.000Z');
  expect(holdout).toEqual({ ...HOLDOUT, is_open: false, opened: 0, trials: 0 });
  const cut = await backtest('--to=2018-04-17', '--holdout=1d');
  expect(cut.window.to).toBe('2018-04-16T00:00:00.000Z');
});

test('another end of the data neither moves nor reveals the holdout', async () => {
  writeFileSync(
    bot,
    readFileSync(bot, 'utf8').replace('holdout: 2y', 'holdout: 1y, to: 2015-01-01'),
  );
  const held = { from: '2014-01-02T00:00:00.000Z', to: '2014-12-31T00:00:00.000Z', opened: 0 };
  const { stdout, stderr } = await cli('backtest', bot, '--out=run', '--to=2016-06-01');
  expect(stderr).toContain(
    '2014-01-02 to 2014-12-31, is held out and not part of this run; the bars after it',
  );
  const later = JSON.parse(stdout) as Summary;
  expect(later.window.to).toBe('2013-12-31T00:00:00.000Z');
  expect(later.holdout).toMatchObject(held);
  const earlier = await backtest('--to=2013-06-28');
  expect(earlier.window.to).toBe('2013-06-28T00:00:00.000Z');
  expect(earlier.holdout).toMatchObject(held);
  const sweep = ['backtest', 'sweep', bot, '-p', 'fast=5,10', '--workers=1', '--out=sweep'];
  const { window } = await json<SweepDocument>(...sweep, '--to=2016-06-01');
  expect(window.to).toBe('2013-12-31T00:00:00.000Z');
  const opened = await backtest('--to=2016-06-01', '--open-holdout');
  expect(opened.window.to).toBe('2016-06-01T00:00:00.000Z');
  expect(opened.holdout).toMatchObject({ ...held, opened: 1, is_open: true });
});

test.runIf(isAtLength)('a sweep never sees the holdout', async () => {
  const sweep = ['backtest', 'sweep', bot, '-p', 'fast=5,10', '--workers=1'];
  const { window } = await json<SweepDocument>(...sweep, '--out=sweep');
  expect(window.to).toBe('2018-04-17T00:00:00.000Z');
  const shorter = await json<SweepDocument>(...sweep, '--holdout=3y', '--out=another');
  expect(shorter.window.to).toBe('2017-04-17T00:00:00.000Z');
});

test('each opening of the holdout is recorded and reported', async () => {
  const args = ['backtest', bot, '--out=run', '--open-holdout', '--check-determinism', '--json'];
  const env = { SERVICE_LOCAL_HOME: join(home, 'home') };
  const { code, stdout } = await serviceLocal(args, { cwd: home, env });
  expect(code).toBe(0);
  const first = JSON.parse(stdout) as Summary;
  expect(first.window.to).toBe(HOLDOUT.to);
  expect(first.holdout).toEqual({ ...HOLDOUT, is_open: true, opened: 1, trials: 0 });
  const second = await backtest('--open-holdout', '-p', 'fast=20');
  expect(second.holdout).toEqual({ ...HOLDOUT, is_open: true, opened: 2, trials: 1 });
  const kept = await backtest();
  expect(kept.holdout).toEqual({ ...HOLDOUT, is_open: false, opened: 2, trials: 2 });
  expect(readFileSync(join(home, 'run/report.html'), 'utf8')).toContain(
    'It was opened 2 times, and 2 earlier trials ran over its bars.',
  );
  const { groups } = await json<{ groups: unknown }>('runs', 'trials', '--verify');
  expect(groups).toMatchObject([{ trials: 3, holdout_openings: 2 }]);
});

test('a run cannot open a holdout that is not declared or cannot be recorded', async () => {
  const usage = await cli('backtest', join(EXAMPLES, 'sma-crossover.yaml'), '--open-holdout');
  expect(usage.code).toBe(2);
  expect(usage.stdout).toContain('--open-holdout needs a holdout');
  writeFileSync(join(home, 'home'), '');
  const { code, stdout } = await cli('backtest', bot, '--open-holdout', '--out=run');
  expect(code).toBe(1);
  expect(stdout).toContain('output_not_writable');
});

test('a holdout of the whole history leaves nothing to run', async () => {
  const { code, stdout } = await cli('backtest', bot, '--holdout=50y', '--out=run');
  expect(code).toBe(3);
  expect(stdout).toContain('SPX has no bars before');
});
