import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { Summary } from '../../../src/backtest/summary.ts';
import type { SweepDocument } from '../../../src/backtest/search/sweep-document.ts';
import type { RobustnessDocument } from '../../../src/backtest/robustness/robustness-document.ts';
import type { TrialGroup } from '../../../src/backtest/ledger/trial-groups.ts';
import { backtest as runInProgram } from '../../../src/bots/library.ts';
import { inProcess } from '../../cli/in-process.ts';
import { isAtLength } from '../../length.ts';

const SMA = join(import.meta.dirname, '../../../examples/sma-crossover.yaml');

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'service-local-trials-'));
});
afterEach(() => rmSync(home, { recursive: true }));

const cli = (...args: string[]) =>
  inProcess(args, { cwd: home, env: { SERVICE_LOCAL_HOME: join(home, 'home') } });

async function json<T>(...args: string[]): Promise<T> {
  const { code, stdout, stderr } = await cli(...args, '--json');
  expect({ code, stderr }).toMatchObject({ code: 0 });
  return JSON.parse(stdout) as T;
}

const backtest = (...args: string[]) => json<Summary>('backtest', SMA, '--out=run', ...args);
const sweep = (...args: string[]) => json<SweepDocument>('backtest', 'sweep', SMA, ...args);
const groups = async () => (await json<{ groups: TrialGroup[] }>('runs', 'trials')).groups;

test('backtests and sweeps of a bot count together, and repeated ones once', async () => {
  expect((await cli('runs', 'trials')).stdout).toContain('No trial is recorded yet');
  const first = await backtest();
  expect(first.deflated_sharpe).toEqual({
    probability: null,
    expected_max_sharpe: null,
    trials: 1,
  });
  expect(first.undefined['deflated_sharpe.probability']).toBe('too_few_trials');
  const again = await backtest();
  expect([again.lock, again.hashes]).toEqual([first.lock, first.hashes]);

  const grid = ['-p', 'fast=5,10', '-p', 'slow=50,100', '--workers=1'];
  const swept = await sweep(...grid, '--out=sweep');
  expect(swept.deflated_sharpe?.trials).toBe(5);
  if (isAtLength) expect(await sweep(...grid, '--out=another')).toEqual(swept);

  const last = await backtest('--from=2005-01-01', '-p', 'fast=20');
  expect(last.lock.trials).toMatchObject({ count: 5, sharpe_count: 5 });
  expect(last.deflated_sharpe?.trials).toBe(6);
  expect(last.deflated_sharpe?.probability).toBeGreaterThan(0);
  expect(readFileSync(join(home, 'run/report.html'), 'utf8')).toContain(
    'Trial 6 on these data: the best of 6 trials without skill',
  );
  expect(await groups()).toMatchObject([
    { family: 'sma_crossover', symbols: ['SPX'], bar_ms: 86_400_000, trials: 6 },
  ]);
});

test.runIf(isAtLength)(
  'a backtest whose strategy fails counts once without a Sharpe ratio, as on a server',
  async () => {
    writeFileSync(
      join(home, 'late.mjs'),
      `import { defineStrategy, integer } from 'service-local/strategy';
export default defineStrategy({
  name: 'late', description: 'Fails at a bar.', params: { bar: integer({ default: 9 }) },
  create: ({ params }) => {
    let bars = 0;
    return { onBar() { if (++bars === params.bar) throw new Error('no more bars'); } };
  },
});`,
    );
    const spec = parse(readFileSync(SMA, 'utf8')) as {
      spec: { strategy: object; data: object; metrics?: object };
    };
    delete spec.spec.metrics;
    spec.spec.strategy = { module: './late.mjs' };
    spec.spec.data = { ...spec.spec.data, source: join(SMA, '../data/sp500-daily.csv') };
    const bot = join(home, 'late.json');
    writeFileSync(bot, JSON.stringify(spec));
    for (const bar of ['9', '9', '10']) {
      const { code, stderr } = await cli('backtest', bot, '--out=run', '-p', `bar=${bar}`);
      expect({ code, stderr }).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('no more'),
      });
    }
    const given = { home: join(home, 'home'), out: join(home, 'run') };
    for (const bar of [10, 11]) {
      await expect(runInProgram(bot, { ...given, params: { bar } })).rejects.toThrow(
        'no more bars',
      );
    }
    expect(await groups()).toMatchObject([{ family: 'late', trials: 3, best_sharpe: null }]);
    const { lock } = await json<Summary>('backtest', bot, '--out=run', '-p', 'bar=9999');
    expect(lock.trials).toMatchObject({ count: 3, sharpe_count: 0 });
  },
);

