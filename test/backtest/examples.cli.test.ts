import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Summary } from '../../src/backtest/summary.ts';
import { EXAMPLES, exampleBots } from '../bots/example-bots.ts';
import { inProcess } from '../cli/in-process.ts';
import { isAtLength, some } from '../length.ts';

/** Hashes of the events, trades and equity of each example, shortened. */
const HASHES: Readonly<Record<string, string>> = {
  'buy-and-hold.yaml': '1e62e95af123 bdd4469b4f59 e1102bad012a',
  'custom-strategy.yaml': '3acaf9cdf561 275e03ecdc04 ab2f267a109d',
  'donchian-breakout.yaml': 'eb7d9b98b37f 8d6581c91d79 00dd2563d0b0',
  'model-signal.yaml': '139cf2409b0f d39442c12639 dbba36de1d9d',
  'momentum-rotation.yaml': 'f03e9c167afb bd5a0f7a9c7b d13e7c171d8b',
  'pairs-reversion.yaml': 'b3e5a0daacf6 a45de2c9c2df aa988a5d6179',
  'paper.yaml': '0664a95cd435 b8bae3a7f55f e8ff99d89c7a',
  'rsi-reversion.yaml': '1f26c324e39d f2240cebf797 c1252d498499',
  'sma-crossover.yaml': 'ff7ba56527d1 dfb2625397ef a05912c04b10',
  'weekly-trend.yaml': '3abaadafd58c 97840ee50429 9c94ec4236d5',
};

let home: string;
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'service-local-examples-'));
  const data = join(EXAMPLES, 'data/sp500-daily.csv');
  await inProcess(['data', 'import', data, '--symbol', 'SPX'], {
    env: { SERVICE_LOCAL_HOME: home },
  });
});
afterAll(() => rmSync(home, { recursive: true }));

const results = new Map<string, Promise<Summary>>();

/** Runs each example once for all tests. Its files are in `home`, in a directory with its file name. */
function resultOf(file: string): Promise<Summary> {
  const result = results.get(file) ?? run(file);
  results.set(file, result);
  return result;
}

async function run(file: string): Promise<Summary> {
  const args = ['backtest', join(EXAMPLES, file), '--json', '--out', join(home, file)];
  const { stdout } = await inProcess(args, { env: { SERVICE_LOCAL_HOME: home } });
  return JSON.parse(stdout) as Summary;
}

/** One with a module of its own, one with several symbols, and one with neither. */
const MAIN = ['custom-strategy.yaml', 'momentum-rotation.yaml', 'sma-crossover.yaml'];

test.each(isAtLength ? exampleBots.filter((file) => file !== 'research.yaml') : MAIN)(
  '%s has the recorded events, trades and equity',
  async (file) => {
    const { events, trades, equity } = (await resultOf(file)).hashes;
    expect([events, trades, equity].map((hash) => hash.slice(0, 12)).join(' ')).toBe(HASHES[file]);
  },
);

const DRAWN = [
  ['sma-crossover.yaml', 'sma(close, 10), sma(close, 30)'],
  // It runs in a thread of its own, which sends the indicators.
  ['custom-strategy.yaml', 'sma(close, 200), rsi(close, 3)'],
] as const;

test.each(some(1, DRAWN))('the report of %s draws %s', async (file, indicators) => {
  await resultOf(file);
  expect(readFileSync(join(home, file, 'report.html'), 'utf8')).toContain(
    `Indicators: ${indicators}.`,
  );
});
