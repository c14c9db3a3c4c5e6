import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { VECTORS, type Vectors } from './lease/make-vectors.ts';

const root = join(import.meta.dirname, '..');
const text = readFileSync(join(root, 'SECURITY.md'), 'utf8');

test('SECURITY.md names tests, documents and vectors that exist', () => {
  const named = [...text.matchAll(/`((?:test|examples)\/[^`]+)`/g)].map(([, path]) => path!);
  const linked = [...text.matchAll(/\]\(([^#)]+)[^)]*\)/g)].map(([, path]) => path!);
  expect(named.length).toBeGreaterThan(10);
  expect([...named, ...linked].filter((path) => !existsSync(join(root, path)))).toEqual([]);

  const { vectors } = JSON.parse(readFileSync(VECTORS, 'utf8')) as Vectors;
  const names = vectors.map(({ name }) => name);
  const quoted = [...text.matchAll(/vectors\.json`: "([^"]+)"/g)].map(([, name]) => name!);
  expect(quoted.length).toBeGreaterThan(1);
  expect(names).toEqual(expect.arrayContaining(quoted));
});
