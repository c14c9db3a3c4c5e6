import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { OrderEvent } from '../../../src/engine/journal.ts';
import type { StepState } from '../../../src/backtest/step/stepped-run.ts';
import { inProcess } from '../../cli/in-process.ts';
import { BIN } from '../../cli/service-local.ts';
import { isAtLength } from '../../length.ts';

const SMA = join(import.meta.dirname, '../../../examples/sma-crossover.yaml');

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-step-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

let runs = 0;
async function step(
  commands: readonly string[],
  options: readonly string[] = [],
  file = SMA,
  env: Readonly<Record<string, string>> = {},
) {
  const out = join(directory, String((runs += 1)));
  const args = ['backtest', file, '--step', '--out', out, ...options];
  const { code, stdout, stderr } = await inProcess(args, {
    input: `${commands.join('\n')}\n`,
    env,
  });
  return { code, stdout, stderr, out };
}

interface Stop {
  readonly state: StepState;
  readonly stopped_by: string | null;
}

async function statesOf(commands: readonly string[]): Promise<Stop[]> {
  const { stdout } = await step(commands, ['--json']);
  const replies = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Stop);
  return replies.filter((reply) => 'state' in reply);
}

test('commands from a pipe are answered in plain text, and nothing is written before the end', async () => {
  const commands = [
    'n',
    'next order',
    'f',
    'print close - fast',
    'bogus',
    'until slo > 1',
    'quit',
    'n',
  ];
  const { code, stdout, stderr, out } = await step(commands);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const shown = stdout.split('\n').filter((line) => /^(bar|error|close|working)/.test(line));
  expect(shown).toEqual([
    'bar 1 of 5105, 2000-01-03T00:00:00.000Z',
    'bar 2 of 5105, 2000-01-04T00:00:00.000Z',
    'bar 52 of 5105, 2000-03-16T00:00:00.000Z, stopped by next order',
    'working: order 1  symbol=SPX  side=buy  type=market  time_in_force=gtc  weight=1',
    'bar 53 of 5105, 2000-03-17T00:00:00.000Z, stopped by next fill',
    expect.stringMatching(/^close - fast = \d/),
    'error: unknown command "bogus"',
    'error: unknown name "slo"',
  ]);
  expect(existsSync(out)).toBe(false);
});

test('names that every JavaScript object has are unknown, and the session continues', async () => {
  const names = ['constructor', 'valueOf', '__proto__'];
  const commands = [...names, ...names.map((name) => `print ${name}`), 'print toString(1)'];
  const { code, stdout } = await step([...commands, 'print bar', 'quit']);
  const errors = stdout.split('\n').filter((line) => line.startsWith('error'));
  expect(errors).toEqual([
    ...names.map((name) => `error: unknown command "${name}"`),
    ...names.map((name) => `error: unknown name "${name}"`),
    expect.stringMatching(/^error: expected one of the functions abs, /),
  ]);
  expect(stdout).toContain('bar = 1');
  expect(code).toBe(0);
});

test.runIf(isAtLength)('at the end, the results are those of a run without steps', async () => {
  const { stdout, out } = await step(['c']);
  expect(stdout).toContain('end of the run: next or quit writes the results');
  const whole = join(directory, 'whole');
  await inProcess(['backtest', SMA, '--out', whole]);
  for (const name of ['events.ndjson', 'trades.csv', 'equity.csv']) {
    expect(readFileSync(join(out, name), 'utf8')).toBe(readFileSync(join(whole, name), 'utf8'));
  }
});

test.runIf(isAtLength).each(['n', 'c', 'until close > 0'])(
  '%s at the last bar ends with the summary and the place of the files, and walks no further',
  async (command) => {
    const { code, stdout, out } = await step(['c', command, 'print bar']);
    expect(code).toBe(0);
    expect(stdout.match(/^bar 5105 of 5105/gm)).toHaveLength(1);
    expect(stdout).not.toContain('bar = ');
    expect(stdout).toContain('Sharpe ratio');
    expect(stdout).toContain(`files: ${out}\nreport: ${join(out, 'report.html')}`);
    expect(existsSync(join(out, 'summary.json'))).toBe(true);
  },
);

test.runIf(isAtLength)(
  'a gate that is not met gives exit code 5 at the last bar, but not to a walk that ends before',
  async () => {
    const gate = ['--assert', 'sharpe>=9'];
    for (const options of [gate, [...gate, '--json']]) {
      const { code, stderr } = await step(['c', 'quit'], options);
      expect(code).toBe(5);
      expect(stderr).toContain('gate_not_met: sharpe >= 9');
    }
    expect(await step(['n', 'quit'], gate)).toMatchObject({ code: 0, stderr: '' });
  },
);

test('prices and amounts of an event have no spurious digits', async () => {
  const { stdout } = await step(['f', 'q']);
  const filled = stdout.split('\n').find((line) => line.includes('order.filled'))!;
  expect(filled).toMatch(/ cash=-?[\d,]+\.\d\d$| cash=-?[\d,]+\.\d\d /);
  expect(filled).not.toMatch(/\.\d{7}/);
});

