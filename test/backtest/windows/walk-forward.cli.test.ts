import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { watch } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { SweepDocument } from '../../../src/backtest/search/sweep-document.ts';
import type { Summary } from '../../../src/backtest/summary.ts';
import type { WalkForwardDocument } from '../../../src/backtest/windows/walk-forward-document.ts';
import { DAY } from '../../../src/base/durations.ts';
import { formatTime } from '../../../src/market/bar-time.ts';
import { inProcess } from '../../cli/in-process.ts';
import { isAtLength, some } from '../../length.ts';
import { BIN } from '../../cli/service-local.ts';

const DATA = join(import.meta.dirname, '../../../examples/data/sp500-daily.csv');
const GRID = ['-p', 'fast=5:15:5', '-p', 'slow=20:40:20'];
const RANDOM = ['--search', 'random', '--trials', '12', '--seed', '3'];
const SPANS = ['--train', '2y', '--test', '1y', '--embargo', '5d'];

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-walk-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

/** A crossover bot on a margin account, with costs. */
function botFile(name: string, engine: Readonly<Record<string, string>> = {}, data = DATA): string {
  const file = join(directory, `${name}.json`);
  const spec = {
    kind: 'trading',
    universe: { symbols: ['SPX'], currency: 'USD' },
    data: { source: data, timeframe: '1d', from: '2000-01-03', to: '2004-06-30' },
    strategy: { name: 'sma_crossover', params: { fast: 5, slow: 20 } },
    engine: {
      fees: { model: 'percent', rate: '0.001' },
      slippage: { model: 'basis_points', bps: 5 },
      ...engine,
    },
  };
  const metadata = { name: 'Crossover', slug: 'crossover' };
  writeFileSync(file, JSON.stringify({ apiVersion: 'bots/v1', kind: 'Bot', metadata, spec }));
  return file;
}

async function json<T>(...args: string[]): Promise<T> {
  const { code, stdout, stderr } = await inProcess([...args, '--json']);
  expect(stderr).not.toContain('error');
  expect(code).toBe(0);
  return JSON.parse(stdout) as T;
}

/**
 * Uses one worker, because that starts the fewest threads. In `npm run test:long`, the separate sweeps
 * use several.
 */
function walk(bot: string, out: string, ...more: string[]): Promise<WalkForwardDocument> {
  const limits = ['--workers', '1', '--out', join(directory, out)];
  return json('backtest', 'walk-forward', bot, ...GRID, ...SPANS, ...limits, ...more);
}

let analysis: Promise<WalkForwardDocument> | undefined;
/** An analysis that several tests read. */
const walked = () => (analysis ??= walk(botFile('walked'), 'walked'));

/** Rows of `trades.csv` without the numbers of the trades. */
function tradesIn(out: string): string[] {
  const [, ...rows] = readFileSync(join(directory, out, 'trades.csv'), 'utf8')
    .trim()
    .split('\n');
  return rows.map((row) => row.slice(row.indexOf(',') + 1));
}

