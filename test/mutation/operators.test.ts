import { expect, test } from 'vitest';
import { applyMutant, listMutants } from './operators.ts';

const mutate = (text: string): string[] =>
  listMutants('a.ts', text).map((mutant) => applyMutant(text, mutant));

test.each([
  ['const x = a < b', ['const x = (a <= b)', 'const x = (a >= b)']],
  ['const x = a && b', ['const x = (a || b)']],
  ['const x = b?.c ?? d', ['const x = b.c ?? d', 'const x = b?.c', 'const x = d']],
  [
    'const x = await f(!y, 0)',
    ['const x = f(!y, 0)', 'const x = await f(y, 0)', 'const x = await f(!y, 1)'],
  ],
  ['const x = y.filter(z).some(e)', ['const x = y.some(e)', 'const x = y.filter(z).every(e)']],
  ['if (a) throw b', ['if (true) throw b', 'if (false) throw b', 'if (a) ;']],
  ['for (; a; i++) b', ['for (; false; i++) b', 'for (; a; i++) ;']],
  ["const x = ['a']", ["const x = ['']", 'const x = []']],
])('puts each fault into %s', (text, expected) => {
  expect(mutate(text).toSorted()).toEqual(expected.toSorted());
});

test('leaves types, imports, logs and messages as they are', () => {
  const text = `
    import { f } from 'f';
    type Answer = 'yes' | -1;
    let a: Answer;
    this.#log.warn({ code: 1 }, 'no');
    const error = new Error('it is wrong', { a: a as 'yes' });
  `;
  expect(mutate(text)).toEqual([]);
});

test('gives equal faults of a file names of their own', () => {
  const names = listMutants('a.ts', 'f();\nf();').map(({ name }) => name);
  expect(names).toEqual(['a.ts: removal: f(); → ;', 'a.ts: removal: f(); → ; (2)']);
});
