import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { packTrials, type ExecutedTrial } from '../../../src/backtest/ledger/packed-trials.ts';
import { LedgerFile } from '../../../src/backtest/ledger/ledger-file.ts';
import { groupTrials } from '../../../src/backtest/ledger/trial-groups.ts';
import { TrialLedger } from '../../../src/backtest/ledger/trial-ledger.ts';
import { isAtLength, runs } from '../../length.ts';
import { jobOf } from './jobs.ts';
import type { EarlierTrials } from '../../../src/backtest/summary.ts';

let home: string;
let file: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'service-local-ledger-'));
  file = join(home, 'trials/ledger.ndjson');
});
afterEach(() => rmSync(home, { recursive: true }));

const trialsOf = (...sharpes: (number | null)[]): ExecutedTrial[] =>
  sharpes.map((sharpe, fast) => ({ params: { fast }, sharpe }));

const earlier = (job = jobOf(), own: ExecutedTrial[] = []): EarlierTrials =>
  new TrialLedger(home).capture(job)(own);

const NONE: EarlierTrials = {
  count: 0,
  sharpe_count: 0,
  sharpe_mean: null,
  sharpe_variance: null,
};

test('the best Sharpe ratio of a group is comparable between windows of other lengths', () => {
  const ledger = new TrialLedger(home);
  ledger.record(jobOf({ bars: 400 }), 'sweep', trialsOf(1, null));
  ledger.record(jobOf({ bars: 100, lock: 'b'.repeat(64) }), 'sweep', trialsOf(1.9));
  expect(groupTrials(ledger.entries())).toMatchObject([{ trials: 3, best_sharpe: 1 }]);
  ledger.record(jobOf({ bars: 100, lock: 'c'.repeat(64) }), 'sweep', trialsOf(2.4));
  expect(groupTrials(ledger.entries())).toMatchObject([{ trials: 4, best_sharpe: 1.2 }]);
});

describe('trials that were recorded', () => {
  const record = (job = jobOf(), trials = trialsOf(1, 2, null)): void =>
    new TrialLedger(home).record(job, 'sweep', trials);

  test('count with their mean and variance, failed ones without', () => {
    expect(earlier()).toEqual(NONE);
    record();
    const both = { count: 3, sharpe_count: 2, sharpe_mean: 1.5, sharpe_variance: 0.5 };
    expect(earlier()).toEqual(both);
  });

  test('count once, however often and in whichever batches they are repeated', () => {
    record();
    record(jobOf(), trialsOf(1, 2, null, 4).slice(1));
    record();
    expect(earlier().count).toBe(4);
    const ledger = new TrialLedger(home);
    ledger.record(jobOf(), 'sweep', [...trialsOf(1), ...trialsOf(1)]);
    ledger.record(jobOf({ lock: 'b'.repeat(64) }), 'sweep', trialsOf(1));
    ledger.record(jobOf(), 'sweep', trialsOf(1));
    expect(earlier().count).toBe(5);
    expect(ledger.entries().map((entry) => 'count' in entry && entry.count)).toEqual([3, 1, 1]);
  });

  test('do not count as earlier than themselves', () => {
    record();
    expect(earlier(jobOf(), trialsOf(1, 2, null))).toEqual(NONE);
    expect(earlier(jobOf({ lock: 'b'.repeat(64) }), trialsOf(1, 2, null)).count).toBe(3);
  });

  test('over another window count with the Sharpe ratio that a run of this length would have', () => {
    record(jobOf({ bars: 25 }), trialsOf(2, 4));
    const { count, sharpe_mean, sharpe_variance } = earlier(jobOf({ bars: 100 }));
    expect(count).toBe(2);
    expect(sharpe_mean).toBeCloseTo(3 / 2, 12);
    expect(sharpe_variance).toBeCloseTo(2 / 4, 12);
  });

  test('have the same figures to the last digit in whichever order they were recorded', () => {
    const trials = trialsOf(0.1, 0.7, -0.3, null, 1e3, 0.2, 1e-3);
    record(jobOf(), trials);
    const figures = earlier();
    for (const [index, trial] of trials.toReversed().entries()) {
      const other = new TrialLedger(join(home, 'other'));
      other.record(jobOf(), 'sweep', [trial]);
      expect(other.capture(jobOf())([]).count).toBe(index + 1);
    }
    expect(new TrialLedger(join(home, 'other')).capture(jobOf())([])).toEqual(figures);
  });

  test('are captured when a run starts', () => {
    const counted = new TrialLedger(home).capture(jobOf());
    record();
    expect(counted([]).count).toBe(0);
  });

  test.each([
    ['the same data', {}, 3],
    ['one more bar', { bars: 101 }, 3],
    ['a window that overlaps in one bar', { from: '2010-04-10' }, 3],
    ['the bars after them', { from: '2010-04-11' }, 0],
    ['another symbol beside it', { symbols: ['NDX', 'SPX'] }, 3],
    ['another symbol', { symbols: ['NDX'] }, 0],
    ['bars of another length', { barMs: 3_600_000 }, 0],
    ['another family', { family: 'rsi_reversion' }, 0],
  ])('count only on overlapping data of the family: %s', (_, data, count) => {
    record();
    expect(earlier(jobOf({ ...data, lock: 'b'.repeat(64) })).count).toBe(count);
  });

  test('have one zero, whatever its sign, so that any database returns what was hashed', () => {
    const packed = [-0, 0].map((sharpe) => packTrials(new Map([['00'.repeat(8), sharpe]])));
    expect(packed[0]).toBe(packed[1]);
  });

  test.runIf(isAtLength)('take about 21 bytes each in a sweep of 100,000', () => {
    const many = Array.from({ length: 1e5 }, (_, fast) => ({ params: { fast }, sharpe: fast }));
    record(jobOf(), many);
    expect(readFileSync(file).length).toBeLessThan(22e5);
    expect(earlier()).toMatchObject({ count: 1e5, sharpe_mean: 49_999.5 });
  });
});