test('the analysis equals sweeps and backtests that a person runs one after another', async () => {
  const document = await walked();
  const days = (from: number, to: number): string[] => [
    '--from',
    formatTime(from),
    '--to',
    formatTime(to - DAY),
  ];
  const windows = [0, 1, 2].map((year) => ({
    train: days(Date.UTC(2000 + year, 0, 3), Date.UTC(2002 + year, 0, 3)),
    test: days(
      Date.UTC(2002 + year, 0, 8),
      Math.min(Date.UTC(2003 + year, 0, 8), Date.UTC(2004, 6, 1)),
    ),
  }));
  expect(document.windows).toHaveLength(windows.length);

  let cash = 100_000;
  const trades: string[] = [];
  for (const [at, { train, test: tested }] of windows.entries()) {
    const step = document.windows[at]!;
    const out = (kind: string): string[] => ['--out', join(directory, `by-hand-${kind}-${at}`)];
    const swept = await json<SweepDocument>(
      'backtest',
      'sweep',
      botFile('by-hand'),
      ...GRID,
      ...train,
      ...out('sweep'),
      ...(isAtLength ? [] : ['--workers', '1']),
    );
    expect(step.params).toEqual(swept.best!.params);
    expect(step.in_sample).toEqual(swept.best!.metrics);
    expect(step.train).toEqual(swept.window);

    const bot = botFile('by-hand-test', { cash: String(cash), at_end: 'close' });
    const chosen = Object.entries(step.params!).flatMap(([name, value]) => [
      '-p',
      `${name}=${value}`,
    ]);
    const run = await json<Summary>('backtest', bot, ...chosen, ...tested, ...out('run'));
    expect(step.test).toEqual(run.window);
    expect(step.out_of_sample).toMatchObject({
      sharpe: run.risk.sharpe,
      total_return: run.returns.total,
      end_equity: run.equity.end,
      fees: run.costs.fees,
    });
    trades.push(...tradesIn(`by-hand-run-${at}`));
    cash = run.equity.end;
  }
  expect(tradesIn('walked')).toEqual(trades);
  expect(trades.length).toBeGreaterThan(10);
  expect(document.equity.end).toBe(cash);
  expect(document.trades).toMatchObject({ count: trades.length, open: 0 });
  const { efficiency, stability } = document;
  expect(efficiency.out_of_sample_annual).toBe(document.returns.cagr);
  expect(stability.map(({ name }) => name)).toEqual(['fast', 'slow']);
  expect(stability[0]!.chosen).toEqual(document.windows.map(({ params }) => params!['fast']));
  // Six trials and a test in each window, and the joined run.
  expect(document.deflated_sharpe).toMatchObject({ trials: 3 * (6 + 1) + 1 });
  const report = readFileSync(join(directory, 'walked/report.html'), 'utf8');
  expect(report).toContain('Trial 22 on these data');
  expect(report).toContain('End of window');
  expect(report).toContain('Stability of <bdi>fast</bdi>');
  const table = readFileSync(join(directory, 'walked/windows.csv'), 'utf8').trimEnd().split('\n');
  expect(table).toHaveLength(1 + windows.length);
});

test('no bar of a test window reaches its training', async () => {
  const before = await walked();
  const changed = join(directory, 'changed.csv');
  // Prices after the first day of the second test window are a third.
  const [head, ...rows] = readFileSync(DATA, 'utf8').trimEnd().split('\n');
  const cheaper = rows.map((row) => {
    const [time, ...prices] = row.split(',');
    if (time! < '2003-01-08') return row;
    return [time, ...prices.map((price) => Number(price) / 3)].join(',');
  });
  writeFileSync(changed, [head, ...cheaper].join('\n'));
  const after = await walk(botFile('changed', {}, changed), 'changed');

  const choices = ({ windows }: WalkForwardDocument) =>
    windows.slice(0, 2).map(({ params, in_sample, train }) => ({ params, in_sample, train }));
  expect(choices(after)).toEqual(choices(before));
  expect(after.windows[0]).toEqual(before.windows[0]);
  expect(after.windows[1]!.out_of_sample).not.toEqual(before.windows[1]!.out_of_sample);
  expect(after.windows[2]!.in_sample).not.toEqual(before.windows[2]!.in_sample);
});

test.runIf(isAtLength)('anchored windows train on all bars since the first', async () => {
  const { windows, plan } = await walk(botFile('anchored'), 'anchored', '--anchored');
  expect(plan.anchored).toBe(true);
  expect(windows.map(({ train }) => train.from.slice(0, 10))).toEqual(
    windows.map(() => '2000-01-03'),
  );
  expect(windows.map(({ train }) => train.bars)).toEqual([501, 753, 1005]);
});

