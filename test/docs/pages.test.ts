import { existsSync, globSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, test } from 'vitest';
import { anchor } from '../../docs/generator/markdown.ts';
import { blocksOf, PAGES, proseOf, read, REFERENCE, ROOT } from './documents.ts';

const WRITTEN = PAGES.filter((page) => !page.startsWith('examples/'));

/** Faults of every page, each with the name of its page. */
function faultsOf(pages: readonly string[], find: (page: string) => readonly string[]): string[] {
  return pages.flatMap((page) => find(page).map((fault) => `${page}: ${fault}`));
}

/** Ids of the headings of a page, as GitHub makes them. */
function anchorsOf(page: string): Set<string> {
  const text = read(page).replaceAll(/^```.*?^```$/gms, '');
  return new Set([...text.matchAll(/^#+ (.+)$/gm)].map(([, heading]) => anchor(heading!)));
}

function brokenLinks(page: string): string[] {
  const links = proseOf(page).matchAll(/\]\(([^)\s]+)\)/g);
  return [...links]
    .map(([, target]) => target!)
    .filter((target) => !/^[a-z]+:/.test(target))
    .filter((target) => {
      const [path, fragment] = target.split('#');
      const file = path === '' ? page : normalize(join(dirname(page), path!));
      if (!existsSync(join(ROOT, file))) return true;
      return fragment !== undefined && !anchorsOf(file).has(fragment);
    });
}

test('no page has a broken link', () => {
  expect(faultsOf([...PAGES, ...REFERENCE], brokenLinks)).toEqual([]);
});

test('the start page links every page of docs', () => {
  const linked = new Set(
    [...read('docs/index.md').matchAll(/\]\(([^)#]+)\)/g)].map(([, path]) => `docs/${path}`),
  );
  const pages = globSync('docs/{tutorials,how-to,concepts}/*.md', { cwd: ROOT });
  expect(pages.filter((page) => !linked.has(page))).toEqual([]);
});

/** Text as a reader sees it: a link is its text, and code counts as one word. */
function readable(markdown: string): string {
  return markdown
    .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/`[^`]*`/g, 'code')
    .replaceAll(/(?:\*\*|\\)/g, '');
}

function sentencesOf(page: string): string[] {
  return proseOf(page)
    .split(/\n\s*\n|\n(?=\s*(?:[-#|]|\d+\.))/)
    .filter((part) => !/^\s*\|/.test(part))
    .map((part) => readable(part).replaceAll(/\s+/g, ' '))
    .flatMap((part) => part.split(/(?<=[.!?]["”)]?)\s+(?=\S)/));
}

test('no sentence is longer than 30 words', () => {
  const long = (page: string): string[] =>
    sentencesOf(page).filter((sentence) => sentence.trim().split(' ').length > 30);
  expect(faultsOf(WRITTEN, long)).toEqual([]);
});

test('cells of tables hold phrases, not paragraphs', () => {
  const paragraphs = (page: string): string[] =>
    (proseOf(page).match(/^\|.*\|$/gm) ?? [])
      .flatMap((row) => readable(row).split('|'))
      .map((cell) => cell.trim())
      .filter((cell) => cell.split(' ').length > 12 || /\. [A-Z]/.test(cell));
  expect(faultsOf(WRITTEN, paragraphs)).toEqual([]);
});

test('a command that is not run names only existing tests as the reason', () => {
  const missing = (page: string): string[] =>
    blocksOf(page)
      .flatMap(({ notRun = '' }) => notRun.match(/\btest\/[\w./-]+/g) ?? [])
      .filter((path) => !existsSync(join(ROOT, path)));
  expect(faultsOf(PAGES, missing)).toEqual([]);
});

test('the tutorial on strategies shows the file that init writes', () => {
  const listing = blocksOf('docs/tutorials/own-strategy.md').find(
    ({ language }) => language === 'ts',
  );
  expect(`${listing!.lines.join('\n')}\n`).toBe(read('examples/strategies/my-strategy.ts'));
});

test('every path that CONTRIBUTING.md names exists', () => {
  const spans = [...read('CONTRIBUTING.md').matchAll(/`([\w.*-]+(?:\/[\w.*-]+)+\/?)`/g)];
  const paths = spans.map(([, path]) => path!).filter((path) => !path.startsWith('dist/'));
  expect(paths.length).toBeGreaterThan(30);
  const missing = paths.filter((path) => globSync(path, { cwd: ROOT }).length === 0);
  expect(missing).toEqual([]);
});