describe('the file', () => {
  beforeEach(() => {
    const ledger = new TrialLedger(home);
    for (const lock of ['a', 'b', 'c', 'd']) {
      ledger.record(jobOf({ lock: lock.repeat(64) }), 'backtest', trialsOf(1));
    }
  });
  const lines = (): string[] => readFileSync(file, 'utf8').trimEnd().split('\n');
  const rewrite = (changed: readonly string[]): void =>
    writeFileSync(file, changed.map((line) => `${line}\n`).join(''));
  const faults = () => new TrialLedger(home).verify().faults;

  test('has a valid chain', () => {
    expect(faults()).toEqual([]);
  });

  test.each([
    ['half an entry', '{"seq":5,"recorded_at":'],
    ['an entry without its line feed', undefined],
  ])('that ends in %s, as after kill -9, keeps the complete ones', (_, rest) => {
    const [first] = lines();
    appendFileSync(file, rest ?? first!);
    expect(earlier().count).toBe(4);
    new TrialLedger(home).record(jobOf({ lock: 'e'.repeat(64) }), 'backtest', trialsOf(1));
    expect(earlier().count).toBe(5);
    expect(faults()).toEqual([]);
  });

  test.each(['{"seq":99,"hash":"x"}', 'symbols'])('survives the altered entry %s', (text) => {
    const [one, two, ...rest] = lines();
    const withoutSymbols = two!.replace(/"symbols":\[[^\]]*\]/, '"symbols":null');
    rewrite([one!, text === 'symbols' ? withoutSymbols : text, ...rest]);
    expect(faults()).toEqual([{ seq: 2, fault: 'altered' }]);
    expect(() => earlier()).not.toThrow();
  });

  test('names altered and missing entries', () => {
    const [one, two, three, four] = lines();
    rewrite([one!, two!.replace('"count":1', '"count":0'), three!, four!]);
    expect(faults()).toEqual([{ seq: 2, fault: 'altered' }]);
    rewrite([one!, four!]);
    expect(faults()).toEqual([{ seq: 2, through: 3, fault: 'missing' }]);
    rewrite([two!, three!, 'x', four!]);
    expect(faults()).toEqual([
      { seq: 1, through: 1, fault: 'missing' },
      { seq: 4, fault: 'altered' },
    ]);
    rewrite([one!, 'x', three!.replace('"sma_crossover"', '"mine"'), four!]);
    expect(faults()).toEqual([
      { seq: 2, fault: 'altered' },
      { seq: 3, fault: 'altered' },
    ]);
    rewrite([one!, three!, two!, four!]);
    expect(faults().map(({ seq }) => seq)).toContain(2);
  });

  test.each([1, 7, 300, 1e6])('is read %i bytes at a time with the same entries', (chunkBytes) => {
    const whole = new LedgerFile(file).read();
    appendFileSync(file, '{"seq":5');
    const inChunks = new LedgerFile(file, chunkBytes);
    expect(inChunks.read()).toEqual(whole);
    expect(inChunks.read()).toEqual(whole);
  });

  test('has a head that shows a cut, though the chain stays valid', () => {
    const { last } = new TrialLedger(home).verify();
    rewrite(lines().slice(0, 3));
    expect(faults()).toEqual([]);
    expect(new TrialLedger(home).verify().last).not.toEqual(last);
  });
});

/** Starts a process that records trials of a lock, one by one, and prints the number of recorded ones. */
function recorder(lock: string, count: number) {
  const from = (path: string): string => JSON.stringify(join(import.meta.dirname, path));
  const script = `
    const { TrialLedger } = await import(${from('../../../src/backtest/ledger/trial-ledger.ts')});
    const { jobOf } = await import(${from('./jobs.ts')});
    const ledger = new TrialLedger(${JSON.stringify(home)});
    for (let fast = 0; fast < ${count}; fast += 1) {
      ledger.record(jobOf({ lock: '${lock}' }), 'sweep', [{ params: { fast }, sharpe: fast }]);
      process.stdout.write(fast + 1 + '\\n');
    }
  `;
  const args = ['--input-type=module', '--eval', script];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  return { child, exit: once(child, 'close'), lines: createInterface({ input: child.stdout }) };
}

test('two processes record at once without losing an entry', async () => {
  const processes = ['a', 'b'].map((lock) => recorder(lock.repeat(64), 40));
  expect(await Promise.all(processes.map(({ exit }) => exit))).toEqual([
    [0, null],
    [0, null],
  ]);
  expect(earlier().count).toBe(80);
  expect(new TrialLedger(home).verify().faults).toEqual([]);
});

test('every trial that was reported as recorded is counted after kill -9', async () => {
  let before = 0;
  for (let round = 0; round < runs(3); round += 1) {
    const { child, exit, lines } = recorder(round.toString(16).padStart(64, '0'), 1e6);
    let reported = 0;
    lines.on('line', (line) => {
      reported = Number(line);
      if (reported === 3 + ((round * 7) % 20)) child.kill('SIGKILL');
    });
    await exit;
    const { count } = earlier();
    expect(count - before).toBeGreaterThanOrEqual(reported);
    before = count;
    expect(new TrialLedger(home).verify().faults).toEqual([]);
  }
});