test.runIf(isAtLength)('the last test window ends with the symbol that ends first', async () => {
  const stocks = join(import.meta.dirname, '../../../examples/data/stocks-monthly');
  const ended = join(directory, 'ibm-ended.csv');
  const rows = readFileSync(join(stocks, 'ibm.csv'), 'utf8').split('\n');
  writeFileSync(ended, rows.filter((row) => !(row >= '2007-07' && row < 'a')).join('\n'));
  const analyze = async (name: string, dates: Readonly<Record<string, string>>) => {
    const file = join(directory, `${name}.json`);
    const spec = {
      kind: 'trading',
      universe: { symbols: ['IBM', 'MSFT'], currency: 'USD' },
      data: { sources: { IBM: ended, MSFT: join(stocks, 'msft.csv') }, timeframe: '1mo', ...dates },
      strategy: { name: 'momentum_rotation', params: { lookback: 3, hold: 2, top: 1 } },
    };
    const metadata = { name: 'Rotation', slug: 'rotation' };
    writeFileSync(file, JSON.stringify({ apiVersion: 'bots/v1', kind: 'Bot', metadata, spec }));
    const given = ['-p', 'lookback=3,6', '--train', '3y', '--test', '1y'];
    const out = ['--out', join(directory, name)];
    return json<WalkForwardDocument>('backtest', 'walk-forward', file, ...given, ...out);
  };
  const { windows, window, benchmark, efficiency, hashes } = await analyze('uneven', {});
  expect(windows.at(-1)!.test).toMatchObject({ from: '2007-01-01T00:00:00.000Z', bars: 12 });
  expect(windows.reduce((bars, { test: { bars: own } }) => bars + own, 0)).toBe(window.bars);
  expect(window.to).toBe('2007-06-01T00:00:00.000Z');
  const even = await analyze('even', { to: '2007-06-30' });
  expect({ windows, benchmark, efficiency, hashes }).toMatchObject({
    windows: even.windows,
    benchmark: even.benchmark,
    efficiency: even.efficiency,
    hashes: even.hashes,
  });
});

test('a test window without bars is an error before the first search', async () => {
  const out = join(directory, 'weekend');
  const spans = ['--train', '1y', '--test', '1d', '--out', out];
  const words = ['backtest', 'walk-forward', botFile('weekend'), ...GRID, ...spans];
  const { code, stderr } = await inProcess(words);
  expect(code).toBe(3);
  expect(stderr).toContain('SPX has no bars from 2001-01-06 and before 2001-01-07');
  expect(existsSync(join(out, 'windows'))).toBe(false);
});

test.runIf(isAtLength)(
  'each window uses the given search, and chooses by another objective under constraints',
  async () => {
    const { windows, search, stability } = await json<WalkForwardDocument>(
      'backtest',
      'walk-forward',
      botFile('sampled'),
      '-p',
      'fast=3:15',
      '-p',
      'slow=20:60',
      ...SPANS,
      ...RANDOM,
      '--objective',
      'max_drawdown',
      '--where',
      'trades>=6',
      '--out',
      join(directory, 'sampled'),
    );
    expect(search).toMatchObject({ kind: 'random', trials: 12, seed: 3, prune: false });
    expect(windows.map(({ trials }) => trials.total)).toEqual([12, 12, 12]);
    for (const [at, { in_sample }] of windows.entries()) {
      expect(in_sample!.trades).toBeGreaterThanOrEqual(6);
      const { chosen_at, objective } = stability[0]!;
      expect(objective[at]![chosen_at[at]!]).toBeGreaterThanOrEqual(in_sample!.max_drawdown);
    }
  },
);

