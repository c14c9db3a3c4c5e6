import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { peakOfNode } from '../../bench/processes.ts';
import { BIN } from '../../cli/service-local.ts';

const DATA = join(import.meta.dirname, '../../../examples/data/sp500-daily.csv');

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-sweep-memory-'));
  const rows = readFileSync(DATA, 'utf8').split('\n').slice(0, 300);
  writeFileSync(join(directory, 'bars.csv'), rows.join('\n'));
  writeFileSync(
    join(directory, 'bot.yaml'),
    `apiVersion: bots/v1
kind: Bot
metadata: { name: Reversion, slug: reversion }
spec:
  kind: trading
  universe: { symbols: [SPX], currency: USD }
  data: { source: ./bars.csv, timeframe: 1d }
  strategy: { name: rsi_reversion }
`,
  );
});
afterAll(() => rmSync(directory, { recursive: true }));

function peakOfSweep(name: string, ...axes: readonly string[]): number {
  const params = axes.flatMap((axis) => ['-p', axis]);
  const args = [join(directory, 'bot.yaml'), ...params, '--workers', '2'];
  return peakOfNode(BIN, 'backtest', 'sweep', ...args, '--out', join(directory, name));
}

test('a million trials would fit into 1 GiB', () => {
  // From 50,000 trials on, the best 50,000 are in the report, and the others only in columns.
  const axes = ['period=2:11:1', 'upper=60:99.8:0.2'];
  const few = peakOfSweep('few', ...axes, 'lower=10:34:1');
  const many = peakOfSweep('many', ...axes, 'lower=10:59.5:0.5');
  const perTrial = (many - few) / (200_000 - 50_000);
  expect(many + 800_000 * Math.max(0, perTrial)).toBeLessThan(2 ** 30);
}, 600_000);
