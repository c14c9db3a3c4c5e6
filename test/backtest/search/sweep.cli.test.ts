import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { watch } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TrialLedger } from '../../../src/backtest/ledger/trial-ledger.ts';
import { groupTrials } from '../../../src/backtest/ledger/trial-groups.ts';
import type { Summary } from '../../../src/backtest/summary.ts';
import type { SweepDocument } from '../../../src/backtest/search/sweep-document.ts';
import { inProcess } from '../../cli/in-process.ts';
import { BIN, serviceLocal } from '../../cli/service-local.ts';
import { isAtLength, some } from '../../length.ts';

const EXAMPLES = join(import.meta.dirname, '../../../examples');
const SMA = join(EXAMPLES, 'sma-crossover.yaml');
const [GRID, TRIALS, SKIPPED] = isAtLength
  ? ([['-p', 'fast=5:50:5', '-p', 'slow=20:200:10'], 174, 16] as const)
  : ([['-p', 'fast=5:20:5', '-p', 'slow=20:80:10'], 27, 1] as const);

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-sweep-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

const sweep = (...args: string[]) => inProcess(['backtest', 'sweep', ...args]);

/** A bot with a strategy of one parameter, `day`, whose first bar runs `onFirstBar`. */
function dayBot(name: string, onFirstBar = ''): string {
  writeFileSync(
    join(directory, `${name}.ts`),
    `import { existsSync } from 'node:fs';
import { defineStrategy, integer } from 'service-local/strategy';
export default defineStrategy({
  name: '${name}',
  description: 'made by a test',
  params: { day: integer({ default: 1, min: 1 }) },
  create({ instruments, broker, params }) {
    const instrument = instruments[0]!;
    return {
      onBar() {
        if (instrument.count === 1) { ${onFirstBar} }
        if (instrument.count === params.day) broker.target(instrument, 1);
      },
    };
  },
});
void existsSync;
`,
  );
  const file = join(directory, `${name}.yaml`);
  writeFileSync(
    file,
    `apiVersion: bots/v1
kind: Bot
metadata: { name: ${name}, slug: ${name.replaceAll('_', '-')} }
spec:
  kind: trading
  universe: { symbols: [X], currency: USD }
  data: { source: ${join(EXAMPLES, 'data/sp500-daily.csv')}, timeframe: 1d }
  strategy: { module: ./${name}.ts }
`,
  );
  return file;
}

test.runIf(isAtLength)(
  'a sweep has the same trials, figures and hash with one worker and with four',
  async () => {
    const documents: SweepDocument[] = [];
    for (const [workers, memory] of [
      ['1', '1G'],
      ['4', '0MB'],
    ] as const) {
      const out = join(directory, `workers-${workers}`);
      const limits = ['--workers', workers, '--memory', memory];
      const args = [SMA, ...GRID, ...limits, '--out', out, '--json'];
      const { code, stdout } = await sweep(...args);
      expect(code).toBe(0);
      documents.push(JSON.parse(stdout) as SweepDocument);
    }
    const [one, four] = documents as [SweepDocument, SweepDocument];
    expect(four).toEqual(one);
    expect(one.trials).toEqual({
      total: TRIALS,
      done: TRIALS,
      failed: 0,
      pruned: 0,
      excluded: 0,
      skipped: SKIPPED,
      skipped_because: [{ reason: 'fast must be below slow', count: SKIPPED }],
    });
    expect(one.deflated_sharpe?.trials).toBe(TRIALS);
    expect(one.deflated_sharpe?.probability).toBeLessThan(0.95);
    const spec = one.results.find(({ params }) => params['fast'] === 10 && params['slow'] === 30);
    expect(spec?.metrics.end_equity).toBeCloseTo(137_695.03785699606, 5);
    const table = readFileSync(join(directory, 'workers-1/trials.csv'), 'utf8')
      .trimEnd()
      .split('\n');
    expect(table).toHaveLength(TRIALS + 1);
    expect(readFileSync(join(directory, 'workers-1/report.html'), 'utf8')).toContain('Deflated');
  },
);

const linesIn = (text: string): number => text.split('\n').length - 1;

/** Waits until the file has at least `count` lines. Its directory need not exist yet. */
async function linesAppear(file: string, count: number): Promise<void> {
  mkdirSync(dirname(file), { recursive: true });
  for await (const _ of watch(dirname(file))) {
    if (existsSync(file) && linesIn(readFileSync(file, 'utf8')) >= count) return;
  }
}

