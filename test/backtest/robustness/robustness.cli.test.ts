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
import { countPermutations } from '../../../src/backtest/robustness/possible-figures.ts';
import type { RobustnessDocument } from '../../../src/backtest/robustness/robustness-document.ts';
import { inProcess } from '../../cli/in-process.ts';
import { BIN } from '../../cli/service-local.ts';
import { randomWalk } from './luck.ts';
import { normals } from './noise.ts';
import { isAtLength } from '../../length.ts';

let directory: string;
/** Bot on a random walk. */
let noise: string;
/** Bot on three random walks. */
let three: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-robustness-'));
  for (const [at, symbol] of ['A', 'B', 'C'].entries()) {
    writeFileSync(join(directory, `${symbol}.csv`), csvOf(at));
  }
  noise = botOf('noise', 'A', 'name: sma_crossover, params: { fast: 4, slow: 16 }');
  three = botOf(
    'three',
    'A, B, C',
    'name: momentum_rotation, params: { lookback: 5, hold: 5, top: 1 }',
  );
});
afterAll(() => rmSync(directory, { recursive: true }));

function csvOf(seed: number): string {
  const { time, open, high, low, close, volume } = randomWalk(400, normals(seed));
  const rows = Array.from(time, (at, i) =>
    [new Date(at).toISOString().slice(0, 10), open[i], high[i], low[i], close[i], volume[i]].join(),
  );
  return ['date,open,high,low,close,volume', ...rows, ''].join('\n');
}

function botOf(slug: string, symbols: string, strategy: string): string {
  const file = join(directory, `${slug}.yaml`);
  const sources = symbols.split(', ').map((symbol) => `${symbol}: ./${symbol}.csv`);
  const source = sources.length === 1 ? 'source: ./A.csv' : `sources: { ${sources.join(', ')} }`;
  writeFileSync(
    file,
    `apiVersion: bots/v1
kind: Bot
metadata: { name: ${slug}, slug: ${slug} }
spec:
  kind: trading
  universe: { symbols: [${symbols}], currency: USD }
  data: { ${source}, timeframe: 1d }
  strategy: { ${strategy} }
  engine:
    fees: { model: percent, rate: '0.0005' }
    slippage: { model: basis_points, bps: 2 }
`,
  );
  return file;
}

const GRID = ['-p', 'fast=2:6:2', '-p', 'slow=10,20'];

async function robustness(...args: string[]) {
  const words = ['backtest', 'robustness', '--workers', '1', ...args, '--json'];
  const { code, stdout, stderr } = await inProcess(words);
  if (code !== 0 && code !== 5) throw new Error(stdout + stderr);
  return { code, stderr, document: JSON.parse(stdout) as RobustnessDocument };
}

test('the gates of a search over noise fail with exit 5 and a reason for a trader', async () => {
  const out = join(directory, 'gates');
  const gates = ['--assert', 'pbo<=0.2', '--assert', 'permutation_p<=0.05'];
  const permutations = isAtLength ? 60 : 20;
  const args = [
    ...GRID,
    `--permutations=${permutations}`,
    '--blocks',
    '8',
    '--seed',
    '7',
    ...gates,
  ];
  const { code, stderr, document } = await robustness(noise, ...args, '--out', out);
  expect(code).toBe(5);
  const { at_least_as_good: good, p } = document.permutations!;
  expect(p).toBe((1 + good) / (1 + permutations));
  expect(stderr).toContain(
    `permutation_p <= 0.05: Shuffled prices did as well in ${good} of ${permutations} cases, so luck alone often gives this result.`,
  );
  expect(stderr).toMatch(/pbo <= 0\.2: In [\d.]+% of 70 splits of the history, the parameters/);
  expect(document.gates.map(({ name, pass }) => [name, pass])).toEqual([
    ['pbo', false],
    ['permutation_p', false],
  ]);
  expect(document.trials).toEqual({ total: 6, failed: 0 });
  expect(JSON.parse(readFileSync(join(out, 'robustness.json'), 'utf8'))).toEqual(document);
  const report = readFileSync(join(out, 'report.html'), 'utf8');
  expect(report).toContain(document.figures.pbo.explanation);
  expect(report.match(/<li class="fail">/g)).toHaveLength(2);
});

test.runIf(isAtLength)(
  'the result is the same with one worker and with three, and differs with another seed',
  async () => {
    const run = async (workers: string, seed: string) => {
      const out = join(directory, `workers-${workers}-${seed}`);
      const limits = ['--permutations', '8', '--workers', workers, '--seed', seed];
      return (await robustness(noise, ...GRID, ...limits, '--out', out)).document;
    };
    const one = await run('1', '3');
    expect(await run('3', '3')).toEqual(one);
    const other = await run('2', '4');
    expect(other.permutations!.best).not.toEqual(one.permutations!.best);
    expect(other.bootstrap).not.toEqual(one.bootstrap);
    expect(other.overfitting).toEqual(one.overfitting);
    for (const change of [
      ['--seed', '4'],
      ['--seed', '3', '--objective', 'calmar'],
    ]) {
      const mixed = [...GRID, ...change, '--out', join(directory, 'workers-1-3')];
      const { code, stderr } = await inProcess(['backtest', 'robustness', noise, ...mixed]);
      expect(code).toBe(6);
      expect(stderr).toContain('contains another robustness test');
    }
  },
);

