/**
 * Permitted imports between the folders of the project, checked on every value and type import.
 * `npm run check:imports` runs this check. Imports that are not listed are forbidden.
 */
import { existsSync, readdirSync } from 'node:fs';
import { cruise } from 'dependency-cruiser';
import type { ICruiseResult, IForbiddenRuleType } from 'dependency-cruiser';

/**
 * The folders of `src`, from the bottom up, and what each may import. Only folders above it in this
 * list can be named, so that no import goes upwards and no two folders import each other.
 */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  base: [],
  lease: [],
  market: ['base'],
  storage: ['base'],
  gate: ['base', 'lease'],
  api: ['base', 'lease'],
  client: ['api', 'base', 'gate', 'lease'],
  engine: ['base', 'market'],
  backtest: ['base', 'engine', 'market'],
  bots: ['backtest', 'base', 'engine', 'market'],
  events: ['base', 'engine', 'storage'],
  trading: ['base', 'bots', 'client', 'engine', 'events', 'gate', 'market', 'storage'],
  identity: ['base', 'lease', 'storage'],
  deploy: ['api', 'base', 'client', 'gate', 'lease'],
  fleet: [
    'backtest',
    'base',
    'bots',
    'deploy',
    'engine',
    'events',
    'identity',
    'market',
    'storage',
    'trading',
  ],
  compliance: [
    'api',
    'base',
    'bots',
    'engine',
    'events',
    'fleet',
    'identity',
    'market',
    'storage',
    'trading',
  ],
  research: [
    'api',
    'backtest',
    'base',
    'bots',
    'client',
    'events',
    'fleet',
    'identity',
    'market',
    'storage',
  ],
  server: [
    'api',
    'base',
    'client',
    'compliance',
    'events',
    'fleet',
    'gate',
    'identity',
    'lease',
    'research',
    'storage',
    'trading',
  ],
  daemon: ['base', 'client', 'gate', 'lease'],
  doctor: ['api', 'base', 'client', 'daemon', 'gate', 'lease', 'market'],
  cli: [
    'api',
    'backtest',
    'base',
    'bots',
    'client',
    'daemon',
    'deploy',
    'doctor',
    'engine',
    'gate',
    'identity',
    'lease',
    'market',
    'research',
    'server',
    'storage',
    'trading',
  ],
  bin: ['base', 'cli'],
};

/** Limits that keep the layout easy to remember. */
const MOST_FOLDERS = 24;
const MOST_ARROWS = 110;

/** The same strategy must produce the same events in a backtest and in a trading session. */
const PURE = 'engine';
/** Leases are verified in browsers and workers, too. */
const PORTABLE = 'lease';

/** Folders of their own at the top level. */
const TOP_LEVEL = new Set(['daemon', 'bin']);
const pathOf = (folder: string): string =>
  TOP_LEVEL.has(folder) ? `${folder}/` : `src/${folder}/`;

const entries = readdirSync('src', { withFileTypes: true });
const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
const loose = entries.filter((entry) => entry.name.endsWith('.ts')).map(({ name }) => name);
const unlisted = folders.filter((name) => !Object.hasOwn(MAY_IMPORT, name));
const gone = Object.keys(MAY_IMPORT).filter((name) => !existsSync(pathOf(name)));
const order = Object.keys(MAY_IMPORT);
const upward = Object.entries(MAY_IMPORT).flatMap(([from, allowed]) =>
  allowed
    .filter((to) => order.indexOf(to) >= order.indexOf(from))
    .map((to) => `${from} may import ${to}, which is not below it`),
);

const forbidden: IForbiddenRuleType[] = [
  { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
  {
    name: 'nothing-imports-tests',
    severity: 'error',
    from: { pathNot: '^test/' },
    to: { path: '^test/' },
  },
  {
    name: 'engine-is-pure',
    severity: 'error',
    from: { path: `^src/${PURE}/` },
    to: { dependencyTypes: ['core', 'npm', 'npm-dev', 'npm-optional'] },
  },
  {
    name: 'lease-is-portable',
    severity: 'error',
    from: { path: `^src/${PORTABLE}/` },
    to: { dependencyTypes: ['core'] },
  },
  ...Object.entries(MAY_IMPORT).map(([folder, allowed]): IForbiddenRuleType => ({
    name: `${folder}-imports-only-${allowed.join('-') || 'itself'}`,
    severity: 'error',
    from: { path: `^${pathOf(folder)}` },
    to: {
      path: '^(src|bin|daemon)/',
      pathNot: `^(${[folder, ...allowed].map(pathOf).join('|')})`,
    },
  })),
];

const { output } = await cruise(['bin', 'daemon', 'src', 'test'], {
  validate: true,
  ruleSet: { forbidden },
  tsPreCompilationDeps: true,
  parser: 'swc',
  doNotFollow: { path: 'node_modules' },
});
const { modules, summary } = output as ICruiseResult;
const read = modules.filter(
  ({ source, dependencies }) => source.startsWith('src/') && dependencies.length > 0,
);

const arrows = graphOf(modules);
const unused = Object.entries(MAY_IMPORT).flatMap(([from, allowed]) =>
  allowed
    .filter((to) => !arrows.get(from)?.has(to))
    .map((to) => `test/imports.ts lets ${from} import ${to}, which it does not`),
);
const count = [...arrows.values()].reduce((sum, targets) => sum + targets.size, 0);

const faults = [
  ...summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} → ${to}`),
  ...unlisted.map((name) => `src/${name} is not listed in test/imports.ts`),
  ...gone.map((name) => `test/imports.ts lists ${name}, which does not exist`),
  ...loose.map((name) => `src/${name} is in no folder`),
  ...upward,
  ...unused,
  ...(order.length > MOST_FOLDERS ? [`${order.length} folders, more than ${MOST_FOLDERS}`] : []),
  ...(count > MOST_ARROWS ? [`${count} arrows between folders, more than ${MOST_ARROWS}`] : []),
  // If its parser is not installed, the tool reads no files and reports no faults.
  ...(read.length < 40
    ? [`only ${read.length} modules with imports were read: is the parser installed?`]
    : []),
];
for (const [from, targets] of arrows) console.log(`${from} → ${[...targets].sort().join(', ')}`);
for (const fault of faults) console.error(fault);
console.log(
  `${modules.length} modules, ${summary.totalDependenciesCruised ?? 0} imports, ${order.length} folders, ${count} arrows between them, ${faults.length} faults`,
);
process.exitCode = faults.length === 0 ? 0 : 1;

/** Folders from the top down, with the folders that each imports. */
function graphOf(all: ICruiseResult['modules']): ReadonlyMap<string, ReadonlySet<string>> {
  const folderOf = (path: string): string | undefined =>
    order.find((folder) => path.startsWith(pathOf(folder)));
  const graph = new Map(order.toReversed().map((folder) => [folder, new Set<string>()]));
  for (const { source, dependencies } of all) {
    const from = folderOf(source);
    if (from === undefined) continue;
    for (const { resolved } of dependencies) {
      const to = folderOf(resolved);
      if (to !== undefined && to !== from) graph.get(from)!.add(to);
    }
  }
  return graph;
}
