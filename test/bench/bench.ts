/**
 * `npm run bench [-- --json] [-- PART …]`: each figure as a ratio to a floor measured in the same run,
 * because machines differ and are shared. Medians; fresh processes wherever compiling and warming up count.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { axesOf, gridOf, parseAxis } from '../../src/backtest/grid.ts';
import { conventionsFor } from '../../src/backtest/statistics.ts';
import { sweep } from '../../src/backtest/sweep.ts';
import type { TrialSetup } from '../../src/backtest/trial.ts';
import { formatTable, makeStyle } from '../../src/cli/output.ts';
import { BUILT_IN_STRATEGIES } from '../../src/engine/strategies/built-in.ts';
import { BAR_COLUMNS } from '../../src/market/bars.ts';
import { writeParquet } from '../../src/market/write.ts';
import { bots } from './bots.ts';
import { BENCH_CONFIG } from './config.ts';
import { pages } from './console.ts';
import { daemon } from './daemon.ts';
import { events } from './events.ts';
import { figure, median, round, type Figure } from './figure.ts';
import { gate } from './gate.ts';
import { halts } from './halts.ts';
import { issuance } from './issuance.ts';
import { handWrittenLoop } from './loop.ts';
import { replay } from './replay.ts';
import { randomWalk } from './series.ts';

const root = join(import.meta.dirname, '../..');
const directory = mkdtempSync(join(tmpdir(), 'service-local-bench-'));

const perSecond = (bars: number, ms: number): string => `${round(bars / ms / 1000)} M bars/s`;

/** The engine and the loop in turn, each in a process of its own: first runs, and settled ones. */
function backtests(): Figure[] {
  const bars = 1_000_000;
  // V8 goes on recompiling for half a second; the last runs are what long work gets.
  const repeats = 20;
  const samples = { loop: [], engine: [] } as Record<'loop' | 'engine', number[][]>;
  for (let i = 0; i < 7; i += 1) {
    for (const what of ['loop', 'engine'] as const) {
      const args = [join(import.meta.dirname, 'sample.ts'), what, String(bars), String(repeats)];
      const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
      if (stdout === '') throw new Error(stderr);
      samples[what].push((JSON.parse(stdout) as { milliseconds: number[] }).milliseconds);
    }
  }
  const compare = (name: string, of: (runs: number[]) => number): Figure => {
    const loop = median(samples.loop.map(of));
    const engine = median(samples.engine.map(of));
    return figure(
      `backtest, SMA crossover, 1 M bars, ${name}`,
      [perSecond(bars, loop), perSecond(bars, engine)],
      loop / engine,
      { atLeast: 0.5 },
    );
  };
  return [
    compare('first run of a process', (runs) => runs[0]!),
    compare('settled', (runs) => median(runs.slice(-8))),
  ];
}

/** 174 pairs: by the loop, on one worker and on two, in turn; medians of `repeats`. */
async function timesOfSweep(length: number, repeats: number): Promise<Record<Sweeper, number>> {
  const bars = randomWalk(length);
  const strategy = BUILT_IN_STRATEGIES.get('sma_crossover')!;
  const axes = axesOf(strategy, ['fast=5:50:5', 'slow=20:200:10'].map(parseAxis));
  const { trials } = gridOf(strategy, { fast: 10, slow: 30 }, axes);
  const setup: TrialSetup = {
    instruments: [{ symbol: 'X', bars }],
    config: BENCH_CONFIG,
    conventions: conventionsFor(bars.time, { barMs: 60_000 }),
    timeoutMs: 60_000,
  };
  const onWorkers = async (workers: number): Promise<void> => {
    let done = 0;
    const onResult = (): void => void (done += 1);
    await sweep(setup, { name: 'sma_crossover' }, trials, { workers, memoryMb: 1024, onResult });
    if (done !== trials.length) throw new Error('trials were lost');
  };
  const sweepers: Record<Sweeper, () => unknown> = {
    loop: () => {
      for (const { params } of trials) {
        handWrittenLoop(bars, params['fast'] as number, params['slow'] as number);
      }
    },
    one: () => onWorkers(1),
    two: () => onWorkers(2),
  };
  const times: Record<Sweeper, number[]> = { loop: [], one: [], two: [] };
  for (let i = 0; i < repeats; i += 1) {
    for (const name of ['loop', 'one', 'two'] as const) {
      const begin = performance.now();
      await sweepers[name]();
      times[name].push(performance.now() - begin);
    }
  }
  return { loop: median(times.loop), one: median(times.one), two: median(times.two) };
}
type Sweeper = 'loop' | 'one' | 'two';

