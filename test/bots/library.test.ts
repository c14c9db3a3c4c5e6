import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { Summary } from '../../src/backtest/summary.ts';
import type { WalkForwardDocument } from '../../src/backtest/windows/walk-forward-document.ts';
import type { RobustnessDocument } from '../../src/backtest/robustness/robustness-document.ts';
import {
  backtest,
  robustness,
  sweep,
  walkForward,
  type BotSource,
} from '../../src/bots/library.ts';
import type { SweepOptions } from '../../src/bots/library-options.ts';
import type { ServiceError } from '../../src/base/errors.ts';
import { inProcess } from '../cli/in-process.ts';
import { isAtLength } from '../length.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples');
const SMA = join(EXAMPLES, 'sma-crossover.yaml');

let home: string;
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'service-local-library-'));
});
afterAll(() => rmSync(home, { recursive: true }));

async function command<T>(...args: string[]): Promise<T> {
  const { stdout } = await inProcess([...args, '--out', join(home, 'by-command'), '--json']);
  return JSON.parse(stdout) as T;
}

test('a backtest has the figures of the command, with columns, from a file or a spec', async () => {
  const out = join(home, 'run');
  const given = { params: { fast: 20 }, to: '2005-12-30', home };
  const result = await backtest(SMA, { ...given, out });
  const same = await command<Summary>('backtest', SMA, '-p', 'fast=20', '--to', '2005-12-30');
  expect(result.summary.risk).toEqual(same.risk);
  expect(result.summary.lock.digest).toBe(same.lock.digest);
  expect(result.summary.deflated_sharpe).toEqual(same.deflated_sharpe);
  expect(result.equity.at(-1)).toBe(same.equity.end);
  expect(Math.min(...result.drawdown)).toBeCloseTo(same.risk.max_drawdown, 12);
  expect(result.time).toHaveLength(result.equity.length);
  expect(result.trades).toHaveLength(same.trades.count);
  expect(existsSync(join(out, 'equity.parquet'))).toBe(true);

  const spec = parse(readFileSync(SMA, 'utf8')) as Record<string, unknown>;
  const fromSpec = await backtest(spec, { ...given, directory: EXAMPLES });
  expect(fromSpec.equity).toEqual(result.equity);
});

test.runIf(isAtLength)(
  'a sweep ranks its trials, and a walk-forward analysis is that of the command',
  async () => {
    const search = { params: { fast: [5, 10], slow: '20:40:20' }, to: '2004-12-31', home };
    const { best, ranked, errors } = await sweep(SMA, { ...search, objective: ['total_return'] });
    expect(ranked).toHaveLength(4);
    expect(best!.metrics.total_return).toBe(
      Math.max(...ranked.map(({ metrics }) => metrics.total_return)),
    );
    expect(errors).toEqual([]);

    const walked = await walkForward(SMA, { ...search, train: '2y', test: '1y' });
    const same = await command<WalkForwardDocument>(
      'backtest',
      'walk-forward',
      SMA,
      '-p',
      'fast=5,10',
      '-p',
      'slow=20:40:20',
      '--to',
      '2004-12-31',
      '--train',
      '2y',
      '--test',
      '1y',
    );
    expect(walked.document.windows).toEqual(same.windows);
    expect(walked.equity.at(-1)).toBe(same.equity.end);
  },
);

