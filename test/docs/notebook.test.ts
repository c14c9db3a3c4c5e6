import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Summary } from '../../src/backtest/summary.ts';
import { inProcess } from '../cli/in-process.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples');
const hasPandas = spawnSync('python3', ['-c', 'import pandas, pyarrow']).status === 0;

test.skipIf(!hasPandas)('the notebook reads a run with pandas, and finds its figures', async () => {
  const out = mkdtempSync(join(tmpdir(), 'service-local-notebook-'));
  try {
    const bot = join(EXAMPLES, 'sma-crossover.yaml');
    const { stdout } = await inProcess(['backtest', bot, '--out', out, '--json']);
    const { equity, risk, trades } = JSON.parse(stdout) as Summary;
    const notebook = join(EXAMPLES, 'notebook/read_run.py');
    const { stdout: printed, stderr } = spawnSync('python3', [notebook, out], { encoding: 'utf8' });
    expect(stderr).toBe('');
    const found = JSON.parse(printed.trimEnd().split('\n').at(-1)!) as Record<string, number>;
    expect(found['end_equity']).toBe(equity.end);
    expect(found['max_drawdown']).toBeCloseTo(risk.max_drawdown, 12);
    expect(found['trades']).toBe(trades.count);
    expect(found['sharpe']).toBeCloseTo(risk.sharpe!, 6);
  } finally {
    rmSync(out, { recursive: true });
  }
});
