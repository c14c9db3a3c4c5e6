/**
 * Who may import whom: the folders of the project as layers, checked on every value and type import.
 * `npm run check:imports` runs it. What is not listed is forbidden.
 */
import { existsSync, readdirSync } from 'node:fs';
import { cruise } from 'dependency-cruiser';
import type { ICruiseResult, IForbiddenRuleType } from 'dependency-cruiser';

/** Files directly in `src/`, which any folder may use. */
const SHARED = '[^/]+\\.ts$';

const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  lease: [],
  gate: ['lease'],
  storage: [],
  events: ['storage', 'trading'],
  identity: ['lease', 'storage'],
  market: [],
  engine: ['market'],
  backtest: ['engine', 'market'],
  trading: ['engine', 'market'],
  compliance: [
    'backtest',
    'bot-registry',
    'bots',
    'client',
    'engine',
    'events',
    'identity',
    'market',
    'risk',
    'runner',
    'storage',
    'tasks',
    'trading',
  ],
  knowledge: ['api', 'client', 'identity', 'storage'],
  kubernetes: [],
  mcp: ['client', 'research'],
  models: ['engine', 'market'],
  bots: ['backtest', 'engine', 'market', 'models'],
  sandbox: ['bots', 'engine', 'market', 'models'],
  'bot-registry': ['bots', 'events', 'sandbox', 'storage'],
  risk: ['bot-registry', 'bots', 'engine', 'events', 'identity', 'storage', 'trading'],
  tasks: [
    'backtest',
    'bot-registry',
    'bots',
    'engine',
    'events',
    'market',
    'risk',
    'sandbox',
    'storage',
    'trading',
  ],
  production: [
    'bot-registry',
    'bots',
    'events',
    'identity',
    'kubernetes',
    'risk',
    'storage',
    'tasks',
    'trading',
  ],
  halts: ['bot-registry', 'events', 'identity', 'production', 'storage', 'tasks', 'trading'],
  replay: [
    'bot-registry',
    'bots',
    'engine',
    'events',
    'market',
    'sandbox',
    'storage',
    'tasks',
    'trading',
  ],
  research: ['backtest', 'bot-registry', 'bots', 'events', 'market', 'storage', 'tasks'],
  runner: [
    'bots',
    'client',
    'engine',
    'events',
    'gate',
    'market',
    'sandbox',
    'storage',
    'tasks',
    'trading',
  ],
  api: ['lease'],
  console: ['api', 'client', 'identity', 'server'],
  server: [
    'api',
    'bot-registry',
    'bots',
    'compliance',
    'console',
    'events',
    'gate',
    'halts',
    'identity',
    'knowledge',
    'kubernetes',
    'lease',
    'mcp',
    'production',
    'replay',
    'risk',
    'research',
    'storage',
    'tasks',
    'trading',
  ],
  client: ['api', 'gate', 'lease'],
  cloud: ['api', 'client', 'gate', 'kubernetes', 'lease'],
  doctor: ['api', 'client', 'daemon', 'gate', 'lease', 'market'],
  cli: [
    'api',
    'backtest',
    'bots',
    'client',
    'cloud',
    'daemon',
    'doctor',
    'engine',
    'gate',
    'identity',
    'lease',
    'market',
    'mcp',
    'models',
    'runner',
    'sandbox',
    'server',
    'storage',
  ],
};

/** Why: strategies must give the same events in a backtest, in another process and in a session. */
const PURE = 'engine';
/** Why: leases are verified in browsers and workers, too. */
const PORTABLE = 'lease';

const folders = readdirSync('src', { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);
const unlisted = folders.filter((name) => !Object.hasOwn(MAY_IMPORT, name));
const gone = Object.keys(MAY_IMPORT).filter((name) => !existsSync(`src/${name}`));

const forbidden: IForbiddenRuleType[] = [
  { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
  {
    name: 'nobody-imports-tests',
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
    from: { path: `^src/${folder}/` },
    to: {
      path: '^(src|bin|daemon)/',
      pathNot: `^(src/(${SHARED}|(${[folder, ...allowed].join('|')})/)${allowed.includes('daemon') ? '|daemon/' : ''})`,
    },
  })),
  {
    name: 'daemon-imports-only-client-gate-lease',
    severity: 'error',
    from: { path: '^daemon/' },
    to: { path: '^(src|bin)/', pathNot: `^src/(${SHARED}|(client|gate|lease)/)` },
  },
  {
    name: 'shared-files-stay-at-the-bottom',
    severity: 'error',
    from: { path: `^src/${SHARED}` },
    to: { path: '^src/[^/]+/' },
  },
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

const faults = [
  ...summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} → ${to}`),
  ...unlisted.map((name) => `src/${name} is not listed in test/imports.ts`),
  ...gone.map((name) => `test/imports.ts lists src/${name}, which does not exist`),
  // Without its parser the tool reads no file, finds no fault and says that all is well.
  ...(read.length < 40
    ? [`only ${read.length} modules with imports were read: parser missing?`]
    : []),
];
for (const fault of faults) console.error(fault);
console.log(
  `${modules.length} modules, ${summary.totalDependenciesCruised ?? 0} imports, ${faults.length} faults`,
);
process.exitCode = faults.length === 0 ? 0 : 1;
