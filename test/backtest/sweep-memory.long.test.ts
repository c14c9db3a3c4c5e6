import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { peakOfNode } from '../bench/processes.ts';
import { BIN } from '../cli/service-local.ts';

const DATA = join(import.meta.dirname, '../../examples/data/sp500-daily.csv');

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

test('a sweep takes at most 700 bytes a trial, so that a million fit into 1 GiB', () => {
  const few = peakOfSweep('few', 'period=2:11:1', 'lower=10:34:1', 'upper=60:79:1');
  const many = peakOfSweep('many', 'period=2:11:1', 'lower=10:49.8:0.2', 'upper=60:79.8:0.2');
  expect(few).toBeLessThan(324 * 2 ** 20);
  expect((many - few) / (200_000 - 5000)).toBeLessThan(700);
}, 300_000);