describe('a sweep that is interrupted', () => {
  let gate: string;
  let args: string[];
  let whole: unknown;
  beforeAll(async () => {
    gate = join(directory, 'held.go');
    // The fourth trial blocks until the test allows it to end.
    const fault = `if (params.day === 4) while (!existsSync(${JSON.stringify(gate)}));`;
    args = [dayBot('held', fault), '-p', 'day=1:12:1', '--workers', '1', '--out'];
    writeFileSync(gate, '');
    whole = JSON.parse((await sweep(...args, join(directory, 'held'), '--json')).stdout);
  });

  test.each(some(1, ['SIGKILL', 'SIGINT'] as const))(
    'by %s keeps, counts and resumes its trials',
    async (signal) => {
      rmSync(gate);
      const out = join(directory, `held-${signal}`);
      const log = join(out, 'trials.ndjson');
      // The first line identifies the sweep; the others are trials. Watching begins before any write.
      const appeared = linesAppear(log, 4);
      const home = join(directory, `home-${signal}`);
      const env = { ...process.env, SERVICE_LOCAL_HOME: home };
      const child = spawn(process.execPath, [BIN, 'backtest', 'sweep', ...args, out], { env });
      const exit = once(child, 'exit') as Promise<[number | null]>;
      await Promise.race([appeared, exit.then(() => Promise.reject(new Error('ended')))]);
      child.kill(signal);
      const [code] = await exit;
      expect(code).toBe(signal === 'SIGINT' ? 130 : null);
      expect(linesIn(readFileSync(log, 'utf8'))).toBe(4);
      expect(existsSync(join(out, 'trials.csv'))).toBe(signal === 'SIGINT');
      const counted = (): number => groupTrials(new TrialLedger(home).entries())[0]!.trials;
      expect(counted()).toBe(3);

      appendFileSync(log, '{"index":11,"metr');
      writeFileSync(gate, '');
      const rest = await inProcess(['backtest', 'sweep', ...args, out, '--json'], { env });
      expect(rest.code).toBe(0);
      expect(rest.stderr).toContain('resuming: 3 trials are already done');
      expect(JSON.parse(rest.stdout)).toEqual(whole);
      expect(counted()).toBe(12);
    },
  );
});

test.runIf(isAtLength)(
  'a sweep that is interrupted while loading exits at once and leaves no files',
  async () => {
    const gate = join(directory, 'loading.go');
    const file = dayBot('loading');
    const module = join(directory, 'loading.ts');
    writeFileSync(
      module,
      `import { writeFileSync } from 'node:fs';\nwriteFileSync(${JSON.stringify(gate)}, '');\nfor (;;);\n${readFileSync(module, 'utf8')}`,
    );
    const appeared = linesAppear(gate, 0);
    const child = spawn(process.execPath, [BIN, 'backtest', 'sweep', file, '-p', 'day=1,2']);
    const exit = once(child, 'exit') as Promise<[number | null, string | null]>;
    await appeared;
    child.kill('SIGINT');
    expect(await exit).toEqual([null, 'SIGINT']);
  },
);

test.runIf(isAtLength)(
  'a sweep does not continue another sweep in the same directory',
  async () => {
    const out = join(directory, 'mine');
    expect((await sweep(SMA, '-p', 'fast=5,10', '--out', out)).code).toBe(0);
    const { code, stderr } = await sweep(SMA, '-p', 'fast=5,15', '--out', out);
    expect({ code, conflict: stderr.includes('contains another sweep') }).toEqual({
      code: 6,
      conflict: true,
    });
  },
);

test.runIf(isAtLength)(
  'a failed trial is counted and listed, and runs again next time',
  async () => {
    const gate = join(directory, 'mended');
    const fault = `if (params.day === 2 && !existsSync(${JSON.stringify(gate)})) throw new Error('not today');`;
    const file = dayBot('fragile', fault);
    const args = [file, '-p', 'day=1:3:1', '--out', join(directory, 'fragile'), '--json'];
    const { code, stdout, stderr } = await sweep(...args);
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ trials: { total: 3, done: 3, failed: 1 } });
    expect(stderr).toContain('not today');
    writeFileSync(gate, '');
    const again = await sweep(...args);
    expect(again.stderr).toContain('resuming: 2 trials are already done');
    expect(JSON.parse(again.stdout)).toMatchObject({ trials: { done: 3, failed: 0 } });
  },
);