test.runIf(isAtLength)(
  'a backtest opens its holdout, evaluates gates and a profile, and names its benchmark',
  async () => {
    const ledger = join(home, 'options');
    copyFileSync(join(EXAMPLES, 'data/sp500-daily.csv'), join(home, 'rival.csv'));
    const given = { to: '2005-12-30', holdout: '1y', home: ledger };
    const closed = await backtest(SMA, given);
    expect(closed.summary.holdout).toMatchObject({ is_open: false, opened: 0 });
    const { summary } = await backtest(SMA, {
      ...given,
      openHoldout: true,
      assert: ['sharpe>=9'],
      profile: 'quantstats',
      benchmark: 'rival.csv',
      directory: home,
    });
    expect(summary.holdout).toMatchObject({ is_open: true, opened: 1 });
    expect(summary.gates).toContainEqual(expect.objectContaining({ name: 'sharpe', pass: false }));
    expect(summary.profile?.name).toBe('quantstats');
    expect(summary.benchmark).toMatchObject({ name: 'rival', source: 'rival.csv' });

    const spec = parse(readFileSync(SMA, 'utf8')) as { spec: { data: object } };
    Object.assign(spec.spec.data, { benchmark: join(home, 'rival.csv') });
    const own = { to: '2005-12-30', directory: EXAMPLES, home: ledger };
    expect((await backtest(spec, own)).summary.benchmark?.name).toBe('rival');
    const search = { params: { fast: [5, 10] }, train: '3y', test: '1y' };
    const { document } = await walkForward(spec, { ...own, ...search });
    expect(document.benchmark.name).toBe('rival');
    const [from, to] = [document.window.from, document.window.to].map((time) => time.slice(0, 10));
    const since = await backtest(spec, { ...own, from, to });
    expect(document.benchmark.total).toBe(since.summary.benchmark?.total);

    const wrong = backtest(SMA, { to: '2005-12-30', openHoldout: true, home: ledger });
    await expect(wrong).rejects.toMatchObject({ code: 'usage' });
    Object.assign(spec.spec.data, { benchmark: './missing.csv' });
    await expect(backtest(spec, own)).rejects.toMatchObject({
      problems: [expect.objectContaining({ pointer: '/spec/data/benchmark' })],
    });
  },
);

test.runIf(isAtLength)(
  'an aborted sweep resumes from its directory, and writes the files of the command',
  async () => {
    const out = join(home, 'sweep');
    const given = { params: { fast: '5:12:1' }, to: '2004-12-31', workers: 1, home, out };
    const controller = new AbortController();
    const aborted = sweep(SMA, {
      ...given,
      signal: controller.signal,
      onProgress: (done) => done >= 2 && controller.abort(new Error('enough')),
    });
    await expect(aborted).rejects.toThrow('enough');
    let first: number | undefined;
    await sweep(SMA, { ...given, onProgress: (done) => (first ??= done) });
    expect(first).toBeGreaterThanOrEqual(2);
    const written = readFileSync(join(out, 'trials.csv'), 'utf8');
    const same = join(home, 'swept-by-command');
    const words = ['-p', 'fast=5:12:1', '--to', '2004-12-31', '--out', same];
    await inProcess(['backtest', 'sweep', SMA, ...words]);
    expect(written).toBe(readFileSync(join(same, 'trials.csv'), 'utf8'));
    expect(existsSync(join(out, 'sweep.json'))).toBe(true);
  },
);

test.runIf(isAtLength)(
  'without a ledger that can be written to, results come with a finding that says so',
  async () => {
    const file = join(home, 'no-directory');
    writeFileSync(file, '');
    const given = { home: file, to: '2002-12-31' };
    const search = { ...given, params: { fast: [5, 10] } };
    const uncounted = { code: 'trials_not_counted', severity: 'warning' };
    const { summary } = await backtest(SMA, given);
    expect(summary.findings).toContainEqual(expect.objectContaining(uncounted));
    const { ranked, findings } = await sweep(SMA, search);
    expect(ranked).toHaveLength(2);
    expect(findings).toContainEqual(expect.objectContaining(uncounted));
    const { document } = await walkForward(SMA, { ...search, train: '1y', test: '1y' });
    expect(document.findings).toContainEqual(expect.objectContaining(uncounted));
    const tested = await robustness(SMA, { ...search, permutations: 0 });
    expect(tested.findings).toEqual([expect.objectContaining(uncounted)]);
  },
);

test('a custom strategy runs in a thread, and an invalid bot is an error with a code', async () => {
  const { summary } = await backtest(join(EXAMPLES, 'custom-strategy.yaml'), { home });
  expect(summary.trades.count).toBeGreaterThan(0);
  await expect(backtest(join(home, 'missing.yaml'))).rejects.toMatchObject({
    code: 'file_not_found',
  });
});

