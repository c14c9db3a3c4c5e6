import { registerHooks } from 'node:module';
import { describe, expect, it, test, vi } from 'vitest';
import { seededRandom } from '../../../src/engine/random.ts';
import { stepsOf, type Step } from '../../../src/engine/steps.ts';
import { barsFromRows } from '../../../src/market/bars.ts';
import { modelRuntime, openModel } from '../../../src/bots/models/runtime.ts';
import { openSignals, signalsOver } from '../../../src/bots/models/signals.ts';
import { modelOf, TANH, WEIGHTS } from './models.ts';

const SYMBOLS = ['A', 'B'];

/** Two symbols, each with different gaps. */
const INSTRUMENTS = SYMBOLS.map((symbol, index) => {
  const random = seededRandom(index + 1);
  let close = 1;
  const rows = Array.from({ length: 120 }, (_, day) => {
    close *= 1 + (random() - 0.5) / 10;
    return [day * 86_400_000, close, close, close, close, 1] as const;
  });
  return { symbol, bars: barsFromRows(rows.filter(() => random() > 0.2)) };
});
const STEPS = [...stepsOf(INSTRUMENTS)];

/** Signals of each symbol, taken `atOnce` steps at a time. */
async function signalsBySymbol(steps: readonly Step[], atOnce: number): Promise<number[][]> {
  const { signals, take, close } = await openSignals([modelOf()], SYMBOLS);
  for (let at = 0; at < steps.length; at += atOnce) await take(steps.slice(at, at + atOnce));
  await close();
  return signals.columns.map(([column], i) => [...column!.subarray(0, signals.counts[i])]);
}

test('a signal is the output of the model for the inputs up to its bar', async () => {
  const all = await signalsBySymbol(STEPS, STEPS.length);
  for (const [i, { bars }] of INSTRUMENTS.entries()) {
    const computed = all[i]!;
    expect(computed).toHaveLength(bars.length);
    expect(computed.slice(0, 2)).toEqual([NaN, NaN]);
    for (let bar = 2; bar < bars.length; bar += 1) {
      const row = [bars.close[bar]!, bars.close[bar]! / bars.close[bar - 2]! - 1];
      const z = row.reduce((sum, x, at) => sum + x * WEIGHTS[at]!, 0);
      expect(computed[bar]).toBeCloseTo(Math.tanh(z), 6);
    }
  }
});

test('signals are bit-identical step by step, in batches, at once and in parallel', async () => {
  const all = await signalsBySymbol(STEPS, STEPS.length);
  const [single, parts] = await Promise.all([signalsBySymbol(STEPS, 1), signalsBySymbol(STEPS, 7)]);
  expect(single).toEqual(all);
  expect(parts).toEqual(all);
  const { columns, counts } = (await signalsOver([modelOf()], INSTRUMENTS))!;
  expect(columns.map(([column], i) => [...column!.subarray(0, counts[i])])).toEqual(all);
});

test('later bars do not change earlier signals', async () => {
  const all = await signalsBySymbol(STEPS, STEPS.length);
  for (const length of [1, 2, 3, 50, 99]) {
    const known = await signalsBySymbol(STEPS.slice(0, length), length);
    expect(known).toEqual(all.map((column, i) => column.slice(0, known[i]!.length)));
  }
});

test('signals of several outputs and models are found by name', async () => {
  const two = { ...TANH, weights: [{ name: 'w', dims: [2, 2], values: [1, 0, 0, 1] }] };
  const outputs = [
    { name: 'second', element: 1 },
    { name: 'first', element: 0 },
  ];
  const graph = { ...two, outputs: [{ name: 'y', dims: [1, 2] }] };
  const models = [modelOf(), modelOf(graph, { name: 'other', outputs })];
  const { signals, take, close } = await openSignals(models, ['A']);
  const bar = { open: 1, high: 1, low: 1, close: 0.5, volume: 1 };
  await take([0, 1, 2].map((time) => ({ time, bars: { A: bar } })));
  await close();
  expect(signals.names).toEqual(['score', 'second', 'first']);
  const [score, second, first] = signals.columns[0]!.map((column) => column[2]!);
  expect(score).toBeCloseTo(Math.tanh(0.125), 6);
  expect(second).toBe(0);
  expect(first).toBeCloseTo(Math.tanh(0.5), 6);
});