test.runIf(isAtLength).each([
  ['calls process.exit()', 'process.exit(0);', /must not call process\.exit\(\)/],
  [
    'orders after an await',
    'void Promise.resolve().then(() => broker.target(instrument, 1));',
    /orders must be placed/,
  ],
  [
    'takes memory without end',
    'const kept = []; for (;;) kept.push(new Float64Array(1e6).fill(1));',
    /limit of 128 MB/,
  ],
])('a trial that %s fails, and the others run', async (what, code, message) => {
  const name = `failing_${what.replaceAll(/\W+/g, '_').toLowerCase().replace(/_$/, '')}`;
  const file = dayBot(name, `if (params.day === 3) { ${code} }`);
  const { code: exit, stdout } = await sweep(
    file,
    '--json',
    '-p',
    'day=1:4:1',
    '--workers=1',
    '--strategy-memory=128',
    `--out=${join(directory, name)}`,
  );
  const document = JSON.parse(stdout) as SweepDocument & { error?: { message: string } };
  expect(document.trials).toMatchObject({ done: 4, failed: 1 });
  expect(exit).toBe(1);
  const log = readFileSync(join(directory, name, 'trials.csv'), 'utf8');
  expect(log.split('\n').filter((line) => message.test(line))).toHaveLength(1);
});

test.runIf(isAtLength)('the output of a strategy is not part of the document', async () => {
  const file = dayBot('chatty', "console.log('here I am');");
  const args = ['backtest', 'sweep', file, '-p', 'day=1,2', '--json', '--workers', '1'];
  const { code, stdout, stderr } = await serviceLocal(args);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ trials: { done: 2 } });
  expect(stderr.match(/here I am/g)?.length).toBeGreaterThanOrEqual(2);
});

test.runIf(isAtLength)('many workers cause no warning of Node', async () => {
  const args = ['backtest', 'sweep', SMA, '-p', 'fast=5:50:1', `--out=${join(directory, 'many')}`];
  const { code, stderr } = await serviceLocal([...args, '--workers=12', '--json']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.not.stringContaining('Warning') });
});

test.runIf(isAtLength)('a sweep of less than a month has a finding about its ratios', async () => {
  const window = ['--from', '2010-03-01', '--to', '2010-03-26'];
  const args = [
    SMA,
    ...window,
    '-p',
    'fast=2,3',
    '-p',
    'slow=4',
    '--out',
    join(directory, 'short'),
  ];
  const { stdout } = await sweep(...args);
  expect(stdout).toContain('2010-03-01 to 2010-03-26, 20 bars\n');
  expect(stdout).toContain('warning: 25 days of history: CAGR, annual return, Calmar');
  expect(stdout).toContain('exceeds what luck alone gives in 2 trials');
  const { stdout: json } = await sweep(...args, '--json');
  expect(JSON.parse(json)).toMatchObject({ findings: [{ code: 'short_window' }] });
});

test.runIf(isAtLength)('a sweep without results prints no table', async () => {
  const file = dayBot('broken', "throw new Error('never');");
  const args = [file, '-p', 'day=1,2', '--out', join(directory, 'broken')];
  const { code, stdout } = await sweep(...args);
  expect(code).toBe(1);
  expect(stdout).toMatch(/2 of 2 trials, 2 failed\nNo trial has a result.*\n$/);
});

test.runIf(isAtLength)('a repeated value is one trial, however it is written', async () => {
  const { stdout } = await sweep(
    SMA,
    '-p',
    'fast=4,4.0,6,06',
    '--json',
    '--out',
    join(directory, 'twice'),
  );
  expect(JSON.parse(stdout)).toMatchObject({
    trials: { total: 2 },
    deflated_sharpe: { trials: 2 },
  });
});