test('each stop shows the state that the recorded events and the equity give', async () => {
  const { out } = await step(['c']);
  const states = await statesOf(Array.from({ length: 40 }, () => 'f'));
  const events = readFileSync(join(out, 'events.ndjson'), 'utf8').trim().split('\n');
  const fills = events
    .map((line) => JSON.parse(line) as OrderEvent)
    .filter((event) => event.kind === 'order.filled');
  const rows = readFileSync(join(out, 'equity.csv'), 'utf8').trim().split('\n').slice(1);
  const equityAt = new Map(rows.map((row) => [row.split(',')[0]!, Number(row.split(',')[1])]));
  expect(states).toHaveLength(41);
  for (const [at, { state }] of states.slice(1).entries()) {
    const { time, cash, position } = fills[at]!;
    expect(state).toMatchObject({ time, cash, equity: equityAt.get(time) });
    expect(state.instruments['SPX']!.position).toBe(position);
    expect(cash + position * state.instruments['SPX']!.close).toBeCloseTo(state.equity, 6);
  }
});

test.runIf(isAtLength)(
  'breakpoints stop where their expression is true, and until ends at the next such bar',
  async () => {
    const [, hit, later, last] = await statesOf([
      'break crossed_above(fast, slow)',
      'break position > 0',
      'delete 2',
      'c',
      'until time >= 2010-01-01',
      'delete 1',
      'c',
    ]);
    const { fast, slow } = hit!.state.indicators;
    expect(hit!.stopped_by).toBe('crossed_above(fast, slow)');
    expect(fast).toBeGreaterThan(slow!);
    expect(later!.state.time).toBe('2010-01-04T00:00:00.000Z');
    expect(last!.state.bar).toBe(last!.state.bars);
  },
);

test.runIf(isAtLength)('a command that finds nothing up to the end says so', async () => {
  const { stdout } = await step(['until close > 1e9', 'quit']);
  expect(stdout).toContain('not found up to the end of the run: a bar with close > 1e9');
});

test.runIf(isAtLength)(
  'a strategy of the user in a thread of its own can be stepped through',
  async () => {
    const file = join(import.meta.dirname, '../../../examples/custom-strategy.yaml');
    const { code, stdout } = await step(['f', 'q'], [], file);
    expect(code).toBe(0);
    expect(stdout).toContain('stopped by next fill');
  },
);

test.runIf(isAtLength)('Ctrl-C ends it with code 130 and without files', async () => {
  const out = join(directory, 'interrupted');
  const child = spawn(process.execPath, [BIN, 'backtest', SMA, '--step', '--out', out], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  await once(child.stdout, 'data');
  child.kill('SIGINT');
  const [code] = (await once(child, 'exit')) as [number];
  expect([code, existsSync(out)]).toEqual([130, false]);
});

const ENDS: readonly (readonly [name: string, end: string, message: string])[] = [
  ['throws', "throw new Error('a day too far')", 'threw at bar 9'],
  ['hangs', 'for (;;);', 'did not return from bar 9 within 1 s'],
];

test.runIf(isAtLength).each(ENDS)(
  'a strategy that %s can be walked through up to that bar',
  async (name, end, message) => {
    writeFileSync(
      join(directory, `${name}.ts`),
      `import { defineStrategy, ema } from 'service-local/strategy';
export default defineStrategy({
  name: '${name}',
  description: 'made by a test',
  params: {},
  indicators: ({ instruments: [asset] }) => ({ average: ema(asset.close, 3) }),
  create: ({ instruments: [asset], broker }) => ({
    onBar() {
      if (asset.count === 5) broker.target(asset, 1);
      if (asset.count < 9) return;
      broker.target(asset, 0);
      ${end};
    },
  }),
});
`,
    );
    const data = join(SMA, '../data/sp500-daily.csv');
    const bot = readFileSync(SMA, 'utf8')
      .replace(/strategy: .*/, `strategy: { module: ./${name}.ts, params: {} }`)
      .replace(/source: [^,}]*/, `source: ${data}`);
    const file = join(directory, `${name}.yaml`);
    writeFileSync(file, bot);
    const env = { SERVICE_LOCAL_STRATEGY_TIMEOUT_SECONDS: '1' };
    const { code, stdout, stderr, out } = await step(['next fill', 'c', 'n'], [], file, env);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^note: bar 9 is the last one: strategy /);
    expect(stderr).toContain(message);
    const bars = stdout
      .split('\n')
      .filter((line) => /^(bar|working|indicators|the strategy)/.test(line));
    expect(bars).toEqual([
      'bar 1 of 9, 2000-01-03T00:00:00.000Z',
      expect.stringMatching(/^indicators: average/),
      'bar 6 of 9, 2000-01-10T00:00:00.000Z, stopped by next fill',
      expect.stringMatching(/^indicators: average \d/),
      'bar 9 of 9, 2000-01-13T00:00:00.000Z',
      expect.stringMatching(/^indicators: average \d/),
      expect.stringMatching(/^working: order 2 .*weight=0$/),
      'the strategy failed at this bar: next or quit ends',
    ]);
    expect(existsSync(out)).toBe(false);
  },
);
