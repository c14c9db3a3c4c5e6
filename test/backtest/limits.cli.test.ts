/** Limits that a user's own strategy cannot bypass, tested with `backtest` and its files. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Summary } from '../../src/backtest/summary.ts';
import type { OrderEvent } from '../../src/engine/journal.ts';
import { inProcess } from '../cli/in-process.ts';
import { some } from '../length.ts';

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-limits-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

interface Run {
  readonly name: string;
  readonly closes: readonly number[];
  readonly risk: string;
  /** Code that the strategy runs at each bar, from 0. */
  readonly onBar: string;
}

async function run(parts: Run) {
  const { out, result } = await backtest(parts);
  expect(result).toMatchObject({ code: 0 });
  const events = readFileSync(join(out, 'events.ndjson'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as OrderEvent);
  const positions = events.flatMap((event) =>
    event.kind === 'order.filled' ? [event.position] : [],
  );
  return { summary: JSON.parse(result.stdout) as Summary, events, positions };
}

async function backtest({ name, closes, risk, onBar }: Run, options = ['--json']) {
  const file = (extension: string): string => join(directory, `${name}.${extension}`);
  const rows = closes.map(
    (close, day) =>
      `2024-01-${String(day + 1).padStart(2, '0')},${close},${close},${close},${close},1000`,
  );
  writeFileSync(file('csv'), ['time,open,high,low,close,volume', ...rows, ''].join('\n'));
  writeFileSync(
    file('ts'),
    `import { defineStrategy } from 'service-local/strategy';
export default defineStrategy({
  name: '${name}',
  description: 'made by a test',
  params: {},
  create({ instruments: [x], broker }) {
    let bar = -1;
    const sell = (quantity) => broker.order({ instrument: x, side: 'sell', quantity });
    const buy = (quantity) => broker.order({ instrument: x, side: 'buy', quantity });
    return { onBar() { bar += 1; ${onBar} } };
  },
});
`,
  );
  writeFileSync(
    file('yaml'),
    `apiVersion: bots/v1
kind: Bot
metadata: { name: ${name}, slug: ${name} }
spec:
  kind: trading
  universe: { symbols: [X], currency: USD }
  data: { source: ${file('csv')}, timeframe: 1d }
  strategy: { module: ${file('ts')} }
  engine: { cash: "100000", account: { model: margin, initial: 0.5, maintenance: 0.05 } }
  risk: ${risk}
`,
  );
  const out = file('out');
  const result = await inProcess(['backtest', file('yaml'), ...options, '--out', out]);
  return { out, result };
}

test('four sales of nearly the whole position cannot break a position limit together', async () => {
  const { summary, positions } = await run({
    name: 'stacked',
    closes: [100, 100, 100, 100],
    risk: '{ max_position_pct: 0.5 }',
    onBar: 'if (bar === 0) buy(500); if (bar === 1) for (let i = 0; i < 4; i += 1) sell(499);',
  });
  expect(positions).toEqual([500, 1, -498]);
  expect(summary.orders.denied).toBe(2);
});

test('two full exits after a loss limit do not reverse the position', async () => {
  const { summary, positions } = await run({
    name: 'turned',
    closes: [100, 100, 80, 80, 80],
    risk: '{ max_drawdown_pct: 0.1 }',
    onBar: 'if (bar === 0) buy(800); if (bar === 2) { sell(800); sell(800); }',
  });
  expect(positions).toEqual([800, 0]);
  expect(summary.orders.denied).toBe(1);
});

describe('orders that a limit cancels after they were accepted', () => {
  const collared: Run = {
    name: 'collared',
    closes: [100, 110, 110, 110],
    risk: '{ price_collar_bps: 500 }',
    // The price leaves the collar of the first order, and the strategy cancels another.
    onBar: `if (bar === 0) buy(5);
      if (bar === 1) broker.cancel(broker.order({ instrument: x, side: 'buy', quantity: 1, limit: 101, type: 'limit' }));
      if (bar === 2) buy(5);`,
  };

  test('count as refused, and cancels of the strategy do not', async () => {
    const { summary } = await run(collared);
    expect(summary.orders).toMatchObject({
      submitted: 3,
      filled: 1,
      canceled: 2,
      denied: 0,
      refused: 1,
      reasons: { price_collar_bps: 1 },
    });
    expect(summary.findings.find(({ code }) => code === 'refused_orders')).toMatchObject({
      issue: '1 order refused, so the run differs from what the strategy intended.',
      evidence: { denied: 0, canceled_by_limit: 1, causes: 'price_collar_bps 1' },
    });
  });

  test('are in the summary line and fail a gate', async () => {
    const { result } = await backtest(collared, ['--assert', 'refused_orders<=0']);
    expect(result.code).toBe(5);
    expect(result.stdout).toContain('1 of 3 orders refused: price_collar_bps 1');
    expect(result.stdout).toMatch(/refused_orders <= 0 +1 +FAIL/);
  });
});

test.each(
  some(1, [
    ['an order that it placed', 'const order = buy(1);'],
    ['a working order', 'buy(1); const [order] = broker.working();'],
  ]),
)('a strategy that changes %s fails', async (what, order) => {
  const { result } = await backtest({
    name: what.includes('working') ? 'working' : 'placed',
    closes: [100, 100],
    risk: `{ max_order_qty: '2' }`,
    onBar: `if (bar === 0) { ${order} order.quantity = 50; }`,
  });
  const { error } = JSON.parse(result.stdout) as { error: { code: string; message: string } };
  expect(result.code).toBe(1);
  expect(error.code).toBe('strategy_failed');
  expect(error.message).toContain('quantity');
});

test('assigning to an order changes neither fills nor the log', async () => {
  const { positions, events } = await run({
    name: 'defaced',
    closes: [100, 100, 100],
    risk: `{ max_order_qty: '2' }`,
    onBar: `if (bar !== 0) return;
      const order = buy(1);
      for (const one of [order, broker.working()[0]]) {
        Reflect.set(one, 'quantity', 50);
        Reflect.defineProperty(one, 'quantity', { value: 50 });
      }
      Reflect.defineProperty(x, 'close', { value: 1 });`,
  });
  expect(events[0]).toMatchObject({ kind: 'order.submitted', quantity: 1 });
  expect(positions).toEqual([1]);
});