describe('a search by tpe with pruning', () => {
  const args = [SMA, '-p', 'fast=2:40', '-p', 'slow=20:200:log', '--search', 'tpe', '--trials=36'];
  const pruned = [...args, '--seed=4', '--prune', '--where', 'trades>=9', '--json'];
  let whole: string;
  beforeAll(async () => {
    whole = (await sweep(...pruned, '--workers=1', '--out', join(directory, 'tpe-1'))).stdout;
  });

  test.runIf(isAtLength).each([4, 2])(
    'has the same document with %i workers as with one',
    async (workers) => {
      const out = join(directory, `tpe-${workers}`);
      const { code, stdout } = await sweep(...pruned, `--workers=${workers}`, '--out', out);
      expect({ code, stdout }).toEqual({ code: 0, stdout: whole });
      const [one, other] = ['tpe-1', `tpe-${workers}`].map((name) =>
        readFileSync(join(directory, name, 'trials.csv'), 'utf8'),
      );
      expect(other).toBe(one);
    },
  );

  test('counts every trial, in generations of 16, and has no figures of pruned ones', () => {
    const document = JSON.parse(whole) as SweepDocument;
    const { trials, search, results, deflated_sharpe } = document;
    expect(search).toMatchObject({ kind: 'tpe', trials: 36, seed: 4, generation_size: 16 });
    expect(search.pruning!.bars).toEqual([568, 1702, 5105]);
    expect(trials).toMatchObject({ total: 36, done: 36, failed: 0 });
    expect(results).toHaveLength(36 - trials.pruned - trials.excluded);
    // Six of 16 trials continue, then two; two of the last four, then one. Equal ones continue, too.
    expect(trials.pruned).toBeGreaterThan(25);
    expect(trials.pruned).toBeLessThanOrEqual(31);
    expect(deflated_sharpe?.trials).toBe(36);
    const lines = readFileSync(join(directory, 'tpe-1/trials.csv'), 'utf8').trimEnd().split('\n');
    const rows = lines.slice(1).map((line) => line.split(','));
    expect(rows.map(([generation]) => Number(generation))).toEqual(
      rows.map((_, index) => Math.floor(index / 16) + 1),
    );
    const isPruned = rows.map((row) => row.at(-2) !== '');
    expect(isPruned.filter(Boolean)).toHaveLength(trials.pruned);
    expect(rows.map((row) => row[3] === '')).toEqual(isPruned);
  });

  test.runIf(isAtLength)(
    'deflates the Sharpe ratio by about as much as a search without pruning',
    async () => {
      const random = [SMA, '-p', 'fast=2:60', '-p', 'slow=20:200', '--search=random', '--json'];
      const expectedMax = async (...options: string[]): Promise<number> => {
        const out = join(directory, `deflated-${options.join('')}`);
        const { stdout } = await sweep(...random, '--trials=60', ...options, '--out', out);
        return (JSON.parse(stdout) as SweepDocument).deflated_sharpe!.expected_max_sharpe;
      };
      const ratio = (await expectedMax('--prune')) / (await expectedMax());
      expect(ratio).toBeGreaterThan(0.7);
      expect(ratio).toBeLessThan(1.5);
    },
  );

  test.runIf(isAtLength)(
    'leaves about as high a variance to later runs as a search without pruning',
    async () => {
      const random = [
        SMA,
        '-p',
        'fast=2:60',
        '-p',
        'slow=20:200',
        '--search=random',
        '--trials=60',
      ];
      const deviation = async (...options: string[]): Promise<number> => {
        const home = join(directory, `variance-${options.join('')}`);
        const env = { SERVICE_LOCAL_HOME: home };
        await inProcess(['backtest', 'sweep', ...random, ...options, '--out', join(home, 's')], {
          env,
        });
        const { stdout } = await inProcess(['backtest', SMA, '--json', '--out', join(home, 'b')], {
          env,
        });
        const { trials } = (JSON.parse(stdout) as Summary).lock;
        expect(trials!.count).toBe(60);
        // A trial without a trade has no Sharpe ratio.
        expect(trials!.sharpe_count).toBeGreaterThan(50);
        return Math.sqrt(trials!.sharpe_variance!);
      };
      const ratio = (await deviation('--prune')) / (await deviation());
      expect(ratio).toBeGreaterThan(0.7);
      expect(ratio).toBeLessThan(1.5);
    },
  );

  test.runIf(isAtLength).each([4, 21, 40])(
    'resumes after %i results with the same document',
    async (count) => {
      const out = join(directory, `tpe-resumed-${count}`);
      const log = readFileSync(join(directory, 'tpe-1/trials.ndjson'), 'utf8').split('\n');
      mkdirSync(out);
      const kept = [...log.slice(0, count + 1), log[count + 1]!.slice(0, 40)];
      writeFileSync(join(out, 'trials.ndjson'), kept.join('\n'));
      expect((await sweep(...pruned, '--out', out)).stdout).toBe(whole);
      const lines = readFileSync(join(out, 'trials.ndjson'), 'utf8').split('\n');
      expect(lines.toSorted()).toEqual(log.toSorted());
    },
  );

  test.runIf(isAtLength)('drops logged results of other parameters', async () => {
    const out = join(directory, 'tpe-altered');
    const log = readFileSync(join(directory, 'tpe-1/trials.ndjson'), 'utf8');
    mkdirSync(out);
    writeFileSync(join(out, 'trials.ndjson'), log.replaceAll(/"fast":\d+/g, '"fast":1'));
    expect((await sweep(...pruned, '--out', out)).stdout).toBe(whole);
  });
});

