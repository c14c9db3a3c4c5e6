import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { watch } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { SweepDocument } from '../../src/backtest/sweep-plan.ts';
import { BIN, serviceLocal } from '../cli/service-local.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples');
const SMA = join(EXAMPLES, 'sma-crossover.yaml');
const GRID = ['-p', 'fast=5:50:5', '-p', 'slow=20:200:10'];

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-sweep-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

const sweep = (...args: string[]) => serviceLocal(['backtest', 'sweep', ...args]);

/** A bot whose strategy spends a few milliseconds on every bar once `slow` is set. */
function slowBot(name: string): string {
  writeFileSync(
    join(directory, `${name}.ts`),
    `import { defineStrategy, integer } from 'service-local/strategy';
export default defineStrategy({
  name: '${name}',
  description: 'made by a test',
  params: { day: integer({ default: 1, min: 1 }) },
  create({ instruments, broker, params }) {
    const instrument = instruments[0]!;
    return {
      onBar() {
        if (instrument.count === params.day) broker.target(instrument, 1);
        let work = 0;
        for (let i = 0; i < 8_000; i += 1) work += Math.sqrt(i);
        if (work < 0) broker.target(instrument, 0);
      },
    };
  },
});
`,
  );
  const file = join(directory, `${name}.yaml`);
  writeFileSync(
    file,
    `apiVersion: bots/v1
kind: Bot
metadata: { name: ${name}, slug: ${name.replaceAll('_', '-')} }
spec:
  kind: trading
  universe: { symbols: [X], currency: USD }
  data: { source: ${join(EXAMPLES, 'data/sp500-daily.csv')}, timeframe: 1d }
  strategy: { module: ./${name}.ts }
`,
  );
  return file;
}

test('the same trials, figures and hash with one worker and with two', async () => {
  const documents: SweepDocument[] = [];
  for (const workers of ['1', '2']) {
    const out = join(directory, `workers-${workers}`);
    const args = [SMA, ...GRID, '--workers', workers, '--out', out, '--json'];
    const { code, stdout } = await sweep(...args);
    expect(code).toBe(0);
    documents.push(JSON.parse(stdout) as SweepDocument);
  }
  const [one, two] = documents as [SweepDocument, SweepDocument];
  expect(two).toEqual(one);
  expect(one.trials).toEqual({ total: 174, done: 174, failed: 0, skipped: 16 });
  expect(one.deflated_sharpe?.trials).toBe(174);
  expect(one.deflated_sharpe?.probability).toBeLessThan(0.95);
  const spec = one.results.find(({ params }) => params['fast'] === 10 && params['slow'] === 30);
  expect(spec?.metrics.end_equity).toBeCloseTo(137_695.03785699606, 5);
  const table = readFileSync(join(directory, 'workers-1/trials.csv'), 'utf8').trimEnd().split('\n');
  expect(table).toHaveLength(175);
  expect(readFileSync(join(directory, 'workers-1/report.html'), 'utf8')).toContain('Deflated');
});

const linesIn = (text: string): number => text.split('\n').length - 1;

/** Comes back when the file has at least so many lines; its directory may not exist yet. */
async function linesAppear(file: string, count: number): Promise<void> {
  mkdirSync(dirname(file), { recursive: true });
  for await (const _ of watch(dirname(file))) {
    if (existsSync(file) && linesIn(readFileSync(file, 'utf8')) >= count) return;
  }
}

test.each(['SIGINT', 'SIGKILL'] as const)(
  'interrupted by %s it keeps what is done and goes on from there',
  { timeout: 60_000 },
  async (signal) => {
    const file = slowBot(`slow_${signal.toLowerCase()}`);
    const out = join(directory, `interrupted-${signal}`);
    const log = join(out, 'trials.ndjson');
    const args = [file, '-p', 'day=1:12:1', '--workers', '1', '--out', out];
    // The first line names the sweep; the others are trials. Watched before anything can write.
    const appeared = linesAppear(log, 3);
    const child = spawn(process.execPath, [BIN, 'backtest', 'sweep', ...args]);
    const exit = once(child, 'exit') as Promise<[number | null]>;
    await Promise.race([appeared, exit.then(() => Promise.reject(new Error('ended')))]);
    child.kill(signal);
    const [code] = await exit;
    if (signal === 'SIGINT') expect(code).toBe(130);
    const kept = linesIn(readFileSync(log, 'utf8')) - 1;
    expect(kept).toBeGreaterThanOrEqual(2);
    expect(kept).toBeLessThan(12);

    appendFileSync(log, '{"index":11,"metr');
    const rest = await sweep(...args, '--json');
    expect(rest.code).toBe(0);
    expect(rest.stderr).toContain(`${kept} trials were done before`);
    const whole = await sweep(...args.slice(0, -1), `${out}-whole`, '--json');
    expect(JSON.parse(rest.stdout)).toEqual(JSON.parse(whole.stdout));
  },
);

test('another sweep never continues in the same directory', async () => {
  const out = join(directory, 'mine');
  expect((await sweep(SMA, '-p', 'fast=5,10', '--out', out)).code).toBe(0);
  const { code, stderr } = await sweep(SMA, '-p', 'fast=5,15', '--out', out);
  expect({ code, conflict: stderr.includes('holds another sweep') }).toEqual({
    code: 6,
    conflict: true,
  });
});

test('a trial that fails is counted and named, and the others are kept', async () => {
  const file = slowBot('fragile');
  const module = join(directory, 'fragile.ts');
  const source = readFileSync(module, 'utf8');
  writeFileSync(
    module,
    source.replace(
      'let work = 0;',
      `if (params.day === 2) throw new Error('not today');\nlet work = 0;`,
    ),
  );
  const args = [file, '-p', 'day=1:3:1', '--to', '2000-02-01', '--out', join(directory, 'fragile')];
  const { code, stdout, stderr } = await sweep(...args, '--json');
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject({ trials: { total: 3, done: 3, failed: 1 } });
  expect(stderr).toContain('not today');
});

test.each([
  [['-p', 'fats=1:5:1'], 'Did you mean fast?'],
  [['-p', 'fast=5:1:1'], 'upwards'],
  [['-p', 'fast=a:b:c'], 'made of numbers'],
  [['-p', 'fast=0:5:1'], 'at least 1'],
  [['-p', 'fast=50,60', '-p', 'slow=20'], 'fast must be below slow'],
  [['-p', 'fast=1:1e9:1e-3'], 'values; at most'],
  [[], 'at least one --param'],
])('%j is refused with what to do', async (args, message) => {
  const { code, stderr } = await sweep(SMA, ...args);
  expect(code).toBe(2);
  expect(stderr).toContain(message);
});
