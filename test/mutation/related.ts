/** Which tests can notice a change of a source file, nearest first. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseSync } from 'rolldown/utils';

/** Tests of other folders that are run, nearest first: most of them come near every line somehow. */
const MOST_DISTANT_TESTS = 10;
const LONG = '.long.test.ts';

/** Files by the files that import them, as paths below `root`. */
export type Importers = ReadonlyMap<string, ReadonlySet<string>>;

export function readImporters(root: string): Importers {
  const importers = new Map<string, Set<string>>();
  for (const path of globSync('{bin,daemon,src,test,examples}/**/*.ts', { cwd: root })) {
    const text = readFileSync(join(root, path), 'utf8');
    for (const target of importsOf(path, text)) {
      if (!existsSync(join(root, target))) continue;
      importers.set(target, (importers.get(target) ?? new Set()).add(path));
    }
  }
  return importers;
}

/** The tests of the file's own folder, and the nearest of other folders. */
export function selectTests(path: string, importers: Importers, root: string): string[] {
  const own = globSync(join(ownTests(path, root), '**/*.test.ts'), { cwd: root });
  const distant = reachTests(path, importers).filter((test) => !own.includes(test));
  return [...own.toSorted(), ...distant.slice(0, MOST_DISTANT_TESTS)].filter(
    (test) => !test.endsWith(LONG),
  );
}

/** Whether `from` is or imports `to`, directly or not. */
export function reaches(from: string, to: string, importers: Importers): boolean {
  return distances(to, importers).has(from);
}

/** The folder of tests that mirrors the folder of the file, or the nearest one above it. */
function ownTests(path: string, root: string): string {
  let folder = join('test', dirname(path).replace(/^src\//, ''));
  while (!existsSync(join(root, folder))) folder = dirname(folder);
  return folder;
}

/** Tests that import the file, directly or not, by the number of imports between them. */
function reachTests(path: string, importers: Importers): string[] {
  return [...distances(path, importers)]
    .filter(([file]) => file.endsWith('.test.ts') && !file.endsWith(LONG))
    .toSorted(([a, near], [b, far]) => near - far || (a < b ? -1 : 1))
    .map(([file]) => file);
}

function distances(path: string, importers: Importers): ReadonlyMap<string, number> {
  const found = new Map([[path, 0]]);
  // The iteration includes what it adds, so that the nearest files come first.
  for (const [file, distance] of found) {
    for (const importer of importers.get(file) ?? []) {
      if (!found.has(importer)) found.set(importer, distance + 1);
    }
  }
  return found;
}

/** Returns what a file imports, and programs that it starts: `join(import.meta.dirname, 'program.ts')`. */
function importsOf(path: string, text: string): string[] {
  const { module } = parseSync(path, text);
  const types = module.staticImports.filter(
    ({ entries }) => entries.length > 0 && entries.every(({ isType }) => isType),
  );
  const values = types.reduceRight(
    (rest, { start, end }) => rest.slice(0, start) + rest.slice(end),
    text,
  );
  return [...values.matchAll(/'([^'\n]+\.ts)'/g)].map(([, literal]) =>
    join(dirname(path), literal!),
  );
}
