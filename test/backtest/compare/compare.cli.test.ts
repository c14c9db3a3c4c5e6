import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Comparison } from '../../../src/backtest/compare/compare-runs.ts';
import { inProcess } from '../../cli/in-process.ts';
import { isAtLength } from '../../length.ts';

const SMA = join(import.meta.dirname, '../../../examples/sma-crossover.yaml');

let directory: string;
let runId: string;
const run = (...args: string[]) => inProcess(args, { cwd: directory });

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-compare-'));
  const first = await run('backtest', SMA, '--json');
  runId = (JSON.parse(first.stdout) as { run_id: string }).run_id;
  await run('backtest', SMA, '-p', 'fast=20', '--from', '2010-01-01', '--out', 'other');
});
afterAll(() => rmSync(directory, { recursive: true }));

describe('runs compare', () => {
  it('compares a run by its id with the directory of another, as one JSON document and a page', async () => {
    const { code, stdout } = await run(
      'runs',
      'compare',
      runId,
      'other',
      '--html',
      'c.html',
      '--json',
    );
    expect(code).toBe(0);
    const comparison = JSON.parse(stdout) as Comparison;
    expect(comparison.schema).toBe('service-local/comparison/v1');
    expect(comparison.runs.map(({ run_id }) => run_id)[0]).toBe(runId);
    expect(comparison.shared?.from).toBe('2010-01-04T00:00:00.000Z');
    expect(comparison.differences[0]).toMatchObject({
      params: [{ name: 'fast', first: 10, other: 20 }],
      trade: { number: 1 },
    });
    expect(comparison.differences[0]!.lock).toContain('data of SPX: changed');
    const total = comparison.figures.find(({ figure }) => figure === 'total_return')!;
    expect(total.values[0]).toBeCloseTo(0.3769504, 6);
    expect(readFileSync(join(directory, 'c.html'), 'utf8')).toContain('Comparison of 2 backtests');
  });

  it.runIf(isAtLength)(
    'prints tables, and writes the page into the directory of runs',
    async () => {
      const { code, stdout } = await run('runs', 'compare', runId, runId);
      expect(code).toBe(0);
      expect(stdout).toContain('The runs have the same events: their results are identical.');
      expect(stdout).toContain('No trade differs.');
      expect(stdout).toMatch(new RegExp(`page: ${directory}/runs/comparison-[0-9a-f]{12}\\.html`));
    },
  );

  it('says what is missing', async () => {
    const one = await run('runs', 'compare', runId);
    expect(one).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('2 to 8 runs can be compared, not 1'),
    });
    const missing = await run('runs', 'compare', runId, 'none');
    expect(missing.code).toBe(3);
    expect(missing.stderr).toContain('none is neither a directory with summary.json nor a run in');
    rmSync(join(directory, 'other/trades.csv'));
    const cut = await run('runs', 'compare', runId, 'other');
    expect(cut.code).toBe(3);
    expect(cut.stderr).toContain('no such file');
  });
});