test.runIf(isAtLength)('a window holds no position if no trial meets the conditions', async () => {
  const one = ['-p', 'fast=5', '-p', 'slow=20', ...SPANS, '--anchored'];
  const analyze = (out: string, ...more: string[]) =>
    json<WalkForwardDocument>(
      'backtest',
      'walk-forward',
      botFile(out),
      ...one,
      ...more,
      '--out',
      join(directory, out),
    );
  const always = await analyze('always');
  const enough = always.windows[1]!.in_sample!.trades;
  const { windows, stability, efficiency } = await analyze('flat', '--where', `trades>=${enough}`);
  expect(windows[0]).toMatchObject({
    params: null,
    in_sample: null,
    flat: { reason: 'constraints_not_met', detail: `no trial meets trades>=${enough}` },
    out_of_sample: { trades: 0, total_return: 0, end_equity: 100_000, sharpe: null },
    test: always.windows[0]!.test,
  });
  // The capital of the flat window is traded in the next one.
  const traded = windows
    .slice(1)
    .map(({ params, flat, out_of_sample }) => [
      params!['fast'],
      flat,
      out_of_sample.trades,
      Number(out_of_sample.total_return.toFixed(10)),
    ]);
  expect(traded).toEqual(
    always.windows
      .slice(1)
      .map(({ out_of_sample: { trades, total_return } }) => [
        5,
        null,
        trades,
        Number(total_return.toFixed(10)),
      ]),
  );
  expect(stability[0]).toMatchObject({ chosen: [null, 5, 5], chosen_at: [null, 0, 0], changes: 0 });
  expect(efficiency.in_sample_annual).not.toBeNull();
  const [, first] = readFileSync(join(directory, 'flat/windows.csv'), 'utf8').split('\n');
  expect(first).toMatch(/,constraints_not_met$/);
  const report = readFileSync(join(directory, 'flat/report.html'), 'utf8');
  expect(report).toMatch(/Window 1 holds no position: <bdi>no trial meets trades/);
  expect(stability[0]!.objective[0]).toEqual([null]);
  expect(report).toMatch(/Trials that do not meet\s+<bdi>trades/);
  expect(report).toContain('Best Sharpe ratio in training');

  const none = await analyze('none', '--where', 'trades>=100000');
  expect(none).toMatchObject({ equity: { end: 100_000 }, trades: { count: 0 } });
  expect(none.windows.map(({ flat }) => flat!.reason)).toEqual(
    windows.map(() => 'constraints_not_met'),
  );
});

/** A bot whose own strategy runs `statement` at each bar. */
function ownBot(name: string, statement: string): string {
  writeFileSync(
    join(directory, `${name}.ts`),
    `import { defineStrategy, integer } from 'service-local/strategy';
export default defineStrategy({
  name: '${name}',
  description: 'made by a test',
  params: { day: integer({ default: 1, min: 1 }) },
  create: ({ instruments, broker }) => ({
    onBar() {
      ${statement}
    },
  }),
});
`,
  );
  const file = botFile(name);
  const bot = JSON.parse(readFileSync(file, 'utf8')) as { spec: Record<string, unknown> };
  bot.spec['strategy'] = { module: `./${name}.ts` };
  writeFileSync(file, JSON.stringify(bot));
  return file;
}

test.runIf(isAtLength)(
  'an analysis whose trials all fail is an error that names the first reason',
  async () => {
    const file = ownBot('failing', "throw new Error('no such day');");
    const out = ['--out', join(directory, 'failing')];
    const words = ['backtest', 'walk-forward', file, '-p', 'day=1', ...SPANS, ...out];
    const { code, stderr } = await inProcess(words);
    expect(code).not.toBe(0);
    expect(stderr).toMatch(/in every window, all trials failed; the first error is: .*no such day/);
  },
);

test.runIf(isAtLength)(
  'an analysis ends with an error if its chosen trial fails in a test, and that run counts',
  async () => {
    const file = ownBot(
      'late',
      `if (instruments[0].time > ${Date.UTC(2003, 1, 1)}) throw new Error('a day too far');
      if (instruments[0].count === 2) broker.target(instruments[0], 1);`,
    );
    const out = ['--out', join(directory, 'late')];
    const env = { SERVICE_LOCAL_HOME: join(directory, 'late-home') };
    const words = ['backtest', 'walk-forward', file, '-p', 'day=1', ...SPANS, ...out];
    const { code, stderr } = await inProcess(words, { env });
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /the test from 2003-01-08 to 2004-01-07 with day=1 failed: .*a day too far/,
    );
    const { code: listed, stdout } = await inProcess(['runs', 'trials', '--json'], { env });
    expect(listed).toBe(0);
    // A trial and its test in each of the first two windows; the second test failed.
    expect(JSON.parse(stdout)).toMatchObject({ groups: [{ trials: 4 }] });
  },
);

test.each(
  some(1, [
    ['profitable_windows>=0.99', 5],
    ['sharpe>=-5', 0],
    // The parameters lost money in training, so there is no ratio.
    ['efficiency>=-100', 5],
  ] as const),
)('the gate %s ends with exit code %i', async (gate, code) => {
  const out = join(directory, 'gates');
  const result = await inProcess(
    ['backtest', 'walk-forward', botFile('gates'), ...GRID, ...SPANS, '--out', out].concat(
      '--assert',
      gate,
      '--json',
    ),
  );
  expect(result.code).toBe(code);
  const { gates } = JSON.parse(result.stdout) as WalkForwardDocument;
  expect(gates).toMatchObject([{ name: gate.split('>=')[0], pass: code === 0 }]);
});

