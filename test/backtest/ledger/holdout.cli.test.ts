import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { TrialGroup } from '../../../src/backtest/ledger/trial-groups.ts';
import { DAY } from '../../../src/base/durations.ts';
import type { Summary } from '../../../src/backtest/summary.ts';
import type { SweepDocument } from '../../../src/backtest/search/sweep-document.ts';
import {
  backtest as backtestInProgram,
  robustness,
  sweep,
  walkForward,
} from '../../../src/bots/library.ts';
import { inProcess } from '../../cli/in-process.ts';
import { serviceLocal } from '../../cli/service-local.ts';
import { isAtLength, some } from '../../length.ts';

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

test.runIf(isAtLength)(
  'another end of the data neither moves nor reveals the holdout',
  async () => {
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
    const words = ['backtest', 'sweep', bot, '-p', 'fast=5,10', '--workers=1', '--out=sweep'];
    const { window } = await json<SweepDocument>(...words, '--to=2016-06-01');
    expect(window.to).toBe('2013-12-31T00:00:00.000Z');
    const none = await backtest('--to=2013-06-28', '--open-holdout');
    expect(none.holdout).toMatchObject({ ...held, is_open: false });
    const opened = await backtest('--to=2016-06-01', '--open-holdout');
    expect(opened.window.to).toBe('2016-06-01T00:00:00.000Z');
    expect(opened.holdout).toMatchObject({ ...held, opened: 1, is_open: true });
  },
);

/** Writes daily bars of which those from `since` on have other prices. */
function writeBars(file: string, since: number, factor: number): void {
  const rows = Array.from({ length: 400 }, (_, day) => {
    const time = new Date(Date.UTC(2015, 0, 1) + day * DAY).toISOString().slice(0, 10);
    const wave = 100 + 20 * Math.sin(day / 9) + 5 * Math.sin(day / 2);
    const price = day >= since ? wave * (1 + factor * Math.cos(day)) : wave;
    return [time, price, price + 1, price - 1, price, 1000].join(',');
  });
  writeFileSync(file, `time,open,high,low,close,volume\n${rows.join('\n')}\n`);
}

/** The figures of a run, without what names its data: lock, holdout, duration, ids and hashes of files. */
const figuresOf = (document: object): unknown =>
  JSON.parse(
    JSON.stringify(document, (name, value: unknown) =>
      ['lock', 'version', 'engine', 'run_id', 'window'].includes(name) ? undefined : value,
    ),
  );

const COMMANDS: readonly (readonly [verb: string, args: readonly string[]])[] = [
  ['backtest', []],
  ['backtest sweep', ['-p', 'fast=3,5', '-p', 'slow=10,20', '--prune', '--workers=1']],
  ['backtest sweep', ['-p', 'fast=3,5', '-p', 'slow=10,20', '--workers=1']],
  ['backtest walk-forward', ['-p', 'fast=3,5', '--train=90d', '--test=45d', '--workers=1']],
  ['backtest robustness', ['--seed=1', '--permutations=3', '--workers=1']],
  ['backtest', ['--to=2030-01-01']],
  ['backtest', ['--from=2015-03-01']],
];

// In `npm test`, only `backtest` runs here, and only `walkForward` among the functions of the library.
test.each(some(1, COMMANDS))(
  '%s %j has no figure that depends on a bar of the holdout',
  async (verb, args) => {
    const figures = await withOtherHoldouts(async (options) => {
      const words = [...verb.split(' '), bot, ...args, `--out=${options.out}`, '--json'];
      const env = { SERVICE_LOCAL_HOME: options.home };
      const { code, stdout, stderr } = await inProcess(words, { cwd: home, env });
      expect({ code, stderr }).toMatchObject({ code: 0 });
      const document = JSON.parse(stdout) as Pick<Summary, 'holdout'>;
      expect(document.holdout).toMatchObject({ period: '90d', is_open: false, opened: 0 });
      return figuresOf(document);
    });
    expect(figures[1]).toEqual(figures[0]);
  },
);

