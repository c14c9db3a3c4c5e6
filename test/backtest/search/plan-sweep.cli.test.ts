import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { TrialPool } from '../../../src/backtest/search/trial-pool.ts';
import { showEstimate } from '../../../src/cli/show-estimate.ts';
import { inProcess } from '../../cli/in-process.ts';
import { isAtLength } from '../../length.ts';

const SMA = join(import.meta.dirname, '../../../examples/sma-crossover.yaml');

test('plan sweep counts trials and shards, extrapolates from its pilot, and records no trial', async () => {
  const home = mkdtempSync(join(tmpdir(), 'service-local-plan-'));
  const words = ['plan', 'sweep', SMA, '-p', 'fast=5:100:5', '-p', 'slow=50:500:5'];
  const { code, stdout } = await inProcess([...words, '--pilot', '4', '--cores', '4', '--json'], {
    env: { SERVICE_LOCAL_HOME: home },
  });
  expect(code).toBe(0);
  const plan = JSON.parse(stdout) as Record<string, number>;
  // 20 × 91 combinations, of which those with fast ≥ slow are skipped.
  const skipped = 11 + 10 + 9 + 8 + 7 + 6 + 5 + 4 + 3 + 2 + 1;
  expect(plan).toMatchObject({
    trials: 20 * 91 - skipped,
    skipped,
    shards: Math.ceil((20 * 91 - skipped) / plan['trials_per_shard']!),
    pilot: { trials: 4, failed: 0 },
    bars: 5105,
  });
  const { trials, shards, seconds_per_trial, seconds_per_shard } = plan;
  const seconds = trials! * seconds_per_trial! + shards! * seconds_per_shard!;
  expect(plan['core_hours']).toBeCloseTo(seconds / 3600, 12);
  expect(plan['hours']).toBeCloseTo(seconds / 3600 / 4, 12);
  expect(plan['transfer_bytes']).toEqual({
    workers: 4 * plan['input_bytes']!,
    pods: shards! * plan['input_bytes']!,
  });
  expect(existsSync(join(home, 'trials.ndjson'))).toBe(false);
  rmSync(home, { recursive: true });
});

test('plan sweep estimates few trials without the start of their thread', async () => {
  let ms = 0;
  const now = vi.spyOn(performance, 'now').mockImplementation(() => ms);
  const run = vi.spyOn(TrialPool.prototype, 'run');
  run.mockImplementationOnce(async (batch, onResult) => {
    ms += 700;
    return run.getMockImplementation()!(batch, onResult);
  });
  run.mockImplementation(async ({ indices, trial }, onResult) => {
    for (const index of indices) onResult({ ...trial(index), error: 'not run' });
    ms += 10 * indices.length;
  });
  try {
    const words = ['plan', 'sweep', SMA, '-p', 'fast=5,10', '-p', 'slow=50,100', '--json'];
    expect(JSON.parse((await inProcess(words)).stdout)).toMatchObject({
      pilot: { trials: 4, failed: 4 },
      seconds_per_trial: expect.closeTo(0.01, 9) as number,
    });
  } finally {
    now.mockRestore();
    run.mockRestore();
  }
});

test.runIf(isAtLength)(
  'plan sweep counts four shards for each generation of tpe, and four processors at most',
  async () => {
    const words = [
      'plan',
      'sweep',
      SMA,
      '-p',
      'fast=5:100',
      '-p',
      'slow=150:500',
      '--search',
      'tpe',
    ];
    const more = ['--trials', '1000', '--cores', '100', '--json'];
    const { code, stdout } = await inProcess([...words, ...more]);
    expect(code).toBe(0);
    const { core_hours, hours, ...plan } = JSON.parse(stdout) as Record<string, number>;
    expect(plan).toMatchObject({ trials: 1000, trials_per_shard: 4, shards: 62 * 4 + 2 });
    expect(hours).toBeCloseTo(core_hours! / 4, 12);
  },
);

test.each([
  [0.0042, '15 core seconds', '15 seconds'],
  [0.0001, '0.36 core seconds', 'less than a second'],
  [0.5, '30 core minutes', '30 minutes'],
  [400, '400 core hours', '16 days'],
])('%d core hours are printed as %s', (core_hours, time, duration) => {
  const pilot = { trials: 1, failed: 0 };
  const transfer_bytes = { workers: 1, pods: 1 };
  const counts = { trials: 1, skipped: 0, shards: 1, trials_per_shard: 1, parallel_shards: 1 };
  const sizes = { bars: 1, input_bytes: 1, result_bytes: 1 };
  const times = { seconds_per_trial: 1, seconds_per_shard: 1, hours: core_hours, cores: 1 };
  const rows: (readonly unknown[])[] = [];
  const out = { table: (_: unknown, all: typeof rows) => rows.push(...all) };
  const estimate = { ...counts, ...sizes, ...times, core_hours, pilot, transfer_bytes };
  showEstimate(out as never, estimate);
  expect(rows).toContainEqual(['processor time', time]);
  expect(rows).toContainEqual(['duration', `${duration} on 1 core`]);
});
