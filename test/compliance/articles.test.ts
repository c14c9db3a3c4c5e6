import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { article, ARTICLES, cite } from '../../src/compliance/articles.ts';

/** Citations in texts, such as `RTS 7 Article 9(3)`, and in code, such as `'RTS 7 9(3)(b)'`. */
const REFERENCES = [
  /((?:RTS \d )?)(?:Articles?|Art\.) (\d{1,2}(?:\([0-9a-z]+\))*)/g,
  /'((?:RTS \d |MiFID II |MAR )?)(\d{1,2}(?:\([0-9a-z]+\))+)'/g,
  /'()(I\(\d\)\([a-z]\))'/g,
];

const KNOWN = new Set(ARTICLES.map(cite));

function isKnown(reference: string): boolean {
  return KNOWN.has(reference) || [...KNOWN].some((one) => one.startsWith(`${reference}(`));
}

test('the table of articles contains every paragraph that code and docs cite', () => {
  const files = globSync('src/{compliance,api}/**/*.ts', { exclude: ['**/articles.ts'] }).concat(
    'docs/how-to/rts6.md',
  );
  const references = files.flatMap((file) => {
    const text = readFileSync(file, 'utf8');
    return REFERENCES.flatMap((form) =>
      [...text.matchAll(form)].map(([, act, ref]) => `${act}${ref}`.replace(/^RTS 6 /, '')),
    );
  });
  expect(references.length).toBeGreaterThan(50);
  expect([...new Set(references)].filter((one) => !isKnown(one))).toEqual([]);
});

test('the table of articles has no duplicates and resolves every citation', () => {
  expect(KNOWN.size).toBe(ARTICLES.length);
  expect(ARTICLES.map((one) => article(cite(one)))).toEqual(ARTICLES);
  expect(article('RTS 6 15(3)')).toBe(article('15(3)'));
  expect(() => article('15(99)')).toThrow('15(99)');
});