test.runIf(isAtLength)('--step reaches no bar of the holdout', async () => {
  const replies = await withOtherHoldouts(async (options) => {
    const words = ['backtest', bot, '--step', `--out=${options.out}`, '--json'];
    const env = { SERVICE_LOCAL_HOME: options.home };
    const input = 'continue\nprint close\nquit\n';
    const { code, stdout } = await inProcess(words, { cwd: home, env, input });
    expect(code).toBe(0);
    const lines = stdout.trim().split('\n').slice(0, 3);
    expect(lines[1]).toContain('"bar":310,"bars":310,"time":"2015-11-06');
    return lines;
  });
  expect(replies[1]).toEqual(replies[0]);
});

const search = { params: { fast: [3, 5], slow: [10, 20] }, workers: 1 };

type Runs = (given: { readonly home: string }) => Promise<object>;
const FUNCTIONS: readonly (readonly [name: string, run: Runs])[] = [
  ['walkForward', (given) => walkForward(bot, { ...given, ...search, train: '90d', test: '45d' })],
  ['robustness', (given) => robustness(bot, { ...given, permutations: 3, workers: 1 })],
  ['backtest', (given) => backtestInProgram(bot, given)],
  ['sweep', (given) => sweep(bot, { ...given, ...search })],
];

test.each(some(1, FUNCTIONS))(
  'the library function %s has no figure that depends on a bar of the holdout',
  async (_, run) => {
    const figures = await withOtherHoldouts(async (given) =>
      figuresOf(await run({ home: given.home })),
    );
    expect(figures[1]).toEqual(figures[0]);
  },
);

/**
 * Runs something twice, over bars that differ only in the holdout, each with a home of its own. Checks
 * that the ledgers have trials before the holdout only, and no opening.
 */
async function withOtherHoldouts<T>(
  run: (options: { readonly home: string; readonly out: string }) => Promise<T>,
): Promise<T[]> {
  const source = join(home, 'bars.csv');
  const spec = readFileSync(join(EXAMPLES, 'sma-crossover.yaml'), 'utf8');
  const data = `{ holdout: 90d, source: ${source}, timeframe: 1d }`;
  const text = spec
    .replace(/^ {2}data:.*\n(?: {4}.*\n)*/m, `  data: ${data}\n`)
    .replace(/params:.*$/m, 'params: { fast: 4, slow: 12 } }');
  writeFileSync(bot, text);
  const results: T[] = [];
  for (const factor of [0, 0.3]) {
    writeBars(source, 310, factor);
    const own = { home: join(home, `home-${factor}`), out: join(home, `out-${factor}`) };
    results.push(await run(own));
    const env = { SERVICE_LOCAL_HOME: own.home };
    const trials = await inProcess(['runs', 'trials', '--json'], { cwd: home, env });
    const { groups } = JSON.parse(trials.stdout) as { groups: TrialGroup[] };
    expect(groups).not.toEqual([]);
    expect(groups.every((group) => group.holdout_openings === 0)).toBe(true);
    expect(groups.every(({ to }) => Date.parse(to) < Date.UTC(2015, 0, 1) + 310 * DAY)).toBe(true);
  }
  return results;
}

test.runIf(isAtLength)('a sweep never sees the holdout', async () => {
  const words = ['backtest', 'sweep', bot, '-p', 'fast=5,10', '--workers=1'];
  const { window } = await json<SweepDocument>(...words, '--out=sweep');
  expect(window.to).toBe('2018-04-17T00:00:00.000Z');
  const shorter = await json<SweepDocument>(...words, '--holdout=3y', '--out=another');
  expect(shorter.window.to).toBe('2017-04-17T00:00:00.000Z');
});

test('each opening of the holdout is recorded and reported', async () => {
  const args = ['backtest', bot, '--out=run', '--open-holdout', '--json'];
  const env = { SERVICE_LOCAL_HOME: join(home, 'home') };
  // A second process, which checks determinism, opens it no second time.
  const { code, stdout } = isAtLength
    ? await serviceLocal([...args, '--check-determinism'], { cwd: home, env })
    : await inProcess(args, { cwd: home, env });
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
  expect(stdout).toContain('the holdout 50y leaves SPX no bars: its first bar is 2000-01-03');
});