test.runIf(isAtLength)(
  'a trial counts once, whichever command runs it and whatever else changes in its spec',
  async () => {
    await backtest('-p', 'fast=12');
    await sweep('-p', 'fast=12', '--workers=1', '--out=sweep');
    const data = join(import.meta.dirname, '../../../examples/data');
    const text = readFileSync(SMA, 'utf8').replace('./data', data);
    const bot = join(home, 'bot.yaml');
    const count = async (changed: string): Promise<number> => {
      writeFileSync(bot, changed);
      await json<Summary>('backtest', bot, '--out=run', '-p', 'fast=12');
      return (await groups())[0]!.trials;
    };
    expect(await count(text.replace('SMA crossover on', 'Moving averages of'))).toBe(1);
    expect(await count(text.replace(/cash: .*/, "cash: '5000'"))).toBe(2);
  },
);

test.runIf(isAtLength)(
  'a robustness test counts its neighbors once, and neither stresses nor permutations',
  async () => {
    const testRobustness = async (...args: string[]) => {
      const words = [SMA, '-p', 'fast=10,20', '--permutations=2', '--workers=1', ...args];
      return json<RobustnessDocument>('backtest', 'robustness', ...words);
    };
    const { chosen, neighbors, stresses, lock } = await testRobustness('--out=first');
    expect(lock.trials?.count).toBe(0);
    expect(stresses.length).toBeGreaterThan(0);
    const grid = [10, 20].map((fast) => `fast=${fast}`);
    const ran = new Set([...grid, ...neighbors.map(({ label }) => label)]);
    expect(ran.size).toBeGreaterThan(grid.length);
    expect(await groups()).toMatchObject([{ trials: ran.size }]);

    const slow = neighbors.find(({ label }) => label.startsWith('slow='));
    await backtest('-p', `fast=${chosen.params['fast']}`, '-p', slow!.label);
    expect(await groups()).toMatchObject([{ trials: ran.size, best_sharpe: expect.any(Number) }]);
    expect((await testRobustness('--out=first')).lock.trials?.count).toBe(0);
    expect(await groups()).toMatchObject([{ trials: ran.size }]);

    // A ledger that was lost after the runs is filled again when the test resumes.
    rmSync(join(home, 'home/trials'), { recursive: true });
    await testRobustness('--out=first');
    expect(await groups()).toMatchObject([{ trials: ran.size }]);
  },
);

test.runIf(isAtLength)(
  'the deflated Sharpe ratio is a gate, and the terminal counts the trial',
  async () => {
    await backtest();
    await backtest('-p', 'fast=12');
    const gate = ['--assert', 'deflated_sharpe>=0.99', '--out=run'];
    const { code, stdout } = await cli('backtest', SMA, '-p', 'fast=14', ...gate);
    expect(code).toBe(5);
    expect(stdout).toContain('Trial 3 on these data: the best of 3 trials without skill');
    expect(stdout).toMatch(/deflated_sharpe >= 0\.99 +0\.\d+ +FAIL/);
  },
);

test.runIf(isAtLength)('a lock file keeps its digest, whatever was counted since', async () => {
  const bot = join(home, 'bot.yaml');
  const data = join(import.meta.dirname, '../../../examples/data');
  writeFileSync(bot, readFileSync(SMA, 'utf8').replace('./data', data));
  const written = await json<Summary>('backtest', bot, '--out=run', '--write-lock');
  await backtest('-p', 'fast=12');
  const verified = await json<Summary>('backtest', bot, '--out=run', '--verify-lock');
  expect(verified.lock.trials?.count).toBe(1);
  expect(verified.lock.digest).toBe(written.lock.digest);
});

test('runs trials --verify names an altered entry and exits with 1', async () => {
  await backtest();
  if (isAtLength) await backtest('-p', 'fast=12');
  expect((await cli('runs', 'trials', '--verify')).code).toBe(0);
  const file = join(home, 'home/trials/ledger.ndjson');
  writeFileSync(file, readFileSync(file, 'utf8').replace('"count":1', '"count":0'));
  const { code, stdout, stderr } = await cli('runs', 'trials', '--verify');
  expect(code).toBe(1);
  expect(stdout).toContain('entry 1 has been altered.');
  expect(stderr).toContain(`trials_tampered: ${file}: entry 1 has been altered`);
});

test('a home directory that cannot be written to leaves a backtest uncounted, and says so', async () => {
  writeFileSync(join(home, 'home'), '');
  const { code, stdout, stderr } = await cli('backtest', SMA, '--out=run', '--json');
  expect(code).toBe(0);
  expect(stderr).toContain('warning: trials are not counted: cannot write');
  expect(JSON.parse(stdout)).toHaveProperty('hashes.events');
});