test('a symbol named like an inherited property has only its own bars', async () => {
  const { signals, take, close } = await openSignals([modelOf()], ['A', 'toString']);
  const bar = { open: 1, high: 1, low: 1, close: 1, volume: 1 };
  await take([
    { time: 0, bars: { A: bar } },
    { time: 1, bars: { A: bar, toString: bar } },
  ]);
  await close();
  expect([...signals.counts]).toEqual([2, 1]);
});

test('a signal is NaN only for bars with an input that is not finite', async () => {
  const inputs = [{ column: 'close' }, { column: 'volume', over: 'open' }] as const;
  const { signals, take, close } = await openSignals([modelOf({}, { inputs })], ['A']);
  const bar = { open: 1, high: 1, low: 1, close: 1, volume: 1 };
  const all = [bar, { ...bar, open: 0 }, { ...bar, close: 1e300 }, bar];
  await take(all.map((one, time) => ({ time, bars: { A: one } })));
  await close();
  const [first, byZero, tooLarge, last] = signals.columns[0]![0]!;
  expect([byZero, tooLarge]).toEqual([NaN, NaN]);
  expect(last).toBe(first);
  expect(first).toBeCloseTo(Math.tanh(3.25), 6);
});

describe('a model that cannot be run', () => {
  it('fails when it is opened', async () => {
    const shapes = { ...TANH, weights: [{ name: 'w', dims: [3, 1], values: [1, 2, 3] }] };
    await expect(openModel(modelOf(shapes))).rejects.toMatchObject({
      code: 'invalid_spec',
      reason: 'invalid_model',
      message: expect.stringMatching(/^the model m cannot be run: /),
    });
  });

  it('fails with a single-line message without control characters from its file', async () => {
    const long = `\u001B[2Ja\nb${'x'.repeat(2000)}`;
    const nodes = [{ operator: 'MatMul', inputs: ['row', long], outputs: ['y'] }];
    const error = await openModel(modelOf({ nodes })).catch((thrown: Error) => thrown);
    expect((error as Error).message).toMatch(/Node input 'a bx+ … x+' is not a graph input.*\.$/);
  });

  it('fails if rows are repeatedly slow, but not after a single interruption', async () => {
    const row = [1, 1];
    const { run, close } = await openModel(modelOf());
    let now = 0;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => (now += 2001));
    const slow = { reason: 'invalid_model', message: expect.stringMatching(/one row took \d+ ms/) };
    try {
      await expect(openModel(modelOf())).rejects.toMatchObject(slow);
      expect(await run(row)).toEqual(await run(row));
      await expect(run(row)).rejects.toMatchObject(slow);
    } finally {
      clock.mockRestore();
      await close();
    }
  });

  it('fails with a remedy if the runtime is not installed', async () => {
    const hooks = registerHooks({
      resolve(specifier, context, next) {
        if (specifier.includes('onnxruntime-web')) throw new Error('no such package');
        return next(specifier, context);
      },
    });
    try {
      // The query makes Node load a second copy of the module, which has not loaded the runtime yet.
      const copy = '../../../src/bots/models/runtime.ts?copy';
      const { openModel: openWithout } = (await import(copy)) as { openModel: typeof openModel };
      await expect(openWithout(modelOf())).rejects.toMatchObject({
        code: 'failure',
        reason: 'package_missing',
        remedy: expect.stringContaining('npm install onnxruntime-web'),
      });
    } finally {
      hooks.deregister();
    }
  });

  it('fails if it needs too much memory, without affecting other models', async () => {
    const length = 16_384;
    const graph = {
      ...TANH,
      nodes: [
        { operator: 'MatMul', inputs: ['row', 'w'], outputs: ['line'] },
        { operator: 'Add', inputs: ['line', 'column'], outputs: ['square'] },
        { operator: 'ReduceMax', inputs: ['square'], outputs: ['y'] },
      ],
      weights: [
        { name: 'w', dims: [2, length], values: Array.from({ length: 2 * length }, () => 1) },
        { name: 'column', dims: [length, 1], values: Array.from({ length }, () => 1) },
      ],
    };
    await expect(openModel(modelOf(graph))).rejects.toMatchObject({
      message: expect.stringContaining('bad_alloc'),
    });
    expect(WebAssembly.Memory.name).toBe('Memory');
    expect(await signalsBySymbol(STEPS.slice(0, 3), 3)).toHaveLength(2);
  });
});

test('the runtime is identified by its version', () => {
  expect(modelRuntime()).toMatch(/^onnxruntime-web \d+\.\d+\.\d+$/);
});
