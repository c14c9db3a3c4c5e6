import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isAtLength, runs, seed } from './length.ts';

test('every property uses the seed of the run, the same one in every run of npm test', () => {
  expect(fc.readConfigureGlobal()).toMatchObject({ seed, numRuns: runs(100) });
  if (!isAtLength) expect([seed, runs(7)]).toEqual([1, 2]);
});

test('no property has its own seed or a fixed number of examples', () => {
  const root = import.meta.dirname;
  const files = globSync('**/*.ts', { cwd: root, exclude: (path) => basename(path) === 'bench' });
  const own = files.flatMap((file) => {
    const text = readFileSync(join(root, file), 'utf8');
    if (!/fc\.(?:assert|check)\(/u.test(text) || join(root, file) === import.meta.filename)
      return [];
    const counts = text.matchAll(/numRuns(?!: runs\().*/gu);
    const seeds = text.matchAll(/\bseed: -?\d+.*(?:path|numRuns)/gu);
    return [...counts, ...seeds].map(([found]) => `${file}: ${found}`);
  });
  expect(own).toEqual([]);
});
