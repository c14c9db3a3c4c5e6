import fc from 'fast-check';
import { expect, test } from 'vitest';
import { diffDocuments, type Change } from '../../src/bots/diff-documents.ts';
import { runs } from '../length.ts';

test('reports each difference with its own pointer', () => {
  const before = {
    spec: {
      kind: 'trading',
      params: { fast: 10, 'a/b': 1 },
      symbols: ['A', 'B', 'C'],
      risk: null,
    },
  };
  const after = {
    spec: { kind: 'trading', params: { fast: 20, 'x~y': 2 }, symbols: ['A', 'X'], risk: {} },
  };
  expect(diffDocuments(before, after)).toEqual([
    { pointer: '/spec/params/fast', kind: 'changed', from: 10, to: 20 },
    { pointer: '/spec/params/a~1b', kind: 'removed', from: 1 },
    { pointer: '/spec/params/x~0y', kind: 'added', to: 2 },
    { pointer: '/spec/symbols/1', kind: 'changed', from: 'B', to: 'X' },
    { pointer: '/spec/symbols/2', kind: 'removed', from: 'C' },
    { pointer: '/spec/risk', kind: 'changed', from: null, to: {} },
  ]);
});

test('ignores the order of fields, and distinguishes a list from a map', () => {
  expect(diffDocuments({ a: 1, b: 2 }, { b: 2, a: 1 })).toEqual([]);
  expect(diffDocuments([], {})).toEqual([{ pointer: '', kind: 'changed', from: [], to: {} }]);
});

test('turns the first document into the second when the changes are applied', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), fc.jsonValue({ maxDepth: 4 }), (before, after) => {
      const changed = diffDocuments(before, after).reduce(applied, structuredClone(before));
      expect(changed).toEqual(after);
    }),
    { numRuns: runs(200) },
  );
});

function applied(document: unknown, { pointer, kind, to }: Change): unknown {
  if (pointer === '') return to;
  const path = pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
  const name = path.pop()!;
  const inner = path.reduce(
    (value, step) => (value as Record<string, unknown>)[step],
    document,
  ) as Record<string, unknown>;
  const value = structuredClone(to);
  // Assigning __proto__ would change the prototype of the object.
  const field = { value, enumerable: true, writable: true, configurable: true };
  if (kind !== 'removed') Object.defineProperty(inner, name, field);
  else if (!Array.isArray(inner)) delete inner[name];
  // Lists only lose items at their end.
  else inner.length = Math.min(inner.length, Number(name));
  return document;
}