test.runIf(isAtLength)(
  'an aborted robustness test resumes, and its document is that of the command',
  async () => {
    const out = join(home, 'robustness');
    const given = {
      params: { fast: [5, 10] },
      to: '2004-12-31',
      permutations: 20,
      seed: 7,
      home,
      out,
    };
    const first: Record<string, number> = {};
    const reason = new Error('enough');
    const controller = new AbortController();
    const aborted = robustness(SMA, {
      ...given,
      signal: controller.signal,
      onProgress(phase, done) {
        if (phase === 'other runs' && done === 3) controller.abort(reason);
      },
    });
    await expect(aborted).rejects.toBe(reason);
    const log = readFileSync(join(out, 'variants.ndjson'), 'utf8');
    const saved = log.split('\n').length - 2;
    expect(saved).toBeGreaterThanOrEqual(3);

    const document = await robustness(SMA, {
      ...given,
      onProgress: (phase, done) => {
        first[phase] ??= done;
      },
    });
    expect(first).toMatchObject({ trials: 2, permutations: 20, 'other runs': saved });
    const again = readFileSync(join(out, 'variants.ndjson'), 'utf8');
    expect(again.startsWith(log)).toBe(true);
    expect(again.split('\n')).toHaveLength(
      2 + document.neighbors.length + document.stresses.length,
    );
    const searched = '-p fast=5,10 --to 2004-12-31 --permutations 20 --seed 7'.split(' ');
    const same = await command<RobustnessDocument>('backtest', 'robustness', SMA, ...searched);
    // The test of the command has its own ledger.
    expect({ ...document, lock: same.lock }).toEqual(same);
    expect(JSON.parse(readFileSync(join(out, 'robustness.json'), 'utf8'))).toEqual(
      JSON.parse(JSON.stringify(document)),
    );
  },
);

test.each([
  [{ search: { kind: 'nope' } }, 'option search.kind is "nope"', /kind: 'grid'/],
  [{ search: { kind: 'grid', trials: 5 } }, 'unknown option search.trials', /only kind/],
  [{ search: { kind: 'tpe', trials: 0 } }, 'option search.trials is 0', /from 1 to 100000/],
  [{ objective: [] }, 'option objective is []', /at least one figure/],
  [{ objective: ['sharp'] }, 'option objective: "sharp" cannot', /mean sharpe/],
  [{ where: ['trades'] }, 'option where: assertion "trades"', /trades|>=/],
  [{ wokers: 2 }, 'unknown option wokers', /Did you mean workers/],
  [{ workers: 0 }, 'option workers is 0', /whole number of threads/],
  [{ params: { fast: [] } }, 'option params.fast is []', /at least one value/],
  [{ params: { fast: [Number.NaN] } }, 'option params.fast is', /list of at least one value/],
  [{ params: { fast: '5:1:1' } }, 'option params.fast: parameter "fast=5:1:1"', /FROM:TO:STEP/],
  [{ params: {} }, 'option params is {}', /at least one parameter/],
  [{ params: { fast: '5:50' } }, 'a grid needs a step for fast', /random or TPE/],
  [{ from: 2004 }, 'option from is 2004', /a date/],
  [{ timeoutSeconds: -1 }, 'option timeoutSeconds is -1', /above 0/],
])('a sweep rejects the options %j', async (wrong, message, remedy) => {
  const options = { params: { fast: [5] }, home, ...wrong } as unknown as SweepOptions;
  const error = (await sweep(SMA, options).catch((thrown: unknown) => thrown)) as ServiceError;
  expect(error).toMatchObject({ code: 'usage' });
  expect(error.message).toContain(message);
  expect(error.remedy).toMatch(remedy);
  expect(`${error.message} ${error.remedy}`).not.toMatch(/--\w|-p /);
});

