import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT = join(import.meta.dirname, '../..');

/** Markdown written by hand: not the reference, and not what packages bring. */
export const PAGES: readonly string[] = globSync(
  [
    '{README,CONTRIBUTING,SECURITY}.md',
    'docs/*.md',
    'docs/{tutorials,how-to,concepts}/*.md',
    'examples/**/*.md',
  ],
  { cwd: ROOT },
).sort();

/** Markdown that `npm run docs` writes. */
export const REFERENCE: readonly string[] = globSync('docs/reference/**/*.md', {
  cwd: ROOT,
}).sort();

/** A fenced block of code. */
export interface Block {
  readonly language: string;
  readonly lines: readonly string[];
  /** From a comment above the block, `<!-- not run: REASON -->`. */
  readonly notRun: string | undefined;
}

export function read(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8');
}

/** The code blocks of a page, in order. */
export function blocksOf(page: string): Block[] {
  const blocks = read(page).matchAll(/^(?:<!-- not run: ([^\n]+) -->\n\n)?```(\w*)\n(.*?)^```$/gms);
  return [...blocks].map(([, notRun, language, text]) => ({
    language: language!,
    lines: text!.trimEnd().split('\n'),
    notRun,
  }));
}

/** The lines of a page's shell blocks that the tests run, without comments. */
export function linesToRun(page: string): string[] {
  return blocksOf(page)
    .filter(({ language, notRun }) => language === 'sh' && notRun === undefined)
    .flatMap(({ lines }) => lines.map(withoutComment))
    .filter((line) => line !== '');
}

export function withoutComment(line: string): string {
  return line.replace(/(^|\s+)#\s.*$/, '').trim();
}

/** Every `service-local` command in the shell blocks of a page, without pipes and redirections. */
export function commandsOf(page: string): string[] {
  return blocksOf(page)
    .filter(({ language }) => language === 'sh')
    .flatMap(({ lines }) => lines.map(withoutComment))
    .map((line) => line.replace(/^(?:[A-Z]\w*=\S+ )+/, ''))
    .filter((line) => /^service-local [a-z]/.test(line))
    .map((line) => line.replace(/\s+[|<>&].*$/, ''));
}

/** Every command that the text of a page names, often without its arguments. */
export function namedCommandsOf(page: string): string[] {
  const spans = proseOf(page).matchAll(/`(service-local [a-z][^`]*)`/g);
  return [...spans]
    .map(([, text]) => text!.replace(/\s+[|<>&].*$/, ''))
    .filter((text) => text !== 'service-local license binding v1');
}

/** The page without its code blocks and comments. */
export function proseOf(page: string): string {
  return read(page)
    .replaceAll(/^```.*?^```$/gms, '')
    .replaceAll(/<!--.*?-->/gs, '');
}
