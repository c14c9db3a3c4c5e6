import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { inProcess } from '../cli/in-process.ts';
import { isAtLength } from '../length.ts';

const SP500 = join(import.meta.dirname, '../../examples/data/sp500-daily.csv');

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-check-wake-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

/** Checks a bot that buys in one call and sells in the next one for which `isExit` holds. */
async function check(name: string, isExit: string): Promise<{ code: number | null; text: string }> {
  writeFileSync(
    join(directory, `${name}.ts`),
    `import { crossedAbove, crossing, defineStrategy, sma } from 'service-local/strategy';
export default defineStrategy({
  name: 'own', description: 'made by a test', params: {},
  indicators: ({ instruments: [x] }) => ({ fast: sma(x.close, 5), slow: sma(x.close, 20) }),
  wakeOn: ({ fast, slow }) => crossing(fast, slow),
  create({ instruments: [x], indicators: { fast, slow }, broker }) {
    return { onBar() {
      if (crossedAbove(fast, slow)) broker.target(x, 1);
      else if (broker.position(x) > 0 && ${isExit}) broker.target(x, 0);
    } };
  },
});
`,
  );
  const file = join(directory, `${name}.yaml`);
  writeFileSync(
    file,
    `apiVersion: bots/v1
kind: Bot
metadata: { name: own, slug: own }
spec:
  kind: trading
  universe: { symbols: [X], currency: USD }
  data: { source: ${SP500}, timeframe: 1d, from: 2010-01-01, to: 2010-12-31 }
  strategy: { module: ./${name}.ts }
`,
  );
  const { code, stdout, stderr } = await inProcess(['validate', file, '--check-wake']);
  return { code, text: stdout + stderr };
}

test('a strategy that acts only on its condition has the same events', async () => {
  const { code, text } = await check('kept', 'fast.value < slow.value');
  expect(text).toContain('the events are the same with and without wakeOn');
  expect(code).toBe(0);
});

test.runIf(isAtLength)(
  'the first event of a strategy that acts on other bars is named',
  async () => {
    const { code, text } = await check('broken', 'x.close < fast.value');
    expect(text).toMatch(
      /wake_on_differs wakeOn skips 2010-\S+, where onBar acts \(order\.submitted of order \d+\); widen wakeOn\n/,
    );
    expect(code).toBe(3);
  },
);
