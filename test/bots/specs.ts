import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A valid spec that uses most fields. */
export const VALID = `
apiVersion: bots/v1
kind: Bot
metadata: {name: SMA crossover, slug: sma-crossover, labels: {desk: index}}
spec:
  kind: trading
  universe: {symbols: [SPX], currency: USD}
  data: {source: ./spx.csv, timeframe: 1d, from: 2000-01-03, to: 2020-04-17}
  strategy: {name: sma_crossover, params: {fast: 10, slow: 30}}
  engine:
    cash: "100000"
    fill: {model: volume_share, limit: 0.1}
    units: fractional
    fees: {model: percent, rate: "0.001"}
    slippage: {model: none}
    account: {model: margin, initial: 0.5, maintenance: 0.25}
    seed: 7
  metrics: [{name: sharpe, min: 0.2}, {name: max_drawdown, min: -0.5}]
  risk:
    max_order_value: "50000"
    max_position_pct: {unlimited: one instrument only}
`.trimStart();

/** Creates a directory with these files, which is deleted after the test. */
export function directoryWith(files: Readonly<Record<string, string | Uint8Array>>): string {
  const directory = mkdtempSync(join(tmpdir(), 'service-local-bots-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    writeFileSync(join(directory, name), content);
  }
  return directory;
}
