import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { API, SymbolFlags, type Symbol } from 'typescript/unstable/sync';
import { declarationOf, type Checker, type Declaration } from './declaration.ts';
import { blocks, bullets, code, prose } from './markdown.ts';
import type { Page } from './page.ts';

const ROOT = join(import.meta.dirname, '../..');

const SECTIONS = [
  ['Functions', 'function'],
  ['Classes', 'class'],
  ['Types', 'type'],
  ['Constants', 'constant'],
] as const;

/** An entry of `exports` in `package.json`. */
interface EntryPoint {
  /** What programs import: `service-local/gate`. */
  readonly name: string;
  readonly page: string;
  /** Absolute path of the source. */
  readonly source: string;
}

/** A page for each entry point of the package, with all that it exports, and an index. */
export function libraryPages(): Page[] {
  const api = new API();
  try {
    const config = join(ROOT, 'src/tsconfig.json');
    const [project] = api.updateSnapshot({ openProjects: [config] }).getProjects();
    const { program, checker } = project!;
    const entries = entryPoints().map((entry) => {
      const file = program.getSourceFile(entry.source)!;
      const exported = checker.getExportsOfModule(checker.getSymbolAtLocation(file)!);
      return { ...entry, about: docOf(file.text), exported: declarations(exported, checker) };
    });
    const pages = entries.map(({ name, page, about, exported }) => ({
      path: `library/${page}`,
      text: blocks(
        `# ${name}`,
        about,
        'See [all entry points](index.md).',
        SECTIONS.flatMap(([title, kind]) => {
          const section = exported.filter((one) => one.kind === kind);
          return section.length === 0 ? [] : [`## ${title}`, ...section.map(({ text }) => text)];
        }),
      ),
    }));
    return [{ path: 'library/index.md', text: indexOf(entries) }, ...pages];
  } finally {
    api.close();
  }
}

function entryPoints(): EntryPoint[] {
  const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    exports: Record<string, string | { readonly default: string }>;
  };
  return Object.entries(exports).flatMap(([path, target]) => {
    if (typeof target === 'string') return [];
    const name = path.replace('.', 'service-local');
    const source = target.default.replace('./dist/', '').replace(/\.js$/, '.ts');
    return [{ name, page: `${name.split('/').at(-1)}.md`, source: join(ROOT, source) }];
  });
}

function declarations(exported: readonly Symbol[], checker: Checker): Declaration[] {
  const names = new Set(exported.map(({ name }) => name));
  return exported
    .map((symbol) => {
      const target = symbol.flags & SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
      return declarationOf(symbol.name, target, checker, names);
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The text of the first comment of a module; its code blocks stay as they are. */
function docOf(source: string): string {
  const comment = /\/\*\*\n(.*?)\n \*\//s.exec(source)![1]!.replaceAll(/^ \* ?/gm, '');
  return comment
    .split(/(^```.*?^```$)/ms)
    .map((part) => (part.startsWith('```') ? part : prose(part)))
    .join('');
}

function indexOf(
  entries: readonly (EntryPoint & { readonly about: string; readonly exported: Declaration[] })[],
): string {
  return blocks(
    '# Library',
    'The npm package has four entry points for programs in TypeScript or JavaScript.',
    bullets(
      entries.map(({ name, page, about }) => {
        const [summary] = about.split('\n\n', 1);
        return `[${code(name)}](${page}): ${summary!.replaceAll('\n', ' ').replace(/:$/, '.')}`;
      }),
    ),
  );
}
