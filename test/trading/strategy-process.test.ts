import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runNode } from '../cli/service-local.ts';
import { some } from '../length.ts';

const SRC = join(import.meta.dirname, '../../src');

/** Runs a session with a custom strategy in a process of its own, as in production. */
async function sessionOf(onBar: string): Promise<{ status: string; message: string }> {
  const directory = mkdtempSync(join(tmpdir(), 'service-local-session-'));
  try {
    writeFileSync(
      join(directory, 'own.ts'),
      `import { defineStrategy } from 'service-local/strategy';
export default defineStrategy({ name: 'own', description: '', params: {}, create: ({ broker, instruments }) => ({
  onBar() { ${onBar} },
}) });
`,
    );
    const script = join(directory, 'session.ts');
    writeFileSync(
      script,
      `import { setImmediate as turn } from 'node:timers/promises';
import { loadStrategyModule } from '${SRC}/backtest/strategy-module.ts';
import { NO_RISK_LIMITS } from '${SRC}/engine/config.ts';
import { TradingSession } from '${SRC}/trading/trading-session.ts';
const { strategy } = loadStrategyModule('./own.ts', ${JSON.stringify(directory)});
const none = { model: 'none' } as const;
const config = { cash: 1000, fill: { model: 'next_open' }, units: 'fractional', fees: none, slippage: none,
  account: { model: 'cash' }, risk: NO_RISK_LIMITS, seed: 7 } as const;
const session = new TradingSession({ symbols: ['A'], strategy, params: {}, config, timeoutMs: 5000 });
for (let time = 1; time < 4 && session.status === 'running'; time++) {
  session.push({ time, bars: { A: { open: 1, high: 1, low: 1, close: 1, volume: 1 } } });
  await turn();
}
console.log(JSON.stringify({ status: session.status, message: session.failure?.message ?? '' }));
`,
    );
    const { code, stdout, stderr } = await runNode([script]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return JSON.parse(stdout) as { status: string; message: string };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

test.each(
  some(1, [
    ['ends the process', 'process.exit(0);', /own\.ts:3: a strategy must not call process\.exit/],
    ['reads a clock', 'Date.now();', /own\.ts:3: a strategy must not call Date\.now/],
    [
      'orders after an await',
      'void Promise.resolve().then(() => broker.target(instruments[0]!, 1));',
      /own\.ts:3: .*orders must be placed within/,
    ],
  ] as const),
)('the session fails and its process survives when the strategy %s', async (_, onBar, message) => {
  const failure = { status: 'failed', message: expect.stringMatching(message) as string };
  expect(await sessionOf(onBar)).toEqual(failure);
});