test.runIf(isAtLength)('each run with one change is that of the changed bot', async () => {
  const out = join(directory, 'changes');
  const { document } = await robustness(noise, '--permutations', '0', '--out', out);
  const backtest = async (...args: string[]) => {
    const runs = join(directory, 'changed');
    const { stdout } = await inProcess(['backtest', ...args, '--json', '--out', runs]);
    return (JSON.parse(stdout) as { risk: { sharpe: number } }).risk.sharpe;
  };
  const runs = new Map(
    [...document.neighbors, ...document.stresses].map(({ label, metrics }) => [
      label,
      metrics!.sharpe,
    ]),
  );
  expect([...runs.keys()].slice(0, 4)).toEqual(['fast=3', 'fast=5', 'slow=14', 'slow=18']);
  expect(runs.get('fast=3')).toBe(await backtest(noise, '-p', 'fast=3'));
  const changed = (name: string, from: string, to: string): string => {
    const file = join(directory, `${name}.yaml`);
    writeFileSync(file, readFileSync(noise, 'utf8').replace(from, to));
    return file;
  };
  const fees = changed('fees', "'0.0005'", "'0.001'");
  expect(runs.get('fees × 2')).toBe(await backtest(fees));
  const slippage = changed('slippage', 'bps: 2', 'bps: 4');
  expect(runs.get('slippage × 2')).toBe(await backtest(slippage));
  const first = readFileSync(join(directory, 'changed/events.ndjson'), 'utf8').split('\n')[0]!;
  const day = Date.parse((JSON.parse(first) as { time: string }).time) + 5 * 86_400_000;
  const shifted = await backtest(noise, '--from', new Date(day).toISOString().slice(0, 10));
  expect(runs.get('start 5 bars after the first order')).toBe(shifted);
  expect(runs.get('orders one bar late')).not.toBe(document.chosen.metrics.sharpe);
  const { figures, permutations } = document;
  expect(permutations).toBeNull();
  expect(figures.permutation_p).toEqual({
    value: null,
    explanation: 'Permutation p-value is undefined: no permutations were run.',
  });
  expect(figures.fees_doubled.value).toBe(runs.get('fees × 2'));
});

test('a bot with models is tested without permutations, and refuses them', () => {
  expect(countPermutations(false, undefined)).toBe(1000);
  expect(countPermutations(true, undefined)).toBe(0);
  expect(() => countPermutations(true, 10)).toThrow('a bot with models cannot be permuted');
});

test.each([
  ['permutation_p<=0.05', ['--permutations=10'], 'Run at least 19 permutations.'],
  ['permutation_p<0.05', ['--permutations=19'], 'Run at least 20 permutations.'],
  ['permutation_p<=0.05', ['--permutations=0'], 'Run at least 19 permutations, or remove'],
  ['pbo<=0.2', [], 'cross-validation needs at least two trials'],
  ['symbol_left_out>=0', GRID, 'the strategy needs all of its symbols'],
] as const)('the gate %s with %j is refused before the run', async (gate, args, reason) => {
  const out = join(directory, 'refused');
  const words = ['backtest', 'robustness', noise, ...args, '--assert', gate, '--out', out];
  const { code, stderr } = await inProcess(words);
  expect(code).toBe(2);
  expect(stderr).toContain(`assertion "${gate}": can never pass`);
  expect(stderr).toContain(reason);
  expect(existsSync(out)).toBe(false);
});

test.runIf(isAtLength)(
  'the bot that init writes is run with other parameters and under worse conditions',
  async () => {
    const project = join(directory, 'project');
    await inProcess(['init', project]);
    const out = ['--out', join(directory, 'own')];
    const args = ['-p', 'fast=8:12:2', '--permutations', '2', ...out];
    const { code, document } = await robustness(join(project, 'bot.yaml'), ...args);
    expect(code).toBe(0);
    expect(document.neighbors.map(({ label }) => label)).toEqual([
      'fast=8',
      'fast=12',
      'slow=27',
      'slow=33',
    ]);
    const runs = [...document.neighbors, ...document.stresses];
    expect(runs.filter(({ metrics }) => metrics === null)).toEqual([]);
  },
);

test.runIf(isAtLength)(
  'every permutation repeats a guided search for another objective',
  async () => {
    const run = async (workers: string) => {
      const search = ['-p', 'fast=2:8', '-p', 'slow=10:40', '--search', 'tpe', '--trials', '20'];
      const goal = ['--objective', 'max_drawdown', '--where', 'trades>=3', '--permutations', '3'];
      const out = ['--workers', workers, '--out', join(directory, `guided-${workers}`)];
      return (await robustness(noise, ...search, ...goal, ...out)).document;
    };
    const one = await run('1');
    expect(await run('2')).toEqual(one);
    expect(one.search).toEqual({ kind: 'tpe', trials: 20, seed: 1 });
    expect(one.chosen.metrics.trades).toBeGreaterThanOrEqual(3);
    expect(one.figures.fees_doubled.explanation).toMatch(
      /^The max drawdown of the run “fees × 2” is/,
    );
    expect(one.permutations!.best.counts.reduce((sum, count) => sum + count, 0)).toBe(3);
  },
);

