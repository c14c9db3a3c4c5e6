import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { figureOf, tableOf } from './figure.ts';
import { alternate } from './measurement.ts';
import { measureIn } from './processes.ts';
import { ROWS } from './rows.ts';
import { isAtLength } from '../length.ts';

const recorded = (...times: readonly (readonly [floor: number, ours: number])[]) => ({
  pairs: times.map(([floor, ours]) => ({ floor, ours })),
  peakBytes: 150 * 2 ** 20,
});

test('the table states the median ratio of each row, whether it meets the goal, and peak memory', async () => {
  const speed = { what: 'a sweep', floor: 'a loop', goal: { atLeast: 0.5 } };
  const time = { what: 'a file', floor: 'reading it', goal: { atMost: 3 } };
  const figures = [
    figureOf('fast', speed, recorded([10, 20], [30, 40], [10, 100])),
    figureOf('slow', speed, recorded([10, 21])),
    figureOf('short', time, recorded([10, 30])),
    figureOf('long', time, recorded([10, 31], [10, 30], [20, 99])),
  ];
  expect(await tableOf(figures)).toMatchInlineSnapshot(`
    "what     floor       measured   goal  peak memory  goal met
    a sweep  a loop           0.5  ≥ 0.5      150 MiB  yes
    a sweep  a loop         0.476  ≥ 0.5      150 MiB  no
    a file   reading it        3×   ≤ 3×      150 MiB  yes
    a file   reading it      3.1×   ≤ 3×      150 MiB  no
    "
  `);
});

test('each side of a comparison goes first in every other round', async () => {
  const order: string[] = [];
  const side = (name: string, ms: number) => () => {
    order.push(name);
    return ms;
  };
  const pairs = await alternate(3, { floor: side('floor', 1), ours: side('ours', 2) });
  expect(order).toEqual(['floor', 'ours', 'ours', 'floor', 'floor', 'ours']);
  expect(pairs).toEqual([1, 2, 3].map(() => ({ floor: 1, ours: 2 })));
});

test.runIf(isAtLength)('a short backtest is measured in processes of its own', () => {
  const { pairs, peakBytes } = measureIn('backtest.ts', '1000', '1');
  expect(pairs).toEqual([{ floor: expect.any(Number), ours: expect.any(Number) }]);
  expect(Math.min(pairs[0]!.floor, pairs[0]!.ours)).toBeGreaterThan(0);
  expect(peakBytes).toBeGreaterThan(2 ** 20);
});

test('each row names a script that exists', () => {
  const files = Object.values(ROWS).map(({ script: [file] }) => file);
  expect(files.filter((file) => !existsSync(join(import.meta.dirname, file)))).toEqual([]);
});