test.each([
  [['--train', '9y', '--test', '1y'], 'the data end 2004-06-30, before the first test window'],
  [['--train', '2 years', '--test', '1y'], '"2 years" is not a length of time'],
  [['--train', '2y', '--test', '1y', '--assert', 'efficency>=1'], 'Did you mean efficiency?'],
])('%j is a usage error', async (given, message) => {
  const { code, stderr } = await inProcess([
    'backtest',
    'walk-forward',
    botFile('wrong'),
    ...GRID,
    ...given,
    '--out',
    join(directory, 'wrong'),
  ]);
  expect(stderr).toContain(message);
  expect(code).toBe(2);
});

describe.runIf(isAtLength)('an analysis that is interrupted', () => {
  /** Waits until the file has at least `count` lines. Its directory need not exist yet. */
  async function linesAppear(file: string, count: number): Promise<void> {
    mkdirSync(dirname(file), { recursive: true });
    for await (const _ of watch(dirname(file))) {
      if (existsSync(file) && readFileSync(file, 'utf8').split('\n').length > count) return;
    }
  }

  /** A bot of its own strategy that blocks at the trial of `day` 3 in the second window, without `gate`. */
  function heldBot(gate: string): string {
    writeFileSync(
      join(directory, 'held.ts'),
      `import { existsSync } from 'node:fs';
import { defineStrategy, integer } from 'service-local/strategy';
export default defineStrategy({
  name: 'held',
  description: 'made by a test',
  params: { day: integer({ default: 1, min: 1 }) },
  create({ instruments, broker, params }) {
    const instrument = instruments[0]!;
    return {
      onBar() {
        const isHeld = instrument.count === 1 && params.day === 3 && instrument.time > ${Date.UTC(2000, 11, 1)};
        while (isHeld && !existsSync(${JSON.stringify(gate)}));
        if (instrument.count === params.day) broker.target(instrument, 1);
      },
    };
  },
});
`,
    );
    const file = botFile('held');
    const spec = JSON.parse(readFileSync(file, 'utf8')) as { spec: Record<string, unknown> };
    spec.spec['strategy'] = { module: './held.ts' };
    writeFileSync(file, JSON.stringify(spec));
    return file;
  }

  test.each(['SIGINT', 'SIGKILL'] as const)(
    'by %s resumes in its window and gives the same result',
    async (signal) => {
      const gate = join(directory, `${signal}.go`);
      const out = join(directory, signal);
      const args = ['backtest', 'walk-forward', heldBot(gate), '-p', 'day=1,2,3', ...SPANS];
      const all = [...args, '--workers', '1', '--out', out, '--json'];
      const home = { SERVICE_LOCAL_HOME: join(directory, `${signal}-home`) };
      const env = { ...process.env, ...home };
      const finish = async (to: string): Promise<WalkForwardDocument> => {
        const last = [...args, '--workers', '1', '--out', to, '--json'];
        const { stdout } = await inProcess(last, { env: home });
        return JSON.parse(stdout) as WalkForwardDocument;
      };
      const child = spawn(process.execPath, [BIN, ...all], { env, stdio: 'ignore' });
      const exit = once(child, 'exit');
      await linesAppear(join(out, 'windows/02/trials.ndjson'), 3);
      child.kill(signal);
      expect((await exit)[0]).toBe(signal === 'SIGINT' ? 130 : null);
      expect(existsSync(join(out, 'walk_forward.json'))).toBe(false);

      writeFileSync(gate, '');
      const logOf = (window: string): string =>
        readFileSync(join(out, `windows/${window}/trials.ndjson`), 'utf8');
      const finished = logOf('01');
      const resumed = await finish(out);
      expect(logOf('01')).toBe(finished);
      const whole = await finish(join(directory, `${signal}-whole`));
      expect(resumed).toEqual(whole);
      expect(resumed.windows).toHaveLength(3);
    },
    60_000,
  );
});
