/** `node backtest.ts BARS PROCESSES`: settled backtests in processes that do nothing else. */
import { join } from 'node:path';
import { alternate, printMeasurement } from './measurement.ts';
import { runNode } from './processes.ts';
import type { SettledTime } from './settled-time.ts';

const [bars, processes] = process.argv.slice(2) as [string, string];
const peaks: number[] = [];

const run = (what: 'engine' | 'loop'): SettledTime => {
  const script = join(import.meta.dirname, 'settled-time.ts');
  return JSON.parse(runNode(script, what, bars).stdout) as SettledTime;
};

const pairs = await alternate(Number(processes), {
  floor: () => run('loop').ms,
  ours() {
    const { ms, peakBytes } = run('engine');
    peaks.push(peakBytes);
    return ms;
  },
});
printMeasurement({ pairs, peakBytes: Math.max(...peaks) });