test('values without JSON are shown in errors as in a program', async () => {
  const circular: Record<string, unknown> = {};
  circular['self'] = circular;
  for (const [wrong, shown] of [
    [10n, '10n'],
    [circular, '<ref *1> { self: [Circular *1] }'],
    [Symbol('ten'), 'Symbol(ten)'],
    [{ from: 1, to: 'two\nlines', steps: [1, 2, 3, 4, 5, 6, 7] }, /^[^\n]{80,90}…$/],
    [new Error('not a list'), /^option params\.fast is Error: not a list[^\n]*…$/],
  ] as const) {
    const options = { home, params: { fast: wrong } } as unknown as SweepOptions;
    const message =
      typeof shown === 'string'
        ? `option params.fast is ${shown}`
        : (expect.stringMatching(shown) as string);
    await expect(sweep(SMA, options)).rejects.toMatchObject({ code: 'usage', message });
  }
  await expect(backtest(SMA, { home, params: { [Symbol('ten')]: 1 } })).rejects.toMatchObject({
    code: 'usage',
    message: 'option params.Symbol(ten) is 1',
  });
});

test('a bot without JSON is rejected, and never replaced by the file bot.json', async () => {
  const circular: Record<string, unknown> = {};
  circular['self'] = circular;
  for (const [wrong, shown] of [
    [undefined, 'undefined'],
    [() => {}, 'a function'],
    [10n, '10n'],
    [{ spec: { seed: 10n } }, '{ spec: { seed: 10n } }'],
    [circular, '<ref *1> { self: [Circular *1] }'],
  ] as const) {
    const bot = wrong as unknown as BotSource;
    await expect(backtest(bot, { home })).rejects.toMatchObject({
      code: 'usage',
      message: `the bot is ${shown}`,
      remedy: expect.stringContaining('path of a bot file') as string,
    });
  }
});

test.runIf(isAtLength)('errors of the other functions name their options, too', async () => {
  const failures = [
    backtest(SMA, { home, params: { fast: 0 } }),
    backtest(SMA, { home, params: { fst: 1 } }),
    backtest(SMA, { home, from: '2005-01-01', to: '2004-01-01' }),
    backtest(SMA, { home, from: '2004-13-01' }),
    walkForward(SMA, { home, params: { fast: [5] }, train: '3 years', test: '1y' }),
    walkForward(SMA, { home, params: { fast: [5] }, train: '90y', test: '1y' }),
    robustness(SMA, { home, blocks: 5 }),
    robustness(SMA, { home, objective: ['sharpe', 'cagr'] }),
    robustness(SMA, { home, where: ['trades>=100000'], permutations: 0 }),
  ];
  const texts = (await Promise.allSettled(failures)).map((one) => {
    const { message, remedy } = (one as PromiseRejectedResult).reason as ServiceError;
    return `${message}. ${remedy}`;
  });
  expect(texts).toEqual([
    expect.stringMatching(/^parameter fast: must be at least 1/),
    expect.stringMatching(/^parameter fst: unknown parameter.*Did you mean fast/),
    expect.stringMatching(/^from 2005-01-01 is after to 2004-01-01/),
    expect.stringMatching(/^from "2004-13-01" is not a date/),
    expect.stringMatching(/^option train: "3 years" is not a length of time/),
    expect.stringMatching(/^the data end .*shorter training windows/),
    expect.stringMatching(/^option blocks is 5.*even whole number from 4 to 24/),
    expect.stringMatching(/^a robustness test accepts only one objective.*Choose one objective/),
    expect.stringMatching(/^no trial meets the conditions/),
  ]);
  for (const text of texts) expect(text).not.toMatch(/--\w/);
});

test.runIf(isAtLength)(
  'a list of values is used unchanged, and repeated values count once',
  async () => {
    const { ranked } = await sweep(SMA, {
      params: { fast: [5, 5, '5', 10] },
      to: '2001-12-31',
      home,
    });
    expect(new Set(ranked.map(({ params }) => params['fast']))).toEqual(new Set([5, 10]));
    expect(ranked).toHaveLength(2);
  },
);

test('a signal that is already aborted rejects with its reason before any work', async () => {
  const signal = AbortSignal.abort();
  for (const work of [
    () => backtest(SMA, { home, signal }),
    () => sweep(SMA, { home, signal, params: { fast: [5] } }),
    () => robustness(SMA, { home, signal }),
  ]) {
    await expect(work()).rejects.toMatchObject({ name: 'AbortError' });
  }
});