test.runIf(isAtLength)(
  'the same grid is ranked by other objectives without running again',
  async () => {
    const args = [
      SMA,
      '-p',
      'fast=5:20:5',
      '-p',
      'slow=30,60',
      '--json',
      '--out',
      join(directory, 'again'),
    ];
    const first = JSON.parse((await sweep(...args)).stdout) as SweepDocument;
    const goal = ['--objective', 'max_drawdown', '--objective', 'fees', '--where', 'trades<60'];
    const { stdout, stderr } = await sweep(...args, ...goal);
    expect(stderr).toContain('resuming: 8 trials are already done');
    const second = JSON.parse(stdout) as SweepDocument;
    const { results, best, trials } = second;
    expect(trials.excluded).toBe(8 - results.length);
    expect(results.every(({ metrics }) => metrics.trades < 60)).toBe(true);
    expect(results[0]).toEqual(best);
    expect(best).toMatchObject({ front: 1 });
    expect(second.hashes).toEqual(first.hashes);
    const { stdout: text } = await sweep(...args.filter((arg) => arg !== '--json'), ...goal);
    expect(text).toMatch(/8 of 8 trials, \d excluded by --where/);
    expect(text).toMatch(/fast +slow +front +Max drawdown +Fees +Sharpe ratio/);
  },
);

test.runIf(isAtLength)(
  'values that the strategy does not accept are skipped with the reason',
  async () => {
    const args = [
      SMA,
      '-p',
      'fast=-5:10:5',
      '-p',
      'slow=8,30',
      '--out',
      join(directory, 'skipped'),
    ];
    const { code, stdout } = await sweep(...args);
    expect(code).toBe(0);
    expect(stdout).toContain('3 of 3 trials, 5 invalid combinations skipped');
    expect(stdout).toContain('  2 combinations skipped: fast must be at least 1, not -5');
    expect(stdout).toContain('  1 combination skipped: fast must be below slow');
  },
);

test('a cluster that is not described is reported with the file of this machine', async () => {
  const { code, stderr } = await sweep(SMA, '-p', 'fast=5', '--on', 'cluster:lab');
  expect({ code, stderr }).toEqual({
    code: 6,
    stderr: expect.stringMatching(
      /clusters\.yaml names no cluster 'lab'\n→ .*docs\/how-to\/large-searches\.md/,
    ) as string,
  });
});

test.each([
  [['-p', 'fats=1:5:1'], 'Did you mean fast?'],
  [['-p', 'fast=5:1:1'], 'FROM at most TO'],
  [['-p', 'fast=a:b:c'], 'must be numbers'],
  [['-p', 'fast=-5:0:1'], 'no combination is valid: fast must be at least 1, not -5'],
  [['-p', 'fast=5:50'], 'a grid needs a step for fast'],
  [['-p', 'fast=5:50:log:2'], 'must be FROM:TO:STEP'],
  [['-p', 'fast=0:50:log', '--search', 'tpe'], 'must be greater than 0'],
  [['-p', 'fast=5', '--trials', '9'], 'need --search random or tpe'],
  [['-p', 'fast=5', '--objective', 'trades'], '"trades" cannot be an objective'],
  [['-p', 'fast=5', '--objective', 'sharp'], 'Did you mean sharpe?'],
  [['-p', 'fast=5', '--where', 'sqn>=1'], 'unknown metric sqn'],
  [['-p', 'fast=50,60', '-p', 'slow=20'], 'fast must be below slow'],
  [['-p', 'fast=1:1e9:1e-3'], 'values; at most'],
  [[], 'at least one --param'],
  [['-p', 'fast=5', '--memory', '5'], 'megabytes (M) or gigabytes (G)'],
  [
    ['-p', 'fast=5', '--memory', '9999999GB'],
    'more than the memory of this machine\n→ Write at most',
  ],
])('%j is rejected with a remedy', async (args, message) => {
  const { code, stderr } = await sweep(SMA, ...args);
  expect(code).toBe(2);
  expect(stderr).toContain(message);
});
