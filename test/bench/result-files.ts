/**
 * `node result-files.ts csv|parquet BARS ROUNDS [OPTION …]`: `service-local backtest` from a file of
 * bars to the result files, with these options, against a process that only reads the file.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BAR_COLUMNS, type Bars } from '../../src/market/bars.ts';
import { writeParquet } from '../../src/market/write.ts';
import { alternate, printMeasurement, timeOf } from './measurement.ts';
import { CLI, peakOfNode, runNode } from './processes.ts';
import { randomWalk } from './random-walk.ts';

const [format, length, rounds, ...options] = process.argv.slice(2);
const directory = mkdtempSync(join(tmpdir(), 'service-local-bench-'));
try {
  const data = join(directory, `bars.${format}`);
  const bars = randomWalk(Number(length));
  if (format === 'parquet') await writeParquet(data, bars, BAR_COLUMNS);
  else writeCsv(data, bars);
  const bot = join(directory, 'bot.json');
  writeFileSync(bot, JSON.stringify(botOn(data)));
  const reader = join(import.meta.dirname, 'read-columns.js');
  const backtest = [CLI, 'backtest', bot, '--quiet', '--out', directory, ...options];
  const pairs = await alternate(Number(rounds), {
    floor: () => timeOf(() => runNode(reader, data)),
    ours: () => timeOf(() => runNode(...backtest)),
  });
  printMeasurement({ pairs, peakBytes: peakOfNode(...backtest) });
} finally {
  rmSync(directory, { recursive: true });
}

function writeCsv(
  path: string,
  { time, open, high, low, close, volume, length: rows }: Bars,
): void {
  const lines = ['time,open,high,low,close,volume'];
  for (let i = 0; i < rows; i += 1) {
    const prices = [open, high, low, close].map((column) => column[i]!.toFixed(2)).join(',');
    lines.push(`${new Date(time[i]!).toISOString()},${prices},${volume[i]}`);
  }
  writeFileSync(path, `${lines.join('\n')}\n`);
}

function botOn(source: string): object {
  return {
    apiVersion: 'bots/v1',
    kind: 'Bot',
    metadata: { name: 'Bench', slug: 'bench' },
    spec: {
      kind: 'trading',
      universe: { symbols: ['X'], currency: 'USD' },
      data: { source, timeframe: '1m' },
      strategy: { name: 'sma_crossover', params: { fast: 10, slow: 30 } },
    },
  };
}