test.each([
  ['--prune', "unknown option '--prune'"],
  ['--objective=calmar', 'a robustness test accepts only one objective'],
])('a search with %s is rejected', async (option, message) => {
  const args = ['-p', 'fast=2,4', '--objective', 'sharpe', option];
  const { code, stderr } = await inProcess(['backtest', 'robustness', noise, ...args]);
  expect({ code, isClear: stderr.includes(message) }).toEqual({ code: 2, isClear: true });
});

test.each(['--search=random', '--trials=10'])(
  '%s without parameters is rejected',
  async (option) => {
    const { code, stderr } = await inProcess(['backtest', 'robustness', noise, option]);
    expect(code).toBe(2);
    expect(stderr).toContain('--search and --trials need at least one --param');
  },
);

test.runIf(isAtLength)(
  'the objective and its conditions also apply without parameters',
  async () => {
    const bare = (name: string, ...goal: string[]): string[] => [
      noise,
      '--permutations=3',
      '--out',
      join(directory, name),
      ...goal,
    ];
    const { document } = await robustness(...bare('calmar', '--objective', 'calmar'));
    expect(document.figures.fees_doubled.explanation).toMatch(/^The Calmar/i);
    const unmet = bare('unmet', '--where', 'trades>=1000000');
    const { code, stderr } = await inProcess(['backtest', 'robustness', ...unmet]);
    expect(code).toBe(1);
    expect(stderr).toContain('no trial meets the conditions');
  },
);

test.runIf(isAtLength)(
  'damaged lines of the log are skipped, and their permutations run again',
  async () => {
    const out = join(directory, 'damaged');
    const args = [noise, '--permutations', '6', '--workers', '1', '--out', out];
    const { document } = await robustness(...args);
    const log = join(out, 'permutations.ndjson');
    const lines = readFileSync(log, 'utf8').split('\n');
    lines[1] = lines[1]!.slice(0, -3);
    lines[2] = 'null';
    lines[3] = lines[3]!.replace(/"best":.*/, '"best":"x"}');
    lines[4] = lines[4]!.replace(/"permutation":\d+/, '"permutation":-1');
    writeFileSync(log, lines.join('\n'));
    const { stderr, document: resumed } = await robustness(...args);
    expect(stderr).toContain('resuming: 2 of 6 permutations are done');
    expect(resumed).toEqual(document);
  },
);

test.runIf(isAtLength)(
  'several symbols are shuffled together, and left out one by one',
  async () => {
    const out = join(directory, 'three');
    const { code, document } = await robustness(three, '--permutations', '5', '--out', out);
    expect(code).toBe(0);
    expect(document.permutations!.count).toBe(5);
    const labels = document.stresses.map(({ label }) => label);
    expect(labels.slice(-3)).toEqual(['without A', 'without B', 'without C']);
  },
);

test.runIf(isAtLength)(
  'a test that Ctrl-C and then SIGKILL ends resumes with the same result',
  async () => {
    const out = join(directory, 'ended');
    const log = join(out, 'permutations.ndjson');
    mkdirSync(out);
    const args = ['backtest', 'robustness', noise, ...GRID, '--out', out];
    const env = { ...process.env, SERVICE_LOCAL_HOME: join(directory, 'home') };
    const endBy = async (signal: NodeJS.Signals, count: number) => {
      const appeared = permutationsAppear(log, count);
      const long = [...args, '--permutations', '1000000'];
      const child = spawn(process.execPath, [BIN, ...long], { env, stdio: 'ignore' });
      const exit = once(child, 'exit') as Promise<[number | null]>;
      await Promise.race([appeared, exit.then(() => Promise.reject(new Error('ended')))]);
      child.kill(signal);
      return (await exit)[0];
    };
    expect(await endBy('SIGINT', 6)).toBe(130);
    expect(await endBy('SIGKILL', Math.min(40, countOf(log) + 6))).toBeNull();
    appendFileSync(log, '{"permutation":39,"be');

    const short = ['--permutations', '40'];
    const { stderr, document } = await robustness(...args.slice(2), ...short);
    expect(stderr).toMatch(/resuming: \d+ of 40 permutations are done/);
    const fresh = await robustness(noise, ...GRID, ...short, '--out', join(directory, 'fresh'));
    expect(document).toEqual(fresh.document);
  },
);

/** Permutations that the shorter test needs, too. Other threads may have logged only later ones. */
function countOf(log: string): number {
  const lines = readFileSync(log, 'utf8').matchAll(/^\{"permutation":(\d+),.*\}$/gm);
  return [...lines].filter(([, permutation]) => Number(permutation) < 40).length;
}

/** Waits until a log has this number of permutations. Its directory exists. */
async function permutationsAppear(log: string, count: number): Promise<void> {
  for await (const _ of watch(dirname(log))) {
    if (existsSync(log) && countOf(log) >= count) return;
  }
}
