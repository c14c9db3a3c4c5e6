import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { Summary } from '../../src/backtest/summary.ts';
import type { WalkForwardDocument } from '../../src/backtest/windows/walk-forward-document.ts';
import { backtest, sweep, walkForward } from '../../src/bots/library.ts';
import { inProcess } from '../cli/in-process.ts';

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
  expect(result.equity.at(-1)).toBe(same.equity.end);
  expect(Math.min(...result.drawdown)).toBeCloseTo(same.risk.max_drawdown, 12);
  expect(result.time).toHaveLength(result.equity.length);
  expect(result.trades).toHaveLength(same.trades.count);
  expect(existsSync(join(out, 'equity.parquet'))).toBe(true);

  const spec = parse(readFileSync(SMA, 'utf8')) as Record<string, unknown>;
  const fromSpec = await backtest(spec, { ...given, directory: EXAMPLES });
  expect(fromSpec.equity).toEqual(result.equity);
});

test('a sweep ranks its trials, and a walk-forward analysis is that of the command', async () => {
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
});

test('a custom strategy runs in a thread, and an invalid bot is an error with a code', async () => {
  const { summary } = await backtest(join(EXAMPLES, 'custom-strategy.yaml'), { home });
  expect(summary.trades.count).toBeGreaterThan(0);
  await expect(backtest(join(home, 'missing.yaml'))).rejects.toMatchObject({
    code: 'file_not_found',
  });
});
