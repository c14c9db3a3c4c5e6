/** Runs of a strategy with and without `wakeOn`, in one thread and in several. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Summary } from '../../../src/backtest/summary.ts';
import type { SweepDocument } from '../../../src/backtest/search/sweep-document.ts';
import { inProcess } from '../../cli/in-process.ts';
import { seededRandom } from '../../engine/indicator-contract.ts';
import randomOrders from './waking-strategy.ts';

const HOUR = 3_600_000;
const SEEDS = 100;
const MODES = randomOrders.params.mode.choices;

let directory: string;
let bot: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-wake-'));
  for (const [at, symbol] of ['A', 'B'].entries()) {
    writeFileSync(join(directory, `${symbol}.csv`), hours(at + 1));
  }
  bot = join(directory, 'bot.yaml');
  writeFileSync(
    bot,
    `apiVersion: bots/v1
kind: Bot
metadata: { name: Random orders, slug: random-orders }
spec:
  kind: trading
  universe: { symbols: [A, B], currency: USD }
  data: { sources: { A: ./A.csv, B: ./B.csv }, timeframe: 1h }
  strategy: { module: ${join(import.meta.dirname, 'waking-strategy.ts')} }
  engine:
    account: { model: margin, initial: 0.5, maintenance: 0.45 }
    fees: { model: percent, rate: "0.0005" }
  risk:
    max_daily_loss_pct: 0.05
    max_drawdown_pct: 0.3
    max_position_pct: 2
`,
  );
});
afterAll(() => rmSync(directory, { recursive: true }));

/** Two weeks of hours, some of which are missing. */
function hours(seed: number): string {
  const random = seededRandom(seed);
  let price = 50;
  const rows = Array.from({ length: 24 * 14 }, (_, hour) => {
    const open = price;
    price *= 1 + 0.03 * (random() - 0.5);
    const prices = [open, Math.max(open, price) * 1.002, Math.min(open, price) * 0.998, price];
    const time = new Date(Date.UTC(2024, 0, 1) + hour * HOUR).toISOString();
    return [time, ...prices.map((one) => one.toFixed(2)), 1000].join();
  });
  return ['date,open,high,low,close,volume', ...rows.filter(() => random() < 0.95), ''].join('\n');
}

test('trials have the same figures with and without wakeOn, with one worker and with four', async () => {
  const grid = ['-p', `seed=1:${SEEDS}:1`, '-p', `mode=${MODES.join()}`];
  const documents: SweepDocument[] = [];
  for (const workers of ['1', '4']) {
    const out = ['--workers', workers, '--out', join(directory, `workers-${workers}`), '--json'];
    const { code, stdout } = await inProcess(['backtest', 'sweep', bot, ...grid, ...out]);
    expect({ code, stdout }).toMatchObject({ code: 0 });
    documents.push(JSON.parse(stdout) as SweepDocument);
  }
  const [one, four] = documents as [SweepDocument, SweepDocument];
  expect(four).toEqual(one);
  expect(one.trials).toMatchObject({ done: 3 * SEEDS, failed: 0 });
  const figures = new Map(
    one.results.map(({ params, metrics }) => [`${params['seed']} ${params['mode']}`, metrics]),
  );
  let trades = 0;
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const [own, declared, waking] = MODES.map((mode) => figures.get(`${seed} ${mode}`));
    expect(declared).toEqual(own);
    expect(waking).toEqual(own);
    trades += own!.trades;
  }
  expect(trades).toBeGreaterThan(5 * SEEDS);
});

test('backtests have the same events with and without wakeOn, with own and with declared indicators', async () => {
  const kinds = new Set<string>();
  for (let seed = 1; seed <= 40; seed += 1) {
    const runs: { lines: string; hash: string }[] = [];
    for (const mode of MODES) {
      const out = join(directory, `run-${seed}-${mode}`);
      const params = ['-p', `seed=${seed}`, '-p', `mode=${mode}`];
      const { stdout } = await inProcess(['backtest', bot, ...params, '--out', out, '--json']);
      const lines = readFileSync(join(out, 'events.ndjson'), 'utf8');
      runs.push({ lines, hash: (JSON.parse(stdout) as Summary).hashes.events });
      for (const [, kind] of lines.matchAll(/"kind":"([^"]+)"/g)) kinds.add(kind!);
    }
    expect(runs[1]).toEqual(runs[0]);
    expect(runs[2]).toEqual(runs[0]);
  }
  expect([...kinds].toSorted()).toEqual(
    expect.arrayContaining(['order.canceled', 'order.expired', 'order.filled', 'order.rejected']),
  );
});