async function sweeps(): Promise<Figure[]> {
  const rate = (ms: number): string => `${round((174 / ms) * 1000)} pairs/s`;
  const short = await timesOfSweep(100_000, 5);
  const long = await timesOfSweep(1_000_000, 3);
  const onTwo = (name: string, { one, two }: Record<Sweeper, number>): Figure =>
    figure(`${name}, 2 workers against 1`, [rate(one), rate(two)], one / two, { atLeast: 1.8 });
  return [
    figure(
      'sweep, 174 pairs × 100 k bars, 1 worker',
      [rate(short.loop), rate(short.one)],
      short.loop / short.one,
      { atLeast: 0.5 },
    ),
    onTwo('sweep, 174 pairs × 100 k bars', short),
    onTwo('sweep, 174 pairs × 1 M bars', long),
  ];
}

/** The compiled CLI, as users start it. */
function start(): Figure {
  const run = (...args: string[]): number => {
    const begin = performance.now();
    spawnSync(process.execPath, args);
    return performance.now() - begin;
  };
  const bare: number[] = [];
  const version: number[] = [];
  for (let i = 0; i < 21; i += 1) {
    bare.push(run('-e', '0'));
    version.push(run(join(root, 'dist/bin/service-local.js'), '--version'));
  }
  const [floor, ours] = [median(bare), median(version)];
  const text = (ms: number): string => `${round(ms)} ms`;
  return figure('service-local --version', [text(floor), text(ours)], ours / floor, {
    atMost: 1.5,
  });
}

/** 10 M bars through the CLI, from a Parquet file to every file of the result. */
async function memory(): Promise<Figure> {
  const data = join(directory, 'bars.parquet');
  await writeParquet(data, randomWalk(10_000_000), BAR_COLUMNS);
  const bot = join(directory, 'bot.json');
  writeFileSync(
    bot,
    JSON.stringify({
      apiVersion: 'bots/v1',
      kind: 'Bot',
      metadata: { name: 'Ten million bars', slug: 'ten-million-bars' },
      spec: {
        kind: 'trading',
        universe: { symbols: ['X'], currency: 'USD' },
        data: { source: data, timeframe: '1m' },
        strategy: { name: 'sma_crossover', params: { fast: 10, slow: 30 } },
      },
    }),
  );
  const measured = join(import.meta.dirname, 'peak-memory.ts');
  const cli = join(root, 'dist/bin/service-local.js');
  const args = ['--import', measured, cli, 'backtest', bot, '--quiet', '--out', directory];
  const { stderr, status } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  const peak = Number(/peak memory (\d+) KiB/.exec(stderr)![1]) / 1024 / 1024;
  return figure(
    'peak memory of a backtest of 10 M bars',
    ['1.2 GiB', `${round(peak)} GiB`],
    peak / 1.2,
    {
      atMost: 1,
    },
  );
}

const PARTS: Readonly<Record<string, () => Figure[] | Promise<Figure[]>>> = {
  backtests,
  sweeps,
  start: () => [start()],
  memory: async () => [await memory()],
  issuance,
  events,
  bots,
  replay,
  halts,
  gate,
  daemon,
  console: pages,
};

const { values, positionals } = parseArgs({
  options: { json: { type: 'boolean', default: false } },
  allowPositionals: true,
});
try {
  const figures: Figure[] = [];
  for (const [name, part] of Object.entries(PARTS)) {
    if (positionals.length > 0 && !positionals.includes(name)) continue;
    figures.push(...(await part()));
  }
  if (values.json) {
    console.log(JSON.stringify({ schema: 'service-local/bench/v1', figures }, undefined, 2));
  } else {
    const columns = ['what', 'floor', 'ours', 'ratio', 'goal', ''].map((title, i) => ({
      title,
      align: i > 0 && i < 5 ? ('right' as const) : ('left' as const),
    }));
    const rows = figures.map(({ what, floor, ours, ratio, goal = '', met }) => [
      what,
      floor,
      ours,
      String(ratio),
      goal,
      met === undefined ? '' : met ? 'met' : 'not met',
    ]);
    process.stdout.write(formatTable(columns, rows, await makeStyle(false)));
  }
} finally {
  rmSync(directory, { recursive: true });
}
